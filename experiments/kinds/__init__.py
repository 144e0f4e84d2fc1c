"""The trial kinds by name: a visible table, each imported on first use."""

from __future__ import annotations

from experiments.kinds.base import TrialKind, TrialView, Value
from stimuli.registry import Table

__all__ = ["KINDS", "agreement", "follows", "get_kind", "is_as_asked", "score"]

KINDS: Table[type[TrialKind]] = Table(
    "trial kind",
    {
        "learn": "experiments.kinds.learn:Learn",
        "predict": "experiments.kinds.predict:Predict",
        "review": "experiments.kinds.review:Review",
        "solve": "experiments.kinds.solve:Solve",
        "rate": "experiments.kinds.rate:Rate",
        "instructed": "experiments.kinds.instructed:Instructed",
    },
)


def get_kind(name: str) -> TrialKind:
    """The kind of that name; UnknownName lists the known ones."""
    return KINDS.load(name)()


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
