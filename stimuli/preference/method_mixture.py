"""The mixture: of each image the method that people would rate highest, by prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stimuli.errors import BadRatings

TIE = 1e-9
"""Predicted ratings that differ by less are tied."""


@dataclass(frozen=True, slots=True)
class Mixture:
    """`wins` by method: images that it wins, a tie shared equally among the tied, so that they sum to the
    images. `tied` images have several best; of `coinciding` of them all best pictures are the same."""

    wins: Mapping[str, float]
    images: int
    tied: int
    coinciding: int
    chosen: Mapping[str, tuple[str, ...]]


def mixture(
    images: Sequence[str], methods: Sequence[str], predicted: Sequence[float], digests: Sequence[str]
) -> Mixture:
    """Of rows with image, method, predicted rating and the digest of the picture. `chosen` holds by image its
    best methods. Raises BadRatings unless every image has the same methods, each once.
    """
    by: dict[str, dict[str, tuple[float, str]]] = {}
    for image, method, score, digest in zip(images, methods, predicted, digests, strict=True):
        by.setdefault(image, {})[method] = (float(score), digest)
    known = list(dict.fromkeys(methods))
    lacking = [image for image, rows in by.items() if rows.keys() != set(known)]
    if lacking or len(known) < 2 or len(images) != len(by) * len(known):
        raise BadRatings(
            f"{len(lacking)} of {len(by)} images lack a method or have one twice, and there are {len(known)} "
            "methods: a choice needs all of at least 2 methods for every image"
        )
    wins, tied, coinciding = dict.fromkeys(known, 0.0), 0, 0
    chosen: dict[str, tuple[str, ...]] = {}
    for image, rows in by.items():
        most = max(score for score, _ in rows.values())
        best = tuple(method for method in known if rows[method][0] >= most - TIE)
        chosen[image] = best
        for method in best:
            wins[method] += 1 / len(best)
        if len(best) > 1:
            tied += 1
            coinciding += len({rows[method][1] for method in best}) == 1
    return Mixture(wins, len(by), tied, coinciding, chosen)


def means(made: Mixture, values: Mapping[tuple[str, str], float]) -> tuple[float, float, int]:
    """Of a metric by (image, method): the mean of the chosen, tied ones averaged, the mean of all methods,
    and the images that have all values and count. Raises BadRatings if none has."""
    whole = [image for image in made.chosen if all((image, method) in values for method in made.wins)]
    if not whole:
        raise BadRatings("no image has the metric for all methods: measure it in [[metrics]] and build again")
    chosen = [np.mean([values[image, method] for method in made.chosen[image]]) for image in whole]
    every = [np.mean([values[image, method] for method in made.wins]) for image in whole]
    return float(np.mean(chosen)), float(np.mean(every)), len(whole)
