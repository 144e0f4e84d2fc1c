"""Labelled text files: what is read, how it is divided, and what is said when something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from stimuli.datasets import DECODING, open_dataset
from stimuli.datasets.lines import LinesDataset, open_lines
from stimuli.errors import BadSpec
from stimuli.spec import Component

pytestmark = pytest.mark.pure

PROBING = (
    "tr\t0\tA dog barks .\nva\t1\tDogs bark .\ntr\t1\tCats purr .\nte\t0\tA cat purrs .\nte\t1\tCows moo .\n"
)


def lines(folder: Path, content: str | bytes, name: str = "texts.csv", **params: object) -> LinesDataset:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(data)
    return open_lines(Component("lines", {"path": name, **params}), folder, DECODING)


def many(count: int = 40) -> str:
    rows = [f"text number {place},{'yes' if place % 2 else 'no'}" for place in range(count)]
    return "\n".join(["text,label", *rows])


def test_it_reads_the_probing_format(tmp_path: Path) -> None:
    dataset = lines(tmp_path, PROBING, "past.txt")
    assert dataset.labels == ("0", "1")
    assert [dataset.text(item.key) for item in dataset.items("people")] == ["A cat purrs .", "Cows moo ."]
    assert [(item.truth, item.group) for item in dataset.items("model")] == [
        ("0", "line-000001"),
        ("1", "line-000002"),
        ("1", "line-000003"),
    ]


def test_empty_lines_between_sentences_are_no_sentences(tmp_path: Path) -> None:
    dataset = lines(tmp_path, PROBING.replace("te\t0", "\r\n\nte\t0") + "\n\n", "past.txt")
    assert [dataset.text(item.key) for item in dataset.items("people")] == ["A cat purrs .", "Cows moo ."]
    table = "text,label\n\na,x\nb,y\n\nc,x\nd,y\n\n"
    assert len(lines(tmp_path, table, people_share=1.0).items("people")) == 4


def test_it_reads_a_table_with_quotes_and_line_breaks(tmp_path: Path) -> None:
    content = 'label,text\nyes,"two, with\na break"\nno,"say ""hi"""\nyes,plain\nno,more\n'
    dataset = lines(tmp_path, content, people_share=1.0)
    texts = {item.key: dataset.text(item.key) for item in dataset.items("people")}
    assert texts["line-000002"] == "two, with\na break"
    assert texts["line-000004"] == 'say "hi"'
    assert not dataset.items("model")


def test_it_reads_sst_and_hateval_files(tmp_path: Path) -> None:
    """The headers as SST-2 (GLUE) and HatEval 2019 publish them, and no header; sentences are ours."""
    sst = "sentence\tlabel\na warm film\t1\nit drags\t0\nfine\t1\nno\t0\n"
    dataset = lines(tmp_path, sst, "train.tsv", text_column="sentence", people_share=1.0)
    assert [(dataset.text(i.key), i.truth) for i in dataset.items("people")][:2] == [
        ("a warm film", "1"),
        ("it drags", "0"),
    ]
    hateval = 'id,text,HS,TR,AG\n1,"calm, kind",0,0,0\n2,rude,1,0,1\n3,kind,0,0,0\n4,rough,1,1,0\n'
    named = {"label_column": "HS", "names": {"0": "neutral", "1": "hateful"}, "people_share": 1.0}
    dataset = lines(tmp_path, hateval, "hateval.csv", **named)
    assert dataset.labels == ("neutral", "hateful")
    assert dataset.text("line-000002") == "calm, kind"
    bare = "1\ta warm film\n0\tit drags\n1\tfine\n0\tno\n"
    numbered = {"header": False, "text_column": "2", "label_column": "1", "people_share": 1.0}
    dataset = lines(tmp_path, bare, "sst.tsv", **numbered)
    assert [dataset.text(item.key) for item in dataset.items("people")] == [
        "a warm film",
        "it drags",
        "fine",
        "no",
    ]


def test_it_names_the_columns_that_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match=r"has 2 columns; 3 and 1 are needed \(text_column"):
        lines(tmp_path, "1\ta\n0\tb\n", "t.tsv", header=False, text_column="3", label_column="1")
    with pytest.raises(BadSpec, match="names the columns text, label; text and text are needed"):
        lines(tmp_path, "text,label\na,b\n", label_column="text")


