"""Study definitions without files: one dict of the smallest whole study, and changes to its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.definition.study import StudyDefinition

SMALLEST: Mapping[str, Any] = {
    "slug": "smallest",
    "title": "The smallest study",
    "paradigm": "meta_predictor",
    "seed": 5,
    "stimuli": {
        "dataset": {"name": "folder", "path": "images"},
        "predictor": {"name": "toy", "input_px": 32},
        "classes": ["husky", "wolf"],
    },
    "conditions": [
        {"name": "plain", "role": "baseline"},
        {"name": "marked", "role": "method", "explainer": {"name": "saliency"}},
    ],
    "ethics": {"contact": "lab@example.org"},
    "reward": {"amount_cents": 100, "expected_minutes": 5},
}
TEXTS = {"consent": "c", "instructions": "i", "debrief": "d"}


def definition(stimuli: Mapping[str, Any] | None = None, **tables: Any) -> StudyDefinition:
    """The smallest study with these keys of [stimuli] changed and these tables replaced; a value None
    leaves a key of [stimuli] out."""
    changed = {**SMALLEST["stimuli"], **(stimuli or {})}
    given = {key: value for key, value in changed.items() if value is not None}
    return StudyDefinition.model_validate({**SMALLEST, "texts": TEXTS, "stimuli": given, **tables})


def several(datasets: Sequence[str], predictors: Sequence[str]) -> dict[str, Any]:
    """The keys of [stimuli] of a study with these datasets and models."""
    return {
        "dataset": None,
        "predictor": None,
        "datasets": {name: {"name": "folder", "path": name} for name in datasets},
        "predictors": {name: {"name": "toy", "input_px": 32} for name in predictors},
    }


def answers(*values: str, **classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Rows of [[answers]] with these values, and the classes that they stand for."""
    return [{"value": v, "text": v.capitalize(), "classes": list(classes.get(v, ()))} for v in values]
