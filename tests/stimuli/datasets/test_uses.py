"""What pictures are for, and who labelled them how: from tables beside class folders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from stimuli.datasets import open_dataset
from stimuli.datasets.folder import FolderDataset
from stimuli.errors import BadSpec
from stimuli.spec import Component

pytestmark = pytest.mark.pure

COUNT = 6


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Six pictures of each of two classes and of a folder without a class."""
    for place, label in enumerate(("cat", "dog", "nothing")):
        for number in range(COUNT):
            path = tmp_path / "images" / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (20, 10), (place, number, 0)).save(path)
    return tmp_path / "images"


BLANK = "image,use\n" + "".join(f"nothing/{number}.png,blank\n" for number in range(COUNT))


def opened(pictures: Path, uses: str = BLANK, annotations: str = "", share: float = 1.0) -> FolderDataset:
    for name, text in (("uses", uses), ("annotations", annotations)):
        if text:
            (pictures / f"{name}.csv").write_text(text)
    component = Component("folder", {"path": "images", "people_share": share})
    made = open_dataset(component, pictures.parent)
    assert isinstance(made, FolderDataset)
    return made


def test_pictures_are_tasks_unless_the_table_says_otherwise(pictures: Path) -> None:
    dataset = opened(pictures, BLANK + "cat/1.png,known\ndog/2.png,tuning\ndog/3.png,task\n")
    uses = {item.key: item.use for item in dataset.items("people")}
    assert Counter(uses.values()) == {"task": 10, "blank": 6, "known": 1, "tuning": 1}
    assert (uses["cat/1.png"], uses["dog/2.png"], uses["dog/3.png"]) == ("known", "tuning", "task")
    assert {uses[f"nothing/{number}.png"] for number in range(COUNT)} == {"blank"}


def test_blank_pictures_have_no_truth_and_make_no_class(pictures: Path) -> None:
    dataset = opened(pictures)
    assert dataset.labels == ("cat", "dog")
    assert {item.truth for item in dataset.items("people") if item.use == "blank"} == {""}
    assert dataset.unread == {} and dataset.told == (), "the table is no file that is left unread"


def test_what_is_no_task_is_shown_to_people_with_its_whole_group(pictures: Path) -> None:
    for crop in (1, 2):
        Image.new("RGB", (20, 10), (9, crop, 9)).save(pictures / "cat" / f"park__{crop}.png")
    for number in range(COUNT):
        dataset = opened(pictures, BLANK + f"cat/park__1.png,known\ndog/{number}.png,tuning\n", share=0.5)
        people = {item.key for item in dataset.items("people")}
        assert {"cat/park__1.png", "cat/park__2.png", f"dog/{number}.png"} <= people
        assert {f"nothing/{place}.png" for place in range(COUNT)} <= people
        model = Counter(item.truth for item in dataset.items("model"))
        assert model == {"cat": COUNT // 2, "dog": round((COUNT - 1) / 2) + 1}


def test_labels_of_annotators_are_read_in_a_fixed_order(pictures: Path) -> None:
    text = "label,annotator,image\ndog,zoe,cat/0.png\ncat,ann,cat/0.png\ndog,ann,dog/1.png\n"
    labels = {item.key: item.annotated for item in opened(pictures, annotations=text).items("people")}
    assert labels["cat/0.png"] == (("ann", "cat"), ("zoe", "dog"))
    assert labels["dog/1.png"] == (("ann", "dog"),) and labels["cat/1.png"] == ()


def test_both_tables_are_part_of_the_digest(pictures: Path) -> None:
    digests = [opened(pictures).content_digest()]
    digests.append(opened(pictures, BLANK + "cat/1.png,known\n").content_digest())
    digests.append(opened(pictures, BLANK + "cat/2.png,known\n").content_digest())
    labels = "image,annotator,label\ncat/0.png,ann,dog\n"
    digests.append(opened(pictures, BLANK, labels).content_digest())
    assert len(set(digests)) == 4
    (pictures / "annotations.csv").unlink()
    assert opened(pictures).content_digest() == digests[0]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat/9.png,known", r'uses.csv, line 8: there is no picture "cat/9.png"; write the path'),
        ("cat/0.png,knwon", r"\"knwon\" \(did you mean 'known'\?\): write one of task, known, blank, tun"),
        ("cat/0.png,", r'use = "": write one of task'),
        ("nothing/0.png,known", r'line 8: "nothing/0.png" is named twice'),
        ("cat/0.png,known,x", "names 2 columns, but 1 row has another number of cells: line 8 has 3"),
    ],
)
def test_a_line_about_uses_that_cannot_be_meant_is_named(pictures: Path, line: str, words: str) -> None:
    with pytest.raises(BadSpec, match=words):
        opened(pictures, BLANK + line + "\n")


def test_all_lines_that_cannot_be_meant_are_told_at_once(pictures: Path) -> None:
    wrong = ["cat/9.png,known", "cat/1.png,knwon", "cat/0.png,blank", "cat/0.png,blank", "dog/9.png,blank"]
    with pytest.raises(BadSpec) as error:
        opened(pictures, BLANK + "\n".join(wrong))
    begin = BLANK.count("\n") + 1
    assert str(error.value) == (
        f'uses.csv: 4 lines are refused, line {begin}: there is no picture "cat/9.png"; write the path below '
        f'the folder, such as "cat/0.png"; line {begin + 1}: use = "knwon" (did you mean \'known\'?): write '
        f'one of task, known, blank, tuning; line {begin + 3}: "cat/0.png" is named twice; keep one line per '
        "picture and 1 more"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cat/9.png,ann,cat", r'annotations.csv, line 3: there is no picture "cat/9.png"'),
        ("cat/1.png,,cat", r'annotator = "": a name of 1 to 80 characters'),
        ("cat/1.png,ann,cats", r"label = \"cats\" \(did you mean 'cat'\?\): it must be one of the classes"),
        ("cat/0.png,ann,dog", r'"ann" labels "cat/0.png" twice'),
    ],
)
def test_a_label_that_cannot_be_meant_is_named(pictures: Path, line: str, words: str) -> None:
    with pytest.raises(BadSpec, match=words):
        opened(pictures, annotations=f"image,annotator,label\ncat/0.png,ann,cat\n{line}\n")


def test_a_picture_that_the_model_learns_from_is_nothing_but_a_task(tmp_path: Path) -> None:
    for split in ("model", "people"):
        for place, label in enumerate(("cat", "dog")):
            for number in range(2):
                path = tmp_path / "images" / split / label / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (20, 10), (place, number, len(split))).save(path)
    with pytest.raises(BadSpec, match=r'"model/cat/0.png" is known, but belongs to the model: .* people/'):
        opened(tmp_path / "images", "image,use\nmodel/cat/0.png,known\n")


def test_tasks_of_one_class_alone_are_refused(pictures: Path) -> None:
    dogs = "".join(f"dog/{number}.png,known\n" for number in range(COUNT))
    with pytest.raises(BadSpec, match=r"uses.csv leaves tasks of 1 class\(es\), at least 2 are needed"):
        opened(pictures, BLANK + dogs)
