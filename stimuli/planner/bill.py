"""Counts of what was run: for benchmarks, and to show what sharing saves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

COUNTED = ("forwards", "backwards", "tails", "padded", "calls", "network_s")


@dataclass
class Bill:
    """Rows through the network forwards, backwards, and through its tail only, padding counted apart; calls;
    seconds inside the network, if a `clock` is given.
    """

    forwards: int = 0
    backwards: int = 0
    tails: int = 0
    padded: int = 0
    calls: int = 0
    network_s: float = 0.0
    clock: Callable[[], float] | None = field(default=None, compare=False, repr=False)

    def since(self, before: Bill) -> Bill:
        """What was added after `before` was copied."""
        return Bill(*(getattr(self, name) - getattr(before, name) for name in COUNTED))

    def copy(self) -> Bill:
        return Bill(*(getattr(self, name) for name in COUNTED))

    def now(self) -> float:
        """The clock's time, or 0 without a clock."""
        return self.clock() if self.clock is not None else 0.0