def test_it_takes_quotes_in_a_tab_separated_file_as_they_are(tmp_path: Path) -> None:
    content = 'text\tlabel\n"Open quote\t1\nit said "no"\t0\nc\t1\nd\t0\n'
    dataset = lines(tmp_path, content, "texts.tsv", people_share=1.0)
    assert [dataset.text(item.key) for item in dataset.items("people")][:2] == ['"Open quote', 'it said "no"']


def test_it_normalises_letters_and_ignores_a_byte_order_mark(tmp_path: Path) -> None:
    content = "\ufefftext,label\ncafe\u0301,a\nb,b\nc,a\nd,b\n"
    assert lines(tmp_path, content).text("line-000002") == "café"


def test_it_orders_numbers_as_numbers_and_gives_names(tmp_path: Path) -> None:
    rows = [f"text {place},{place % 12}" for place in range(48)]
    dataset = lines(tmp_path, "\n".join(["text,label", *rows]), names={"2": "two"})
    assert dataset.labels == ("0", "1", "two", *map(str, range(3, 12)))
    assert {item.truth for item in dataset.items("people")} == set(dataset.labels)


def test_it_divides_by_seed_and_share_within_classes(tmp_path: Path) -> None:
    dataset = lines(tmp_path, many(), people_share=0.25)
    for label in ("no", "yes"):
        assert sum(item.truth == label for item in dataset.items("people")) == 5
    again = lines(tmp_path, many(), people_share=0.25)
    other = lines(tmp_path, many(), people_share=0.25, seed=1)
    assert again.items("people") == dataset.items("people") != other.items("people")
    assert dataset.told[0].startswith("10 of 40 texts are people's, the other 30 are kept for training")
    assert lines(tmp_path, many(), people_share=1.0).told == ()


def test_it_keeps_groups_and_equal_texts_together(tmp_path: Path) -> None:
    rows = ["text,label,group"]
    rows += [f"text {place},{place % 2},g{place // 4}" for place in range(40)]
    rows += [f"TEXT  {place},{place % 2}," for place in range(0, 40, 4)]
    rows += [f"alone {place},{place % 2}," for place in range(10)]
    dataset = lines(tmp_path, "\n".join(rows))
    model = {item.group for item in dataset.items("model")}
    people = {item.group for item in dataset.items("people")}
    assert model and people and not model & people
    groups = {item.key: item.group for item in dataset.all_items}
    assert groups["line-000042"] == groups["line-000002"] == groups["line-000005"]  # joined by the same text
    assert len(model | people) == 10 + 10


def test_it_uses_the_splits_of_the_file(tmp_path: Path) -> None:
    rows = [f"text {place},{place % 2},{('train', 'dev', 'test')[place % 3]}" for place in range(12)]
    dataset = lines(tmp_path, "\n".join(["text,label,split", *rows]))
    assert len(dataset.items("model")) == 8
    assert len(dataset.items("people")) == 4


def test_a_text_on_both_sides_leaves_the_side_of_people(tmp_path: Path) -> None:
    content = PROBING + "te\t0\ta DOG barks .\nte\t1\t Dogs  bark .\nte\t0\tA hen clucks .\n"
    dataset = lines(tmp_path, content, "past.txt")
    assert [item.key for item in dataset.items("people")] == ["line-000004", "line-000005", "line-000008"]
    assert [item.key for item in dataset.items("model")] == ["line-000001", "line-000002", "line-000003"]
    assert dataset.told == (
        "2 of 5 texts of people are the model's too, but for case and spaces, and were left out (lines 6, 7)",
    )
    assert dataset.content_digest() == _without(tmp_path, content, {6, 7}).content_digest()


def test_a_text_with_another_label_on_the_other_side_leaves_both(tmp_path: Path) -> None:
    content = PROBING + "tr\t0\tA goat bleats .\nte\t1\tA DOG barks .\n"
    dataset = lines(tmp_path, content, "past.txt")
    assert {item.key for item in dataset.all_items} == {f"line-{place:06d}" for place in (2, 3, 4, 5, 6)}
    assert dataset.told[1] == (
        "1 of 4 texts of the model have another label among people's and were left out too (line 1)"
    )


