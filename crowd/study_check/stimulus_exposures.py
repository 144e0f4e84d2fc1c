"""How often each stimulus is shown, counted on the plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiments.paradigms.base import Plan

Stimulus = tuple[str, str]
"""(item key, condition name)."""


@dataclass(frozen=True, slots=True)
class Exposures:
    """Planned showings per (item, condition), without checks; stimuli that are never shown are absent.

    `copies` are those that stand beside a trial's own stimulus under a name of their own.
    """

    train: Counter[Stimulus]
    test: Counter[Stimulus]
    copies: Counter[Stimulus] = field(default_factory=Counter)


def exposures(plans: Iterable[Plan]) -> Exposures:
    """Counts the training and test trials of every (item, condition) over all plans."""
    train: Counter[Stimulus] = Counter()
    test: Counter[Stimulus] = Counter()
    copies: Counter[Stimulus] = Counter()
    for plan in plans:
        for trial in plan.trials:
            if trial.item is not None and not trial.check:
                counts = train if trial.phase == "train" else test
                counts[trial.item, trial.condition] += 1
                copies.update(trial.others.values())
    return Exposures(train, test, copies)
