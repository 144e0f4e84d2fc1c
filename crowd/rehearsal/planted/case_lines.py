"""The planted cases as a report tells them: what was frozen, one run, how often other seeds find them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from crowd.rehearsal.planted import load_plant, run
from crowd.rehearsal.planted.detection_counts import counted_of
from experiments.errors import StudyError


def shipped_run() -> dict[str, Any]:
    """The run of the shipped seed; `why_not` if what would be run is not what was frozen."""
    try:
        plant = load_plant()
    except StudyError as error:
        return {"why_not": f"{error}."}
    made = run(plant, plant.seed)
    counted = counted_of(plant.digest)
    cases = {
        each.first: {
            "difference": each.difference,
            "low": each.interval.low,
            "high": each.interval.high,
            "p": each.p,
        }
        for each in made.test.comparisons
    }
    return {
        **asdict(plant),
        "scores": {name: list(values) for name, values in made.scores.items()},
        "cases": cases,
        "counted": asdict(counted) if counted else None,
    }
