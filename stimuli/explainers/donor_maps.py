"""Maps that a method or a metric needs beside its own: of another item, another class, another seed, a
picture with a little noise, or a network whose weights are permuted.

A method or metric names them as whole specs by `lenders(spec)`. They are made first, by the same machinery
and under their own keys, so that what a study renders anyway is lent and not made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.planner.values import counted_generator
from stimuli.spec import StimulusSpec

Lenders = Mapping[str, StimulusSpec]
MARK = "~"
"""Stands in the key of a predictor before each permutation of its weights, and in that of a picture before
its noise."""


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


def noisy_key(image_key: str, radius: float, draw: int) -> str:
    """The key of the stored picture with noise up to `radius`, as `noise_in` reads it."""
    return f"{image_key}{MARK}{draw}.{radius!r}"


def noise_in(image_key: str) -> tuple[str, tuple[int, float] | None]:
    """The key of the stored picture, and the (draw, radius) of its noise, if it has any."""
    stored, mark, noise = image_key.partition(MARK)
    draw, _, radius = noise.partition(".")
    return stored, (int(draw), float(radius)) if mark else None


def noise_of(stored: str, seed: int, draw: int, radius: float, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Uniform noise from -radius to radius, float32 of `shape`: a function of the arguments alone."""
    draws = counted_generator(f"uniform noise\x1f{stored}\x1f{seed}", draw)
    return draws.uniform(-radius, radius, shape).astype(np.float32)
