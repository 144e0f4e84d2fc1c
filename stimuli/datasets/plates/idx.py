"""MNIST's files, plain or .gz: a header that says how much follows, then that much."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import BadSpec

Ink = NDArray[np.uint8]
PARTS = ("train", "t10k")
IMAGES, LABELS = "{}-images-idx3-ubyte", "{}-labels-idx1-ubyte"
BYTES_TYPE = 8
"""How a header says that values are unsigned bytes."""
GZIP = b"\x1f\x8b"
MOST_BYTES = 300_000_000
SIDES = (8, 64)


def read_idx_folder(folder: Path) -> tuple[Ink, NDArray[np.int64], list[str]]:
    """The pictures uint8 (N, h, w), 0 = paper, their digits (N,) and their names, from
    train-images-idx3-ubyte and train-labels-idx1-ubyte, t10k-images-… and t10k-labels-…, or one of the pairs;
    .gz as well, and with a dot before idx. They lie in the folder or in its MNIST/raw or raw, where
    torchvision puts them.

    BadSpec, with the file's name, for a file that does not keep to the format.
    """
    if not folder.is_dir():
        raise BadSpec(f'path: there is no folder "{folder}": give one with MNIST\'s files')
    read: list[tuple[Ink, NDArray[np.int64], list[str]]] = []
    for place in (folder, folder / "MNIST" / "raw", folder / "raw"):
        pairs = [(part, _find_file(place, IMAGES, part), _find_file(place, LABELS, part)) for part in PARTS]
        read = read or [_read_pair(*pair) for pair in pairs if any(pair[1:])]
    if not read:
        wanted = ", ".join(pattern.format(part) for part in PARTS for pattern in (IMAGES, LABELS))
        raise BadSpec(
            f'path: "{folder}" has none of MNIST\'s files: {wanted} (.gz as well), nor has its MNIST/raw'
        )
    shapes = {ink.shape[1:] for ink, _labels, _names in read}
    if len(shapes) > 1:
        raise BadSpec(f'path: the pictures in "{folder}" are of different sizes: {sorted(shapes)}')
    ink, labels, names = zip(*read, strict=True)
    return np.concatenate(ink), np.concatenate(labels), [name for some in names for name in some]


def _find_file(folder: Path, pattern: str, part: str) -> Path | None:
    name = pattern.format(part)
    names = (name, f"{name}.gz", name.replace("-idx", ".idx"), name.replace("-idx", ".idx") + ".gz")
    return next((path for path in map(folder.joinpath, names) if path.is_file()), None)


def _read_pair(
    part: str, images: Path | None, labels: Path | None
) -> tuple[Ink, NDArray[np.int64], list[str]]:
    if images is None or labels is None:
        missing = (IMAGES if images is None else LABELS).format(part)
        raise BadSpec(f'path: "{missing}" is missing beside "{(images or labels or Path()).name}": add it')
    ink, digits = read_idx(images, 3), read_idx(labels, 1)
    if len(ink) != len(digits):
        raise BadSpec(f'"{images.name}" holds {len(ink)} pictures, but "{labels.name}" {len(digits)} labels')
    if not SIDES[0] <= min(ink.shape[1:]) <= max(ink.shape[1:]) <= SIDES[1]:
        raise BadSpec(
            f'"{images.name}": pictures of {ink.shape[1]} x {ink.shape[2]} pixels; each side must have '
            f"{SIDES[0]} to {SIDES[1]}"
        )
    if len(digits) and digits.max() > 9:
        raise BadSpec(f'"{labels.name}": label {digits.max()} is no digit; labels are 0 to 9')
    return ink, digits.astype(np.int64), [f"{part}-{index:05d}" for index in range(len(ink))]


def read_idx(path: Path, dimensions: int) -> Ink:
    """The values of an IDX file of bytes with so many dimensions. BadSpec if its header says otherwise, or
    less or more follows than the header announces; no more than that is ever unpacked. Whether it is packed
    is told by its first bytes: browsers unpack files and leave them the name.
    """
    try:
        with path.open("rb") as start:
            is_packed = start.read(len(GZIP)) == GZIP
        with gzip.open(path) if is_packed else path.open("rb") as file:
            header = file.read(4 * (1 + dimensions))
            shape = _shape(header, path.name, dimensions)
            wanted = math.prod(shape)
            content = file.read(wanted + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadSpec(f'"{path.name}" cannot be read ({error}): fetch it again') from None
    if len(content) != wanted:
        more = "more" if len(content) > wanted else f"{len(content)}"
        raise BadSpec(
            f'"{path.name}": {wanted} bytes should follow the header, but {more} do: fetch it again'
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _shape(header: bytes, name: str, dimensions: int) -> Sequence[int]:
    if len(header) < 4 * (1 + dimensions) or header[:4] != bytes((0, 0, BYTES_TYPE, dimensions)):
        raise BadSpec(f'"{name}" is no IDX file of bytes with {dimensions} dimension(s): fetch it again')
    shape = [int.from_bytes(header[at : at + 4], "big") for at in range(4, len(header), 4)]
    if not 1 <= math.prod(shape) <= MOST_BYTES:
        raise BadSpec(
            f'"{name}": its header announces {" x ".join(map(str, shape))} values, but 1 to {MOST_BYTES} are '
            "read: fetch it again"
        )
    return shape
