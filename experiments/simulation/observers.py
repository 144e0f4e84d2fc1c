"""The frozen computational observers: one way of looking, three ways of deciding.

All of them look by `looking`, remember the fixated patches of each training picture, and answer without
explanation. They differ in what they make of it:

- `exemplar`: each remembered patch is sought anywhere in the picture; similarity to whole examples falls
  exponentially with distance and is averaged per label (Nosofsky 1986, generalized context model; Shepard
  1987).
- `prototype`: the mean of each label is remembered, and the nearer one answers (Reed 1972; Smith and Minda
  1998).
- `one_reason`: the one feature that told the remembered examples apart best answers alone (Gigerenzer and
  Goldstein 1996, take the best; Nosofsky, Palmeri and McKinley 1994, RULEX: one-dimensional rules first).

The last two look at the test picture where looking led them in training (Jiang, Swallow and Rosenbaum 2013).
Parameters, each with its source: observers.toml. Versions and digests: versions.toml. Observers, not models
of people.
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
from experiments.simulation.looking import where_looked
from experiments.simulation.parameters import value
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
from experiments.simulation.sight import JUST_NOTICEABLE, Floats, Percept
from experiments.simulation.timing import DECIDE, OBEY, RUSH

Indices = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mind:
    """What is remembered: `traces` float32 (N, fixations, 10), `labels` (N,) indices of choices, and the mean
    share of looking per patch, `where` float64 (100,)."""

    traces: Floats
    labels: Indices
    where: Shares


@dataclass(frozen=True, slots=True)
class FrozenObserver(Someone):
    """Looks, remembers, passes the checks with a few mistakes. Subclasses say what the evidence is."""

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        examples = rng.normal(value("memory", "examples_mean"), value("memory", "examples_sd"))
        return Traits(
            lapse_share=share_around(rng, value("answer", "lapse_mean"), 30),
            noise=float(np.exp(rng.normal(0.0, value("answer", "person_spread")))),
            capacity_count=int(np.clip(round(examples), 2, 15)),
            slowness=slowness_of(rng),
            reads_share=share_around(rng, 0.985, 200),
            consults_share=share_around(rng, value("memory", "consults_mean"), 5),
        )

    @property
    def looks(self) -> bool:
        return True

    @property
    def sensitivity(self) -> float:
        return value(self.kind, "sensitivity") / self.traits.noise

    def evidence(self, mind: Mind, percept: Percept, count: int, position: int) -> Shares:
        """For each of `count` answers a number (count,); a difference of 1 makes one e times as likely. NaN
        for an answer without example."""
        raise NotImplementedError

    def answer(self, view: TestView) -> Reply:
        return self.answer_from(None, view)

    def answer_from(self, mind: Mind | None, view: TestView) -> Reply:
        """The answer with this in mind; None: with what is remembered of the view's examples."""
        rng = self._rng("answer", view.position)
        asked = self._obeys(view, rng)
        if asked is not None:
            took_ms = OBEY.draw_ms(rng, self.traits.slowness)
            return Reply({"choice": asked.value}, took_ms, took_ms)
        lapsed = rng.random() < self.traits.lapse_share
        took_ms = (RUSH if lapsed else DECIDE).draw_ms(rng, self.traits.slowness)
        chosen = None if lapsed or view.percept is None else self._decided(mind, view, view.percept, rng)
        return Reply({"choice": (chosen or any_of(view.choices, rng)).value}, took_ms, took_ms)

    def _decided(
        self, mind: Mind | None, view: TestView, percept: Percept, rng: np.random.Generator
    ) -> Choice | None:
        if mind is None:
            known = recognised(percept, view.examples, view.choices)
            if known is not None:
                return known
            seen = view.examples if view.reservoir else view.examples[-self.traits.capacity_count :]
            mind = self.mind(seen, view.choices)
        if not len(mind.labels):
            return None
        count = len(view.choices)
        evidence = self.evidence(mind, percept, count, view.position)
        chances = answer_shares(evidence, np.bincount(mind.labels, minlength=count))
        return view.choices[int(rng.choice(count, p=chances))]

    def mind(self, examples: Sequence[ExampleView], choices: Sequence[Choice]) -> Mind:
        """What is remembered of examples that were looked at and have a label."""
        traces, labels, where = [], [], []
        for example in examples:
            stands_for = choice_for(example.label, choices) if example.label is not None else None
            if example.percept is None or stands_for is None:
                continue
            looked = where_looked(example.percept)
            traces.append(example.percept.features[self._fixated(looked, "example", example.position)])
            labels.append(choices.index(stands_for))
            where.append(looked)
        if not labels:
            return Mind(np.empty((0, 0, 0), np.float32), np.empty(0, np.int64), np.empty(0))
        return Mind(np.stack(traces), np.array(labels, dtype=np.int64), np.mean(where, axis=0))

    def _fixated(self, where: Shares, phase: str, position: int) -> Indices:
        """Where the eye rested: the same places whenever the picture is remembered or looked up."""
        reached = np.cumsum(where)
        draws = _draws(self.kind, self.seed, self.number, phase, position) * reached[-1]
        return np.asarray(np.searchsorted(reached, draws, side="right"), dtype=np.int64)

    def _glance(self, mind: Mind, percept: Percept, position: int) -> Floats:
        """The mean of the patches fixated at test, (10,), where looking led in training."""
        return np.asarray(percept.features[self._fixated(mind.where, "test", position)].mean(axis=0))


