"""The three numbers that a study may explain, by torch alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from stimuli.planner.values import ExplainedNumber, Operator, Subject

OPERATORS: tuple[Operator, ...] = ("logit", "margin", "probability")
OTHER = 3
"""The label that margins are taken against; targets are 0 to 2."""


def asked(subjects: Sequence[Subject], operator: Operator, against: int = OTHER) -> list[Subject]:
    other = against if operator == "margin" else None
    return [replace(subject, operator=operator, against=other) for subject in subjects]


def number_of(logits: Tensor, subject: ExplainedNumber) -> Tensor:
    """By torch alone: (...) of logits (..., K)."""
    if subject.operator == "probability":
        return logits.softmax(-1)[..., subject.target]
    if subject.operator == "margin":
        return logits[..., subject.target] - logits[..., subject.against]
    return logits[..., subject.target]
