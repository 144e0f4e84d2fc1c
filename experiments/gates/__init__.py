"""The gates by name, and the one place that says which of them a session meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.registry import Table

if TYPE_CHECKING:
    from experiments.gates.base import Arm, Gate, Stop
    from experiments.models import Study

GATES: Table[type[Gate]] = Table(
    "gate",
    {
        "device": "experiments.gates.device:Device",
        "consent": "experiments.gates.consent:Consent",
        "plates": "experiments.gates.plates:Plates",
        "questions": "experiments.gates.questions:Questions",
        "instructions": "experiments.gates.instructions:Instructions",
        "quiz": "experiments.gates.quiz:Quiz",
        "practice": "experiments.gates.practice:Practice",
    },
)


def get_gate(name: str) -> Gate:
    """The gate of that name; UnknownName lists the known ones."""
    return GATES.load(name)()


def gate_plan(study: Study, arm: Arm | None) -> tuple[Stop, ...]:
    """Every page that a session of this study meets, in order: the paradigm's gates, as far as the study has
    anything for them. `arm` is what the claimed slot fixes, None before the claim."""
    from experiments.gates.base import PLACES
    from experiments.paradigms import get_paradigm

    gates = get_paradigm(study.paradigm).gates
    stops = [stop for name in gates for stop in get_gate(name).stops(study, arm)]
    return tuple(sorted(stops, key=lambda stop: PLACES.index(stop.place)))
