"""One plate: dots in a disc, those of the figure in one colour and the others in the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from stimuli.colour_vision.light import Linear, encoded
from stimuli.datasets.plates.colours import MIDDLE_LIGHTNESS, Pair, lit
from stimuli.datasets.plates.packing import Dots, Floats
from stimuli.types import Mask, Pixels

DISC_RADIUS = 0.48
"""In sides of the picture."""
PAPER = 0.86
"""Linear light of what lies between the dots."""
FIGURE_SIDE = 1.4
"""The longer side of the figure, in radii of the disc; SIZES is by how much it varies, SHIFT its middle."""
SIZES = (0.92, 1.06)
SHIFT = 0.06
KNOWN_DARKER = 30.0
"""By how many points of L* the figure is darker on plates that everybody is to read: twice the usual jitter,
so that its lightest dots are no lighter than the darkest of the ground."""
INK = 0.52
"""A place belongs to the figure if it has this share of the digit's darkest ink."""
MARGIN = 3
"""Empty pixels around a digit, so that a stroke at its rim ends round."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A digit in the disc: `ink` (h, w), 0-1, around `middle` (x, y), `side` from the first to the last inked
    row or column, whichever is farther, in radii of the disc.
    """

    ink: Floats
    middle: tuple[float, float]
    side: float

    def covers(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Which places, in radii of the disc from its middle, belong to the figure."""
        ink = np.pad(self.ink, MARGIN)
        (top, bottom), (left, right) = (_extent(ink.max(axis=axis)) for axis in (1, 0))
        cells = max(bottom - top, right - left)
        rows = (y - self.middle[1]) / self.side * cells + (top + bottom) / 2 - 0.5
        columns = (x - self.middle[0]) / self.side * cells + (left + right) / 2 - 0.5
        smooth = scipy.ndimage.map_coordinates(ink, [rows, columns], order=3, mode="constant", cval=0.0)
        return np.asarray((smooth >= INK) & (np.hypot(x, y) <= 1))


def _extent(profile: Floats) -> tuple[int, int]:
    inked = np.flatnonzero(profile >= INK)
    return int(inked[0]), int(inked[-1]) + 1


def draw_shape(ink: Floats, rng: np.random.Generator) -> Shape:
    """The digit a little larger or smaller, a little off the middle."""
    x, y = rng.uniform(-SHIFT, SHIFT, 2)
    return Shape(ink, (float(x), float(y)), FIGURE_SIDE * float(rng.uniform(*SIZES)))


def draw_mask(shape: Shape, size_px: int) -> Mask:
    """The figure itself, bool (size_px, size_px)."""
    axis = ((np.arange(size_px) + 0.5) / size_px - 0.5) / DISC_RADIUS
    x, y = np.meshgrid(axis, axis)
    return shape.covers(x, y)


@dataclass(frozen=True, slots=True)
class PaintedPlate:
    """The dots of a plate, which of them are the figure's, bool (N,), and their linear light (N, 3)."""

    dots: Dots
    is_figure: NDArray[np.bool_]
    colours: Linear


def paint(
    is_figure: NDArray[np.bool_], colours: Pair, jitter: float, darker: float, rng: np.random.Generator
) -> Linear:
    """The colours of the dots (N, 3): each of its own lightness, drawn within `jitter` points of L* about the
    middle, for figure and ground alike; the figure is `darker` points below that.
    """
    lightness = MIDDLE_LIGHTNESS + rng.uniform(-jitter, jitter, len(is_figure)) - darker * is_figure
    return lit(np.where(is_figure[:, None], colours.figure, colours.ground), lightness)


def render(painted: PaintedPlate, size_px: int) -> Pixels:
    """The picture, uint8 (size_px, size_px, 3). Edges are mixed in linear light, so that equal luminance
    stays equal there.
    """
    dots = painted.dots
    radii = dots.radii * DISC_RADIUS * size_px
    middles = (dots.middles * DISC_RADIUS + 0.5) * size_px - 0.5
    reach = int(np.ceil(radii.max())) + 1
    steps = np.arange(-reach, reach + 1)
    corner = np.rint(middles).astype(int)
    columns = corner[:, 0, None, None] + steps[None, None, :]
    rows = corner[:, 1, None, None] + steps[None, :, None]
    distance = np.hypot(columns - middles[:, 0, None, None], rows - middles[:, 1, None, None])
    cover = np.clip(radii[:, None, None] - distance + 0.5, 0, 1)
    places = (np.clip(rows, 0, size_px - 1) * size_px + np.clip(columns, 0, size_px - 1)).ravel()
    total = np.maximum(np.bincount(places, cover.ravel(), size_px**2), 1e-12)
    picture = np.empty((size_px**2, 3))
    for channel in range(3):
        weighted = (cover * painted.colours[:, channel, None, None]).ravel()
        mean = np.bincount(places, weighted, size_px**2) / total
        covered = np.minimum(total, 1)
        picture[:, channel] = mean * covered + PAPER * (1 - covered)
    return encoded(picture.reshape(size_px, size_px, 3))
