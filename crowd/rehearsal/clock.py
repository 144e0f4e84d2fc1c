"""A simulator's own time: it stands still until it is advanced."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from datetime import datetime, timedelta


class Clock:
    """`now()` is UTC. `advance` moves time and runs, in order, what was scheduled until then.

    `lock` may be shared: a simulator that guards its state with it can never deadlock with its scheduled
    calls, which run while the lock is held.
    """

    def __init__(self, start: datetime) -> None:
        self._start = self._now = start
        self.lock = threading.RLock()
        self._due: list[tuple[datetime, int, Callable[[], object]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        with self.lock:
            return self._now

    def seconds(self) -> float:
        """The time since the start."""
        return (self.now() - self._start).total_seconds()

    def after(self, delay_s: float, act: Callable[[], object]) -> None:
        """Runs `act` after this delay; at once for a delay of 0."""
        with self.lock:
            heapq.heappush(self._due, (self._now + timedelta(seconds=delay_s), next(self._order), act))
        if delay_s <= 0:
            self.advance(0)

    def advance(self, seconds: float) -> None:
        with self.lock:
            end = self._now + timedelta(seconds=seconds)
            while self._due and self._due[0][0] <= end:
                at, _, act = heapq.heappop(self._due)
                self._now = max(self._now, at)
                act()
            self._now = end
