"""One side of the comparison in a process of its own, so that its peak of memory is its own.

Run as `python -m benchmarks.sides SIDE NETWORK DEVICE ROWS`; SIDE is "library" or "planner". Reads one JSON
request per line and prints one JSON reply per line; ends with its input.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.costs import Cost
from benchmarks.libraries import LIBRARIES, Setting, setting
from benchmarks.methods import BEHIND_A_LAYER, MANY, MOST
from benchmarks.networks import pictures, predictor
from stimuli.errors import StimulusError
from stimuli.explainers import open_explainer
from stimuli.planner.asks import Ask, LayerScores, Scores, Steps
from stimuli.planner.bill import Bill
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import ExplainedNumber, Subject
from stimuli.spec import Component

TARGET = 3
EVERY = 4
"""After so many full batches of a kind one runs bare."""


class Stopwatch:
    """Seconds by the clock and of this process's processors, the device waited for."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.wall_s = self.cpu_s = 0.0

    def __enter__(self) -> Stopwatch:
        self._wait()
        self._started = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._wait()
        wall, cpu = self._started
        self.wall_s, self.cpu_s = time.perf_counter() - wall, time.process_time() - cpu

    def _wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


class Paced(Network):
    """A planner's network that now and then runs a full batch bare, on a clock of its own.

    So the bound is measured on the same machine in the same minutes, under the same load.
    """

    def begin(self) -> None:
        self.bill = Bill(clock=time.perf_counter)
        self.forward_s: list[tuple[float, float]] = []
        self.both_s: list[tuple[float, float]] = []
        self.paused = np.zeros(2)
        self._seen = {True: 0, False: 0}

    def logits(self, copies: Tensor) -> Tensor:
        self._pace(copies, False)
        return super().logits(copies)

    def gradients(self, copies: Tensor, wanted: Sequence[ExplainedNumber]) -> Tensor:
        self._pace(copies, True)
        return super().gradients(copies, wanted)

    def _pace(self, copies: Tensor, is_backward: bool) -> None:
        if len(copies) != self.rows:
            return
        self._seen[is_backward] += 1
        if self._seen[is_backward] % EVERY != 1:
            return
        with Stopwatch(self.device.type) as whole:
            x = copies.contiguous(memory_format=torch.channels_last).clone()
            with Stopwatch(self.device.type) as watch:
                self._bare(x, is_backward)
            spent = (watch.wall_s / len(x), watch.cpu_s / len(x))
            (self.both_s if is_backward else self.forward_s).append(spent)
        self.paused += whole.wall_s, whole.cpu_s

    def _bare(self, x: Tensor, is_backward: bool) -> None:
        if not is_backward:
            with torch.inference_mode():
                self.module(x)
            return
        with torch.enable_grad():
            x.requires_grad_()
            torch.autograd.grad(self.module(x)[:, TARGET].sum(), [x])


class Some:
    """The first `count` of the copies that a method asks for."""

    def __init__(self, variants: Any, count: int) -> None:
        self.variants, self.count = variants, count

    def __len__(self) -> int:
        return self.count

    def identity(self, place: int) -> Hashable:
        identity: Hashable = self.variants.identity(place)
        return identity

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        made: Tensor = self.variants.make(image, places)
        return made


class InPart:
    """A method whose asks for more than `MANY` scores are cut to `MOST`, answers repeated for the rest."""

    def __init__(self) -> None:
        self.is_cut = False

    def steps(self, method: Steps) -> Steps:
        answer: Any = None
        while True:
            try:
                ask_or_asks = method.send(answer)
            except StopIteration as end:
                return end.value
            asks = ask_or_asks if isinstance(ask_or_asks, tuple) else (ask_or_asks,)
            got = yield tuple(self._cut(ask) for ask in asks)
            answers = tuple(_whole(ask, part) for ask, part in zip(asks, got, strict=True))
            answer = answers if isinstance(ask_or_asks, tuple) else answers[0]

    def _cut(self, ask: Ask) -> Ask:
        if not isinstance(ask, Scores | LayerScores) or len(ask.variants) <= MANY:
            return ask
        self.is_cut = True
        return replace(ask, variants=Some(ask.variants, MOST))


def _whole(ask: Ask, answer: Any) -> Any:
    if not isinstance(ask, Scores | LayerScores):
        return answer
    return np.resize(answer, (len(ask.variants), *answer.shape[1:]))


