"""Clear cases for the training of raters: drawn pictures whose objects are known, with planted explanations.

A circle and a triangle stand beside each other, and one of them counts as the model's answer. What is marked
is that object, the other one, nothing, or anything; so it is plain how well it explains the answer. The
pictures are neutral: none comes from a study.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from PIL import Image, ImageDraw

from stimuli.datasets.practice import COOL, GROUND, SIZE_PX, SUPERSAMPLING, WARM, mark_shape
from stimuli.render.text_draw import INK, font
from stimuli.render.view_placement import PAGE
from stimuli.types import ConceptAttribution, Mask, PixelAttribution, Pixels

Case = Literal["object", "elsewhere", "empty", "noise"]
"""What a planted map marks: the object that is the answer, the other object, nothing, random places."""
SHAPES = ("circle", "triangle")
EDGE_PX = 10.0
"""Standard deviation of the soft edge of a planted map: maps of methods have no hard ones either."""
NOISE_PX = 16
"""Side of the squares of random strength."""
GAP_PX = 20
CAPTION_PX = 40


@dataclass(frozen=True, slots=True)
class PlantedScene:
    """A picture, uint8 (640, 640, 3), the shape that is the answer, and by shape the region that it covers,
    bool (640, 640)."""

    picture: Pixels
    answer: str
    regions: Mapping[str, Mask]

    @property
    def other(self) -> str:
        """The shape that is not the answer."""
        return next(shape for shape in SHAPES if shape != self.answer)


def draw_scene(answer: str, rng: np.random.Generator) -> PlantedScene:
    """A circle and a triangle in the two halves of a picture, with sides and colours drawn at random."""
    side = SIZE_PX * SUPERSAMPLING
    canvas = Image.new("RGB", (side, side), GROUND)
    covered = {shape: Image.new("L", (side, side), 0) for shape in SHAPES}
    halves, colours = rng.permutation([0.26, 0.74]), [(WARM, COOL), (COOL, WARM)][int(rng.integers(2))]
    for shape, half, colour in zip(SHAPES, halves, colours, strict=True):
        radius = side * rng.uniform(0.15, 0.19)
        middle = float(side * half), float(side * rng.uniform(0.3, 0.7))
        turn = float(rng.uniform(0, 2 * np.pi))
        mark_shape(ImageDraw.Draw(canvas), shape, middle, radius, turn, colour)
        mark_shape(ImageDraw.Draw(covered[shape]), shape, middle, radius, turn, 255)
    return PlantedScene(
        _shrink_picture(canvas),
        answer,
        {shape: _shrink_picture(cover) >= 128 for shape, cover in covered.items()},
    )


def planted_map(scene: PlantedScene, case: Case, rng: np.random.Generator) -> PixelAttribution:
    """The map of a case, float32 (640, 640); larger is more important, none is below 0."""
    from scipy.ndimage import gaussian_filter

    if case == "noise":
        count = SIZE_PX // NOISE_PX
        values = np.kron(rng.random((count, count)), np.ones((NOISE_PX, NOISE_PX)))
    elif case == "empty":
        values = np.zeros((SIZE_PX, SIZE_PX))
    else:
        marked = scene.answer if case == "object" else scene.other
        values = gaussian_filter(scene.regions[marked].astype(np.float64), EDGE_PX)
    return PixelAttribution(values.astype(np.float32), signed=True)


def planted_concepts(
    scene: PlantedScene, case: Case, names: Mapping[str, Sequence[str]]
) -> ConceptAttribution:
    """Concepts that speak for the answer: those of the shape that is the answer ("object"), or of the other.
    `names` are the concepts of each shape, the most important first."""
    named = tuple(names[scene.answer if case == "object" else scene.other])
    return ConceptAttribution(named, np.linspace(1.0, 0.5, len(named), dtype=np.float32))


def copy_picture(picture: Pixels, aim: Literal["light", "strong"]) -> Pixels:
    """A copy of a picture: a little darker, or very dark and grainy; nothing moves."""
    if aim == "light":
        return np.asarray(np.rint(picture * 0.9), np.uint8)
    grain = np.random.default_rng(0).normal(0, 40, (*picture.shape[:2], 1))
    return np.asarray(np.clip(np.rint(picture * 0.4 + grain), 0, 255), np.uint8)


def beside(first: Pixels, second: Pixels) -> Pixels:
    """Two square pictures beside each other with the letters A and B below, in one of 640 by 640 pixels."""
    canvas = Image.new("RGB", (SIZE_PX, SIZE_PX), PAGE)
    pen = ImageDraw.Draw(canvas)
    width = (SIZE_PX - GAP_PX) // 2
    top = (SIZE_PX - width - CAPTION_PX) // 2
    for left, picture, letter in ((0, first, "A"), (width + GAP_PX, second, "B")):
        canvas.paste(Image.fromarray(picture).resize((width, width), Image.Resampling.LANCZOS), (left, top))
        pen.text((left + width // 2, top + width + CAPTION_PX // 4), letter, INK, font(CAPTION_PX), "ma")
    return np.asarray(canvas, np.uint8).copy()


def _shrink_picture(drawn: Image.Image) -> Pixels:
    return np.asarray(drawn.resize((SIZE_PX, SIZE_PX), Image.Resampling.LANCZOS), np.uint8).copy()
