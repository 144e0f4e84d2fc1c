"""The trial kinds by name: a visible table, each imported on first use."""

from __future__ import annotations

from experiments.kinds.base import TrialKind
from stimuli.registry import Table

KINDS: Table[type[TrialKind]] = Table(
    "trial kind",
    {
        "learn": "experiments.kinds.learn:Learn",
        "predict": "experiments.kinds.predict:Predict",
        "review": "experiments.kinds.review:Review",
        "solve": "experiments.kinds.solve:Solve",
        "rate": "experiments.kinds.rate:Rate",
        "decide": "experiments.kinds.decide:Decide",
        "instructed": "experiments.kinds.instructed:InstructedCheck",
    },
)


def get_kind(name: str) -> TrialKind:
    """The kind of that name; UnknownName lists the known ones."""
    return KINDS.load(name)()
