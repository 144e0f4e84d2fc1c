"""What a file from outside may be: damaged, too large, in the wrong place, or made to do harm."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stimuli.errors import BadSpec
from stimuli.explainers.recorded import ItemView, record
from stimuli.spec import Component
from stimuli.store import LocalStore

pytestmark = pytest.mark.pure
SIDE = 16
KEYS = ("left/0.png", "left/1.png")
FIRST = KEYS[0]
MAP = np.linspace(-1, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)


class Trap:
    """Unpickling it would make a folder."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("sprung",)


def read(folder: Path, path: str = "maps", **params: object) -> dict[str, Component]:
    items = {key: ItemView(SIDE, SIDE) for key in KEYS}
    known = [*KEYS, "right/0.png"]
    component = Component("recorded", {"path": path, **params})
    return record(component, folder, items, known, LocalStore(folder / "store"))


@pytest.fixture
def maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good map per item."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "maps" / "left").mkdir(parents=True)
    for key in KEYS:
        np.save(tmp_path / "maps" / f"{key}.npy", MAP)
    assert len(read(tmp_path)) == 2
    return tmp_path / "maps"


def saved(values: object) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle=True)  # type: ignore[arg-type]
    return stream.getvalue()


def packed(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def header(shape: str, kind: str = "<f4", version: int = 1, padding: int = 0) -> bytes:
    """The head of an .npy file that announces what it likes."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}" + " " * padding + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode()


def png_of(width: int, height: int, kind: int = 0, rows: bytes | None = None) -> bytes:
    """A PNG of grey 8 bits (or another kind), all zero, whose rows are packed to next to nothing."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    depth = {0: 1, 2: 3, 4: 2, 6: 4}[kind]
    body = zlib.compress(bytes((1 + depth * width) * height)) if rows is None else rows
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


WHOLE = SIDE * SIDE * 4
FAULTS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "objects": (".npy", lambda: saved(np.array([[Trap()]], object)), "type object, not numbers"),
    "a pickle": (".npy", lambda: pickle.dumps(Trap()), "cannot be read"),
    "objects, packed": (".npz", lambda: packed(a=saved(np.array([[Trap()]], object))), "not numbers"),
    "a pickle, packed": (".npz", lambda: packed(a=pickle.dumps(Trap())), "cannot be read"),
    "texts": (".npy", lambda: saved(np.full((SIDE, SIDE), "a")), "not numbers"),
    "complex numbers": (".npy", lambda: saved(MAP * 1j), "type complex64, not numbers"),
    "records": (".npy", lambda: saved(np.zeros((SIDE, SIDE), "f4,f4")), "not numbers"),
    "NaN": (".npy", lambda: saved(np.where(MAP == 1, np.nan, MAP)), "not finite.*row 15, column 15"),
    "infinite": (".npy", lambda: saved(np.where(MAP < 0, -np.inf, MAP)), "not finite.*row 0, column 0"),
    "too large for single": (
        ".npy",
        lambda: saved(np.full((SIDE, SIDE), 1e39)),
        "single precision",
    ),
    "channels": (".npy", lambda: saved(np.stack([MAP] * 3)), r"\(3, 16, 16\).*rows and columns only"),
    "flat": (".npy", lambda: saved(MAP.ravel()), r"shape \(256,\)"),
    "larger": (".npy", lambda: saved(np.zeros((SIDE + 1, SIDE))), "17 x 16 values.*16 x 16 pixels"),
    "smaller": (".npy", lambda: saved(MAP[:8, :8]), "8 x 8 values.*resize = true"),
    "empty": (".npy", lambda: saved(np.zeros((0, 0))), "0 x 0 values"),
    "no bytes": (".npy", lambda: b"", "cannot be read"),
    "cut off": (".npy", lambda: saved(MAP)[:-1], "does not hold the 1,024 bytes"),
    "too much": (".npy", lambda: saved(MAP) + b"0", "does not hold the 1,024 bytes"),
    "a head that lies": (".npy", lambda: header("(16, 16)") + b"0", "does not hold the 1,024 bytes"),
    "a huge array": (".npy", lambda: header("(99999999, 99999999)"), "99999999 x 99999999 values"),
    "a negative side": (".npy", lambda: header("(-16, 16)"), "-16 x 16 values"),
    "a huge head": (".npy", lambda: header("(16, 16)", version=2, padding=2_000_000), "cannot be read"),
    "a head to evaluate": (".npy", lambda: header("__import__('os').mkdir('sprung')"), "cannot be read"),
    "a nested head": (".npy", lambda: header("(" * 5000), "cannot be read"),
    "a head of another version": (".npy", lambda: b"\x93NUMPY\x09\x00\x00\x00", "cannot be read"),
    "a large file": (".npy", lambda: bytes(17 * 2**20), "17,825,792 bytes, the limit is 16,777,216"),
    "two arrays": (".npz", lambda: packed(a=saved(MAP), b=saved(MAP)), "2 arrays, but an item has one map"),
    "no array": (".npz", lambda: packed(), "0 arrays"),
    "no archive": (".npz", lambda: b"PK nothing", "cannot be read"),
    "a bomb": (".npz", lambda: packed(a=header("(16, 16)") + bytes(2**28)), "unpacks to 268,43.*limit"),
    "a bomb in the head": (".npz", lambda: packed(a=header("(99999, 99999)", "<f8")), "99999 x 99999 values"),
    "60 megapixels": (".png", lambda: png_of(10_000, 6_000), "6000 x 10000 values"),
    "400 megapixels": (".png", lambda: png_of(20_000, 20_000, rows=b""), "cannot be read"),
    "colours": (".png", lambda: png_of(SIDE, SIDE, 2), "no grey picture .mode RGB."),
    "transparency": (".png", lambda: png_of(SIDE, SIDE, 4), "no grey picture .mode LA."),
    "no rows": (".png", lambda: png_of(SIDE, SIDE, rows=zlib.compress(b"")), "cannot be read"),
    "no picture": (".png", lambda: b"\x89PNG", "cannot be read"),
    "a JPEG": (".png", lambda: b"\xff\xd8\xff\xe0", "cannot be read"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_refuses_a_file_by_name_and_runs_nothing(maps: Path, fault: str) -> None:
    ending, content, match = FAULTS[fault]
    (maps / f"{FIRST}.npy").unlink()
    (maps / f"{FIRST}{ending}").write_bytes(content())
    tracemalloc.start()
    try:
        with pytest.raises(BadSpec, match=match) as refused:
            read(maps.parent)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert FIRST.rpartition("/")[2] in str(refused.value) and len(str(refused.value)) < 500
    assert most < 32 * 2**20, f"{most:,} bytes were taken"
    assert not (maps.parent / "sprung").exists()


def test_it_believes_no_announced_size_of_a_packed_file(maps: Path) -> None:
    """The directory says 1,152 bytes, the member unpacks to 256 MiB."""
    honest = packed(a=header("(16, 16)") + bytes(2**28))
    lie = honest.replace(struct.pack("<I", len(header("(16, 16)")) + 2**28), struct.pack("<I", 1152))
    assert lie != honest
    (maps / f"{FIRST}.npy").unlink()
    (maps / f"{FIRST}.npz").write_bytes(lie)
    tracemalloc.start()
    try:
        with pytest.raises(BadSpec, match="0.png.npz"):
            read(maps.parent)
        assert tracemalloc.get_traced_memory()[1] < 32 * 2**20
    finally:
        tracemalloc.stop()


def spoilt(data: bytes, rng: np.random.Generator) -> bytes:
    """A few bytes changed, cut out, put in, or the end cut off."""
    whole = bytearray(data)
    for _ in range(rng.integers(1, 8)):
        at, way = int(rng.integers(len(whole))), rng.random()
        if way < 0.7:
            whole[at] = int(rng.integers(256))
        elif way < 0.8:
            del whole[at : at + 9]
        elif way < 0.9:
            whole[at:at] = rng.bytes(5)
        else:
            del whole[at + 1 :]
    return bytes(whole)


SPANS = '{"a": [{"start": 0, "end": 4, "weight": 0.5, "text": "what"}], "b": []}'
WHOLE_FILES: dict[str, Callable[[], bytes]] = {
    "maps/a.npy": lambda: saved(MAP),
    "maps/a.npz": lambda: packed(a=saved(MAP)),
    "maps/a.png": lambda: png_of(SIDE, SIDE),
    "maps.npz": lambda: packed(**{"a.npy": saved(MAP)}),
    "spans.json": SPANS.encode,
    "weights.csv": "item,concept,value\na,ears,1\na,tail,-0.5\n".encode,
    "why.csv": 'item,sentence\na,"Because, “so”."\n'.encode,
}


@pytest.mark.parametrize("name", WHOLE_FILES)
def test_it_says_a_sentence_about_any_damaged_file(tmp_path: Path, name: str) -> None:
    """Random damage: the file is read, or refused by a BadSpec; no other error, and no warning, escapes."""
    path, rng = tmp_path / name, np.random.default_rng(8)
    path.parent.mkdir(exist_ok=True)
    view = ItemView(text="what is it") if name == "spans.json" else ItemView(SIDE, SIDE)
    component = Component("recorded", {"path": name.partition("/")[0]})
    content, refused = WHOLE_FILES[name](), 0
    for _ in range(400):
        path.write_bytes(spoilt(content, rng))
        try:
            record(component, tmp_path, {"a": view}, ["a", "b"], LocalStore(tmp_path / "store"))
        except BadSpec:
            refused += 1
    assert refused > 100


def test_it_refuses_what_belongs_to_no_item_and_items_without_one(maps: Path) -> None:
    np.save(maps / "right.npy", MAP)
    with pytest.raises(BadSpec, match='no item "right".*1 of 3 explanations'):
        read(maps.parent)
    (maps / "right.npy").unlink()
    np.save(maps / "left" / "0.npy", MAP)
    with pytest.raises(BadSpec, match=r'no item "left/0" \(did you mean \'left/0.png\'\?\)'):
        read(maps.parent)
    (maps / "left" / "0.npy").unlink()
    (maps / "right").mkdir()
    np.save(maps / "right" / "0.png.npy", MAP)  # an item that is not asked for
    assert set(read(maps.parent)) == set(KEYS)
    (maps / f"{FIRST}.npy").unlink()
    with pytest.raises(BadSpec, match=f'1 of 2 items have no explanation, the first is "{FIRST}"'):
        read(maps.parent)


def test_it_refuses_two_files_of_one_item_and_files_of_no_form(maps: Path) -> None:
    np.savez(maps / f"{FIRST}.npz", MAP)
    with pytest.raises(BadSpec, match=f'are two files of item "{FIRST}"; keep one'):
        read(maps.parent)
    (maps / f"{FIRST}.npz").unlink()
    (maps / ".DS_Store").write_bytes(b"hidden files are nobody's explanation")
    (maps / "readme.md").write_text("hello")
    with pytest.raises(BadSpec, match=r'"readme.md" is none of .npy, .npz, .png'):
        read(maps.parent)
    (maps / "readme.md").rename(maps / f"{FIRST}.txt")
    with pytest.raises(BadSpec, match=r"is none of .txt"):
        read(maps.parent)


def test_it_refuses_two_arrays_of_one_item_in_an_archive(tmp_path: Path) -> None:
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(tmp_path / "maps.npz", "w") as archive,
    ):
        for key in (*KEYS, FIRST):
            archive.writestr(f"{key}.npy", saved(MAP))
    with pytest.raises(BadSpec, match=f'two arrays of item "{FIRST}"'):
        read(tmp_path, "maps.npz")
    with zipfile.ZipFile(tmp_path / "maps.npz", "w") as archive:
        archive.writestr("../../left/0.png.npy", saved(MAP))
    with pytest.raises(BadSpec, match=r'no item "\.\./\.\./left/0.png"'):
        read(tmp_path, "maps.npz")


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("../outside", "leads out of the study's folder"),
        ("maps/../../outside", "leads out of the study's folder"),
        ("/etc", "leads out of the study's folder"),
        ("link", "leads out of the study's folder"),
        ("maps/nothing", "no such file or folder"),
        ("a\0b", "no name of a file"),
        ("empty", "is empty"),
        ("study.toml", "a folder or an .npz, .json or .csv file is needed"),
        ("", "path"),
    ],
)
def test_it_stays_in_the_study_s_folder(tmp_path: Path, path: str, match: str) -> None:
    study, outside = tmp_path / "study", tmp_path / "outside"
    for folder in (study / "empty", study / "maps", outside):
        folder.mkdir(parents=True)
    (study / "study.toml").write_text("")
    (study / "link").symlink_to(outside)
    with pytest.raises(BadSpec, match=match):
        read(study, path)


