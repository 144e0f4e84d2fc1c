"""Plates that tell ordinary colour vision from a reduced one: screen-based, not a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stimuli.datasets.plates.colours import Line, screening_pair
from stimuli.datasets.plates.digits import read_digits, typical_first
from stimuli.datasets.plates.drawing import KNOWN_DARKER, PaintedPlate, draw_shape, paint, render
from stimuli.datasets.plates.packing import PACKINGS, pack_dots
from stimuli.errors import BadSpec
from stimuli.types import Pixels

NOTHING = "nothing"
CHOICES = (*((str(digit), str(digit)) for digit in range(10)), (NOTHING, NOTHING))
JITTER = 15.0
CLEAREST = 24
"""Of each digit, so many of the clearest handwritten ones are used."""


@dataclass(frozen=True, slots=True)
class ScreeningPlate:
    """One plate: `choices` as (value, text), `answer` the value of the digit that ordinary eyes read. A
    control is read by everybody.
    """

    id: str
    pixels: Pixels
    choices: tuple[tuple[str, str], ...]
    answer: str
    is_control: bool


def screening_plates(
    seed: int,
    count: int = 12,
    controls: int = 2,
    axis: Line = "red_green",
    severity: float = 0.6,
    size_px: int = 480,
) -> tuple[ScreeningPlate, ...]:
    """`count` plates, of which `controls`, pixels uint8 (size_px, size_px, 3). A control comes first, as in
    printed tests; the others stand where the seed puts them. Digits are as different as can be.

    People of ordinary vision read all, people of `severity` or more on this axis few but the controls: see
    `screening_pair`. What a screen, a night-light filter or a dim room does to the colours is not known, so
    this is no diagnosis. BadSpec as there, and if the controls are not fewer than the plates.
    """
    if not 1 <= controls < count:
        raise BadSpec(
            f"count = {count}, controls = {controls}: needed is at least 1 control and fewer than count"
        )
    colours = screening_pair(axis, severity, JITTER)
    digits = read_digits(None)
    rng = np.random.default_rng([seed, 51])
    answers = np.concatenate([rng.permutation(10) for _ in range(-(-count // 10))])[:count]
    control = {0, *(1 + rng.permutation(count - 1)[: controls - 1]).tolist()}
    plates = []
    for place, answer in enumerate(answers.tolist()):
        clear = typical_first(digits, np.flatnonzero(digits.labels == answer))[:CLEAREST]
        dots = pack_dots(seed, int(rng.integers(PACKINGS))).turned(rng)
        shape = draw_shape(digits.drawn(int(rng.choice(clear))), rng)
        chosen = colours if rng.random() < 0.5 else colours.swapped()
        darker = KNOWN_DARKER if place in control else 0.0
        is_figure = shape.covers(*dots.middles.T)
        painted = PaintedPlate(dots, is_figure, paint(is_figure, chosen, JITTER, darker, rng))
        pixels = render(painted, size_px)
        plates.append(ScreeningPlate(f"plate-{place:02d}", pixels, CHOICES, str(answer), place in control))
    return tuple(plates)