def _without(folder: Path, content: str, numbers: set[int]) -> LinesDataset:
    """The dataset after the lines were made empty by hand."""
    kept = ["" if at in numbers else line for at, line in enumerate(content.splitlines(), 1)]
    return lines(folder, "\n".join(kept).lstrip("\n"), "past.txt")


def test_a_text_with_two_labels_is_left_out_of_a_file_without_sides(tmp_path: Path) -> None:
    dataset = lines(tmp_path, many() + "\nTEXT number 7,no\ntext  number 8,no\n")
    assert {item.key for item in dataset.all_items} == {
        f"line-{place:06d}" for place in range(2, 44) if place not in (9, 42)
    }, "line 43 has the label of line 10"
    assert "2 of 42 texts have two labels, but for case and spaces, and were left out (lines 9, 42)" in (
        dataset.told
    )
    assert not any("two labels" in line for line in lines(tmp_path, many()).told)


def test_a_text_with_two_labels_on_one_side_leaves_it(tmp_path: Path) -> None:
    """Once among the model's texts, once among people's; of another all three lines go."""
    more = "va\t0\tDogs bark .\nte\t0\tCOWS moo .\nte\t0\tcows  moo .\nte\t1\tHens cluck .\n"
    dataset = lines(tmp_path, PROBING + more, "past.txt")
    assert [item.key for item in dataset.items("model")] == ["line-000001", "line-000003"]
    assert [item.key for item in dataset.items("people")] == ["line-000004", "line-000009"]
    assert dataset.told == (
        "5 of 9 texts have two labels, but for case and spaces, and were left out (lines 2, 5, 6 and 2 more)",
    )
    without = _without(tmp_path, PROBING + more, {2, 5, 6, 7, 8})
    assert dataset.content_digest() == without.content_digest()


def test_a_class_of_texts_with_two_labels_is_refused_with_the_reason(tmp_path: Path) -> None:
    table = "text,label\na,x\nb,x\nc,y\nd,y\nC,x\n"
    with pytest.raises(BadSpec, match='single text of class "y"; .*, because 2 of 5 texts have two labels'):
        lines(tmp_path, table)
    assert len(lines(tmp_path, table + "e,y\n", people_share=1.0).all_items) == 4


def test_a_class_that_is_left_out_whole_is_told_with_the_reason(tmp_path: Path) -> None:
    content = "tr\t0\ta\ntr\t1\tb\ntr\t1\tc\nte\t0\td\nte\t1\tB\n"
    with pytest.raises(
        BadSpec, match=r"no text of class \"1\" for people .*, because 1 of 2 texts of people"
    ):
        lines(tmp_path, content, "past.txt")


def test_groups_on_both_sides_are_refused_together(tmp_path: Path) -> None:
    rows = [f"text {place},{place % 2},g{place // 2},{'tr' if place % 3 else 'te'}" for place in range(24)]
    table = "\n".join(["text,label,group,split", *rows])
    with pytest.raises(BadSpec, match=r"has 8 groups on .* \(lines 2 and 3, 4 and 5, 8 and 9 and 5 more\)"):
        lines(tmp_path, table)
    assert lines(tmp_path, table.replace(",group,", ",author,")).told == ()


def test_control_characters_of_c1_are_read_as_spaces_and_counted(tmp_path: Path) -> None:
    rows = [
        f"it\x92s number {place},{place % 2}" if place < 5 else f"n{place},{place % 2}" for place in range(8)
    ]
    dataset = lines(
        tmp_path, "\n".join(["text,label", *rows]).replace("number 0", "\x93number 0\x94"), people_share=1.0
    )
    assert dataset.text("line-000002") == "it s  number 0"
    assert dataset.text("line-000003") == "it s number 1"
    assert dataset.told == (
        "7 control characters between U+0080 and U+009F in 5 of 8 texts were read as spaces (lines 2, 3, 4 "
        "and 2 more)",
    )


