"""A fixed computational observer: it learns which patches went with which label, attending to the places that
an explanation shows.

A generalized context model over patches. From each training picture a few fixations are remembered, drawn in
proportion to attention: the heat of the overlay, or evenly if there was no overlay. At test,
without explanation, each remembered patch is sought anywhere in the picture; similarity falls exponentially
with distance; the labels compete by Luce's choice rule. So an explanation helps exactly as far as it leads
the eye to patches that go with the label, and hurts where it leads away.

References: Nosofsky (1986), attention, similarity and the identification-categorization relationship; Shepard
(1987), toward a universal law of generalization; Helson (1964), adaptation level. It is an observer, not a
model of people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from experiments.design.rng import Streams
from experiments.kinds.base import Choice, Reply
from experiments.simulation.people import (
    ExampleView,
    Someone,
    TestView,
    Traits,
    any_of,
    share_around,
    slowness_of,
)
from experiments.simulation.reading import choice_for
from experiments.simulation.sight import JUST_NOTICEABLE, PATCHES, Floats, Percept
from experiments.simulation.timing import DECIDE, OBEY, RUSH

Indices = NDArray[np.int64]
Shares = NDArray[np.float64]

FIXATIONS = 12
"""Places remembered per training picture: about four seconds at three fixations a second."""
GENERALIZATION = 0.3
"""Distance, in spreads of the pictures seen, over which similarity falls to 1/e (Shepard's law): short enough
that a patch of another thing counts for little.
"""
TRUST_SHARE = 0.9
"""Share of the fixations that follow the explanation; the rest are even, since no person looks at a map
alone."""
NOISE_MEDIAN, NOISE_SPREAD = 0.5, 0.3
"""The exponent of the choice rule is 1 / noise, near 2: above probability matching, below practised people.
Chosen so that observers without any explanation agree with the model in the planted scenarios at about 50
to 75 %,
where Colin et al.'s people without explanation were at 59 to 75 %; the controls (oracle, permuted) were in
view when it was chosen, no attribution method was.
"""
RECOGNIZED = 0.95
"""From this resemblance on, the picture counts as the one that was studied, and its label is remembered."""
LAPSE_MEAN = 0.06
CAPACITY_MEAN = 7
"""Examples in mind at once: Miller's seven, plus or minus two."""


@dataclass(frozen=True, slots=True)
class Learner(Someone):
    """Studies the examples, answers by resemblance, passes the checks with a few mistakes."""

    kind: ClassVar[str] = "learner"

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        return Traits(
            lapse_share=share_around(rng, LAPSE_MEAN, 30),
            noise=float(NOISE_MEDIAN * np.exp(rng.normal(0.0, NOISE_SPREAD))),
            capacity_count=int(np.clip(round(rng.normal(CAPACITY_MEAN, 2.0)), 2, 15)),
            slowness=slowness_of(rng),
            reads_share=share_around(rng, 0.985, 200),
            consults_share=share_around(rng, 0.4, 5),
        )

    @property
    def looks(self) -> bool:
        return True

    def answer(self, view: TestView) -> Reply:
        """The usual question by resemblance to the examples; an instructed check by reading."""
        rng = self._rng("answer", view.position)
        asked = self._obeys(view, rng)
        if asked is not None:
            took_ms = OBEY.draw_ms(rng, self.traits.slowness)
            return Reply({"choice": asked.value}, took_ms, took_ms)
        lapsed = rng.random() < self.traits.lapse_share
        took_ms = (RUSH if lapsed else DECIDE).draw_ms(rng, self.traits.slowness)
        known = [] if lapsed or view.percept is None else self._remembered(view)
        chosen = self._resembled(view, known, rng) if known else any_of(view.choices, rng)
        return Reply({"choice": chosen.value}, took_ms, took_ms)

    def _remembered(self, view: TestView) -> list[tuple[ExampleView, Percept]]:
        """The examples at hand: all of them if the reservoir is looked at, else the latest within
        capacity."""
        seen = [(e, e.percept) for e in view.examples if e.percept is not None and e.label is not None]
        return seen if view.reservoir else seen[-self.traits.capacity_count :]

    def _resembled(
        self, view: TestView, known: Sequence[tuple[ExampleView, Percept]], rng: np.random.Generator
    ) -> Choice:
        assert view.percept is not None
        spread = _adapted([percept for _, percept in known])
        traces = [percept.features[self._fixations(example, percept)] for example, percept in known]
        resemblances = resemblance(np.concatenate(traces) / spread, view.percept.features / spread)
        resemblances = resemblances.reshape(len(known), FIXATIONS).mean(axis=1)
        supports: dict[str, list[float]] = {choice.value: [] for choice in view.choices}
        for (example, _), support in zip(known, resemblances, strict=True):
            stands_for = choice_for(example.label or "", view.choices)
            if stands_for is None:
                continue
            if support >= RECOGNIZED:
                return stands_for
            supports[stands_for.value].append(float(support))
        chances = choice_shares([supports[c.value] for c in view.choices], self.traits.noise)
        return view.choices[int(rng.choice(len(chances), p=chances))]

    def _fixations(self, example: ExampleView, percept: Percept) -> Indices:
        """Where the eye rested on this example: the same places whenever it is remembered or looked up."""
        where = TRUST_SHARE * percept.where().astype(np.float64) + (1 - TRUST_SHARE) / PATCHES
        reached = np.cumsum(where)
        draws = _draws(self.seed, self.number, example.position) * reached[-1]
        return np.asarray(np.searchsorted(reached, draws, side="right"), dtype=np.int64)


@lru_cache(maxsize=1 << 15)
def _draws(seed: int, number: int, position: int) -> Shares:
    """What chance brings to one person's look at one example, uniform 0-1 (FIXATIONS,). Kept: asked often."""
    return Streams(seed)("learner", number, "fixations", position).random(FIXATIONS)


def _adapted(percepts: Sequence[Percept]) -> Floats:
    """Spread of each feature over the pictures in mind, never below what can be noticed: float32 (10,)."""
    spread = np.concatenate([percept.features for percept in percepts]).std(axis=0)
    return np.asarray(np.maximum(spread, JUST_NOTICEABLE), dtype=np.float32)


def resemblance(traces: Floats, test: Floats) -> Floats:
    """How well each remembered patch, float32 (F, 10), is found among a picture's patches (P, 10): (F,), 0-1.

    Each trace takes its best match; similarity is exp(-distance / GENERALIZATION), with the root mean square
    distance over features.
    """
    squares = (traces * traces).sum(axis=1)[:, None] + (test * test).sum(axis=1)[None, :]
    nearest = np.maximum((squares - 2 * traces @ test.T).min(axis=1), 0) / traces.shape[1]
    return np.asarray(np.exp(-np.sqrt(nearest) / GENERALIZATION), dtype=np.float32)


def choice_shares(supports: Sequence[Sequence[float]], noise: float) -> Shares:
    """Luce's rule with exponent 1 / noise over mean supports; a label without example gets the mean of the
    others.

    Mean, not sum: how often a label occurred among the examples is no evidence about a picture.
    """
    known = [float(np.mean(s)) for s in supports if len(s)]
    if not known:
        return np.full(len(supports), 1.0 / len(supports))
    usual = float(np.mean(known))
    levels = np.log(np.maximum([float(np.mean(s)) if len(s) else usual for s in supports], 1e-12)) / noise
    weights = np.exp(levels - levels.max())
    return np.asarray(weights / weights.sum())