@dataclass(frozen=True, slots=True)
class Exemplar(FrozenObserver):
    """Answers by resemblance to whole remembered examples."""

    kind: ClassVar[str] = "exemplar"

    def evidence(self, mind: Mind, percept: Percept, count: int, position: int) -> Shares:
        return exemplar_evidence(mind.traces, mind.labels, percept.features, count, self.sensitivity)


@dataclass(frozen=True, slots=True)
class Prototype(FrozenObserver):
    """Answers by the nearer mean of a label."""

    kind: ClassVar[str] = "prototype"

    def evidence(self, mind: Mind, percept: Percept, count: int, position: int) -> Shares:
        glance, vectors = self._glance(mind, percept, position), mind.traces.mean(axis=1)
        return prototype_evidence(vectors, mind.labels, glance, count, self.sensitivity)


@dataclass(frozen=True, slots=True)
class OneReason(FrozenObserver):
    """Answers by the one feature that told the remembered examples apart best."""

    kind: ClassVar[str] = "one_reason"

    def evidence(self, mind: Mind, percept: Percept, count: int, position: int) -> Shares:
        glance, vectors = self._glance(mind, percept, position), mind.traces.mean(axis=1)
        return one_reason_evidence(vectors, mind.labels, glance, count, self.sensitivity)


@lru_cache(maxsize=1 << 15)
def _draws(kind: str, seed: int, number: int, phase: str, position: int) -> Shares:
    """What chance brings to one person's look at one picture, uniform 0-1 (fixations,). Kept: asked often."""
    rng = Streams(seed)(kind, number, "fixations", phase, position)
    return rng.random(int(value("memory", "fixations")))


def recognised(percept: Percept, examples: Sequence[ExampleView], choices: Sequence[Choice]) -> Choice | None:
    """The answer of the training picture that this one is, if it is one."""
    for example in examples:
        if example.percept is None or example.label is None:
            continue
        before = example.percept.features
        apart = (percept.features - before) / spread_of(before)
        if float(np.sqrt((apart**2).mean())) < value("memory", "same_picture"):
            return choice_for(example.label, choices)
    return None


def spread_of(rows: Floats) -> Floats:
    """The standard deviation of each feature over rows (N, 10), never below what can be noticed: (10,)."""
    return np.asarray(np.maximum(rows.std(axis=0), JUST_NOTICEABLE), dtype=np.float32)


def exemplar_evidence(
    traces: Floats, labels: Indices, patches: Floats, count: int, sensitivity: float
) -> Shares:
    """log of the mean similarity per label, (count,). `traces` (N, F, 10), `patches` (P, 10) of the picture.

    The distance to an example is the mean over its traces of the root mean square distance, in spreads of the
    traces, to the nearest patch; similarity is exp(-sensitivity x distance).
    """
    flat = traces.reshape(-1, traces.shape[2])
    spread = spread_of(flat)
    sought, there = flat / spread, patches / spread
    squares = (sought**2).sum(axis=1)[:, None] + (there**2).sum(axis=1)[None, :] - 2 * sought @ there.T
    nearest = np.sqrt(np.maximum(squares.min(axis=1), 0) / traces.shape[2])
    logs = -sensitivity * nearest.reshape(traces.shape[:2]).mean(axis=1).astype(np.float64)
    return np.array([_log_mean(logs[labels == label]) for label in range(count)])


def prototype_evidence(
    vectors: Floats, labels: Indices, glance: Floats, count: int, sensitivity: float
) -> Shares:
    """-sensitivity x root mean square distance, in spreads of the `vectors` (N, 10), of `glance` (10,) to the
    mean of each label: (count,)."""
    apart = (_means(vectors, labels, count) - glance) / spread_of(vectors)
    return np.asarray(-sensitivity * np.sqrt((apart**2).mean(axis=1)))


def one_reason_evidence(
    vectors: Floats, labels: Indices, glance: Floats, count: int, sensitivity: float
) -> Shares:
    """-sensitivity x distance on one feature, in its spreads, to the mean of each label: (count,).

    The feature is the one by whose nearest mean most of the `vectors` (N, 10) get their own label; of
    several, the one whose means lie furthest apart in spreads.
    """
    means, spread = _means(vectors, labels, count), spread_of(vectors)
    apart = np.abs(vectors[:, None, :] - means[None, :, :])
    apart[:, np.isnan(means).all(axis=1), :] = np.inf
    right = (apart.argmin(axis=1) == labels[:, None]).sum(axis=0)
    gap = (np.nanmax(means, axis=0) - np.nanmin(means, axis=0)) / spread
    reason = int(np.lexsort((gap, right))[-1])
    return np.asarray(-sensitivity * np.abs(means[:, reason] - glance[reason]) / spread[reason])


def answer_shares(evidence: Shares, counts: Indices) -> Shares:
    """The probability of each answer (count,): Luce's rule on exp(evidence), times the share of the label
    among the examples by Laplace's rule. An answer without example gets the mean evidence of the others."""
    usual = np.where(np.isnan(evidence), np.nanmean(evidence), evidence)
    levels = usual + np.log(counts + value("answer", "prior_count"))
    weights = np.exp(levels - levels.max())
    return np.asarray(weights / weights.sum())


def _means(vectors: Floats, labels: Indices, count: int) -> Shares:
    """The mean of each label (count, 10); NaN for a label without example."""
    missing = np.full(vectors.shape[1], np.nan)
    return np.array(
        [vectors[labels == k].mean(axis=0) if (labels == k).any() else missing for k in range(count)],
        dtype=np.float64,
    )


def _log_mean(logs: Shares) -> float:
    """log(mean(exp(logs))) without underflow; NaN of nothing."""
    if not len(logs):
        return float("nan")
    return float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))
