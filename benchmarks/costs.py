"""What a measurement counts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True, slots=True)
class Passes:
    """Rows through the network: forwards, backwards (which went forwards too), and from a layer on."""

    forwards: int = 0
    backwards: int = 0
    tails: int = 0

    def __add__(self, other: Passes) -> Passes:
        return Passes(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    def __mul__(self, pictures: int) -> Passes:
        return Passes(*(getattr(self, field.name) * pictures for field in fields(self)))

    def __str__(self) -> str:
        tails = f" + {self.tails}T" if self.tails else ""
        return f"{self.forwards}F {self.backwards}B{tails}"

    @property
    def rows(self) -> int:
        return self.forwards + self.tails


@dataclass
class Cost:
    """What a run cost: seconds by the clock and of the processor (bare passes left out) and inside the
    network; rows forwards, backwards and through tails; the share of the whole work that a library did, and
    whether ours was cut.

    Per row of a full batch the bare seconds of a forward pass and of a forward and backward pass, by the
    clock and of the processor; 0 = not run. `rows` are those of a full batch, `peak_mb` the most memory of
    the process so far. `once_s` are the seconds of what a process does once per network, not counted in the
    others. `channels` and `is_pooled` describe the network's layer. `error` says why there is
    nothing.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    network_s: float = 0.0
    forwards: int = 0
    backwards: int = 0
    tails: int = 0
    share: float = 1.0
    is_cut: bool = False
    bare_forward_s: float = 0.0
    bare_forward_cpu_s: float = 0.0
    bare_both_s: float = 0.0
    bare_both_cpu_s: float = 0.0
    rows: int = 0
    peak_mb: float = 0.0
    once_s: float = 0.0
    channels: int = 0
    is_pooled: bool = False
    error: str = ""

    @property
    def passes(self) -> Passes:
        return Passes(self.forwards, self.backwards, self.tails)

    @property
    def host(self) -> float:
        """The share of the time that was not spent inside the network, 0-1."""
        return 1 - self.network_s / self.wall_s if self.wall_s else 0.0

    def bound(self, least: Passes) -> tuple[float, float]:
        """Seconds, by the clock and of the processor, that bare passes would take; 0 if none was run."""
        only = least.forwards - least.backwards
        return (
            only * self.bare_forward_s + least.backwards * self.bare_both_s,
            only * self.bare_forward_cpu_s + least.backwards * self.bare_both_cpu_s,
        )

    def encode(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, line: str) -> Cost:
        return cls(**json.loads(line))
