"""The paradigms by name: a visible table, each imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stimuli.registry import Table

if TYPE_CHECKING:
    from experiments.definition.study import StudyDefinition
    from experiments.paradigms.base import Paradigm

PARADIGMS: Table[type[Paradigm]] = Table(
    "paradigm",
    {
        "meta_predictor": "experiments.paradigms.meta_predictor:MetaPredictor",
        "reverse_turing": "experiments.paradigms.reverse_turing:ReverseTuring",
        "blind_review": "experiments.paradigms.blind_review:BlindReview",
        "rating": "experiments.paradigms.rating:Rating",
        "assisted_decision": "experiments.paradigms.assisted_decision:AssistedDecision",
    },
)


def get_paradigm(name: str) -> Paradigm:
    """The paradigm of that name; UnknownName lists the known ones."""
    return PARADIGMS.load(name)()


def design_of(definition: StudyDefinition) -> Any:
    """The study's `[design]` as its paradigm reads it."""
    return get_paradigm(definition.paradigm).Design.model_validate(definition.design)
