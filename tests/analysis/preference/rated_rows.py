"""Rated explanations made by hand, for splits and scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.preference.rated_explanations import RatedExplanations
from stimuli.preference.embedding import ShownExplanation


def rated(
    images: int = 20,
    methods: int = 10,
    *,
    shown: Callable[[int, int], str] = lambda image, method: f"{image} {method}",
    questions: int = 1,
    raters: int = 5,
    seed: int = 0,
    **others: Any,
) -> RatedExplanations:
    """Every image by every method; `shown` is what a person sees, by image and method; random ratings."""
    rng = np.random.default_rng(seed)
    pairs = [(image, method) for image in range(images) for method in range(methods)]
    names = tuple(f"m{method}" for _, method in pairs)
    told = {
        "subjects": tuple(ShownExplanation(text=shown(*pair)) for pair in pairs),
        "images": tuple(f"i{image}" for image, _ in pairs),
        "methods": names,
        "makers": names,
        "datasets": tuple("ab"[image % 2] for image, _ in pairs),
        "questions": tuple(f"Q{place + 1}" for place in range(questions)),
        "ratings": rng.integers(1, 6, (len(pairs), questions, raters)).astype(float),
        "plain": None,
        "origin": "made by hand",
    }
    return RatedExplanations(**{**told, **others})
