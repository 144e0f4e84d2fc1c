"""The one place that says which pages a session meets, and in which order."""

from __future__ import annotations

from experiments.gates import get_gate
from experiments.gates.base import PLACES, Arm, Stop
from experiments.models import Study
from experiments.paradigms import get_paradigm


def gate_plan(study: Study, arm: Arm | None) -> tuple[Stop, ...]:
    """Every page that a session of this study meets, in order: the paradigm's gates, as far as the study has
    anything for them. `arm` is what the claimed slot fixes, None before the claim."""
    gates = get_paradigm(study.paradigm).gates
    stops = [stop for name in gates for stop in get_gate(name).stops(study, arm)]
    return tuple(sorted(stops, key=lambda stop: PLACES.index(stop.place)))