def test_all_control_characters_are_named_and_leave_as_the_message_says(tmp_path: Path) -> None:
    rows = [f"text\x00 {place}\x07,{place % 2}" if place % 2 else f"te xt {place},0" for place in range(10)]
    content = "\n".join(["text,label", *rows])
    with pytest.raises(BadSpec) as refused:
        lines(tmp_path, content)
    assert str(refused.value) == (
        'dataset lines: "texts.csv" has 5 lines with control characters: 3 (U+0000 <control-0000>, U+0007 '
        "<control-0007>), 5 (U+0000 <control-0000>, U+0007 <control-0007>), 7 (U+0000 <control-0000>, U+0007 "
        "<control-0007>) and 2 more; put a space in the place of each"
    )
    mended = lines(tmp_path, content.replace("\x00", " ").replace("\x07", " "), people_share=1.0)
    assert mended.text("line-000003") == "text  1"


def test_all_kinds_of_faults_are_told_at_once(tmp_path: Path) -> None:
    content = "text,label\na,x\nb\n,y\nc,\n" + "d" * 5001 + ",x\ne,f,y\n"
    with pytest.raises(BadSpec) as refused:
        lines(tmp_path, content)
    assert str(refused.value) == (
        'dataset lines: "texts.csv" has 2 lines with another number of fields than the first line\'s 2: 3 (1)'
        ", 7 (3); put quotation marks around a text with commas, or add what is missing; and 1 line without "
        "a text: 4; fill it in or remove the line; and 1 line without a label: 5; fill it in or remove the "
        "line; and 1 line with more than 5,000 characters: 6 (5,001); shorten it"
    )
    mended = content.replace("b\n,y", "b,y\ng,y").replace("c,\n", "").replace("d" * 5001, "d")
    assert len(lines(tmp_path, mended.replace("e,f,y", '"e,f",y'), people_share=1.0).all_items) == 5


def test_all_lines_that_are_no_utf8_are_named_and_read_when_saved_as_it(tmp_path: Path) -> None:
    rows = [f"caf\xe9 {place},{place % 2}" for place in range(6)]
    content = "\n".join(["text,label", *rows])
    with pytest.raises(
        BadSpec, match=r"has 6 lines not in UTF-8: 2 \(byte 0xE9\), 3 .* and 3 more; save the"
    ):
        lines(tmp_path, content.encode("latin-1"))
    assert lines(tmp_path, content.encode("utf-8")).text("line-000002") == "caf\xe9 0"


def test_columns_that_no_key_names_may_be_empty_or_alike(tmp_path: Path) -> None:
    """A copy of HatEval that a spreadsheet wrote: five names of its first line are empty."""
    table = "id,text,HS,,,note,note,,\n1,mild,0,,,a,b,,\n2,wild,1,,,,,,\n3,kind,0,,,,,,\n4,rough,1,,,,,,\n"
    dataset = lines(tmp_path, table, label_column="HS", people_share=1.0)
    assert [dataset.text(item.key) for item in dataset.all_items] == ["mild", "wild", "kind", "rough"]
    with pytest.raises(
        BadSpec, match="line 1 names the columns text, HS, text and 1 without a name; text and"
    ):
        lines(tmp_path, "text,HS,text,\na,0,b,\n", label_column="HS")


