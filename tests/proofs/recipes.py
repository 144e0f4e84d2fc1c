"""Which recipe can be read? Strengths are decoded from pixels, as a person does who knows the legend.

    .venv/bin/python -m tests.proofs.recipes [--seed S]

Photographs that scikit-image and scikit-learn carry, four crops each, one half to choose a recipe and the
other to confirm it. Two seeded random fields lie on each crop, of 7 x 7 and of 28 x 28 cells. A pixel is
decoded as the place of the legend whose colour is nearest in CIELAB. The legend lies on mid-grey, as a reader
does not know the picture below. So is it for three kinds of dichromacy [Machado et al. 2009, severity 1]. A
number is Spearman's correlation of decoded and drawn strength, averaged over crops and fields; a recipe is as
good as its worst photograph and vision.

The rule was fixed before the second half was looked at: recipes over colour that reach `ENOUGH` on the first
half, by rising opacity, because opacity takes from the picture, then by how well they are read; the first of
them that the second half confirms is the default. No observer's answers enter. Exits 1 if the shipped recipe
is another one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import skimage
import sklearn
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import rankdata
from skimage.color import rgb2lab

from stimuli.planner.values import counted_generator
from stimuli.render.heatmap import linear, paint_field, palette
from stimuli.render.recipe import DIVERGING, SEQUENTIAL, Base, RenderSpec, Sign
from stimuli.types import Pixels, Plane

FIRST = ("astronaut", "chelsea", "ihc", "motorcycle_left", "china")
SECOND = ("coffee", "rocket", "retina", "hubble_deep_field", "flower")
"""Each half has a person or an animal, a machine, a medical or technical picture and a scene."""
CELLS = (7, 28)
SIDE = 224
STEP = 4
"""Every fourth pixel of a row and column is decoded."""
MID_GREY = 128.0
OPACITIES = tuple(round(0.45 + 0.05 * step, 2) for step in range(9))
ENOUGH = 0.94
VISIONS: Mapping[str, Sequence[Sequence[float]]] = {
    "trichromat": np.eye(3).tolist(),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
"""In linear light, by rows. [Machado, Oliveira and Fernandes 2009, table of severity 1.0]"""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Read:
    """How well a recipe is read: the least correlation over photographs, by vision."""

    recipe: RenderSpec
    least: Mapping[str, float]

    @property
    def worst(self) -> float:
        return min(self.least.values())


def photograph(name: str) -> Image.Image:
    """One that scikit-image or scikit-learn carries, in RGB."""
    folders = (Path(skimage.__file__).parent / "data", Path(sklearn.__file__).parent / "datasets" / "images")
    [path] = [path for folder in folders for path in folder.glob(f"{name}.*")]
    with Image.open(path) as opened:
        return opened.convert("RGB")


def crops(name: str) -> list[Pixels]:
    """The four corners of a photograph, each half its shorter side, at SIDE pixels."""
    picture = photograph(name)
    half = min(picture.size) // 2
    right, low = picture.width - half, picture.height - half
    corners = [(x, y, x + half, y + half) for y in (0, low) for x in (0, right)]
    size = (SIDE, SIDE)
    return [np.asarray(picture.crop(box).resize(size, Image.Resampling.LANCZOS)).copy() for box in corners]


def fields(seed: int, name: str) -> list[Plane]:
    """A random field of each grain, float32 (SIDE, SIDE), with values all over 0 to 1."""
    made = []
    for cells in CELLS:
        coarse = counted_generator(f"field\x1f{name}\x1f{seed}", cells).random((cells, cells), np.float32)
        fine = np.asarray(Image.fromarray(coarse).resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        made.append(np.asarray((fine - fine.min()) / np.ptp(fine), np.float32))
    return made


def seen(pixels: Floats, vision: str) -> Floats:
    """Colours (…, 3) in 0-255 as CIELAB (…, 3), as they look to a kind of vision."""
    levels = np.asarray(np.rint(pixels), np.uint8)
    light = np.clip(linear(levels) @ np.reshape(VISIONS[vision], (3, 3)).T, 0, 1)
    shares = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.asarray(rgb2lab(shares), np.float64)


@cache
def legend(recipe: RenderSpec, vision: str) -> Floats:
    """The colours of every fourth strength over mid-grey, float64 (64, 3) in CIELAB."""
    colours = palette(recipe.colormap)[::4] * recipe.alpha + MID_GREY * (1 - recipe.alpha)
    return seen(np.asarray(colours, np.float64), vision)


def decoded(drawn: Pixels, recipe: RenderSpec, vision: str) -> Floats:
    """The strength that each pixel is read as, float64 (n,) in 0-1."""
    places = seen(np.asarray(drawn[::STEP, ::STEP], np.float64), vision).reshape(-1, 1, 3)
    distance = np.square(places - legend(recipe, vision)).sum(2)
    return np.asarray(distance.argmin(1) / (distance.shape[1] - 1), np.float64)


def agreement(drawn: Plane, read: Floats) -> float:
    """Spearman's correlation; 0 if everything is read as one strength."""
    if not np.ptp(read):
        return 0.0
    return float(np.corrcoef(rankdata(drawn), rankdata(read))[0, 1])