class Planner:
    """Ours: the methods of a request in one drive."""

    def __init__(self, name: str, device: str, rows: int) -> None:
        self.predictor = predictor(name)
        self.network = Paced(self.predictor, device, rows=rows or None)
        self.images = pictures(8).to(device)
        self.device = device
        self.once_s = 0.0
        self.network.begin()
        for _ in range(2):
            batch = self.images[:1].expand(self.network.rows, -1, -1, -1)
            self.network.logits(batch)
            self.network.gradients(batch, [ExplainedNumber(TARGET)] * len(batch))

    def cost(self, request: dict[str, Any]) -> Cost:
        components = [Component(each["name"], each["params"]) for each in request["methods"]]
        methods = [open_explainer(component) for component in components]
        for method in methods:
            method.require(self.predictor, "")
        jobs: list[Job] = []
        part = InPart()
        for number in range(request["images"]):
            subject = Subject(TARGET, f"picture {number}", 5, "", self.images[number])
            for method in methods:
                jobs.append(Job(len(jobs), subject, self._start(method, subject, part)))
        if any(component.name in BEHIND_A_LAYER for component in components):
            with Stopwatch(self.device) as watch:
                self.network.tail(self.predictor.layer)
            self.once_s += watch.wall_s
        self.network.begin()
        with Stopwatch(self.device) as watch:
            done = list(drive(jobs, self.network))
        if failed := [each.error for each in done if each.error is not None]:
            raise failed[0]
        return replace(self._bill(watch), is_cut=part.is_cut)

    def _start(self, method: Any, subject: Subject, part: InPart) -> Callable[[], Steps]:
        return lambda: part.steps(method.explain(self.predictor, subject))

    def _bill(self, watch: Stopwatch) -> Cost:
        network, counts = self.network, self.network.bill
        wall, cpu = network.paused
        forward = np.mean(network.forward_s or [(0, 0)], axis=0)
        both = np.mean(network.both_s or [(0, 0)], axis=0)
        return Cost(
            wall_s=watch.wall_s - wall,
            cpu_s=watch.cpu_s - cpu,
            forwards=counts.forwards,
            backwards=counts.backwards,
            tails=counts.tails,
            network_s=counts.network_s,
            bare_forward_s=float(forward[0]),
            bare_forward_cpu_s=float(forward[1]),
            bare_both_s=float(both[0]),
            bare_both_cpu_s=float(both[1]),
            rows=network.rows,
            once_s=self.once_s,
        )


class Library:
    """Theirs: one method on one picture after the other."""

    def __init__(self, name: str, device: str, rows: int) -> None:
        self.on: Setting = setting(predictor(name), rows, device)
        self.images = pictures(8).to(device)
        self.device = device
        for _ in range(2):
            LIBRARIES["saliency"](self.on, self.images[0], TARGET)

    def cost(self, request: dict[str, Any]) -> Cost:
        run = LIBRARIES[request["methods"][0]["name"]]
        self.on.forwards = self.on.backwards = 0
        shares = []
        with Stopwatch(self.device) as watch:
            for image in self.images[: request["images"]]:
                shares.append(run(self.on, image, TARGET))
        return Cost(
            wall_s=watch.wall_s,
            cpu_s=watch.cpu_s,
            forwards=self.on.forwards,
            backwards=self.on.backwards,
            share=float(np.mean(shares)),
        )


def peak_mb(device: str) -> float:
    """The most memory so far: of the process, or that torch has taken on the device."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def main() -> None:
    side, name, device, rows = sys.argv[1:]
    # Libraries print; the replies keep the real output for themselves.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kinds: dict[str, Callable[[str, str, int], Planner | Library]] = {"library": Library, "planner": Planner}
    at_work = kinds[side](name, device, int(rows))
    start = Cost(peak_mb=peak_mb(device))
    if isinstance(at_work, Planner):
        start.rows = at_work.network.rows
        layout = at_work.predictor.layouts[at_work.predictor.layer]
        start.channels, start.is_pooled = layout.channels, layout.kind == "maps"
    print(start.encode(), file=replies, flush=True)
    for line in sys.stdin:
        try:
            cost = at_work.cost(json.loads(line))
        except StimulusError as error:
            cost = Cost(error=str(error))
        except Exception as error:
            if isinstance(at_work, Planner):
                raise
            cost = Cost(error=f"{type(error).__name__}: {error}")  # some libraries cannot do some networks
        cost.peak_mb = peak_mb(device)
        print(cost.encode(), file=replies, flush=True)


if __name__ == "__main__":
    main()
