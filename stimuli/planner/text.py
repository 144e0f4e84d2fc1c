"""Runs the methods of many texts together: every distinct text runs once, in batches of similar length.

Jobs are started until enough texts wait; then all of them run, the waiting jobs go on, and more jobs are
started. So memory holds a pool of texts and the answers, for any number of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import FAULTS, NotApplicable, StimulusError, as_stimulus_error, is_out_of_memory
from stimuli.planner.asks import Ask, Steps, TextGradient, TextScores
from stimuli.planner.bill import Bill
from stimuli.planner.drive import Job, JobResult
from stimuli.planner.values import ExplainedNumber, Floats, TextTrace, softmax

ROWS = 32
POOL = 8192
"""Distinct texts that are gathered before a round of batches."""


class RunsTexts(Protocol):
    """The part of a text predictor that the planner calls."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def text_batches(
        self, texts: Sequence[str], rows: int
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]: ...

    def text_gradient(self, text: str, explained: ExplainedNumber) -> TextTrace: ...


@dataclass(eq=False)
class _Running:
    """A job that waits: its asks, and for each ask of texts their numbers."""

    job: Job
    steps: Steps
    asks: tuple[Ask, ...] = ()
    is_tuple: bool = False
    numbers: dict[int, NDArray[np.int64]] = field(default_factory=dict)


def drive_texts(
    jobs: Sequence[Job],
    predictor: RunsTexts,
    rows: int = ROWS,
    bill: Bill | None = None,
    alive: Callable[[], None] = lambda: None,
    follow: Callable[[JobResult], Sequence[Job]] = lambda done: (),
) -> Iterator[JobResult]:
    """Run the jobs; each is yielded as it ends. An error ends its own job only; `alive` and `follow` as in
    `drive`.

    `rows` is the number of texts in a batch; `bill` is added to: texts that ran, rows that were only filled
    up, calls, and seconds if it has a clock.
    """
    yield from _TextDriver(predictor, rows, bill or Bill(), alive, follow).run(jobs)


class _TextDriver:
    def __init__(
        self,
        predictor: RunsTexts,
        rows: int,
        bill: Bill,
        alive: Callable[[], None],
        follow: Callable[[JobResult], Sequence[Job]],
    ) -> None:
        self.alive = alive
        self.follow = follow
        self.predictor = predictor
        self.rows = rows
        self.bill = bill
        self.numbers: dict[str, int] = {}
        self.probabilities: list[Floats] = []
        """By number; numbers without an answer yet wait in `waiting`."""
        self.waiting: list[str] = []
        self.traced: dict[tuple[str, Hashable], TextTrace] = {}
        self.running: list[_Running] = []
        self.ended: list[JobResult] = []

    def run(self, jobs: Sequence[Job]) -> Iterator[JobResult]:
        left = iter(jobs)
        is_more = True
        while is_more or self.running:
            while is_more and len(self.waiting) < POOL:
                job = next(left, None)
                if job is None:
                    is_more = False
                else:
                    self._advance(_Running(job, job.start()), None)
            yield from self._ended_jobs()
            self._run_waiting()
            ready, self.running = self.running, []
            for running in ready:
                self._advance(running, self._answer(running))
            yield from self._ended_jobs()

    def _ended_jobs(self) -> list[JobResult]:
        ended, self.ended = self.ended, []
        return ended

    def _advance(self, running: _Running, answer: Any) -> None:
        """Resume a method and take note of what it asks next."""
        try:
            asked = running.steps.send(answer)
            running.is_tuple = isinstance(asked, tuple)
            running.asks = asked if isinstance(asked, tuple) else (asked,)
            running.numbers = {}
            for slot, ask in enumerate(running.asks):
                self._take(running, slot, ask)
        except StopIteration as end:
            self._end(JobResult(running.job.name, end.value))
        except (StimulusError, *FAULTS) as error:
            running.steps.close()
            self._end(JobResult(running.job.name, None, as_stimulus_error(error)))
        else:
            self.running.append(running)

    def _end(self, done: JobResult) -> None:
        self.ended.append(done)
        for job in self.follow(done):
            self._advance(_Running(job, job.start()), None)

    def _take(self, running: _Running, slot: int, ask: Ask) -> None:
        if isinstance(ask, TextScores):
            running.numbers[slot] = np.array([self._number(text) for text in ask.texts], np.int64)
        elif isinstance(ask, TextGradient):
            subject = running.job.subject
            key = subject.text, subject.number
            if key not in self.traced:
                start = self.bill.now()
                self.traced[key] = self.predictor.text_gradient(subject.text, subject)
                self._charge(1, 0, start)
                self.bill.backwards += 1
        else:
            raise NotApplicable("this method explains pictures, and was asked about a text")

    def _number(self, text: str) -> int:
        """The number of a text, given when it is first asked for."""
        if text not in self.numbers:
            self.numbers[text] = len(self.numbers)
            self.waiting.append(text)
        return self.numbers[text]

    def _run_waiting(self) -> None:
        texts, self.waiting = self.waiting, []
        if not texts:
            return
        while not self._run_texts(texts):
            self.rows //= 2

    def _run_texts(self, texts: Sequence[str]) -> bool:
        """Add the probabilities of the texts; False if memory does not hold so many at a time."""
        probabilities = np.zeros((len(texts), len(self.predictor.labels)))
        start = self.bill.now()
        try:
            for places, logits in self.predictor.text_batches(texts, self.rows):
                probabilities[places] = softmax(logits)
                self.alive()
                self._charge(len(places), self.rows - len(places), start)
                start = self.bill.now()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or self.rows == 1:
                raise
            return False
        self.probabilities.append(probabilities)
        return True

    def _charge(self, forwards: int, padded: int, start: float) -> None:
        self.bill.forwards += forwards
        self.bill.padded += padded
        self.bill.calls += 1
        self.bill.network_s += self.bill.now() - start

    def _answer(self, running: _Running) -> Any:
        if len(self.probabilities) > 1:
            self.probabilities = [np.concatenate(self.probabilities)]
        answers: list[Any] = []
        for slot, ask in enumerate(running.asks):
            if isinstance(ask, TextGradient):
                answers.append(self.traced[running.job.subject.text, running.job.subject.number])
            elif len(running.numbers[slot]):
                answers.append(self.probabilities[0][running.numbers[slot]])
            else:
                answers.append(np.zeros((0, len(self.predictor.labels))))
        return tuple(answers) if running.is_tuple else answers[0]
