"""A language of a study's own: its template, what is refused of a file, and what its people read."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from experiments.definition.study import StudyDefinition
from experiments.definition.text_tables import practice_of
from experiments.errors import InvalidStudy
from experiments.gates.promises import unkept
from experiments.study_files.load import load_study
from experiments.wording.language_file import template
from experiments.wording.language_rules import direction_of, forms_of
from experiments.wording.sentence_tables import words_for
from experiments.wording.sentences import (
    entry_words,
    legend_of,
    money,
    own_page,
    page_words,
    pay_words,
    sight_words,
)
from tests.experiments.protocols import RATING, SENTENCES, SOLVE, TURING, TWO_MODELS, USES, write

Change = Callable[[str], str]
RATINGS: dict[str, Any] = {"paradigm": "rating", "tables": RATING, "sources": TWO_MODELS}
MASKED = TURING.replace("[design]", '[design]\ntask = "masked"\ntask_words = ["время"]')


def printed(*options: str) -> str:
    out = io.StringIO()
    call_command("words", "--template", *options, stdout=out)
    return out.getvalue()


def whole_file(tag: str, letter: str = "\N{CYRILLIC SMALL LETTER ZHE}") -> str:
    """The template with every sentence replaced: the letter, its key, and what it has in braces."""
    lines, english, marks = [], "", {"point": ",", "group": "\u00a0"}
    for line in printed(tag).splitlines():
        if line.startswith("#"):
            english = f"{english}{line}"
        elif match := re.fullmatch(r'([\w.]+) = ""', line):
            places = "".join(dict.fromkeys(re.findall(r"\{\w+\}", english)))
            line = f'{match[1]} = "{marks.get(match[1]) or f"{letter} {match[1]} {places}"}"'
        if not line.startswith("#"):
            english = ""
        lines.append(line)
    return "\n".join(lines).replace('translator = ""', 'translator = "Ada"')


def study_with(folder: Path, file: str, change: Change = lambda text: text, **given: Any) -> StudyDefinition:
    path = write(folder, "own", **(given or RATINGS))
    path.write_text(change(path.read_text() + '\n[interface]\nwords = "own.toml"\n'))
    (folder / "own.toml").write_text(file)
    return load_study(path)


def test_a_file_made_from_the_template_says_all_pages(tmp_path: Path) -> None:
    """Without a line of English: all that a page of the study says begins with the letter."""
    study = study_with(tmp_path, whole_file("ru"))
    assert study.interface is not None and study.tag == "ru"
    said = [words_for(study), own_page(study), page_words(study), entry_words(study), pay_words(study)]
    texts = [text for table in said for text in table.values()] + [legend_of(study), sight_words(study)]
    assert len(texts) > 500
    others = {text for text in texts if text[0] != "\N{CYRILLIC SMALL LETTER ZHE}"}
    assert others == {"ltr", ",", "\u00a0"}, "the direction, and the marks in amounts"
    assert own_page(study)["direction"] == "ltr"
    forms = {own_page(study)[f"block.test.{form}"] for form in ("zero", "one", "two", "few", "many", "other")}
    assert {text.split()[1] for text in forms} == {f"block.test.{form}" for form in ("one", "few", "many")}


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_template_of_a_language_that_is_there_says_what_its_pages_say(
    tmp_path: Path, language: str
) -> None:
    text = template(language)
    assert tomllib.loads(text)["translator"] == ""
    filled = study_with(tmp_path / "own", text.replace('translator = ""', 'translator = "Ada"'))
    path = write(tmp_path / "plain", "own", **RATINGS)
    path.write_text(path.read_text().replace("seed = ", f'language = "{language}"\nseed = '))
    plain = load_study(path)
    assert words_for(filled) == words_for(plain) and entry_words(filled) == entry_words(plain)
    assert (legend_of(filled), sight_words(filled), money(5, filled)) == (
        legend_of(plain),
        sight_words(plain),
        money(5, plain),
    )
    assert page_words(plain).items() <= page_words(filled).items()
    assert practice_of(filled.language, filled.interface) == practice_of(plain.language, plain.interface)


def test_amounts_have_the_marks_of_the_file(tmp_path: Path) -> None:
    """A space between thousands, as in Ukrainian and French; the currency stands where it stood."""
    assert money(123450, study_with(tmp_path, whole_file("ru"))) == "1\u00a0234,50 USD"
    for mark, wrong in (("point", "ж"), ("point", ""), ("group", "ж "), ("group", ",.")):
        file = re.sub(rf'^{mark} = ".*"$', f'{mark} = "{wrong}"', whole_file("ru"), flags=re.M)
        with pytest.raises(
            InvalidStudy, match=f"1 (of \\d+ sentences|that are no mark of an amount): pay.{mark}"
        ):
            study_with(tmp_path / f"{mark}{len(wrong)}{wrong == 'ж'}", file)
    with pytest.raises(InvalidStudy, match="the same mark as pay.point and pay.group"):
        study_with(tmp_path / "same", whole_file("ru").replace('group = "\u00a0"', 'group = ","'))


def test_a_study_without_a_file_is_what_it_was(tmp_path: Path) -> None:
    study = load_study(write(tmp_path, "own", **RATINGS))
    assert "interface" not in study.as_met() and own_page(study) == {}
    before = study.model_dump(mode="json")
    del before["interface"]
    assert StudyDefinition.model_validate(before).digest == study.digest


def test_what_people_read_is_part_of_the_digest(tmp_path: Path) -> None:
    file = whole_file("ru")
    digests = {
        study_with(tmp_path / str(number), text).digest
        for number, text in enumerate(
            [
                file,
                file.replace("\N{CYRILLIC SMALL LETTER ZHE} skip", "Zh", 1),
                file.replace("# Next", "# No"),
            ]
        )
    }
    assert len(digests) == 2, "a comment is not read"


def line(key: str, text: str) -> Change:
    return lambda file: re.sub(rf"(?m)^({key}) = .*$", text, file)


@pytest.mark.parametrize(
    ("change", "sentences"),
    [
        (line("translator", 'translator = " "'), ["names no translator. Say in translator"]),
        (
            line("language", 'language = "Russian"'),
            ["has language = 'Russian', which is no tag of a language."],
        ),
        (line("language", "language = 7"), ["has language = 7, which is no tag"]),
        (lambda text: text + "\n[", ["is not TOML: "]),
        (
            line("skip", 'skip = " "'),
            ["lacks 1 of 600 sentences: page.common.skip. Write them; `legible words"],
        ),
        (
            line(r"left\.about\.few|progress|step|part", ""),
            ["lacks 4 of 600 sentences: page.common.progress, page.common.step, page.common.left.about."],
        ),
        (
            lambda text: text.replace("\nleft.about.few", "\nleft.about.two"),
            ["lacks 1 of", "has 1 that no page says: page.common.left.about.two. Remove"],
        ),
        (lambda text: text + "\n[promises]\nlink = 'x'", ["has 1 that no page says: promises.link"]),
        (line("skip", "skip = 3"), ["has 1 that are no text: page.common.skip"]),
        (
            lambda text: text.replace("{steps}", "{schritte}").replace("{percent}", ""),
            ["has 2 whose places in braces are not those to be filled: page.common.progress ({percent}), "],
        ),
        (line("skip", 'skip = "{"'), ["page.common.skip (none)"]),
        (line(r"left\.about\.few", 'left.about.few = "x"'), ["page.common.left.about.few ({minutes})"]),
    ],
)
def test_it_names_all_that_is_wrong_with_a_file(tmp_path: Path, change: Change, sentences: list[str]) -> None:
    file = whole_file("ru")
    assert change(file) != file
    with pytest.raises(InvalidStudy) as refused:
        study_with(tmp_path, change(file))
    for sentence in sentences:
        assert sentence in str(refused.value)
    assert str(refused.value).count("interface.words = 'own.toml'") == len(sentences)


def test_all_kinds_of_faults_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidStudy) as refused:
        study_with(tmp_path, 'language = "th"\n[pages]\ndevice = "x"\nnothing = "y"\n')
    told = str(refused.value)
    for part in ("names no translator", "lacks 539 of 540", "has 1 that no page says", "has 1 whose places"):
        assert part in told, told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda text: text.replace("seed", 'language = "de"\nseed', 1),
            "language = 'de': is what own.toml says",
        ),
        (
            lambda text: text.replace('"own.toml"', '"none.toml"'),
            "interface.words = 'none.toml': cannot be read",
        ),
        (lambda text: text.replace('"own.toml"', '"../own.toml"'), "must lie beside study.toml"),
        (lambda text: text.replace('words = "own.toml"', ""), "interface.words: is missing"),
        (lambda text: text + "more = 1\n", "interface.more = 1: is not a key of this table"),
    ],
)
def test_it_refuses_a_table_that_names_no_file_beside_the_study(
    tmp_path: Path, change: Change, told: str
) -> None:
    with pytest.raises(InvalidStudy, match=re.escape(told)):
        study_with(tmp_path, whole_file("ru"), change)


def test_the_template_wants_the_forms_of_its_language() -> None:
    tables = {tag: tomllib.loads(template(tag)) for tag in ("zh-Hant", "pl", "ar-EG", "sl", "xx")}
    assert {tag: list(table["page"]["common"]["block"]["test"]) for tag, table in tables.items()} == {
        "zh-Hant": ["other"],
        "pl": ["one", "few", "many"],
        "ar-EG": ["zero", "one", "two", "few", "many", "other"],
        "sl": ["one", "two", "few", "other"],
        "xx": ["other"],
    }
    assert forms_of("en") == ("one", "other")
    with pytest.raises(CommandError, match="'Deutsch' is no tag of a language: give one such as uk"):
        printed("Deutsch")


@pytest.mark.parametrize(
    ("tag", "direction"),
    [("ar", "rtl"), ("fa-AF", "rtl"), ("he", "rtl"), ("zh-Hant-TW", "ltr"), ("pa", "ltr"), ("pa-PK", "rtl"),
     ("uz-Arab", "rtl"), ("ar-Latn", "ltr"), ("sd-IN", "ltr"), ("sd", "rtl")],
)  # fmt: skip
def test_the_tag_tells_the_direction(tag: str, direction: str) -> None:
    assert direction_of(tag) == direction


# What a study may not say


def test_a_masked_study_is_searched_in_its_own_language_too(tmp_path: Path) -> None:
    """In what its people read alone: of a sentence that its voice says otherwise, the other is not read."""
    masked: dict[str, Any] = {
        "paradigm": "reverse_turing",
        "tables": MASKED,
        "sources": f'{SENTENCES}\nlabel_names = "drawn"',
    }
    file = re.sub(r'(?m)^(trial\.question|phase\.test) = "', r"\g<0>время ", whole_file("ru"), count=1)
    assert unkept(study_with(tmp_path / "quiet", file, **masked)) == []
    planted = file.replace('copy = "', 'copy = "Время ', 1)
    with pytest.raises(
        InvalidStudy, match=r"interface\.words: page\.common\.device\.copy = 'время': is a word"
    ):
        study_with(tmp_path / "planted", planted, **masked)


def test_a_blind_study_is_searched_in_its_own_language_too(tmp_path: Path) -> None:
    blind: dict[str, Any] = {"paradigm": "blind_review", "tables": SOLVE, "uses": USES}
    german = template("de").replace('translator = ""', 'translator = "Ada"')
    assert study_with(tmp_path / "quiet", german, **blind).tag == "de"
    planted = german.replace("Zum Inhalt springen", "Zur Maschine").replace(
        "Sie nehmen nicht teil", "Kein Modell"
    )
    with pytest.raises(InvalidStudy) as refused:
        study_with(tmp_path / "planted", planted, **blind)
    told = str(refused.value)
    assert "interface.words: page.common.skip = 'maschin*': would tell" in told
    assert told.count("interface.words: ") >= 2
