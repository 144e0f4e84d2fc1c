"""Leaves on natural grounds: outline, margin and veins are chosen apart, so that one can be exchanged
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from stimuli.datasets.synthetic.drawing import (
    Box,
    Colour,
    Layer,
    Plane,
    Points,
    Pose,
    Sheet,
    blur_plane,
    box_around,
    fineness_of,
    mix,
    noise,
    over,
    vary,
)

Margin = Literal["serrated", "smooth"]
Veins = Literal["straight", "arched"]
GREENS: tuple[Colour, ...] = (
    (0.33, 0.52, 0.20),
    (0.24, 0.45, 0.22),
    (0.46, 0.58, 0.22),
    (0.62, 0.60, 0.22),
    (0.70, 0.46, 0.18),
)
GROUNDS: tuple[tuple[Colour, Colour], ...] = (
    ((0.90, 0.87, 0.80), (0.97, 0.95, 0.90)),
    ((0.52, 0.42, 0.33), (0.66, 0.55, 0.44)),
    ((0.62, 0.62, 0.60), (0.74, 0.74, 0.72)),
    ((0.77, 0.68, 0.55), (0.86, 0.78, 0.66)),
    ((0.80, 0.84, 0.86), (0.91, 0.93, 0.95)),
)
STEPS = 120
ARCHED_VEINS = 5
"""Veins on each side of a leaf whose veins are arched."""


@dataclass(frozen=True, slots=True)
class Habit:
    """One leaf's build: half width and where it is widest (0 base - 1 tip), bend, veins per side, teeth,
    colour.
    """

    pose: Pose
    width: float
    belly: float
    bend: float
    veins: int
    teeth: int
    depth: float
    colour: Colour


def draw_habit(rng: np.random.Generator) -> Habit:
    """Everything about a leaf that does not belong to its family."""
    return Habit(
        pose=Pose(
            float(rng.uniform(0.46, 0.54)),
            float(rng.uniform(0.46, 0.54)),
            float(rng.uniform(0.36, 0.42)),
            float(rng.uniform(-0.7, 0.7)),
        ),
        width=float(rng.uniform(0.46, 0.58)),
        belly=float(rng.uniform(0.44, 0.50)),
        bend=float(rng.normal(0, 0.10)),
        veins=int(rng.integers(6, 9)),
        teeth=int(rng.integers(8, 12)),
        depth=float(rng.uniform(0.13, 0.17)),
        colour=vary(rng, GREENS[rng.integers(len(GREENS))], 0.04),
    )


def draw_ground(rng: np.random.Generator, size_px: int) -> Plane:
    """Paper, soil, stone, wood or sky-lit slate: float32 (S, S, 3) in 0-1."""
    dark, light = GROUNDS[rng.integers(len(GROUNDS))]
    stretch = int(rng.choice([1, 1, 5]))
    share = np.clip(0.5 + 0.22 * noise(rng, size_px, 4, octaves=5, stretch=stretch), 0, 1)[..., None]
    grain = noise(rng, size_px, size_px // 2, octaves=1)[..., None] * 0.012
    return np.asarray(np.asarray(dark) * (1 - share) + np.asarray(light) * share + grain, dtype=np.float32)


def draw_leaf(
    habit: Habit, margin: Margin, veins: Veins, stoutness: float, rng: np.random.Generator, size_px: int
) -> Layer:
    """One leaf; `stoutness` scales its width (families differ a little)."""
    sheet = Sheet(size_px, habit.pose)
    along = np.linspace(0, 1, STEPS)
    half = _half_width(along, habit) * stoutness
    edges = [_edge(along, half, habit, side, margin) for side in (-1, 1)]
    stem = [(float(_midrib(t, habit)), float(1 - 2 * t)) for t in (-0.16, -0.08, 0.0)]
    sheet.stroke(stem, mix(habit.colour, (0.45, 0.28, 0.12), 0.5), 0.05)
    sheet.shape(np.concatenate([edges[0], edges[1][::-1]]), habit.colour)
    shade = np.stack([_midrib(along, habit), 1 - 2 * along], axis=1)
    sheet.shape(np.concatenate([edges[0], shade[::-1]]), mix(habit.colour, (0.05, 0.12, 0.02), 0.13))
    _blemishes(sheet, habit, rng)
    pale = mix(habit.colour, (0.97, 0.97, 0.72), 0.30)
    _veins(sheet, habit, half, veins, pale)
    sheet.stroke(shade, pale, 0.030)
    return sheet.layer()


def vein_count(habit: Habit, veins: Veins) -> int:
    """Veins on each side of the midrib."""
    return habit.veins if veins == "straight" else ARCHED_VEINS


def leaf_box(habit: Habit, margin: Margin, stoutness: float = 1.0) -> Box:
    """The box of the blade, without its stem, in shares of the picture."""
    along = np.linspace(0, 1, STEPS)
    half = _half_width(along, habit) * stoutness
    return box_around(habit.pose, np.concatenate([_edge(along, half, habit, s, margin) for s in (-1, 1)]))


def lay(ground: Plane, leaf: Layer) -> Plane:
    """The leaf with its soft shadow on the ground."""
    shift = max(1, round(leaf.alpha.shape[0] * 0.018))
    softness = 2.2 * fineness_of(leaf.alpha.shape[0])
    shadow = blur_plane(np.roll(leaf.alpha, (shift, shift), axis=(0, 1)), softness)[..., None]
    return over(np.asarray(ground * (1 - 0.38 * shadow), dtype=np.float32), leaf)


def margin_band(leaves: tuple[Layer, Layer]) -> Plane:
    """The pixels, and a few around them, in which two versions of a leaf with different margins differ: 0-1
    (S, S)."""
    apart = np.abs(leaves[0].alpha - leaves[1].alpha)
    return np.asarray(np.clip(blur_plane(apart, 2.0 * fineness_of(len(apart))) * 4, 0, 1), dtype=np.float32)


def _midrib(t: Points | float, habit: Habit) -> Points:
    along = np.asarray(t, dtype=np.float64)
    return np.asarray(habit.bend * np.sin(np.pi * along))


def _half_width(t: Points, habit: Habit) -> Points:
    """Widest at `belly`, pointed at the tip, rounded at the base."""
    power = np.log(0.5) / np.log(habit.belly)
    return np.asarray(habit.width * np.sin(np.pi * t**power) ** 0.82 * (1 - 0.18 * t**3))


def _edge(t: Points, half: Points, habit: Habit, side: int, margin: Margin) -> Points:
    reach = half.copy()
    y = 1 - 2 * t
    if margin == "serrated":
        # Each tooth rises slowly and falls at once, pointing to the tip, as on a birch.
        phase = (t * habit.teeth) % 1.0
        fade = np.clip(np.minimum(t / 0.08, (1 - t) / 0.16), 0, 1)
        reach = reach + habit.depth * (phase - 0.45) * 1.5 * fade
        y = y - 0.05 * phase * fade
    return np.stack([_midrib(t, habit) + side * np.maximum(reach, 0), y], axis=1)


def _veins(sheet: Sheet, habit: Habit, half: Points, veins: Veins, colour: Colour) -> None:
    steps = np.linspace(0, 1, 12)
    count = vein_count(habit, veins)
    for number in range(count):
        start = 0.06 + 0.74 * number / count
        for side in (-1, 1):
            if veins == "straight":
                t = start + 0.20 * steps
                share = 0.93 * steps
            else:
                t = start + 0.60 * (1 - start) * steps**1.5
                share = 0.84 * np.sin(np.clip(steps * 2.1, 0, np.pi / 2)) * (1 - 0.25 * steps**3)
            t = np.clip(t, 0, 0.985)
            x = _midrib(t, habit) + side * share * np.interp(t, np.linspace(0, 1, STEPS), half)
            sheet.stroke(np.stack([x, 1 - 2 * t], axis=1), colour, 0.016)


def _blemishes(sheet: Sheet, habit: Habit, rng: np.random.Generator) -> None:
    for _ in range(int(rng.integers(0, 7))):
        t = float(rng.uniform(0.15, 0.85))
        x = float(rng.uniform(-0.75, 0.75) * _half_width(np.asarray([t]), habit)[0])
        radius = float(rng.uniform(0.010, 0.030))
        sheet.ellipse(x, 1 - 2 * t, radius, radius * 0.8, mix(habit.colour, (0.36, 0.22, 0.10), 0.6))
