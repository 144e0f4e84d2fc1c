"""The size of a proof: short in `make test`, full in `make prove` (setup/prove.py)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scale:
    """`seed` is added to the seeds of the proof, so that another run draws anew."""

    is_full: bool
    seed: int = 0

    def of(self, short: int, full: int) -> int:
        return full if self.is_full else short