def test_rows_over_several_lines_are_counted(tmp_path: Path) -> None:
    """A quotation mark at the beginning of a text takes in all lines up to the next one."""
    table = many(6).replace("text number 2,no\ntext number 3", '"text number 2,no\ntext number 3"')
    assert lines(tmp_path, table, people_share=1.0).told == (
        "1 of 5 rows go on over several lines, within quotation marks (line 4)",
    )


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (
            "text,label\na,x\nb\n",
            "t.csv",
            r"1 line with another number of fields than the first line's 2: 3 \(1\); put",
        ),
        (
            "text,class\na,x\n",
            "t.csv",
            "line 1 names the columns text, class; text and label are needed",
        ),
        ("text,label\na,x\n,y\n", "t.csv", "1 line without a text: 3; fill"),
        ("text,label\na,x\nb,\n", "t.csv", "1 line without a label: 3; fill"),
        (
            "text,label\n" + "a" * 5001 + ",x\n",
            "t.csv",
            r"1 line with more than 5,000 characters: 2 \(5,001\); shorten it",
        ),
        (
            "text,label\na\x07,x\n",
            "t.csv",
            r"1 line with control characters: 2 \(U\+0007 <control-0007>\); put",
        ),
        (
            "text,label,split\na,x,both\n",
            "t.csv",
            r'1 line with a split that is not known: 2 \("both"\); known are tr',
        ),
        ('text,label\n"a,x\nb,y\n', "t.csv", "cannot be read"),
        ("text,label\na,x\nb,x\n", "t.csv", r"holds 1 class\(es\)"),
        ("text,label\na,x\nb,x\nc,y\n", "t.csv", 'a single text of class "y"'),
        ("text,label\n", "t.csv", "holds no texts"),
        ("a b c\n", "t.txt", "is no .csv or .tsv"),
        (
            "tr\t0\ta\nte\t1\n",
            "t.txt",
            r"1 line without three fields \(split, label, sentence\): 2 \(2 fields\); put",
        ),
        ("tr\t0\ta\nxx\t1\tb\n", "t.txt", r'a split that is not known: 2 \("xx"\)'),
        ("tr\t0\ta\nte\t0\tb\nte\t0\tc\n", "past_present.txt", r"holds 1 class\(es\)"),
        (
            "tr\t0\ta\nte\t\tb\n",
            "past_present.txt",
            "1 line without a label: 2; fill it in or remove the line",
        ),
        (
            "tr\t0\ta\nte\t1\t \n",
            "past_present.txt",
            "1 line without a text: 2; fill it in or remove the line",
        ),
        (
            "tr\t0\ta\n  \nte\t1\tb\n",
            "past_present.txt",
            r"1 line without three fields \(split, label, sentence\): 2 \(1 field\)",
        ),
        ("tr\t0\ta\tb\n", "past_present.txt", r"is no \.csv or \.tsv, and its first line is not of the form"),
        ("0\ttr\ta\n", "past_present.txt", "tr TAB label TAB sentence; write one of them"),
        (
            "tr\t0\ta\ntr\t1\tb\nva\t0\tc\nte\t1\td\n",
            "past_present.txt",
            r'no text of class "0" for people \(te, test or people\); add some',
        ),
        ("", "sst.tsv", "holds no texts"),
        ("sentence\tlabel\nfine\t1\nno\n", "sst.tsv", "line 1 names the columns sentence, label; text and"),
        (
            "text\tlabel\nfine\t1\t0\n",
            "sst.tsv",
            r"than the first line's 2: 2 \(3\); take tabs out of the texts",
        ),
        ("id,text,HS\n1,a,0\n", "hateval.csv", "line 1 names the columns id, text, HS; text and label are"),
        (
            b"text,label\na,x\n\xff\xfe,y\n",
            "t.csv",
            r"1 line not in UTF-8: 3 \(byte 0xFF\); save the file as UTF-8",
        ),
    ],
)
def test_it_says_what_is_wrong_and_where(tmp_path: Path, content: str | bytes, name: str, said: str) -> None:
    with pytest.raises(BadSpec, match=said):
        lines(tmp_path, content, name)


@pytest.mark.parametrize(
    ("share", "group", "said"),
    [
        (0.5, "one", r'leaves all 6 items of class "pos", in 1 group\(s\), to people and none to the model'),
        (0.9, "", None),
        (1.0, "one", None),
    ],
)
def test_it_refuses_a_share_that_leaves_a_class_on_one_side(
    tmp_path: Path, share: float, group: str, said: str | None
) -> None:
    rows = [f"good text {place},pos,{group}" for place in range(6)]
    rows += [f"bad text {place},neg,n{place}" for place in range(6)]
    content = "\n".join(["text,label,group", *rows])
    if said:
        with pytest.raises(BadSpec, match=said + "; put fewer texts into one group.* another seed"):
            lines(tmp_path, content, people_share=share)
    else:
        dataset = lines(tmp_path, content, people_share=share)
        assert {item.truth for item in dataset.items("people")} == {"pos", "neg"}
        assert len(dataset.items("model")) == (0 if share == 1 else 2)


def test_it_refuses_groups_of_two_classes_that_empty_a_side_of_one(tmp_path: Path) -> None:
    """Class b has two groups, one for each side; class a, of the same groups and more, sends both to people
    for some seeds.
    """
    rows = [f"a {place},a,g{place}" for place in range(8)] + [f"b {place},b,g{place}" for place in range(2)]
    content, refused = "\n".join(["text,label,group", *rows]), 0
    for seed in range(12):
        try:
            dataset = lines(tmp_path, content, seed=seed)
        except BadSpec as error:
            assert 'items of class "b", in 2 group(s), to people' in str(error)
            refused += 1
        else:
            for split in ("model", "people"):
                assert {item.truth for item in dataset.items(split)} == {"a", "b"}
    assert 0 < refused < 12


