"""A learner or a guesser who closes the tab in the middle, without a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from experiments.design.rng import Streams
from experiments.kinds.base import Choice, Reply
from experiments.simulation import person_class
from experiments.simulation.people import ExampleView, Person, RateView, Someone, TestView

APART = 1_000_000
"""Number of the first leaver among learners and guessers, so that no leaver copies one of them."""


@dataclass(frozen=True, slots=True)
class Leaver(Someone):
    """A learner or a guesser (half and half) who closes the tab in the middle, without a word."""

    kind: ClassVar[str] = "leaver"

    @classmethod
    def drawn(cls, seed: int, number: int) -> Self:
        streams = Streams(seed)
        leaves_share = streams("traits", cls.kind, number).uniform(0.1, 0.9)
        return cls(
            seed, number, replace(_until_then(streams, number).traits, leaves_share=leaves_share), streams
        )

    @property
    def inner(self) -> Person:
        """The person that this one is until leaving."""
        return _until_then(self.streams, self.number)

    @property
    def looks(self) -> bool:
        return self.inner.looks

    def leaves_after(self, total: int) -> int | None:
        return int(np.clip(round(total * self.traits.leaves_share), 1, max(1, total - 1)))

    def study_example(self, view: ExampleView) -> Reply:
        return self.inner.study_example(view)

    def answer(self, view: TestView) -> Reply:
        return self.inner.answer(view)

    def rate(self, view: RateView) -> int:
        return self.inner.rate(view)

    def consults(self, position: int) -> bool:
        return self.inner.consults(position)

    def pick(self, question: str, attempt: int, choices: Sequence[Choice], known: Choice | None) -> Choice:
        return self.inner.pick(question, attempt, choices, known)


def _until_then(streams: Streams, number: int) -> Person:
    kind = "learner" if streams("leaver", number, "inner").random() < 0.5 else "guesser"
    return person_class(kind).drawn(streams.seed, APART + number)
