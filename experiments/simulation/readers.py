"""The frozen observers of texts: one way of reading, three ways of deciding.

All of them read by `passage`, remember the last few texts with the model's answers, and guess by them already
while they learn. They differ in what they make of it:

- `word_exemplar`: similarity to whole remembered texts, by the words, endings and length that they share,
  falls exponentially with distance and is averaged per label (Nosofsky 1986; Shepard 1987).
- `word_prototype`: how often each sign stood in texts of each label, all signs together (Laplace's rule of
  succession; Anderson 1991; as naive Bayes, Domingos and Pazzani 1997).
- `word_reason`: the one sign that told the remembered texts apart best answers alone (Gigerenzer and
  Goldstein 1996, take the best; Nosofsky, Palmeri and McKinley 1994, RULEX).

Parameters, each with its source: readers.toml. Observers, not models of people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from experiments.kinds.base import Choice, Reply
from experiments.simulation.declared import declared_value
from experiments.simulation.observers import answer_shares
from experiments.simulation.parameters import value
from experiments.simulation.passage import FILE, Passage
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
from experiments.simulation.timing import DECIDE, OBEY, READ_WORD_MS, RUSH

Indices = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Remembered:
    """Texts in mind: `signs` of each, `lengths` log number of words (N,), `labels` (N,) places of choices."""

    signs: tuple[Mapping[str, float], ...]
    lengths: Shares
    labels: Indices

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every sign that was noticed in any text, in alphabetical order."""
        return tuple(sorted({name for signs in self.signs for name in signs}))

    @cached_property
    def matrix(self) -> Shares:
        """How likely each sign was noticed in each text, (N, signs)."""
        return np.array([[signs.get(name, 0.0) for name in self.names] for signs in self.signs], np.float64)


@dataclass(frozen=True, slots=True)
class TextObserver(Someone):
    """Reads, remembers, passes the checks with a few mistakes. Subclasses say what the evidence is."""

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        texts = rng.normal(value("memory", "examples_mean"), value("memory", "examples_sd"))
        return Traits(
            lapse_share=share_around(rng, value("answer", "lapse_mean"), 30),
            noise=float(np.exp(rng.normal(0.0, value("answer", "person_spread")))),
            capacity_count=int(np.clip(round(texts), 2, 15)),
            slowness=slowness_of(rng),
            reads_share=share_around(rng, 0.985, 200),
            consults_share=share_around(rng, value("memory", "consults_mean"), 5),
        )

    @property
    def sensitivity(self) -> float:
        return declared_value(FILE, self.kind, "sensitivity") / self.traits.noise

    def evidence(self, mind: Remembered, text: Passage, count: int) -> Shares:
        """For each of `count` answers a number (count,); a difference of 1 makes one e times as likely. NaN
        for an answer without example."""
        raise NotImplementedError

    def answer(self, view: TestView) -> Reply:
        return self.answer_from(None, view)

    def answer_from(self, mind: Remembered | None, view: TestView) -> Reply:
        """The answer with this in mind; None: with what is remembered of the view's examples."""
        rng = self._rng("answer", view.position)
        asked = self._obeys(view, rng)
        if asked is not None:
            took_ms = OBEY.draw_ms(rng, self.traits.slowness)
            return Reply({"choice": asked.value}, took_ms, took_ms)
        lapsed = rng.random() < self.traits.lapse_share
        took_ms = (RUSH if lapsed else DECIDE).draw_ms(rng, self.traits.slowness)
        if view.text is None or lapsed:
            return Reply({"choice": any_of(view.choices, rng).value}, took_ms, took_ms)
        took_ms += round(READ_WORD_MS * len(view.text.words) * self.traits.slowness)
        chosen = self._decided(mind, view, view.text, rng) or any_of(view.choices, rng)
        return Reply({"choice": chosen.value}, took_ms, took_ms)

    def _decided(
        self, mind: Remembered | None, view: TestView, text: Passage, rng: np.random.Generator
    ) -> Choice | None:
        if mind is None:
            known = known_text(text, view.examples, view.choices)
            if known is not None:
                return known
            seen = view.examples if view.reservoir else view.examples[-self.traits.capacity_count :]
            mind = self.mind(seen, view.choices)
        if not len(mind.labels):
            return None
        count = len(view.choices)
        evidence = self.evidence(mind, text, count)
        chances = answer_shares(evidence, np.bincount(mind.labels, minlength=count))
        return view.choices[int(rng.choice(count, p=chances))]

    def mind(self, examples: Sequence[ExampleView], choices: Sequence[Choice]) -> Remembered:
        """What is remembered of examples that were read and have a label."""
        kept = [
            (example.text, choices.index(stands_for))
            for example in examples
            if example.text is not None
            and example.label is not None
            and (stands_for := choice_for(example.label, choices)) is not None
        ]
        return Remembered(
            tuple(text.signs for text, _ in kept),
            np.array([log_length(text) for text, _ in kept], np.float64),
            np.array([label for _, label in kept], np.int64),
        )


@dataclass(frozen=True, slots=True)
class WordExemplar(TextObserver):
    """Answers by resemblance to whole remembered texts."""

    kind: ClassVar[str] = "word_exemplar"

    def evidence(self, mind: Remembered, text: Passage, count: int) -> Shares:
        return exemplar_evidence(mind, text, count, self.sensitivity)


