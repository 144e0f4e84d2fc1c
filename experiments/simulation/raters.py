"""The frozen observer of explanations: it rates what is drawn by properties that can be measured on it.

Its taste is planted, so that an analysis can be asked to find it again: an explanation is *easy* if it marks
little and in one piece, and *agrees* if it marks what draws the eye by itself; trust is both, and two
explanations *differ* by what they do not share. It reads the words of a question to know which is asked,
and knows no condition, method or model. People differ by a shift, the use of the scale and noise.
Parameters, each with its source: raters.toml. No model of people.

References: Judd et al. (2009), the area under the ROC curve of a map of fixations; Ruzicka (1958), Jaccard's
distance with weights; Dawes (1979), equal weights; Thurstone (1927), judgements on a scale with normal noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.ndimage import label

from experiments.kinds.base import Reply
from experiments.simulation.declared import declared_value
from experiments.simulation.drawn import Drawn
from experiments.simulation.parameters import value
from experiments.simulation.people import (
    RateView,
    Someone,
    TestView,
    Traits,
    any_of,
    any_point,
    share_around,
    slowness_of,
)
from experiments.simulation.sight import CELLS, GRID, Floats
from experiments.simulation.timing import DECIDE, OBEY

FILE = "raters.toml"
WORDS: Mapping[str, tuple[str, ...]] = {
    "trust": ("trust", "rely", "vertrau", "verlass"),
    "agreement": ("agree", "yourself", "same place", "right place", "stimmt", "selbst", "richtige stelle"),
}
"""What a question asks for, by words in it; a question without them asks how easy the explanation is."""


@dataclass(frozen=True, slots=True)
class Rater(Someone):
    """Looks at the explanation and rates what was asked; passes the checks with a few mistakes."""

    kind: ClassVar[str] = "rater"

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        return Traits(
            lapse_share=share_around(rng, value("answer", "lapse_mean"), 30),
            noise=float(np.exp(rng.normal(0.0, value("answer", "person_spread")))),
            capacity_count=0,
            slowness=slowness_of(rng),
            reads_share=share_around(rng, 0.985, 200),
            consults_share=0.0,
        )

    @property
    def looks(self) -> bool:
        return True

    def answer(self, view: TestView) -> Reply:
        rng = self._rng("answer", view.position)
        asked = self._obeys(view, rng)
        timing = DECIDE if asked is None else OBEY
        took_ms = timing.draw_ms(rng, self.traits.slowness)
        return Reply({"choice": (asked or any_of(view.choices, rng)).value}, took_ms, took_ms)

    def rate(self, view: RateView) -> int:
        rng = self._rng("rate", view.place, view.question)
        if rng.random() < self.traits.lapse_share:
            return any_point(view.points, rng)
        noise = float(rng.normal(0.0, declared_value(FILE, "scale", "noise_sd"))) * self.traits.noise
        level = judged(view.words, view.shown, view.pair)
        return point_of(0.5 + self._stretch * (level - 0.5) + self._shift + noise, view.points)

    @property
    def _shift(self) -> float:
        """How much higher this person rates everything, in shares of the scale."""
        spread = (
            declared_value(FILE, "scale", "rating_sd") * declared_value(FILE, "scale", "style_share") ** 0.5
        )
        return float(self._rng("style", "shift").normal(0.0, spread))

    @property
    def _stretch(self) -> float:
        """How far this person goes to the ends of the scale; 1: evenly."""
        spread = declared_value(FILE, "scale", "style_share") ** 0.5
        return float(np.exp(self._rng("style", "stretch").normal(0.0, spread)))


def judged(words: str, shown: Drawn | None, pair: Sequence[Drawn | None]) -> float:
    """What is asked of an explanation, 0-1, without any person's noise; .5 if there is nothing to see."""
    if len(pair) == 2:
        first, second = pair
        return 0.5 if first is None or second is None else difference(first.heat, second.heat)
    if shown is None:
        return 0.5
    said = words.casefold()
    if any(word in said for word in WORDS["trust"]):
        weight = declared_value(FILE, "taste", "weight")
        return (agreement(shown) + weight * ease(shown.heat)) / (1 + weight)
    if any(word in said for word in WORDS["agreement"]):
        return agreement(shown)
    return ease(shown.heat)


def point_of(level: float, points: int) -> int:
    """The point, 1 to `points`, of a level in 0-1: equal parts of the scale."""
    return int(np.clip(np.floor(level * points), 0, points - 1)) + 1


def marked(heat: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The places that are marked at all; none if the heat hardly differs."""
    if float(np.ptp(heat)) < declared_value(FILE, "mark", "least_span"):
        return np.zeros(heat.shape, bool)
    return np.asarray(heat >= heat.max() * declared_value(FILE, "mark", "least_strength"))


def area(heat: Floats) -> float:
    """The share of the places that is marked, 0-1."""
    return float(marked(heat).mean())


def fragmentation(heat: Floats) -> float:
    """The share of the marked places, 0-1, that lies outside of the largest piece; pieces touch at edges."""
    places = marked(heat)
    if not places.any():
        return 0.0
    pieces, count = label(places)
    sizes = np.bincount(pieces.reshape(-1), minlength=count + 1)[1:]
    return float(1 - sizes.max() / sizes.sum())


def ease(heat: Floats) -> float:
    """How easy it is to see what is meant, 0-1: little is marked, and in one piece; 0 if nothing is."""
    if not marked(heat).any():
        return 0.0
    weight = declared_value(FILE, "taste", "weight")
    return float((1 - area(heat) + weight * (1 - fragmentation(heat))) / (1 + weight))


def agreement(shown: Drawn) -> float:
    """How far what is marked is what draws the eye, 0-1: of a marked and any other place, how much more often
    than by chance the marked one is looked at more. 0 if nothing is marked; .5 of what lies on no picture."""
    places = marked(shown.heat)
    if not places.any():
        return 0.0
    if shown.looked is None:
        return 0.5
    side = CELLS // GRID
    looked = np.kron(shown.looked.reshape(GRID, GRID), np.ones((side, side)))
    on, off = looked[places], looked[~places]
    if not len(off):
        return 0.0
    order = np.sort(off)
    above = np.searchsorted(order, on, side="left")
    level = np.searchsorted(order, on, side="right") - above
    return max(0.0, float(2 * (above + level / 2).mean() / len(off) - 1))


def difference(first: Floats, second: Floats) -> float:
    """What two explanations do not share of all that they mark, 0-1; 0 if neither marks anything. 1 if they
    are not of one form."""
    if first.shape != second.shape:
        return 1.0
    either = float(np.maximum(first, second).sum())
    return 1 - float(np.minimum(first, second).sum()) / either if either > 0 else 0.0
