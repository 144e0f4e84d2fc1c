"""Faults on demand, drawn from a seed: the same run meets the same faults."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Literal

from experiments.design.rng import Streams

Fault = Literal["", "429", "5xx_before", "5xx_after", "lost_answer"]
KINDS: tuple[Fault, ...] = ("429", "5xx_before", "5xx_after", "lost_answer")


class Faults:
    """Which call fails, and how: `429` and `5xx_before` have no effect; `5xx_after` and `lost_answer` do.

    A share (0-1) of calls fails at random, kinds equally likely; `next` forces the kinds of the coming calls,
    for any share; `down` fails every call as an unreachable platform would.
    """

    def __init__(self, seed: int = 0, share: float = 0.0, kinds: tuple[Fault, ...] = KINDS) -> None:
        self.rng = Streams(seed)("faults")
        self.share, self.kinds = share, kinds
        self.down = False
        self.forced: list[Fault] = []
        self.met: Counter[str] = Counter()
        self._lock = threading.Lock()

    def draw(self) -> Fault:
        """The fault of this call; empty: none."""
        with self._lock:
            if self.down:
                fault: Fault = "5xx_before"
            elif self.forced:
                fault = self.forced.pop(0)
            elif self.rng.random() < self.share:
                fault = self.kinds[int(self.rng.integers(len(self.kinds)))]
            else:
                fault = ""
            if fault:
                self.met[fault] += 1
            return fault
