"""How often each stimulus is shown, counted on the plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from experiments.paradigms.base import Plan

Stimulus = tuple[str, str]
"""(item key, condition name)."""


@dataclass(frozen=True, slots=True)
class Exposures:
    """Planned showings per (item, condition), without checks; stimuli that are never shown are absent."""

    train: Counter[Stimulus]
    test: Counter[Stimulus]

    def test_range(self) -> tuple[int, int]:
        """The fewest and the most test trials that any tested stimulus gets; (0, 0) without tests."""
        counts = self.test.values()
        return min(counts, default=0), max(counts, default=0)


def exposures(plans: Iterable[Plan]) -> Exposures:
    """Counts the training and test trials of every (item, condition) over all plans."""
    train: Counter[Stimulus] = Counter()
    test: Counter[Stimulus] = Counter()
    for plan in plans:
        for trial in plan.trials:
            if trial.item is not None and not trial.check:
                counts = train if trial.phase == "train" else test
                for shown in ((trial.item, trial.condition), *trial.others.values()):
                    counts[shown] += 1
    return Exposures(train, test)
