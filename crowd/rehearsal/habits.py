"""How people behave on a platform: habits, drawn from a seed in declared shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from experiments.design.rng import Streams

Habit = Literal[
    "plain", "previews_first", "returns_midway", "finishes_late", "submits_twice", "comes_back", "wrong_code"
]
"""`plain` takes a place, finishes and enters the code. `previews_first` looks before taking it.
`returns_midway` gives the place back. `finishes_late` runs past the maximum time, then finishes.
`submits_twice` ends the same work twice. `comes_back` returns, then takes another place. `wrong_code` enters
a code that is not the study's."""
HABITS: tuple[Habit, ...] = get_args(Habit)
SHARES: dict[Habit, float] = {
    "previews_first": 0.08,
    "returns_midway": 0.06,
    "finishes_late": 0.04,
    "submits_twice": 0.05,
    "comes_back": 0.04,
    "wrong_code": 0.03,
}
WRONG_CODE = "NOT-THE-CODE"


@dataclass(frozen=True, slots=True)
class Habits:
    """The shares (0-1) of the habits; the remaining people are plain."""

    seed: int = 0
    shares: Mapping[Habit, float] = field(default_factory=lambda: SHARES)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.shares) - set(HABITS))
        if unknown:
            raise ValueError(f"No such habit: {', '.join(unknown)}. Known: {', '.join(HABITS)}.")
        total = sum(self.shares.values())
        if min(self.shares.values(), default=0) < 0 or total > 1 + 1e-9:
            raise ValueError(f"The shares of the habits sum to {total:g}: each is at least 0, all at most 1.")

    def of(self, index: int) -> Habit:
        """The habit of the person who comes `index`-th; the same for the same seed, independent of the other
        people."""
        drawn = float(Streams(self.seed)("habits", index).random())
        for habit, share in self.shares.items():
            if drawn < share:
                return habit
            drawn -= share
        return "plain"

    def leaves_after_share(self, index: int) -> float:
        """How much of the work (0-1) is done when a person with the habit `returns_midway` leaves."""
        return 0.1 + 0.8 * float(Streams(self.seed)("leaving", index).random())
