"""The perturbation that a rater compares an explanation under: light ones that keep the prediction (PASTA's
question 5), strong ones that spoil it (question 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import BadSpec
from stimuli.perturbing.perturbations import LARGEST_MAGNITUDE, PERTURBATIONS, perturb_picture
from stimuli.planner.values import counted_generator
from stimuli.types import Pixels

Rule = Literal["any", "drawn"]
Aim = Literal["largest_light", "smallest_strong"]
Predicts = Callable[[NDArray[np.uint8]], Sequence[int] | NDArray[np.integer[Any]]]
"""From pictures uint8 (n, H, W, 3) to the index of the predicted label of each, (n,); below 0 if the answer
is none that people are asked about, so that the picture serves for nothing."""

RULES: tuple[Rule, ...] = ("any", "drawn")
LIGHT = (1.0, 2.0, 3.0, 4.0, 5.0)
STRONG = (6.0, 7.0, 8.0, 9.0, 10.0)


@dataclass(frozen=True, slots=True)
class Search:
    """Which perturbations and magnitudes are tried, and in what order.

    `light` and `strong` are magnitudes in 0-10, rising. The perturbations `names` are tried in an order drawn
    per picture. Rule "any": the extreme magnitude over all perturbations, the first of the drawn order among
    equals, so that perturbations vary from picture to picture. Rule "drawn": the extreme magnitude of the
    first perturbation in the drawn order that has one at all.
    """

    names: tuple[str, ...] = tuple(PERTURBATIONS)
    light: tuple[float, ...] = LIGHT
    strong: tuple[float, ...] = STRONG
    rule: Rule = "any"

    def __post_init__(self) -> None:
        if unknown := [name for name in self.names if name not in PERTURBATIONS]:
            raise BadSpec(f"there is no perturbation {unknown[0]!r}: known are {', '.join(PERTURBATIONS)}")
        if not self.names or len(set(self.names)) != len(self.names):
            raise BadSpec(f"names = {list(self.names)}: name at least one perturbation, and none twice")
        for word, values in (("light", self.light), ("strong", self.strong)):
            rises = all(a < b for a, b in zip(values, values[1:], strict=False))
            if not values or not rises or not 0 < values[0] <= values[-1] <= LARGEST_MAGNITUDE:
                raise BadSpec(f"{word} = {list(values)}: magnitudes must rise, above 0 and at most 10")
        if self.rule not in RULES:
            raise BadSpec(f"search rule {self.rule!r} is not known: use one of {', '.join(RULES)}")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: `perturbation` at `magnitude` makes `view`, uint8 (H, W, 3), which the
    predictor calls `label`; the picture itself it calls `original`. If there is none, `view` is None and
    `reason` says why. `tried` counts the pictures that were predicted, `aim` and `rule` what was looked for.
    """

    aim: Aim
    rule: Rule
    original: int
    tried: int
    view: Pixels | None = None
    perturbation: str = ""
    magnitude: float = 0.0
    label: int = -1
    reason: str = ""


def largest_light(
    view: Pixels,
    predicts: Predicts,
    *,
    key: str,
    seed: int,
    search: Search | None = None,
    original: int | None = None,
) -> SearchResult:
    """The largest light magnitude that keeps the prediction, and its perturbation (question 5).

    `view` uint8 (H, W, 3) is the picture; `original` the index of its predicted label, None to ask for it.
    `key` and `seed` decide all draws. A perturbation that leaves every pixel as it was does not count.
    """
    return _search_copies("largest_light", view, predicts, key, seed, search or Search(), original)


def smallest_strong(
    view: Pixels,
    predicts: Predicts,
    *,
    key: str,
    seed: int,
    search: Search | None = None,
    original: int | None = None,
) -> SearchResult:
    """The smallest strong magnitude that changes the prediction, and its perturbation (question 6)."""
    return _search_copies("smallest_strong", view, predicts, key, seed, search or Search(), original)


def drawn_order(names: Sequence[str], key: str, seed: int) -> tuple[str, ...]:
    """The order in which the perturbations are tried for a picture."""
    draws = counted_generator(f"perturbation order\x1f{key}\x1f{seed}")
    return tuple(names[place] for place in draws.permutation(len(names)))


def _search_copies(
    aim: Aim, view: Pixels, predicts: Predicts, key: str, seed: int, search: Search, known: int | None
) -> SearchResult:
    original = _labels(predicts, [view])[0] if known is None else known
    wants_kept = aim == "largest_light"
    tried = 0
    for round_ in _rounds(aim, key, seed, search):
        views = [perturb_picture(view, name, magnitude, key=key, seed=seed) for name, magnitude in round_]
        changed = [place for place, other in enumerate(views) if not np.array_equal(other, view)]
        labels = _labels(predicts, [views[place] for place in changed])
        tried += len(changed)
        for place, label in zip(changed, labels, strict=True):
            if label >= 0 and (label == original) == wants_kept:
                name, magnitude = round_[place]
                return SearchResult(aim, search.rule, original, tried, views[place], name, magnitude, label)
    magnitudes = search.light if wants_kept else search.strong
    reason = (
        f"none of {len(search.names)} perturbations at magnitudes {magnitudes[0]:g} to {magnitudes[-1]:g} "
        f"{'keeps' if wants_kept else 'changes'} the prediction"
    )
    return SearchResult(aim, search.rule, original, tried, reason=reason)


def _rounds(aim: Aim, key: str, seed: int, search: Search) -> Iterator[list[tuple[str, float]]]:
    """What is predicted together, best first within and between rounds."""
    order = drawn_order(search.names, key, seed)
    magnitudes = search.light[::-1] if aim == "largest_light" else search.strong
    if search.rule == "any":
        for magnitude in magnitudes:
            yield [(name, magnitude) for name in order]
    else:
        for name in order:
            yield [(name, magnitude) for magnitude in magnitudes]


def _labels(predicts: Predicts, views: Sequence[Pixels]) -> list[int]:
    if not views:
        return []
    predicted = np.asarray(predicts(np.stack(views)))
    if predicted.shape != (len(views),):
        raise BadSpec(
            f"predicts returned {predicted.shape} for {len(views)} views: one label index per view is needed"
        )
    return [int(label) for label in predicted]