@dataclass(frozen=True, slots=True)
class WordPrototype(TextObserver):
    """Answers by how often each sign stood in texts of each label."""

    kind: ClassVar[str] = "word_prototype"

    def evidence(self, mind: Remembered, text: Passage, count: int) -> Shares:
        return self.sensitivity * prototype_evidence(mind, text, count)


@dataclass(frozen=True, slots=True)
class WordReason(TextObserver):
    """Answers by the one sign that told the remembered texts apart best."""

    kind: ClassVar[str] = "word_reason"

    def evidence(self, mind: Remembered, text: Passage, count: int) -> Shares:
        return self.sensitivity * one_reason_evidence(mind, text, count)


def log_length(text: Passage) -> float:
    """The natural logarithm of the number of words; of an empty text as of one word."""
    return log(max(1, len(text.words)))


def known_text(text: Passage, examples: Sequence[ExampleView], choices: Sequence[Choice]) -> Choice | None:
    """The answer of the training text that this one is word for word, if it is one."""
    for example in examples:
        if example.text is not None and example.label is not None and example.text.words == text.words:
            return choice_for(example.label, choices)
    return None


def distance(first: Mapping[str, float], second: Mapping[str, float], longer: float) -> float:
    """How far two texts are apart, 0-1: the mean over forms, endings and length, each 0-1.

    Forms and endings: 1 less what both share of all (Jaccard's index with weights); `longer` is the
    difference of the logarithms of their numbers of words, in Weber fractions, saturating.
    """
    parts = []
    for family in ("=", "-"):
        names = [name for name in {**first, **second} if name.startswith(family)]
        both = sum(min(first.get(n, 0.0), second.get(n, 0.0)) for n in names)
        either = sum(max(first.get(n, 0.0), second.get(n, 0.0)) for n in names)
        parts.append(1 - both / either if either > 0 else 0.0)
    weber = declared_value(FILE, "length", "weber")
    return (sum(parts) + 1 - float(np.exp(-abs(longer) / weber))) / 3


def exemplar_evidence(mind: Remembered, text: Passage, count: int, sensitivity: float) -> Shares:
    """log of the mean similarity per label, (count,); similarity is exp(-sensitivity x distance)."""
    here, length = text.signs, log_length(text)
    apart = [
        distance(here, signs, length - other) for signs, other in zip(mind.signs, mind.lengths, strict=True)
    ]
    logs = -sensitivity * np.array(apart)
    return np.array([_log_mean(logs[mind.labels == k]) for k in range(count)])


def prototype_evidence(mind: Remembered, text: Passage, count: int) -> Shares:
    """log of the chance of the text's signs and length under each label, (count,); NaN without example.

    A sign stands in a text of a label by Laplace's rule of succession, and counts as far as it is noticed;
    length is normal in log units, with the spread of the remembered texts, at least the Weber fraction.
    """
    noticed = text.signs
    weights = np.array([noticed.get(name, 0.0) for name in mind.names])
    spread = max(declared_value(FILE, "length", "weber"), float(mind.lengths.std()))
    evidence = np.full(count, np.nan)
    for label in range(count):
        mine = mind.labels == label
        if mine.any():
            chance = (mind.matrix[mine].sum(axis=0) + 1) / (mine.sum() + 2)
            apart = (log_length(text) - float(mind.lengths[mine].mean())) / spread
            evidence[label] = float(weights @ np.log(chance)) - apart**2 / 2
    return evidence


def one_reason_evidence(mind: Remembered, text: Passage, count: int) -> Shares:
    """Minus the distance on one sign, in its spreads, to the mean of each label, (count,).

    The sign (or the length) is the one by whose nearest mean most of the remembered texts get their own
    label; of several, the one whose means lie furthest apart in spreads.
    """
    noticed = text.signs
    rows = np.column_stack([mind.matrix, mind.lengths])
    here = np.array([*(noticed.get(name, 0.0) for name in mind.names), log_length(text)])
    least = np.full(len(here), declared_value(FILE, "marks", "least_span"))
    least[-1] = declared_value(FILE, "length", "weber")
    spread = np.maximum(rows.std(axis=0), least)
    missing = np.full(rows.shape[1], np.nan)
    means = np.array(
        [rows[mind.labels == k].mean(axis=0) if (mind.labels == k).any() else missing for k in range(count)]
    )
    apart = np.abs(rows[:, None, :] - means[None, :, :])
    apart[np.isnan(apart)] = np.inf
    right = (apart.argmin(axis=1) == mind.labels[:, None]).sum(axis=0)
    gap = (np.nanmax(means, axis=0) - np.nanmin(means, axis=0)) / spread
    reason = int(np.lexsort((gap, right))[-1])
    return np.asarray(-np.abs(means[:, reason] - here[reason]) / spread[reason])


def _log_mean(logs: Shares) -> float:
    """log(mean(exp(logs))); NaN of nothing."""
    if not len(logs):
        return float("nan")
    return float(logs.max() + np.log(np.exp(logs - logs.max()).mean()))
