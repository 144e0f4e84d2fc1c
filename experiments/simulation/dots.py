"""How a computational observer sees a plate of coloured dots: colours by its own eyes, and digits it knows.

The picture is the one that was served. Eyes of an axis and severity are simulated on it (Machado et al.
2009); each cell of a grid keeps the mean colour of its dots, with internal noise. Every known form of a digit
is held against the cells: how well two groups of colours, figure and ground, explain them. Pure arrays;
nothing knows a truth, a source or a study. Parameters, each with its source: plates.toml.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from experiments.simulation.declared import declared_value
from stimuli.colour_vision.light import Linear, decoded, encoded, to_lab
from stimuli.colour_vision.machado import Axis, simulate
from stimuli.datasets.plates.digits import read_digits
from stimuli.datasets.plates.drawing import DISC_RADIUS, FIGURE_SIDE, SIZES, Shape
from stimuli.datasets.plates.plates import open_plates
from stimuli.spec import Component
from stimuli.types import Mask, Pixels

Floats = NDArray[np.float64]
FILE = "plates.toml"
SIDE = 28
"""Cells per side: each about as large as the largest dots."""
FINE = 4
"""Points per cell, each way, at which colours are seen."""
FORMS = 24
"""Handwritten forms of each digit that the observer knows, evenly from the clearest to the least clear."""
PAPER_LIGHTNESS = (80.0, 90.0)
"""L* below which a point is all dot, and above which it is all paper."""
INKED = 0.5
"""A cell belongs to a known form if it covers this share of it."""


@dataclass(frozen=True, slots=True)
class Eyes:
    """`severity` 0 (ordinary) to 1 (a kind of cone is missing)."""

    axis: Axis
    severity: float


@dataclass(frozen=True, slots=True)
class Seen:
    """`colours` (SIDE, SIDE, 3) CIELAB of the dots in each cell; `dotted` (SIDE, SIDE), 0-1, the share of a
    cell that dots cover."""

    colours: Floats
    dotted: Floats


@dataclass(frozen=True, slots=True)
class Known:
    """Forms of digits on the grid: `forms` (N, SIDE * SIDE), the share of each cell that is inked; `labels`
    (N,), 0-9."""

    forms: NDArray[np.float32]
    labels: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Reading:
    """`evidence` (10,): for each digit, in nats, how much better its best form explains the cells than no
    figure at all, less what so many tried forms reach by chance. `figures` are the cells that each would
    take as figure, bool (10, SIDE, SIDE)."""

    evidence: Floats
    figures: NDArray[np.bool_]

    @property
    def digit(self) -> int:
        return int(self.evidence.argmax())

    def favours(self, digit: int) -> float:
        """How far the plate speaks for this digit rather than for any other, in nats; 0 if nothing is
        seen."""
        seen = np.maximum(self.evidence, 0)
        return float(seen[digit] - np.delete(seen, digit).max())


def see(picture: Pixels, eyes: Eyes) -> Seen:
    """A served picture, uint8 (H, W, 3), as these eyes have it, without noise."""
    light = _shrunk(decoded(picture))
    lab = to_lab(decoded(simulate(encoded(light), eyes.axis, eyes.severity)))
    low, high = PAPER_LIGHTNESS
    is_dot = np.clip((high - lab[..., 0]) / (high - low), 0, 1) * _disc(SIDE * FINE)
    cells = is_dot.reshape(SIDE, FINE, SIDE, FINE).sum((1, 3))
    sums = (lab * is_dot[..., None]).reshape(SIDE, FINE, SIDE, FINE, 3).sum((1, 3))
    return Seen(sums / np.maximum(cells, 1e-9)[..., None], cells / FINE**2)


def marked_area(picture: Pixels, mark: Pixels) -> Mask | None:
    """The cells that a line on the same picture encloses, bool (SIDE, SIDE); None if nothing is drawn."""
    if picture.shape != mark.shape:
        return None
    inside = ndimage.binary_fill_holes((picture != mark).any(axis=2))
    if not inside.any():
        return None
    shares = _shrunk(np.repeat(inside[..., None].astype(np.float64), 3, axis=2))[..., 0]
    return np.asarray(shares.reshape(SIDE, FINE, SIDE, FINE).mean((1, 3)) >= INKED)


def looking(dotted: Floats, area: Mask | None) -> Floats:
    """How often each cell is looked at, as a multiple of an even look; 0 for a cell without a dot. A marked
    area and the cells around it get their declared share of all looks."""
    on = dotted > 0
    if area is not None and area.any():
        near = ndimage.binary_dilation(area, np.ones((3, 3))) & on
        rest = on & ~near
        if near.any() and rest.any():
            share = declared_value(FILE, "attention", "marked_share")
            return np.asarray(on.sum() * (share * near / near.sum() + (1 - share) * rest / rest.sum()))
    return np.asarray(on, np.float64)


def read(seen: Seen, area: Mask | None, noise: float, rng: np.random.Generator) -> Reading:
    """What is read with so many times the usual internal noise. The noise of a cell shrinks with the root of
    how often it is looked at, and a cell counts by how sure its colour is."""
    looks = looking(seen.dotted, area)
    usual = declared_value(FILE, "colour", "cell_noise") * noise
    spread = usual / np.sqrt(np.maximum(looks, 1e-9))[..., None]
    noisy = seen.colours + np.where(looks[..., None] > 0, rng.normal(0, 1, seen.colours.shape) * spread, 0)
    weight = (looks * seen.dotted).reshape(-1)
    known = known_digits()
    explained = _correlations(known.forms, noisy.reshape(-1, 3), weight)
    cells = float(weight.sum() ** 2 / max(float((weight**2).sum()), 1e-9))
    gain = -cells / 2 * np.log1p(-np.minimum(explained**2, 1 - 1e-9)).sum(axis=1)
    gain -= np.log(len(known.labels))
    best = [int(np.flatnonzero(known.labels == d)[gain[known.labels == d].argmax()]) for d in range(10)]
    figures = [_figure(known.forms[at], explained[at], noisy) for at in best]
    return Reading(gain[best], np.stack(figures))


@lru_cache(maxsize=1)
def known_digits() -> Known:
    """Forms of the bundled digits that the dataset of plates, with its usual numbers, keeps for training: in
    two sizes, each in nine places around the middle."""
    digits = read_digits(None)
    kept = {item.group for item in open_plates(Component("plates"), Path()).items("model")}
    training = np.array([at for at, name in enumerate(digits.names) if name in kept])
    fine = 2 * SIDE
    axis = ((np.arange(fine) + 0.5) / fine - 0.5) / DISC_RADIUS
    x, y = np.meshgrid(axis, axis)
    forms, labels = [], []
    for label in range(10):
        of_label = training[digits.labels[training] == label]
        for at in of_label[np.linspace(0, len(of_label) - 1, FORMS).astype(int)]:
            for size in SIZES:
                covered = Shape(digits.drawn(int(at)), (0.0, 0.0), FIGURE_SIDE * size).covers(x, y)
                for down in (-1, 0, 1):
                    for right in (-1, 0, 1):
                        moved = np.roll(covered, (down, right), (0, 1)).astype(np.float32)
                        forms.append(moved.reshape(SIDE, 2, SIDE, 2).mean((1, 3)).reshape(-1))
                        labels.append(label)
    return Known(np.stack(forms), np.array(labels))


def _correlations(forms: NDArray[np.float32], values: Floats, weight: Floats) -> Floats:
    """Weighted correlation of each form (N, cells) with each column of `values` (cells, 3): (N, 3)."""
    share = weight / max(float(weight.sum()), 1e-9)
    centred = values - share @ values
    spread = np.sqrt(share @ centred**2)
    means, squares = forms @ share, forms**2 @ share
    ink = np.sqrt(np.maximum(squares - means**2, 1e-12))
    return np.asarray(forms @ (share[:, None] * centred) / (ink[:, None] * np.maximum(spread, 1e-9)))


def _figure(form: NDArray[np.float32], explained: Floats, noisy: Floats) -> NDArray[np.bool_]:
    """The cells of a form and beside it that have the colours of its figure rather than of its ground."""
    inked = form.reshape(SIDE, SIDE) >= INKED
    beside = ndimage.binary_dilation(inked)
    centred = noisy - noisy[beside].mean(axis=0)
    leaning = ndimage.uniform_filter(centred @ explained, 3)
    return np.asarray(beside & ((leaning > 0) | inked) if explained.any() else inked)


def _shrunk(light: Linear) -> Linear:
    """Means in linear light, as the lens of an eye makes them: (H, W, 3) to (SIDE * FINE,) * 2 points."""
    side = SIDE * FINE
    edges = [np.arange(side) * length // side for length in light.shape[:2]]
    sums = np.add.reduceat(np.add.reduceat(light, edges[0], axis=0), edges[1], axis=1)
    counts = [np.diff([*edge, length]) for edge, length in zip(edges, light.shape[:2], strict=True)]
    return np.asarray(sums / np.multiply.outer(*counts)[..., None])


@lru_cache(maxsize=1)
def _disc(side: int) -> Floats:
    axis = ((np.arange(side) + 0.5) / side - 0.5) / DISC_RADIUS
    return np.asarray(np.hypot(axis[:, None], axis[None, :]) < 1, np.float64)