def test_it_follows_no_link_out_of_the_folder(maps: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.npy"
    np.save(secret, MAP)
    (maps / f"{FIRST}.npy").unlink()
    (maps / f"{FIRST}.npy").symlink_to(secret)
    with pytest.raises(BadSpec, match="leads out of the study's folder"):
        read(maps.parent)


ROWS = {
    "concepts": "item,concept,value\n",
    "pictures": "item,picture,caption\n",
    "sentences": "item,sentence\n",
}


@pytest.mark.parametrize(
    ("form", "lines", "match"),
    [
        ("concepts", f"{FIRST},ears,much", "line 3: value = \"much\" is no finite number"),
        ("concepts", f"{FIRST},ears,nan", "is no finite number"),
        ("concepts", f"{FIRST},ears,1e39", "is no finite number"),
        ("concepts", f"{FIRST},ears,1\n{FIRST},ears,2", 'line 4: concept "ears" .* is given twice'),
        ("concepts", f"{FIRST},,1", "the concept is empty"),
        ("concepts", f"{FIRST},ea\u202ers,1", "invisible formatting character"),
        ("concepts", f"{FIRST},ears", "another number of cells: line 3 has 2"),
        ("concepts", "\n".join(f"{FIRST},c{at},1" for at in range(513)), "513 concepts.*the limit is 512"),
        ("pictures", f"{FIRST},../secret.png,a", "leads out of the study's folder"),
        ("pictures", f"{FIRST},/etc/passwd,a", "leads out of the study's folder"),
        ("pictures", f"{FIRST},nothing.png,a", "there is no such file"),
        ("pictures", f"{FIRST},.,a", "is no file"),
        ("pictures", f"{FIRST},table.csv,a", "cannot be read"),
        ("pictures", f"{FIRST},huge.png,a", "60000000|10000 x 6000"),
        ("pictures", "\n".join(f"{FIRST},ok.png,a" for _ in range(10)), "has 10 pictures, the limit is 9"),
        ("pictures", f"{FIRST},ok.png,{'a' * 201}", "at most 200 can be shown"),
        ("sentences", f"{FIRST},one\n{FIRST},two", "line 4: .* has a second line"),
        ("sentences", f"{FIRST},", "is empty"),
        ("sentences", f"{FIRST},{'word ' * 400}", "more than the .* lines of its picture hold"),
        ("sentences", f'{FIRST},"open', "cannot be read"),
    ],
)  # fmt: skip
def test_it_refuses_a_line_by_its_number(tmp_path: Path, form: str, lines: str, match: str) -> None:
    study = tmp_path / "study"
    study.mkdir()
    (tmp_path / "secret.png").write_bytes(png_of(SIDE, SIDE))
    (study / "ok.png").write_bytes(png_of(SIDE, SIDE))
    (study / "huge.png").write_bytes(png_of(10_000, 6_000))
    other = {"concepts": "ears,1", "pictures": "ok.png,a", "sentences": "Because."}[form]
    (study / "table.csv").write_text(f"{ROWS[form]}{KEYS[1]},{other}\n{lines}\n", "utf-8")
    with pytest.raises(BadSpec, match=match):
        read(study, "table.csv")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"item,heat\n", "the columns must be one of: item, concept, value; item, picture, caption"),
        (b"", "its first line names the columns, and is empty"),
        (b"item;concept;value\n", "the columns must be one of"),
        (b"item,\xff\xfe", "save it as CSV in UTF-8"),
        (b"item,sentence\n" + b"a" * 200_000, "cannot be read"),
    ],
)
def test_it_refuses_a_table_of_no_form(tmp_path: Path, content: bytes, match: str) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(BadSpec, match=match):
        read(tmp_path, "table.csv")


def test_it_refuses_options_of_maps_for_other_forms(tmp_path: Path) -> None:
    (tmp_path / "why.csv").write_text("item,sentence\n" + "".join(f"{key},Because.\n" for key in KEYS))
    assert len(read(tmp_path, "why.csv")) == 2
    for params in ({"resize": True}, {"signed": True}):
        with pytest.raises(BadSpec, match="signed and resize go with maps alone"):
            read(tmp_path, "why.csv", **params)
