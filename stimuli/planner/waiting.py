"""What the driver keeps of jobs that wait: the asks, and what is known of each picture."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

from torch import Tensor

from stimuli.errors import StimulusError
from stimuli.planner.asks import ORIGINAL, Steps
from stimuli.planner.values import (
    AttentionTrace,
    ExplainedNumber,
    Floats,
    Relevance,
    Subject,
    Trace,
    TraceAnswer,
    softmax,
)

Row = tuple[float, float, Floats | None]
"""The explained number, the target's probability, and all logits if they are few or were asked for."""
FEW_LABELS = 32
ORIGINALS: tuple[Hashable, ...] = (ORIGINAL, ("logits", ORIGINAL))
ENDED = -1
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """A method at work on one item. `name` is the caller's; jobs of one `subject` share its passes."""

    name: Hashable
    subject: Subject
    start: Callable[[], Steps]


@dataclass(frozen=True, slots=True)
class JobResult:
    """The outcome of a job: its result, or the reason why there is none."""

    name: Hashable
    result: Any
    error: StimulusError | None = None


@dataclass(eq=False)
class Running:
    """A job that waits: its answers so far, and how many are open; ENDED once it is over."""

    job: Job
    item: PictureState
    steps: Steps
    answers: list[Any] = field(default_factory=list)
    open: int = 0
    is_tuple: bool = False


@dataclass(eq=False)
class PictureState:
    """What is known of one picture: its trace so far, and the scores of copies by identity."""

    subject: Subject
    traced: TraceAnswer | None = None
    asked: Trace = Trace()
    changed: dict[AttentionTrace | Relevance, TraceAnswer] = field(default_factory=dict)
    known: dict[Hashable, Row] = field(default_factory=dict)
    jobs: int = 0
    awaited: dict[Hashable, list[tuple[Want, int]]] = field(default_factory=dict)

    def leave(self) -> None:
        """One of its jobs has ended; with the last job, what is known is dropped."""
        self.jobs -= 1
        if not self.jobs:
            self.known.clear()
            self.changed.clear()
            self.traced, self.asked = None, Trace()


@dataclass(eq=False)
class Want:
    """An ask that waits for rows: the place of its answer, and how many rows are missing."""

    running: Running
    slot: int
    ask: Any
    answer: Any
    missing: int


def by_want(rows: Sequence[tuple[Want, T]]) -> list[list[T]]:
    """The rows, grouped by the ask that they belong to."""
    parts: dict[int, list[T]] = {}
    for want, row in rows:
        parts.setdefault(id(want), []).append(row)
    return list(parts.values())


def runs_of(keys: Sequence[Hashable]) -> Iterator[tuple[int, int]]:
    start = 0
    for at in range(1, len(keys) + 1):
        if at == len(keys) or keys[at] != keys[start]:
            yield start, at
            start = at


def kept_rows(logits: Tensor, wanted: Sequence[ExplainedNumber], is_whole: Sequence[bool]) -> list[Row]:
    """What is kept of logits (n, K), all labels at once."""
    values = cast("Floats", logits.double().cpu().numpy())
    is_few = values.shape[1] <= FEW_LABELS
    return [
        (float(number.explained(row)), float(shares[number.target]), row.copy() if is_few or whole else None)
        for number, row, shares, whole in zip(wanted, values, softmax(values), is_whole, strict=True)
    ]


def join_traces(first: Trace, second: Trace) -> Trace:
    return replace(
        first,
        layers=tuple(dict.fromkeys((*first.layers, *second.layers))),
        gradients=first.gradients or second.gradients,
        input_gradient=first.input_gradient or second.input_gradient,
        biases=first.biases or second.biases,
        concepts=first.concepts or second.concepts,
    )


def covers(had: Trace, ask: Trace) -> bool:
    return (
        set(ask.layers) <= set(had.layers)
        and had.gradients >= ask.gradients
        and had.input_gradient >= ask.input_gradient
        and had.biases >= ask.biases
        and had.concepts >= ask.concepts
    )
