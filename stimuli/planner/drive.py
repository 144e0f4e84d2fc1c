"""Runs the methods of many items together, so that passes are shared and batches are full.

Methods run until all of them wait. Then one step is done: the traces of all pictures (one pass for everything
that their methods asked), work that cannot be planned, or a full batch of perturbed copies. A batch that is
not full runs only if no method can go on otherwise. So memory holds one batch, queues of numbers, and the
traces of the present pictures, for any asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from stimuli.errors import FAULTS, NotApplicable, StimulusError, as_stimulus_error
from stimuli.planner.asks import ORIGINAL, Ask, LayerScores, OwnPasses, Scores, SummedGradient
from stimuli.planner.network import Network
from stimuli.planner.values import AttentionTrace, Floats, Relevance, Trace
from stimuli.planner.waiting import (
    ENDED,
    FEW_LABELS,
    ORIGINALS,
    Job,
    JobResult,
    PictureState,
    Row,
    Running,
    Want,
    by_want,
    covers,
    join_traces,
    kept_rows,
    runs_of,
)

__all__ = ["JobResult", "Job", "drive"]
T = TypeVar("T")


def drive(
    jobs: Sequence[Job],
    network: Network,
    alive: Callable[[], None] = lambda: None,
    follow: Callable[[JobResult], Sequence[Job]] = lambda done: (),
) -> Iterator[JobResult]:
    """Run the jobs; each is yielded as it ends. An error ends its own job only.

    `alive` is called after every batch, as a sign that the work goes on. `follow` says which jobs a result
    requires; they join at once and share what is known of their pictures.
    """
    yield from _Driver(network, alive, follow).run(jobs)


class _Driver:
    def __init__(
        self, network: Network, alive: Callable[[], None], follow: Callable[[JobResult], Sequence[Job]]
    ) -> None:
        self.network = network
        self.alive = alive
        self.follow = follow
        self.items: dict[tuple[str, Hashable, int], PictureState] = {}
        self.traces: list[tuple[Running, int, Trace]] = []
        self.changed: dict[AttentionTrace | Relevance, list[tuple[Running, int]]] = {}
        self.originals: list[PictureState] = []
        self.own: deque[tuple[Running, int, OwnPasses]] = deque()
        self.scores: deque[tuple[PictureState, Want, int]] = deque()
        self.gradients: deque[tuple[Want, int]] = deque()
        self.layers: dict[str, deque[tuple[Want, int]]] = {}
        self.live: dict[int, Running] = {}
        self.ended: list[JobResult] = []

    def run(self, jobs: Sequence[Job]) -> Iterator[JobResult]:
        for job in jobs:
            self._start(job)
        try:
            while True:
                yield from self.ended
                self.ended = []
                if not self._work():
                    break
                self.alive()
        finally:
            for running in self.live.values():
                running.steps.close()

    def _start(self, job: Job) -> None:
        subject = job.subject
        item = self.items.setdefault((subject.key, subject.number, subject.seed), PictureState(subject))
        item.jobs += 1
        running = Running(job, item, job.start())
        self.live[id(running)] = running
        self._advance(running, None)

    def _work(self) -> bool:
        """Do the next step; False when nothing is left."""
        rows = self.network.rows
        if self.traces or self.originals:
            self._run_traces()
        elif self.changed:
            self._run_changed(*self.changed.popitem())
        elif self.own:
            self._run_own()
        elif len(self.scores) >= rows:
            self._run_scores()
        elif len(self.gradients) >= rows:
            self._run_gradients()
        elif full := [name for name, queue in self.layers.items() if len(queue) >= rows]:
            self._run_layer(full[0])
        elif self.scores:
            self._run_scores()
        elif self.gradients:
            self._run_gradients()
        elif part := [name for name, queue in self.layers.items() if queue]:
            self._run_layer(part[0])
        else:
            return False
        return True

    def _advance(self, running: Running, answer: Any) -> None:
        """Resume a method, and take note of what it asks next; until it waits or ends."""
        while True:
            try:
                asked = running.steps.send(answer)
            except StopIteration as end:
                self._end(running, end.value)
                return
            except (StimulusError, *FAULTS) as error:
                self._fail(running, error)
                return
            running.is_tuple = isinstance(asked, tuple)
            asks: tuple[Ask, ...] = asked if isinstance(asked, tuple) else (asked,)
            running.answers = [None] * len(asks)
            running.open = len(asks)
            try:
                for slot, ask in enumerate(asks):
                    self._take(running, slot, ask)
            except StimulusError as error:
                self._fail(running, error)
            if running.open:
                return
            answer = tuple(running.answers) if running.is_tuple else running.answers[0]

    def _take(self, running: Running, slot: int, ask: Ask) -> None:
        if isinstance(ask, Trace):
            if running.item.traced is not None and covers(running.item.asked, ask):
                self._settle(running, slot, running.item.traced)
            else:
                self.traces.append((running, slot, ask))
        elif isinstance(ask, AttentionTrace | Relevance):
            self.changed.setdefault(ask, []).append((running, slot))
        elif isinstance(ask, OwnPasses):
            self.own.append((running, slot, ask))
        elif isinstance(ask, Scores):
            self._take_scores(running, slot, ask)
        elif isinstance(ask, SummedGradient):
            total = torch.zeros_like(running.item.subject.pixels, dtype=torch.float64)
            want = Want(running, slot, ask, total, len(ask.variants))
            self.gradients.extend((want, place) for place in range(len(ask.variants)))
            self._close_empty(want)
        elif isinstance(ask, LayerScores):
            want = Want(running, slot, ask, np.zeros(len(ask.variants)), len(ask.variants))
            queue = self.layers.setdefault(ask.layer, deque())
            queue.extend((want, place) for place in range(len(ask.variants)))
            self._close_empty(want)
        else:
            raise NotApplicable("this method explains texts, and was asked about a picture")

    def _close_empty(self, want: Want) -> None:
        if not want.missing:
            self._settle(want.running, want.slot, want.answer)

    def _take_scores(self, running: Running, slot: int, ask: Scores) -> None:
        count, item = len(ask.variants), running.item
        labels = len(self.network.predictor.labels)
        answer = np.zeros((count, labels) if ask.output == "logits" else count)
        want = Want(running, slot, ask, answer, count)
        for place in range(count):
            identity = self._identity(want, place)
            if identity in item.known:
                self._fill(want, place, item.known[identity])
            elif identity in item.awaited:
                item.awaited[identity].append((want, place))
            else:
                item.awaited[identity] = [(want, place)]
                if identity in ORIGINALS and self.network.precision == "float32":
                    self.originals.append(item)
                else:
                    self.scores.append((item, want, place))
        self._close_empty(want)

    def _end(self, running: Running, result: Any, error: StimulusError | None = None) -> None:
        running.open = ENDED
        del self.live[id(running)]
        done = JobResult(running.job.name, result, error)
        self.ended.append(done)
        for job in self.follow(done):
            self._start(job)
        running.item.leave()

    def _fail(self, running: Running, error: BaseException) -> None:
        """End a job that cannot be answered. Its rows that still wait are dropped, or run for others."""
        if running.open != ENDED:
            running.steps.close()
            self._end(running, None, as_stimulus_error(error))

    def _settle(self, running: Running, slot: int, answer: Any) -> None:
        """Put an answer in its place. The caller resumes the method when all are there."""
        if running.open != ENDED:
            running.answers[slot] = answer
            running.open -= 1

    def _resume(self, touched: Sequence[Running]) -> None:
        for running in dict.fromkeys(touched):
            if not running.open:
                self._advance(running, tuple(running.answers) if running.is_tuple else running.answers[0])

    def _run_traces(self) -> None:
        """All traces that jobs wait for, in one pass per picture. Copies that are the picture itself are
        answered by its trace, unless copies run in another precision than traces.
        """
        waiting, self.traces = self.traces, []
        originals, self.originals = self.originals, []
        self._answer_traces(waiting, originals)

    def _answer_traces(
        self, waiting: Sequence[tuple[Running, int, Trace]], originals: Sequence[PictureState]
    ) -> None:
        try:
            touched = self._trace_all(waiting, originals)
        except (StimulusError, *FAULTS) as error:
            if len(waiting) + len(originals) == 1:
                for running in (*(entry[0] for entry in waiting), *_awaiting(originals)):
                    self._fail(running, error)
                return
            for entry in waiting:  # an impossible ask must not end the other jobs
                self._answer_traces([entry], ())
            for item in originals:
                self._answer_traces((), [item])
            return
        for running, slot, _ask in waiting:
            self._settle(running, slot, running.item.traced)
        self._resume([*(running for running, _, _ in waiting), *touched])

    def _trace_all(
        self, waiting: Sequence[tuple[Running, int, Trace]], originals: Sequence[PictureState]
    ) -> list[Running]:
        items = {id(item): item for item in originals}
        union = Trace()
        for running, _slot, ask in waiting:
            items[id(running.item)] = running.item
            union = join_traces(union, ask)
        for item in items.values():  # earlier answers are kept: a later ask may need their scores
            union = join_traces(union, item.asked)
        pictures = list(items.values())
        for start in range(0, len(pictures), self.network.rows):
            part = pictures[start : start + self.network.rows]
            images = torch.stack([item.subject.pixels for item in part]).to(self.network.device)
            traces = self.network.trace(images, [item.subject for item in part], union)
            for item, traced in zip(part, traces, strict=True):
                item.traced, item.asked = traced, union
        return [running for item in pictures for running in self._know_original(item)]

    def _run_changed(self, ask: AttentionTrace | Relevance, waiting: Sequence[tuple[Running, int]]) -> None:
        """One changed pass for every picture whose methods wait for it; its answer is kept for later ones."""
        items = {id(item): item for running, _ in waiting if ask not in (item := running.item).changed}
        pictures = list(items.values())
        try:
            for start in range(0, len(pictures), self.network.rows):
                part = pictures[start : start + self.network.rows]
                images = torch.stack([item.subject.pixels for item in part]).to(self.network.device)
                answers = self.network.changed_trace(images, [item.subject for item in part], ask)
                for item, traced in zip(part, answers, strict=True):
                    item.changed[ask] = traced
        except (StimulusError, *FAULTS) as error:
            if len(waiting) == 1:
                self._fail(waiting[0][0], error)
                return
            for entry in waiting:
                self._run_changed(ask, [entry])
            return
        for running, slot in waiting:
            self._settle(running, slot, running.item.changed[ask])
        self._resume([running for running, _ in waiting])

    def _know_original(self, item: PictureState) -> list[Running]:
        """Answer the asks for copies that are the picture itself; returns the jobs with all answers."""
        assert item.traced is not None
        if self.network.precision != "float32":
            return []
        touched = []
        for identity in ORIGINALS:
            is_whole = identity != ORIGINAL
            (row,) = kept_rows(item.traced.logits[None], [item.subject], [is_whole])
            item.known[identity] = row
            for want, place in item.awaited.pop(identity, ()):
                self._fill(want, place, row)
                if not want.missing:
                    self._settle(want.running, want.slot, want.answer)
                    touched.append(want.running)
        return touched

    def _run_own(self) -> None:
        running, slot, ask = self.own.popleft()
        if running.open == ENDED:
            return
        try:
            answer = self.network.own(lambda: ask.run(self.network, running.item.subject))
        except (StimulusError, *FAULTS) as error:
            self._fail(running, error)
            return
        self._settle(running, slot, answer)
        self._resume([running])

    def _run_scores(self) -> None:
        self._score([self.scores.popleft() for _ in range(min(self.network.rows, len(self.scores)))])

    def _score(self, rows: Sequence[tuple[PictureState, Want, int]]) -> None:
        try:
            copies = self._make_copies(rows)
            logits = None if copies is None else self.network.logits(copies)
        except (StimulusError, *FAULTS) as error:
            parts = by_want([(want, (item, want, place)) for item, want, place in rows])
            if len(parts) > 1:
                for part in parts:
                    self._score(part)
            else:
                self._give_up(rows, error)
            return
        if logits is None:
            for fewer in self._smaller(rows):
                self._score(fewer)
            return
        touched = []
        scored = kept_rows(
            logits,
            [item.subject for item, _, _ in rows],
            [want.ask.output == "logits" for _, want, _ in rows],
        )
        for (item, want, place), row in zip(rows, scored, strict=True):
            identity = self._identity(want, place)
            item.known[identity] = row
            for waiting, where in item.awaited.pop(identity):
                self._fill(waiting, where, row)
                if not waiting.missing:
                    self._settle(waiting.running, waiting.slot, waiting.answer)
                    touched.append(waiting.running)
        self._resume(touched)

    def _give_up(self, rows: Sequence[tuple[PictureState, Want, int]], error: BaseException) -> None:
        """End the job of these rows; other jobs that wait for the same copies make them themselves."""
        self._fail(rows[0][1].running, error)
        for item, want, place in rows:
            identity = self._identity(want, place)
            others = [entry for entry in item.awaited.pop(identity) if entry[0].running.open != ENDED]
            if others:
                item.awaited[identity] = others
                self.scores.append((item, *others[0]))

    def _run_gradients(self) -> None:
        self._add([self.gradients.popleft() for _ in range(min(self.network.rows, len(self.gradients)))])

    def _add(self, rows: Sequence[tuple[Want, int]]) -> None:
        rows = [row for row in rows if row[0].running.open != ENDED]
        if not rows:
            return
        try:
            copies = self._make_copies([(want.running.item, want, place) for want, place in rows])
            wanted = [want.running.item.subject for want, _ in rows]
            gradients = None if copies is None else self.network.gradients(copies, wanted)
        except (StimulusError, *FAULTS) as error:
            parts = by_want([(want, (want, place)) for want, place in rows])
            if len(parts) > 1:
                for part in parts:
                    self._add(part)
            else:
                self._fail(rows[0][0].running, error)
            return
        if gradients is None:
            for fewer in self._smaller(rows):
                self._add(fewer)
            return
        touched = []
        for (want, place), gradient in zip(rows, gradients, strict=True):
            # One at a time and in their order, so that a sum does not depend on the batch borders.
            want.answer.add_(gradient.to(want.answer.device), alpha=float(want.ask.weights[place]))
            want.missing -= 1
            if not want.missing:
                self._settle(want.running, want.slot, want.answer)
                touched.append(want.running)
        self._resume(touched)

    def _run_layer(self, layer: str) -> None:
        queue = self.layers[layer]
        want = queue[0][0]
        # One picture at a time: a replaced output goes with its own picture's class tokens.
        places: list[int] = []
        while queue and queue[0][0] is want and len(places) < self.network.rows:
            places.append(queue.popleft()[1])
        if want.running.open == ENDED:
            return
        try:
            answer = self._scores_behind(layer, want, places)
        except (StimulusError, *FAULTS) as error:
            self._fail(want.running, error)
            return
        if answer is None:  # Memory ran out: fewer at a time.
            queue.extendleft((want, place) for place in reversed(places))
            return
        want.answer[places] = answer
        want.missing -= len(places)
        if not want.missing:
            self._settle(want.running, want.slot, want.answer)
            self._resume([want.running])

    def _scores_behind(self, layer: str, want: Want, places: Sequence[int]) -> Floats | None:
        item = want.running.item
        if item.traced is None or layer not in item.traced.activations:
            raise NotApplicable(f"scores behind layer {layer!r} need a trace of it first")
        activation = item.traced.activations[layer]
        outputs = self.network.tried(lambda: want.ask.variants.make(activation, places))
        if outputs is None:
            return None
        raw = item.traced.raw.get(layer, activation)
        logits = self.network.layer_logits(layer, outputs, raw, item.subject.pixels)
        return item.subject.explained(cast("Floats", logits.double().cpu().numpy()))

    def _make_copies(self, rows: Sequence[tuple[PictureState, Want, int]]) -> Tensor | None:
        """The copies of a batch, those of one method made together; None when memory does not hold them."""
        return self.network.tried(lambda: _copies(rows, self.network.device))

    def _smaller(self, rows: Sequence[T]) -> Iterator[Sequence[T]]:
        """The rows in batches of as many as are held when their turn comes."""
        start = 0
        while start < len(rows):
            part = rows[start : start + self.network.rows]
            start += len(part)
            yield part

    def _identity(self, want: Want, place: int) -> Hashable:
        """What is known under it answers this ask: all logits of many labels are kept only for asks that want
        them."""
        identity = want.ask.variants.identity(place)
        many = len(self.network.predictor.labels) > FEW_LABELS
        return ("logits", identity) if many and want.ask.output == "logits" else identity

    def _fill(self, want: Want, place: int, row: Row) -> None:
        output = want.ask.output
        want.answer[place] = row[2] if output == "logits" else row[output == "probability"]
        want.missing -= 1


def _awaiting(items: Sequence[PictureState]) -> list[Running]:
    """The asks that wait for copies that are the pictures themselves."""
    return [want.running for item in items for name in ORIGINALS for want, _ in item.awaited.pop(name, ())]


def _copies(rows: Sequence[tuple[PictureState, Want, int]], device: torch.device) -> Tensor:
    parts = []
    for start, end in runs_of([(id(item), id(want.ask.variants)) for item, want, _ in rows]):
        item, want, _ = rows[start]
        image = item.subject.pixels.to(device)
        parts.append(want.ask.variants.make(image, [place for _, _, place in rows[start:end]]))
    return parts[0] if len(parts) == 1 else torch.cat(parts)
