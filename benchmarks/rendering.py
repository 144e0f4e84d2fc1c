"""Rendering: each method through its library, through the planner alone, and all methods in one drive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from benchmarks.costs import Cost, Passes
from benchmarks.methods import FAMILY, METHODS, SIX, Method, least

NETWORKS = {
    "resnet50": "ResNet-50-shaped",
    "vit_b16": "ViT-B/16-shaped",
    "vit_s16": "ViT-S/16-shaped",
}
"""The names of the networks of networks.py in the tables."""
SIX_NAME, FAMILY_NAME = "Colin's six", "CAM and gradient family"
ROOT = Path(__file__).parent.parent
FEW, TAKES = 20, 3
"""Methods of at most so many passes are measured on all pictures, and so often: the quickest take counts,
since the first one holds what is done once only. Others are measured on one picture, once.
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: networks by name, pictures for methods of few passes, methods."""

    networks: Sequence[str]
    images: int = 2
    methods: Sequence[Method] = METHODS


@dataclass(frozen=True, slots=True)
class Row:
    """A method: what its library and the planner alone took for `images` pictures."""

    method: Method
    images: int
    theirs: Cost
    ours: Cost
    needed: Passes
    run: Passes

    @property
    def theirs_s(self) -> float | None:
        """Seconds per picture, of the whole work; None if the library cannot do it."""
        return None if self.theirs.error else self.theirs.wall_s / self.images / self.theirs.share

    @property
    def theirs_cpu_s(self) -> float:
        return 0 if self.theirs.error else self.theirs.cpu_s / self.images / self.theirs.share

    @property
    def ours_s(self) -> float | None:
        """The same of the planner; None if the method cannot explain this network."""
        return None if self.ours.error else self.ours.wall_s / self.images + self.missing_s

    @property
    def missing_s(self) -> float:
        """Seconds per picture inside the network that were left out."""
        return self.ours.network_s / self.images * (self._whole - 1)

    @property
    def missing_cpu_s(self) -> float:
        share = self.ours.network_s / self.ours.wall_s if self.ours.wall_s else 0
        return share * self.ours.cpu_s / self.images * (self._whole - 1)

    @property
    def _whole(self) -> float:
        """How many times the passes that were run the whole would be. Fewer than were asked for are run if
        copies are equal, more if a method also tries something else.
        """
        if not self.ours.is_cut:
            return 1.0
        issued = self.ours.passes.rows / self.images
        more = max(0.0, issued - self.run.rows)
        return (self.needed.rows + more) / (self.run.rows + more)


@dataclass(frozen=True, slots=True)
class Group:
    """Methods in one drive."""

    name: str
    rows: Sequence[Row]
    images: int
    cost: Cost
    needed: Passes
    run: Passes

    @property
    def theirs_s(self) -> float:
        return sum(row.theirs_s or 0 for row in self.rows)

    @property
    def alone_s(self) -> float:
        return sum(row.ours_s or 0 for row in self.rows)

    @property
    def together_s(self) -> float:
        return self.cost.wall_s / self.images + sum(row.missing_s for row in self.rows)

    @property
    def times(self) -> tuple[float, float]:
        """How many times as long the libraries take, by the clock and in processor time."""
        cpu = self.cost.cpu_s / self.images + sum(row.missing_cpu_s for row in self.rows)
        return self.theirs_s / self.together_s, sum(row.theirs_cpu_s for row in self.rows) / cpu

    @property
    def over_bound(self) -> tuple[float, float] | None:
        """How many times the bare passes it took, by the clock and of the processor."""
        least = self.run * self.images
        distinct = min(least.forwards, self.cost.forwards)  # equal masks run once
        wall, cpu = self.cost.bound(Passes(distinct, least.backwards))
        return (self.cost.wall_s / wall, self.cost.cpu_s / cpu) if min(wall, cpu) > 0 else None


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything of one network on one device. Memory in MB: after loading, and at the peak."""

    network: str
    device: str
    batch: int
    rows: Sequence[Row]
    groups: Sequence[Group]
    memory: dict[str, tuple[float, float]] = field(default_factory=dict)


