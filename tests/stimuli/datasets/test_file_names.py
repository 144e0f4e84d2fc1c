"""Hidden and foreign files, sides by other names, and names in another form of Unicode, at every door."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
from PIL import Image

from stimuli.datasets import DECODING, open_dataset
from stimuli.datasets.file_names import own_files
from stimuli.datasets.folder import FolderDataset
from stimuli.datasets.plates.idx import read_idx_folder
from stimuli.errors import BadSpec
from stimuli.explainers.recorded import ItemView, record
from stimuli.library.inputs import pictures_of
from stimuli.spec import Component
from stimuli.store import LocalStore

pytestmark = pytest.mark.pure
FOREIGN = ("._0.png", ".DS_Store", "Thumbs.db", "desktop.ini", ".ipynb_checkpoints/0-checkpoint.png")
CAFE_NFC, CAFE_NFD = (normalize(form, "cat/caf\u00e9.png") for form in ("NFC", "NFD"))


def paint(path: Path, level: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 10), (level, len(str(path)) % 256, ord(path.parent.name[0]))).save(path)
    return path


@pytest.fixture
def classes(tmp_path: Path) -> Path:
    for label in ("cat", "dog"):
        for n in range(2):
            paint(tmp_path / label / f"{n}.png", n)
    return tmp_path


def opened(root: Path, version: int = DECODING) -> FolderDataset:
    made = open_dataset(Component("folder", {"path": ".", "people_share": 1.0}), root, version)
    assert isinstance(made, FolderDataset)
    return made


def leave_foreign(root: Path) -> None:
    """What a Mac, Windows, a notebook and a disk station leave in class folders and beside them."""
    for place in (root, root / "cat"):
        for name in FOREIGN:
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(b"\0\5\x16\7")
    for name in ("__MACOSX/cat/._1.png", "@eaDir/0.png/SYNOPHOTO_THUMB_M.jpg"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_bytes(b"\0\5\x16\7")


def test_no_door_reads_foreign_files(classes: Path) -> None:
    keys = [f"{label}/{n}.png" for label in ("cat", "dog") for n in range(2)]
    before = opened(classes).content_digest()
    leave_foreign(classes)
    dataset = opened(classes)
    assert [item.key for item in dataset.items("people")] == keys
    assert dataset.content_digest() == before
    library = pictures_of(classes, ("a", "b"))
    assert [item.key for item in library.items("people")] == keys
    assert library.told[0].startswith("12 files are not read: 6 hidden, 2 .DS_Store, 2 Thumbs.db, 2 desktop")
    assert [path.relative_to(classes).as_posix() for path in own_files(classes)] == keys


def test_foreign_files_are_counted_without_a_warning(classes: Path) -> None:
    leave_foreign(classes)
    dataset = opened(classes)
    assert dataset.unread == {"hidden": 6, ".DS_Store": 2, "Thumbs.db": 2, "desktop.ini": 2}
    assert "12 files are not read: 6 hidden, 2 .DS_Store, 2 Thumbs.db, 2 desktop.ini;" in dataset.told[-1]
    assert dataset.doubted == ()


def test_the_first_version_reads_hidden_pictures(classes: Path) -> None:
    """What commit ffe75823 read; what a Mac writes beside files it refused, for no such file is a picture."""
    keys = ["cat/.trashed-1.jpg", *(f"{label}/{n}.png" for label in ("cat", "dog") for n in range(2))]
    paint(classes / "cat" / ".trashed-1.jpg", 80)
    leave_foreign(classes)
    assert [item.key for item in opened(classes, 1).items("people")] == keys
    assert opened(classes, 1).unread["hidden"] == 6
    assert [item.key for item in opened(classes, 2).items("people")] == keys[1:]
    assert opened(classes, 2).unread["hidden"] == 7


def test_recorded_folders_and_plates_leave_foreign_files_out(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    (maps / "__MACOSX").mkdir(parents=True)
    np.save(maps / "a.npy", np.ones((4, 4), np.float32))
    for name in ("._a.npy", "__MACOSX/._a.npy", "Thumbs.db", "desktop.ini"):
        (maps / name).write_bytes(b"no map")
    view = {"a": ItemView(4, 4)}
    component = Component("recorded", {"path": "maps"})
    assert set(record(component, tmp_path, view, view, LocalStore(tmp_path / "store"))) == {"a"}
    (tmp_path / "._train-images-idx3-ubyte").write_bytes(b"no digits")
    with pytest.raises(BadSpec, match="none of MNIST's files"):
        read_idx_folder(tmp_path)


def test_all_pictures_that_cannot_be_read_are_named_at_once(classes: Path) -> None:
    for n in range(5):
        (classes / "cat" / f"bad{n}.png").write_bytes(b"no picture")
    Image.new("RGB", (4, 4)).save(classes / "dog" / "small.png")
    said = (
        r"5 pictures \S*bad0.png\", \S*bad1.png\", \S*bad2.png\" and 2 more, each of which cannot be read; "
        r"replace or remove it; the picture \S*small.png\" \(4 x 4 pixels\) is too small; at least 8 pixels"
    )
    with pytest.raises(BadSpec, match=said):
        opened(classes)
    for path in (*(classes / "cat").glob("bad*"), classes / "dog" / "small.png"):
        path.unlink()
    assert len(opened(classes).items("people")) == 4


@pytest.mark.parametrize(
    ("sides", "named"),
    [
        (("train", "val"), "train/ and val/"),
        (("Test", "Training"), "Test/ and Training/"),
        (("train", "val", "test"), "test/ and train/ and val/"),
    ],
)
def test_sides_by_other_names_are_told_with_their_own(
    tmp_path: Path, sides: tuple[str, ...], named: str
) -> None:
    for s, side in enumerate(sides):
        for label in ("cat", "dog"):
            for n in range(2):
                paint(tmp_path / side / label / f"{n}.png", 40 * s + n)
    said = f"has {named} with class folders in them: call the one .* model/ and the one .* people/"
    with pytest.raises(
        BadSpec, match=said + (", and put the others elsewhere" if len(sides) > 2 else "; or")
    ):
        opened(tmp_path)
    for side, name in zip(sides, ("model", "people", "rest"), strict=False):
        (tmp_path / side).rename(tmp_path / name)
    assert [len(opened(tmp_path).items(side)) for side in ("model", "people")] == [4, 4]


def test_the_class_folders_of_one_side_serve_a_model_that_was_trained_elsewhere(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        for n in range(2):
            paint(tmp_path / "val" / label / f"{n}.png", n)
    with pytest.raises(BadSpec, match=r"val/ with class folders in them.*itself and set people_share = 1\.0"):
        opened(tmp_path)
    for label in ("cat", "dog"):
        (tmp_path / "val" / label).rename(tmp_path / label)
    (tmp_path / "val").rmdir()
    assert len(opened(tmp_path).items("people")) == 4


@pytest.mark.parametrize(("stored", "written"), [(CAFE_NFD, CAFE_NFC), (CAFE_NFC, CAFE_NFD)])
def test_tables_name_pictures_in_any_form_of_unicode(classes: Path, stored: str, written: str) -> None:
    paint(classes / stored, 90)
    (classes / "concepts.csv").write_text(f"image,concept,value\n{written},ear,1\n")
    (classes / "parts.csv").write_text(f"image,concept,left,top,right,bottom\n{written},ear,0,0,3,3\n")
    (classes / "uses.csv").write_text(f"image,use\n{written},known\n")
    (classes / "annotations.csv").write_text(f"image,annotator,label\n{written},ann,dog\n")
    dataset = opened(classes)
    item = next(item for item in dataset.items("people") if item.key == stored)
    assert (item.use, item.annotated) == ("known", (("ann", "dog"),))
    assert dataset.concept_values(stored).tolist() == [1.0]
    assert [part.concept for part in dataset.parts(stored)] == ["ear"]


def test_labels_of_annotators_are_classes_in_any_form_of_unicode(classes: Path) -> None:
    label = normalize("NFD", "caf\u00e9")
    for n in range(2):
        paint(classes / label / f"{n}.png", 60 + n)
    (classes / "annotations.csv").write_text(
        f"image,annotator,label\ncat/0.png,ann,{normalize('NFC', label)}\n"
    )
    for version, said in ((1, label), (DECODING, normalize("NFC", label))):
        items = {item.key: item for item in opened(classes, version).items("people")}
        assert items["cat/0.png"].annotated == (("ann", said),)


def test_recorded_explanations_name_items_in_any_form_of_unicode(tmp_path: Path) -> None:
    (tmp_path / "spans.json").write_text(json.dumps({CAFE_NFC: [{"start": 0, "end": 2, "weight": 1.0}]}))
    component, store = Component("recorded", {"path": "spans.json"}), LocalStore(tmp_path / "store")
    view = {CAFE_NFD: ItemView(text="ab")}
    assert set(record(component, tmp_path, view, view, store)) == {CAFE_NFD}
    both = {name: [{"start": 0, "end": 2, "weight": 1.0}] for name in (CAFE_NFC, CAFE_NFD)}
    (tmp_path / "spans.json").write_text(json.dumps(both))
    with pytest.raises(BadSpec, match="two explanations are of item .* Unicode's form alone: keep one"):
        record(component, tmp_path, view, view, store)
