"""The two colours of a plate: equally light, on a confusion line through grey, as far apart as is wanted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy

from stimuli.colour_vision.light import LUMINANCE, Linear
from stimuli.colour_vision.machado import Axis, contrast
from stimuli.errors import BadSpec

Line = Literal["protan", "deutan", "tritan", "red_green"]
"""Whose confusion line it is. red_green lies between the first two, and serves both alike."""
EYES: dict[Line, tuple[Axis, ...]] = {
    "protan": ("protan",),
    "deutan": ("deutan",),
    "tritan": ("tritan",),
    "red_green": ("protan", "deutan"),
}
"""The axes of the people whom a line is for."""
MIDDLE_LIGHTNESS = 60.0
"""L* of the grey between the two colours."""
LEAST_CONTRAST = 6.0
"""Delta E*ab between figure and ground, as the eye that looks has them, below which a plate counts as not
read."""
MOST_CONTRAST = 12.0
"""Above this a plate counts as read at a glance, between the two as read slowly."""
SHORT = 0.01
"""A step from grey so small that contrasts grow in proportion to it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The colours of figure and ground, linear light (3,), both of the luminance of MIDDLE_LIGHTNESS."""

    figure: Linear
    ground: Linear

    def contrast(self, axis: Axis, severity: float) -> float:
        """Delta E*ab between the two for people with this axis and severity."""
        return contrast(self.figure, self.ground, axis, severity)

    def swapped(self) -> Pair:
        return Pair(self.ground, self.figure)


def luminance(lightness: float) -> float:
    """Y, 0-1, of L* from 8 to 100 [CIE 15:2004]."""
    return float(((lightness + 16) / 116) ** 3)


def pair(line: Line, step: float) -> Pair:
    """The colours at `step` on both sides of grey, on this confusion line."""
    grey = np.full(3, luminance(MIDDLE_LIGHTNESS))
    return Pair(grey + step * direction(line), grey - step * direction(line))


@lru_cache(maxsize=8)
def direction(line: Line) -> Linear:
    """The confusion line through grey within the plane of equal luminance: of its directions, linear light
    (3,) of length 1, the one along which the least of the contrast is left where the cones are missing; for
    two axes, the least of what is left to the eye that has more.

    That plane holds no line that such an eye confuses wholly: for it, one of two colours that are equally
    light for others is a little darker. The jitter of the dots covers what is left.
    """
    across = np.array((LUMINANCE[1], -LUMINANCE[0], 0.0))
    across /= np.linalg.norm(across)
    along = np.cross(LUMINANCE, across)
    along /= np.linalg.norm(along)

    def towards(turn: float) -> Linear:
        return np.asarray(math.cos(turn) * across + math.sin(turn) * along)

    def left(turn: float) -> float:
        grey, step = np.full(3, luminance(MIDDLE_LIGHTNESS)), SHORT * towards(turn)
        ends = Pair(grey + step, grey - step)
        return max(ends.contrast(axis, 1.0) for axis in EYES[line]) / ends.contrast("protan", 0.0)

    turns, width = np.linspace(0, math.pi, 64, endpoint=False), math.pi / 64
    near = min(turns, key=left)
    return towards(
        scipy.optimize.minimize_scalar(left, bounds=(near - width, near + width), method="bounded").x
    )


def farthest(line: Line, jitter: float) -> float:
    """The largest step whose colours a screen can still show `jitter` points of L* above the middle."""
    grey = luminance(MIDDLE_LIGHTNESS)
    brightest = grey / luminance(MIDDLE_LIGHTNESS + jitter)
    sides = [(brightest - grey if share > 0 else grey) / abs(share) for share in direction(line)]
    sides += [(brightest - grey if share < 0 else grey) / abs(share) for share in direction(line)]
    return float(min(sides))


def task_pair(line: Line, severity: float, jitter: float) -> Pair:
    """The colours of plates that people of `severity` read slowly: the contrast for them is midway, in ratio,
    between LEAST_CONTRAST and MOST_CONTRAST. BadSpec if no such colours can be shown, or if people whose
    cones are missing would read them.
    """
    wanted = math.sqrt(LEAST_CONTRAST * MOST_CONTRAST)

    def seen(chosen: Pair) -> float:
        return float(np.mean([chosen.contrast(axis, severity) for axis in EYES[line]]))

    step = _step(line, jitter, wanted, seen)
    if step is None:
        raise BadSpec(
            f"severity = {severity} on the axis {line}: colours that are {wanted:.1f} Delta E apart for such "
            f"eyes cannot be shown with a jitter of {jitter:g}: choose a lower severity or less jitter"
        )
    chosen = pair(line, step)
    left = max(chosen.contrast(axis, 1.0) for axis in EYES[line])
    if left >= LEAST_CONTRAST:
        raise BadSpec(
            f"severity = {severity} on the axis {line}: colours for such eyes are {left:.1f} Delta E apart "
            f"even for people whose cones are missing, {LEAST_CONTRAST:g} or more: choose a lower severity"
        )
    return chosen


def screening_pair(line: Line, severity: float, jitter: float) -> Pair:
    """The colours of plates that ordinary eyes read at a glance and people of `severity` or more do not read:
    midway, in ratio, between a contrast of MOST_CONTRAST for the former and of LEAST_CONTRAST for the others.
    BadSpec if no colours are both.
    """

    def left(chosen: Pair) -> float:
        return max(chosen.contrast(axis, worse) for axis in EYES[line] for worse in (severity, 1.0))

    least = _step(line, jitter, MOST_CONTRAST, lambda chosen: chosen.contrast("protan", 0.0))
    most = _step(line, jitter, LEAST_CONTRAST, left) or farthest(line, jitter)
    if least is None or least > most:
        raise BadSpec(
            f"severity = {severity} on the axis {line}: what ordinary eyes read at a glance, such eyes read "
            "as well: choose a higher severity"
        )
    return pair(line, math.sqrt(least * most))


def _step(line: Line, jitter: float, wanted: float, seen: Callable[[Pair], float]) -> float | None:
    """The step at which `seen`, which grows with it, is as `wanted`; None if it is beyond the farthest."""
    most = farthest(line, jitter)
    if seen(pair(line, most)) < wanted:
        return None
    return float(scipy.optimize.brentq(lambda step: seen(pair(line, step)) - wanted, 0.0, most))


def lit(colours: Linear, lightness: Linear) -> Linear:
    """`colours` (N, 3), of the luminance of MIDDLE_LIGHTNESS, at the L* given (N,), as if lit more or less:
    so a confusion line stays one.
    """
    scale = ((lightness + 16) / (MIDDLE_LIGHTNESS + 16)) ** 3
    return np.asarray(colours * scale[:, None])