def devices() -> list[tuple[str, str]]:
    """The devices that can be measured: torch's name, and a description."""
    import torch

    choices = [("cpu", f"{torch.get_num_threads()} threads on {os.cpu_count()} cores")]
    if torch.cuda.is_available():
        choices.append(("cuda", torch.cuda.get_device_name()))
    return choices


class Side:
    """A process that measures (sides.py)."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self.process, self.errors = process, errors
        self.start = self.last = self._reply()

    def cost(self, methods: Sequence[Method], images: int) -> Cost:
        """What the methods cost for the first `images` pictures; why not, in `error`."""
        wanted = [{"name": method.name, "params": dict(method.params)} for method in methods]
        assert self.process.stdin is not None
        print(
            json.dumps({"methods": wanted, "images": images}),
            file=self.process.stdin,
            flush=True,
        )
        self.last = self._reply()
        return self.last

    def _reply(self) -> Cost:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise RuntimeError(f"a measuring process ended early:\n{self.errors.read()[-4000:]}")
        return Cost.decode(line)

    @property
    def memory(self) -> tuple[float, float]:
        return self.start.peak_mb, self.last.peak_mb


@contextmanager
def side(kind: str, network: str, device: str, batch: int) -> Iterator[Side]:
    """A measuring process for one side; `batch` rows, 0 = as many as the planner takes."""
    command = [sys.executable, "-m", "benchmarks.sides", kind, network, device, str(batch)]
    env = {**os.environ, "TQDM_DISABLE": "1"}
    if kind == "planner":
        # As crowd/settings.py does; libraries run as they come.
        env = {"OPENBLAS_NUM_THREADS": "1", "MKL_CBWR": "AUTO,STRICT", **env}
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
            env=env,
        ) as process,
    ):
        try:
            yield Side(process, errors)
        finally:
            process.kill()


def measure(network: str, device: str, plan: Plan, say: Callable[[str], None]) -> Measured:
    """One network on one device; `say` is called with the next step. The three processes take turns, so that
    they see the same machine.
    """
    with (
        side("planner", network, device, 0) as alone,
        side("library", network, device, alone.start.rows) as library,
        side("planner", network, device, alone.start.rows) as together,
    ):
        shape = alone.start.channels, alone.start.is_pooled
        rows = []
        for method in plan.methods:
            say(f"{network} on {device}: {method.name}")
            rows.append(_row(method, plan.images, library, alone, shape))
        say(f"{network} on {device}: together")
        offered = [row for row in rows if not row.ours.error]
        groups = [
            _group(name, chosen, together, plan.images, shape)
            for name, names in ((SIX_NAME, SIX), (FAMILY_NAME, FAMILY), ("all", METHODS))
            if len(chosen := [row for row in offered if row.method in names]) > 1
        ]
        memory = {
            "through the libraries": library.memory,
            "planner, one by one": alone.memory,
            "planner, together": together.memory,
        }
        return Measured(network, device, alone.start.rows, rows, groups, memory)


def _row(method: Method, images: int, library: Side, alone: Side, shape: tuple[int, bool]) -> Row:
    needed, run = (least([method], *shape, whole=whole) for whole in (True, False))
    count = 1 if run.rows > FEW else images
    takes = [
        (alone.cost([method], count), library.cost([method], count))
        for _ in range(TAKES if run.rows <= FEW else 1)
    ]
    ours, theirs = (min(costs, key=lambda cost: cost.wall_s) for costs in zip(*takes, strict=True))
    return Row(method, count, theirs, ours, needed, run)


def _group(name: str, rows: Sequence[Row], side: Side, images: int, shape: tuple[int, bool]) -> Group:
    methods = [row.method for row in rows]
    needed, run = (least(methods, *shape, whole=whole) for whole in (True, False))
    count = 1 if run.rows > FEW else images
    takes = [side.cost(methods, count) for _ in range(TAKES if run.rows <= FEW else 1)]
    cost = min(takes, key=lambda cost: cost.wall_s)
    if cost.error:
        raise RuntimeError(f"{name} could not be measured: {cost.error}")
    return Group(name, rows, count, cost, needed, run)
