"""How a picture looks to people of reduced colour vision, by axis and severity, and how far two colours lie
apart for them.

The simulation is for screens: it takes sRGB, and shows to people of ordinary colour vision what others see.
It describes groups, not persons.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal, cast, get_args

import numpy as np

from stimuli.colour_vision.light import Linear, decoded, encoded, to_lab
from stimuli.errors import BadSpec
from stimuli.types import Pixels

Axis = Literal["protan", "deutan", "tritan"]
"""The cones that are shifted or missing: the long-, middle- or short-wavelength ones."""
AXES: tuple[Axis, ...] = get_args(Axis)
_READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
MACHADO: dict[Axis, list[list[float]]] = {axis: _READ[axis] for axis in AXES}
"""The published matrices for severities 0.0, 0.1 to 1.0, each by rows, for linear sRGB [Machado, Oliveira and
Fernandes 2009, A physiologically-based model for simulation of color vision deficiency, the authors' table].
For tritan eyes the authors themselves call their model an approximation.
"""


def matrix(axis: Axis, severity: float) -> Linear:
    """The matrix (3, 3) of `severity`, 0 (ordinary) to 1 (the cones are missing), between the published ones
    in proportion. BadSpec for another severity.
    """
    if not 0 <= severity <= 1:
        raise BadSpec(
            f"severity = {severity}: choose 0 (ordinary colour vision) to 1 (a kind of cone missing)"
        )
    table = np.array(MACHADO[axis])
    steps = len(table) - 1
    below = min(int(severity * steps), steps - 1)
    share = severity * steps - below
    return cast(Linear, ((1 - share) * table[below] + share * table[below + 1]).reshape(3, 3))


def simulate(pixels: Pixels, axis: Axis, severity: float) -> Pixels:
    """`pixels`, uint8 sRGB (..., 3), as people with this axis and severity see them. BadSpec as `matrix`."""
    return encoded(decoded(pixels) @ matrix(axis, severity).T)


def contrast(figure: Linear, ground: Linear, axis: Axis = "protan", severity: float = 0.0) -> float:
    """How far the mean colours of a figure and its ground, linear light (..., 3) each, lie apart for people
    with this axis and severity: Delta E*ab (CIE 1976), about 2.3 of which is just noticed between large even
    patches [Mahy, Van Eycken and Oosterlinck 1994]. What no screen shows is cut off. BadSpec as `matrix`.
    """
    seen = [
        np.clip(colours.reshape(-1, 3).mean(axis=0) @ matrix(axis, severity).T, 0, 1)
        for colours in (figure, ground)
    ]
    return float(np.linalg.norm(to_lab(seen[0]) - to_lab(seen[1])))