def test_it_refuses_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match="cannot be read"):
        open_lines(Component("lines", {"path": "no.csv"}), tmp_path)


def test_it_refuses_names_for_nothing_and_names_that_coincide(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match='no label "maybe"'):
        lines(tmp_path, many(), names={"maybe": "perhaps"})
    with pytest.raises(BadSpec, match="called the same"):
        lines(tmp_path, many(), names={"no": "yes"})


def test_its_digest_is_that_of_the_content(tmp_path: Path) -> None:
    first = lines(tmp_path, many()).content_digest()
    assert lines(tmp_path, many()).content_digest() == first
    assert lines(tmp_path, many().replace("number 7", "number 77")).content_digest() != first
    assert lines(tmp_path, many(), people_share=0.4).content_digest() != first


def test_it_is_in_the_table_of_datasets(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(many())
    assert open_dataset(Component("lines", {"path": "t.csv"}), tmp_path).labels == ("no", "yes")


def test_it_reads_the_files_of_sst_and_hateval_beside_each_other(tmp_path: Path) -> None:
    """SentEval's SST has two files without header or ending; HatEval has a table for each side."""
    (tmp_path / "sentiment-test").write_text("it drags on\t0\nwarm and wise\t1\n")
    sst = {"header": False, "text_column": "1", "label_column": "2", "people_path": "sentiment-test"}
    dataset = lines(tmp_path, "a warm film\t1\nit drags\t0\nfine\t1\nno\t0\n", "sentiment-train", **sst)
    assert [(i.key, dataset.text(i.key), i.truth) for i in dataset.items("people")] == [
        ("people-000001", "it drags on", "0"),
        ("people-000002", "warm and wise", "1"),
    ]
    assert len(dataset.items("model")) == 4 and dataset.told == ()
    (tmp_path / "test.csv").write_text("id,text,HS,TR,AG\n7,mild,0,0,0\n8,wild,1,1,1\n")
    train = 'id,text,HS,TR,AG\n1,"calm, kind",0,0,0\n2,rude,1,0,1\n'
    dataset = lines(tmp_path, train, "train.csv", label_column="HS", people_path="test.csv")
    assert [dataset.text(i.key) for i in dataset.items("people")] == ["mild", "wild"]
    assert [dataset.text(i.key) for i in dataset.items("model")] == ["calm, kind", "rude"]


def test_two_files_are_two_sides_and_their_digest_holds_both(tmp_path: Path) -> None:
    def digest(people: str) -> str:
        (tmp_path / "people.csv").write_text(people)
        return lines(tmp_path, "text,label\na,x\nb,y\n", people_path="people.csv").content_digest()

    assert digest("text,label\nc,x\nd,y\n") != digest("text,label\nc,x\ne,y\n")


@pytest.mark.parametrize(
    ("people", "said"),
    [
        (
            "text,label\nA ,x\nd,y\n",
            r"a single text of class \"x\".*, because 1 of 2 texts of people .* \(line 2 of people.csv\)",
        ),
        (
            "text,label,split\nc,x,te\nd,y,te\n",
            '"people.csv" has a split of its own, but people_path says whose',
        ),
        ("text,label\nc,x\n", 'no text of class "y" for people'),
        ("text,class\nc,x\nd,y\n", '"people.csv", line 1 names the columns text, class'),
        ("", '"people.csv" holds no texts'),
    ],
)
def test_it_says_what_is_wrong_with_a_second_file(tmp_path: Path, people: str, said: str) -> None:
    (tmp_path / "people.csv").write_text(people)
    with pytest.raises(BadSpec, match=said):
        lines(tmp_path, "text,label\na,x\nb,y\ne,y\n", people_path="people.csv")


def test_a_file_of_another_name_is_told_how_to_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match='header = false, text_column = "1", label_column = "2"'):
        lines(tmp_path, "a warm film\t1\nit drags\t0\n", "sentiment-train")
