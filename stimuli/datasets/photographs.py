"""Real photographs without a download: two of the textures that scikit-image carries, cut into class
folders.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import skimage
from PIL import Image

from stimuli.errors import BadSpec
from stimuli.types import Pixels

TEXTURES = ("brick", "grass", "gravel")
BLOCK = 2
"""Crops per side of a block; the crops of one block are neighbours and share a group."""


def read_texture(name: str) -> Pixels:
    """A texture photograph from the installed package itself, uint8 (512, 512, 3), grey.

    The textures are by Pixabay and CC0Textures authors, in the public domain (CC0), as scikit-image states.
    Raises BadSpec for another name, or when the installed package does not carry the file.
    """
    if name not in TEXTURES:
        raise BadSpec(f'there is no texture photograph "{name}"; known are {", ".join(TEXTURES)}')
    path = Path(skimage.__file__).parent / "data" / f"{name}.png"
    if not path.is_file():
        raise BadSpec(
            f'the installed scikit-image does not carry "{name}.png"; install scikit-image 0.25 or later'
        )
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"), dtype=np.uint8).copy()


def cut(
    folder: Path,
    classes: tuple[str, ...] = ("grass", "gravel"),
    *,
    crop_px: int = 40,
    written_px: int = 160,
    people_share: float = 0.5,
) -> list[Path]:
    """Cut each photograph into non-overlapping square crops:
    folder/model|people/<class>/<class>-<block>__<n>.png.

    The upper strip trains the model, the lower one, `people_share` of the rows of blocks, is for people: the
    two never touch the same pixel. Blocks of 2 x 2 neighbours share the name before "__", and so a group.
    Crops are enlarged to `written_px`, because at `crop_px` they are too small to be seen. Returns the files
    in order.
    """
    if crop_px < 8 or written_px < crop_px or not 0 < people_share < 1:
        raise BadSpec(
            f"crop_px = {crop_px}, written_px = {written_px}, people_share = {people_share}: needed are "
            "8 <= crop_px <= written_px and 0 < people_share < 1"
        )
    written: list[Path] = []
    for name in classes:
        photograph = read_texture(name)
        rows, columns = (side // (crop_px * BLOCK) for side in photograph.shape[:2])
        if rows < 2:
            raise BadSpec(
                f"crop_px = {crop_px}: at most {min(photograph.shape[:2]) // (2 * BLOCK)} fit twice"
            )
        border = rows - min(rows - 1, max(1, math.floor(people_share * rows + 0.5)))
        for row in range(rows):
            place = folder / ("model" if row < border else "people") / name
            place.mkdir(parents=True, exist_ok=True)
            for column in range(columns):
                written += _write_block(photograph, place, name, (row, column), crop_px, written_px)
    return written


def _write_block(
    photograph: Pixels, place: Path, name: str, block: tuple[int, int], crop_px: int, written_px: int
) -> list[Path]:
    paths = []
    for number in range(BLOCK * BLOCK):
        top = (block[0] * BLOCK + number // BLOCK) * crop_px
        left = (block[1] * BLOCK + number % BLOCK) * crop_px
        crop = Image.fromarray(photograph[top : top + crop_px, left : left + crop_px])
        path = place / f"{name}-{block[0]:02d}{block[1]:02d}__{number}.png"
        crop.resize((written_px, written_px), Image.Resampling.LANCZOS).save(path)
        paths.append(path)
    return paths
