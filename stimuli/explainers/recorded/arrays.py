"""Recorded maps: .npy, .npz and grey .png files.

Sizes are compared before anything is decoded: what a file's head says is not believed, but it is enough to
refuse. Nothing is ever unpickled.
"""

from __future__ import annotations

import zipfile
import zlib
from functools import partial
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from stimuli.errors import BadSpec
from stimuli.explainers.recorded.base import ItemView, Readers, by_key, check_bytes, name_file_faults
from stimuli.render.heatmap import resize_field
from stimuli.types import PixelAttribution

MAX_BYTES = 16 * 2**20
"""Of one map, packed or not: a view of 1024 x 1024 pixels in double precision takes half of it."""
ENDINGS = (".npy", ".npz", ".png")
WHITE = {"L": 255, "I;16": 65535, "I;16B": 65535, "I": 65535}
"""The value that becomes 1, by Pillow's mode of a grey picture of 8 or 16 bits."""
SAVE = "save it by numpy.save, as numbers and not as objects"
DAMAGED = (
    *(ValueError, TypeError, EOFError, OverflowError),
    *(SyntaxError, TokenError, MemoryError, RecursionError),  # of a head that is no plain literal
)
PACKED = (*DAMAGED, OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
PICTURES = (
    *(UnidentifiedImageError, OSError, SyntaxError, ValueError),
    *(Image.DecompressionBombError, Image.DecompressionBombWarning),
)


def folder_of_maps(names: list[Path], root: Path, resize: bool) -> Readers:
    """One file per item."""
    read = {".npy": _npy_file, ".npz": _npz_file, ".png": _png_file}
    paths = by_key(names, root, ENDINGS)
    return {
        key: partial(read[path.suffix], path, path.relative_to(root).as_posix(), resize)
        for key, path in paths.items()
    }


def archive_of_maps(path: Path, what: str, resize: bool) -> Readers:
    """One array per item in a file of `numpy.savez`. Its directory is read once: the file is closed when the
    readers are dropped."""
    archive = _archive(path, what)
    members = archive.namelist()
    keys = [member.removesuffix(".npy") for member in members]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadSpec(f'recorded "{what}" holds two arrays of item "{twice}"; keep one')
    return {
        key: partial(_member, archive, f"{what}: {key}", resize, member)
        for key, member in zip(keys, members, strict=True)
    }


def _npy_file(path: Path, what: str, resize: bool, view: ItemView) -> PixelAttribution:
    check_bytes(path, MAX_BYTES)
    with path.open("rb") as stream:
        return _map(_array(stream, what, resize, view), what, view)


def _npz_file(path: Path, what: str, resize: bool, view: ItemView) -> PixelAttribution:
    check_bytes(path, MAX_BYTES)
    with _archive(path, what) as archive:
        members = archive.namelist()
        if len(members) != 1:
            raise BadSpec(
                f'recorded "{what}" holds {len(members)} arrays, but an item has one map: '
                "save one array in each file"
            )
        return _member(archive, what, resize, members[0], view)


def _archive(path: Path, what: str) -> zipfile.ZipFile:
    with name_file_faults(f'"{what}"', SAVE, *PACKED):
        return zipfile.ZipFile(path)


def _member(
    archive: zipfile.ZipFile, what: str, resize: bool, member: str, view: ItemView
) -> PixelAttribution:
    head = archive.getinfo(member)
    if head.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadSpec(f'recorded "{what}" is packed by another method than numpy\'s: {SAVE}')
    if head.file_size > MAX_BYTES:
        size = f"{head.file_size:,} bytes"
        raise BadSpec(f'recorded "{what}" unpacks to {size}, the limit is {MAX_BYTES:,}: make it smaller')
    # Reading ends at the size that was just compared, however much is packed.
    with name_file_faults(f'"{what}"', SAVE, *PACKED), archive.open(member) as stream:
        return _map(_array(stream, what, resize, view), what, view)


def _array(stream: IO[bytes], what: str, resize: bool, view: ItemView) -> NDArray[Any]:
    """The array of an .npy stream, float32; its shape and type are compared before its numbers are read."""
    with name_file_faults(f'"{what}"', SAVE, *DAMAGED):
        head = npy.read_array_header_2_0 if npy.read_magic(stream) == (2, 0) else npy.read_array_header_1_0
        shape, by_columns, kind = head(stream)
    if kind.kind not in "fiub":
        raise BadSpec(f'recorded "{what}" holds values of type {kind}, not numbers: {SAVE}')
    _check_shape(shape, what, resize, view)
    wanted = kind.itemsize * shape[0] * shape[1]
    with name_file_faults(f'"{what}"', SAVE, *PACKED):
        data = stream.read(wanted + 1)
    if len(data) != wanted:
        raise BadSpec(f'recorded "{what}" does not hold the {wanted:,} bytes that its head announces: {SAVE}')
    values = np.frombuffer(data, kind).reshape(shape, order="F" if by_columns else "C")
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, np.float32)


def _png_file(path: Path, what: str, resize: bool, view: ItemView) -> PixelAttribution:
    """Grey levels as shares of white."""
    check_bytes(path, MAX_BYTES)
    with (
        name_file_faults(f'"{what}"', "save it as a grey PNG", *PICTURES),
        Image.open(path, formats=["PNG"]) as picture,
    ):
        if picture.mode not in WHITE or "transparency" in picture.info:
            raise BadSpec(
                f'recorded "{what}" is no grey picture (mode {picture.mode}): save the map itself with 8 or '
                "16 bits per pixel, without colours and transparency"
            )
        _check_shape((picture.height, picture.width), what, resize, view)
        values = np.asarray(picture, np.float64) / WHITE[picture.mode]
    return _map(values.astype(np.float32), what, view)


def _check_shape(shape: tuple[int, ...], what: str, resize: bool, view: ItemView) -> None:
    grid = (view.height, view.width)
    if len(shape) != 2:
        raise BadSpec(
            f'recorded "{what}" has the shape {shape}, but a map has rows and columns only: choose or '
            "average the channels before saving"
        )
    if shape == grid:
        return
    is_smaller = all(1 <= side <= most for side, most in zip(shape, grid, strict=True))
    if not (is_smaller and resize):
        remedy = (
            "say resize = true to have it enlarged bilinearly"
            if is_smaller
            else "save it on the network's own grid, or a coarser one with resize = true"
        )
        raise BadSpec(
            f'recorded "{what}" has {shape[0]} x {shape[1]} values (rows x columns), but the network sees '
            f"{grid[0]} x {grid[1]} pixels: {remedy}"
        )


def _map(values: NDArray[Any], what: str, view: ItemView) -> PixelAttribution:
    if not np.isfinite(values).all():
        at = np.argwhere(~np.isfinite(values))[0]
        raise BadSpec(
            f'recorded "{what}" has a value that is not finite in single precision, at row {at[0]}, column '
            f"{at[1]}: mend the map before saving"
        )
    if values.shape != (view.height, view.width):
        values = resize_field(values, (view.width, view.height))
    return PixelAttribution(values, signed=bool((values < 0).any()))
