"""The gates by name: a visible table, each imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.registry import Table

if TYPE_CHECKING:
    from experiments.gates.base import GateKind

GATES: Table[type[GateKind]] = Table(
    "gate",
    {
        "device": "experiments.gates.device:Device",
        "consent": "experiments.gates.consent:Consent",
        "plates": "experiments.gates.plates:Plates",
        "questions": "experiments.gates.questions:Questions",
        "instructions": "experiments.gates.instructions:Instructions",
        "quiz": "experiments.gates.quiz:Quiz",
        "practice": "experiments.gates.practice:Practice",
        "training": "experiments.gates.training:Training",
        "screen": "experiments.gates.screen:Screen",
    },
)


def get_gate(name: str) -> GateKind:
    """The gate of that name; UnknownName lists the known ones."""
    return GATES.load(name)()
