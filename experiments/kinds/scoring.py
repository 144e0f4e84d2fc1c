"""An answer held against what the plan calls right, against a label, and against what a check asks for."""

from __future__ import annotations

from experiments.kinds import get_kind
from experiments.kinds.base import TrialView, Value


def score(trial: TrialView, value: Value) -> float | None:
    """1.0 if the answer is what the plan calls right, 0.0 if not; None if nothing is, and for checks."""
    if trial.check or trial.right is None:
        return None
    return float(get_kind(trial.kind).choice(value) == trial.right)


def agreement(trial: TrialView, value: Value, label: str | None) -> float | None:
    """Whether a scored answer names `label` (what the model says, or the truth): 1.0 or 0.0.

    None for training and checks, if there is no such label, and for kinds that ask for no label.
    """
    choice = get_kind(trial.kind).choice(value)
    if trial.check or trial.phase == "train" or choice is None or label is None:
        return None
    return float(choice == label)


def is_as_asked(trial: TrialView, value: Value) -> bool | None:
    """Whether a check was answered as it asks; None for other trials. Screening and export use this rule."""
    return follows(trial.kind, trial.expected, value) if trial.check else None


def follows(kind: str, expected: str, value: Value) -> bool:
    """Whether every answer that a value of this kind gives is the expected one, and it gives some."""
    given = get_kind(kind).answers(value)
    return bool(given) and all(answer == expected for answer in given)
