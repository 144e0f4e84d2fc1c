"""Simulated people as values: their traits are drawn once from a seed, and their answers follow from what
they see.

A person has no state. The same person, asked the same thing after the same examples, answers the same, in any
order and any process, so a session can be repeated. No simulated person knows a condition, a method or a
right answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self

import numpy as np

from experiments.design.rng import Streams
from experiments.kinds.base import Choice, Reply
from experiments.simulation.drawn import Drawn
from experiments.simulation.passage import Passage
from experiments.simulation.reading import asked_choice
from experiments.simulation.sight import Percept
from experiments.simulation.timing import ABSENCE, BURST, OBEY, RUSH, SKIM, STUDY_PICTURE, ExGaussian
from stimuli.types import Pixels


@dataclass(frozen=True, slots=True)
class Traits:
    """What distinguishes one person from another of the same kind.

    `lapse_share` (0-1): answers given without thought. `noise`: spread of the decision, larger = more random.
    `capacity_count`: training examples kept in mind without the reservoir. `slowness`: factor on all times.
    `reads_share` (0-1): instructions, checks and questions that are really read. `consults_share` (0-1): test
    trials at which a reservoir that must be opened is opened. `leaves_share` (0-1): part of the trials after
    which the person is gone; 1 = stays.
    """

    lapse_share: float
    noise: float
    capacity_count: int
    slowness: float
    reads_share: float
    consults_share: float
    leaves_share: float = 1.0


@dataclass(frozen=True, slots=True)
class ExampleView:
    """A training trial on the screen: a picture, or a text as it is read. `percept` is None for people who do
    not look."""

    position: int
    label: str | None
    choices: tuple[Choice, ...]
    percept: Percept | None = None
    text: Passage | None = None


@dataclass(frozen=True, slots=True)
class TestView:
    """A test trial on the screen, with the training examples seen so far, oldest first.

    `prompt` is the page's own question, empty for the usual one. `reservoir` says whether the examples can be
    looked up now. Not a test class, in spite of the name.
    """

    __test__: ClassVar[bool] = False

    position: int
    choices: tuple[Choice, ...]
    examples: tuple[ExampleView, ...] = ()
    percept: Percept | None = None
    prompt: str = ""
    reservoir: bool = False
    text: Passage | None = None


@dataclass(frozen=True, slots=True)
class RateView:
    """A question about an explanation, as it stands on the screen: `words` and a scale of `points`.

    `place` names the page within the session, `question` the question on it. `shown` is what is rated, `pair`
    the two that are compared; () if the question compares nothing.
    """

    place: str | int
    question: str
    words: str
    points: int
    shown: Drawn | None = None
    pair: tuple[Drawn | None, ...] = ()


@dataclass(frozen=True, slots=True)
class LocateView:
    """A task to be solved on the screen: `answers` are the values of its buttons, `nothing` the one of a
    person who finds none. `picture` uint8 (H, W, 3), as it was served; None for people who do not look.
    `grid` is the side of the grid on which a region is marked."""

    position: int
    answers: tuple[str, ...]
    nothing: str
    grid: int
    picture: Pixels | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """What was found: an answer and its cells in ascending order, or that there is nothing and no cells."""

    choice: str
    cells: tuple[int, ...] | None
    took_ms: int


@dataclass(frozen=True, slots=True)
class JudgeView:
    """An `answer` on the screen, in words; `mark` is the picture with its area outlined, None if it
    is not shown. Pictures as in `LocateView`."""

    position: int
    answer: str
    picture: Pixels | None = None
    mark: Pixels | None = None


class Person(Protocol):
    """A person who can take a study. `looks` says whether this person looks at the pictures."""

    kind: ClassVar[str]

    @classmethod
    def drawn(cls, seed: int, number: int) -> Self:
        """The person of that number in the population of that seed."""
        ...

    @property
    def name(self) -> str: ...
    @property
    def traits(self) -> Traits: ...
    @property
    def looks(self) -> bool: ...
    def leaves_after(self, total: int) -> int | None:
        """How many of `total` trials are answered before the person is gone; None: stays to the end."""
        ...

    def study_example(self, view: ExampleView) -> Reply: ...
    def answer(self, view: TestView) -> Reply: ...
    def rate(self, view: RateView) -> int:
        """A point of the scale, from 1."""
        ...

    def locate(self, view: LocateView) -> Located: ...
    def judge(self, view: JudgeView) -> tuple[bool, int]:
        """Whether the answer is accepted, and after how many milliseconds."""
        ...

    def consults(self, position: int) -> bool: ...
    def pick(self, question: str, attempt: int, choices: Sequence[Choice], known: Choice | None) -> Choice:
        """The answer to a question on a page; `known` is the answer of a person who has read the page."""
        ...

    def read_plate(self, plate: str, picture: bytes, choices: Sequence[Choice]) -> Choice:
        """What is seen on a plate of the colour check; `picture` is the file as it was served."""
        ...


@dataclass(frozen=True, slots=True)
class Someone:
    """What all kinds share: identity, named randomness, reading."""

    kind: ClassVar[str] = ""
    STUDYING: ClassVar[ExGaussian] = STUDY_PICTURE
    seed: int
    number: int
    traits: Traits
    streams: Streams = field(repr=False, compare=False)

    @classmethod
    def drawn(cls, seed: int, number: int) -> Self:
        streams = Streams(seed)
        return cls(seed, number, cls._traits(streams("traits", cls.kind, number)), streams)

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        raise NotImplementedError

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.seed}-{self.number}"

    @property
    def looks(self) -> bool:
        return False

    def leaves_after(self, total: int) -> int | None:
        return None

    def consults(self, position: int) -> bool:
        return bool(self._rng("consult", position).random() < self.traits.consults_share)

    def pick(self, question: str, attempt: int, choices: Sequence[Choice], known: Choice | None) -> Choice:
        rng = self._rng("question", question, attempt)
        # A page that was failed is read again: each further try has its own chance of having been read.
        missed = (1 - self.traits.reads_share) ** (attempt + 1)
        if known is not None and rng.random() >= missed:
            return known
        return any_of(choices, rng)

    def read_plate(self, plate: str, picture: bytes, choices: Sequence[Choice]) -> Choice:
        """Any answer: no eyes for colours."""
        return any_of(choices, self._rng("plate", plate))

    def study_example(self, view: ExampleView) -> Reply:
        """Looks for a while, says "seen"."""
        took_ms = self.STUDYING.draw_ms(self._rng("example", view.position), self.traits.slowness)
        return Reply({"seen": True}, took_ms, took_ms)

    def rate(self, view: RateView) -> int:
        """Any point: no taste."""
        return any_point(view.points, self._rng("rate", view.place, view.question))

    def locate(self, view: LocateView) -> Located:
        return self._anywhere(view, self._rng("locate", view.position))

    def judge(self, view: JudgeView) -> tuple[bool, int]:
        """Accepts or rejects by chance."""
        rng = self._rng("judge", view.position)
        took_ms = self.STUDYING.draw_ms(rng, self.traits.slowness)
        return bool(rng.random() < 0.5), took_ms

    def _anywhere(self, view: LocateView, rng: np.random.Generator) -> Located:
        """Any answer, with any cell."""
        took_ms = self.STUDYING.draw_ms(rng, self.traits.slowness)
        choice = view.answers[int(rng.integers(len(view.answers)))]
        cell = int(rng.integers(view.grid**2))
        return Located(choice, None if choice == view.nothing else (cell,), took_ms)

    def _rng(self, *names: str | int) -> np.random.Generator:
        return self.streams(self.kind, self.number, *names)

    def _obeys(self, view: TestView, rng: np.random.Generator) -> Choice | None:
        """The choice that the page asks for, if it asks for one and the person reads it."""
        asked = asked_choice(view.prompt, view.choices) if view.prompt else None
        return asked if asked is not None and rng.random() < self.traits.reads_share else None


def any_of(choices: Sequence[Choice], rng: np.random.Generator) -> Choice:
    return choices[int(rng.integers(len(choices)))]


def any_point(points: int, rng: np.random.Generator) -> int:
    return int(rng.integers(1, points + 1))


def share_around(rng: np.random.Generator, mean: float, strength: float) -> float:
    """A share drawn from a beta distribution with that mean; `strength` = its two parameters together."""
    return float(rng.beta(mean * strength, (1 - mean) * strength))


def slowness_of(rng: np.random.Generator) -> float:
    return float(np.exp(rng.normal(0.0, 0.2)))


@dataclass(frozen=True, slots=True)
class Guesser(Someone):
    """Answers at random and fast; passes most checks that can be read."""

    kind: ClassVar[str] = "guesser"
    STUDYING: ClassVar[ExGaussian] = SKIM

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        return Traits(
            1.0, 1.0, 0, slowness_of(rng), reads_share=share_around(rng, 0.8, 12), consults_share=0.0
        )

    def answer(self, view: TestView) -> Reply:
        rng = self._rng("answer", view.position)
        asked = self._obeys(view, rng)
        timing = RUSH if asked is None else OBEY
        took_ms = timing.draw_ms(rng, self.traits.slowness)
        return Reply({"choice": (asked or any_of(view.choices, rng)).value}, took_ms, took_ms)


@dataclass(frozen=True, slots=True)
class Careless(Someone):
    """Presses one key repeatedly or is away; misses most checks, because the page is not read."""

    kind: ClassVar[str] = "careless"
    STUDYING: ClassVar[ExGaussian] = SKIM
    BURST_SHARE: ClassVar[float] = 0.7
    HABIT_SHARE: ClassVar[float] = 0.8

    @classmethod
    def _traits(cls, rng: np.random.Generator) -> Traits:
        return Traits(
            1.0, 1.0, 0, slowness_of(rng), reads_share=share_around(rng, 0.15, 12), consults_share=0.02
        )

    def pick(self, question: str, attempt: int, choices: Sequence[Choice], known: Choice | None) -> Choice:
        # No person passes a gate without reading it, so even careless people mostly read there.
        rng = self._rng("question", question, attempt)
        return known if known is not None and rng.random() < 0.85 else any_of(choices, rng)

    def answer(self, view: TestView) -> Reply:
        rng = self._rng("answer", view.position)
        took_ms = (BURST if rng.random() < self.BURST_SHARE else ABSENCE).draw_ms(rng, self.traits.slowness)
        asked = self._obeys(view, rng)
        if asked is not None:
            return Reply({"choice": asked.value}, took_ms, took_ms)
        habit = int(self._rng("habit").integers(2))
        usual = sorted(view.choices, key=lambda choice: choice.key)[min(habit, len(view.choices) - 1)]
        chosen = usual if rng.random() < self.HABIT_SHARE else any_of(view.choices, rng)
        return Reply({"choice": chosen.value}, took_ms, took_ms)

    def rate(self, view: RateView) -> int:
        """Mostly the same point, for every question."""
        rng = self._rng("rate", view.place, view.question)
        habit = any_point(view.points, self._rng("habit", "point"))
        return habit if rng.random() < self.HABIT_SHARE else any_point(view.points, rng)