def read(recipe: RenderSpec, photographs: Sequence[str], seed: int) -> Read:
    least = {}
    for vision in VISIONS:
        means = []
        for name in photographs:
            numbers = [
                agreement(field[::STEP, ::STEP].ravel().astype(np.float64), decoded(drawn, recipe, vision))
                for picture in crops(name)
                for field in fields(seed, name)
                for drawn in [paint_field(picture, _sided(field, recipe), recipe)]
            ]
            means.append(float(np.mean(numbers)))
        least[vision] = min(means)
    return Read(recipe, least)


def _sided(field: Plane, recipe: RenderSpec) -> Plane:
    return np.asarray(2 * field - 1 if recipe.sign == "diverging" else field, np.float32)


def best_of(rising: Sequence[RenderSpec], seed: int) -> Read:
    """The least opacity that is enough on the first half; the highest if none is."""
    for recipe in rising:
        first = read(recipe, FIRST, seed)
        if first.worst >= ENOUGH:
            break
    return first


def row(name: str, first: Read, second: Read) -> str:
    numbers = [f"{value:>10.2f}" for half in (first, second) for value in half.least.values()]
    return " ".join([f"{name:30}", f"{first.recipe.alpha:7.2f}", *numbers])


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Choose a recipe on one half, confirm it on the other.")
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args(words).seed
    visions = [f"{vision:>10}" for vision in VISIONS]
    print(" ".join([f"{'palette, base':30}", "opacity", *visions, *visions]))
    read_twice: list[tuple[Read, Read]] = []
    for base, colormap in product(get_args(Base), (*SEQUENTIAL, *DIVERGING)):
        sign: Sign = "diverging" if colormap in DIVERGING else "positive"
        rising = [RenderSpec(colormap=colormap, alpha=a, base=base, sign=sign) for a in OPACITIES]
        first = best_of(rising, seed)
        read_twice.append((first, read(first.recipe, SECOND, seed)))
        print(row(f"{colormap}, {base}", *read_twice[-1]), flush=True)
    others = {
        "viridis, rising: before": RenderSpec(alpha=0.55, sign="magnitude", opacity="rising"),
        "jet: colin-2022-figures": RenderSpec(colormap="jet", alpha=0.5),
        "bwr: pasta": RenderSpec(colormap="bwr", alpha=0.5),
    }
    for name, recipe in others.items():
        print(row(name, read(recipe, FIRST, seed), read(recipe, SECOND, seed)), flush=True)
    enough = [
        pair
        for pair in read_twice
        if pair[0].worst >= ENOUGH and pair[0].recipe.base == "colour" and pair[0].recipe.sign == "positive"
    ]
    for first, second in sorted(enough, key=lambda pair: (pair[0].recipe.alpha, -pair[0].worst)):
        is_confirmed = second.worst >= ENOUGH
        said = "confirmed" if is_confirmed else "not confirmed"
        recipe = first.recipe
        print(f"{recipe.colormap} at {recipe.alpha}: {first.worst:.3f}, then {second.worst:.3f}, {said}")
        if is_confirmed:
            return 0 if recipe == RenderSpec() else 1
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
