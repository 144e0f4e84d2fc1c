"""Maps that a method or a metric needs beside its own: of another item, another class, another seed, or a
network whose weights are permuted.

A method or metric names them as whole specs by `lenders(spec)`. They are made first, by the same machinery
and under their own keys, so that what a study renders anyway is lent and not made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stimuli.spec import StimulusSpec

Lenders = Mapping[str, StimulusSpec]
MARK = "~"
"""Stands in the key of a predictor before each permutation of its weights."""


def lenders_of(asking: Any, spec: StimulusSpec) -> Lenders | None:
    """What `asking`, an explainer or a metric, wants lent for the stimulus `spec`, by its own names; None if
    it never asks. NotApplicable if there is no lender.
    """
    ask: Callable[[StimulusSpec], Lenders] | None = getattr(asking, "lenders", None)
    return None if ask is None else ask(spec)


def randomised_key(predictor_key: str, layers: int, seed: int) -> str:
    """The key of the stored predictor with its weights permuted, as `predictors.randomised` does it."""
    return f"{predictor_key}{MARK}{layers}.{seed}"


def permutations_in(predictor_key: str) -> tuple[str, Iterator[tuple[int, int]]]:
    """The key of the stored predictor, and the (layers, seed) of each permutation of it in their order."""
    stored, *changes = predictor_key.split(MARK)
    pairs = (change.split(".") for change in changes)
    return stored, ((int(layers), int(seed)) for layers, seed in pairs)
