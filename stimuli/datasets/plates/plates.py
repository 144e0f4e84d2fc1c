"""The dataset `plates`: digits that ordinary eyes read at a glance and some eyes slowly or not at all."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from stimuli.datasets.plates.colours import Line, Pair, task_pair
from stimuli.datasets.plates.digits import Digits, read_digits, typical_first
from stimuli.datasets.plates.drawing import (
    KNOWN_DARKER,
    PaintedPlate,
    Shape,
    draw_mask,
    draw_shape,
    paint,
    render,
)
from stimuli.datasets.plates.packing import PACKINGS, pack_dots
from stimuli.errors import BadSpec
from stimuli.registry import Params, read_params
from stimuli.spec import Component, canonical_json
from stimuli.types import Item, Mask, Pixels, Split, Use

DRAWING_VERSION = 1
MODEL_SOURCES_MIN = 4
"""Different digits of each label that are left for training."""
MODEL_KNOWN_EVERY = 10
"""Of the plates that train the model, one in so many is a known one, so that it has met such as well."""
CLEAR_SHARE = 0.25
"""Known plates are drawn from this clearest part of the digits of their label."""
KINDS: dict[Use, int] = {"task": 1, "known": 2, "blank": 3, "tuning": 4}
SPLIT_WORDS: dict[Split, int] = {"model": 1, "people": 2}
LAYOUT, SHAPE, COLOURS = 1, 2, 3


class PlatesParams(Params):
    """`count` plates to be asked about and `model_count` for training the model, square, of `size_px`.

    `axis` and `severity` say who reads them slowly. `known`, `blank` and `tuning` plates are for people, over
    and above `count`. `digits` are the labels; `path` a folder with MNIST's files. `jitter` is by how much
    the lightness of a dot differs from the middle at most, in points of L*.
    """

    axis: Line = "red_green"
    severity: Annotated[float, Field(ge=0.1, le=0.9)] = 0.6
    count: Annotated[int, Field(ge=2, le=10_000)] = 120
    model_count: Annotated[int, Field(ge=40, le=20_000)] = 1600
    known: Annotated[int, Field(ge=0, le=1000)] = 20
    blank: Annotated[int, Field(ge=0, le=1000)] = 20
    tuning: Annotated[int, Field(ge=0, le=1000)] = 20
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    size_px: Annotated[int, Field(ge=96, le=960)] = 320
    jitter: Annotated[float, Field(ge=5, le=20)] = 15.0
    digits: tuple[Annotated[int, Field(ge=0, le=9)], ...] = tuple(range(10))
    path: str = ""

    @field_validator("digits")
    @classmethod
    def _several(cls, digits: tuple[int, ...]) -> tuple[int, ...]:
        if len(digits) < 2 or len(set(digits)) < len(digits):
            raise ValueError(f"digits = {list(digits)}: give at least 2 different ones of 0 to 9")
        return tuple(sorted(digits))


@dataclass(frozen=True, slots=True)
class PlatePlan:
    """One plate: `source` is the index of its digit, of a blank one that whose dots are strewn."""

    item: Item
    source: int
    seed: tuple[int, ...]

    def stream(self, name: int) -> np.random.Generator:
        return np.random.default_rng([*self.seed, name])


@dataclass(frozen=True)
class PlatesDataset:
    """Every plate depends on the seed, its digit and its own number alone, and is drawn when asked for."""

    params: PlatesParams
    digits: Digits
    colours: Pair
    plans: dict[str, PlatePlan]

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(map(str, self.params.digits))

    def items(self, split: Split) -> Sequence[Item]:
        return tuple(plan.item for plan in self.plans.values() if plan.item.split == split)

    def pixels(self, key: str) -> Pixels:
        """uint8 (size_px, size_px, 3)."""
        return render(self.painted(key), self.params.size_px)

    def painted(self, key: str) -> PaintedPlate:
        """The dots of a plate. Which of the two colours is the figure's is drawn for each."""
        plan, shape = self._plan(key), self._shape(key)
        rng = plan.stream(LAYOUT)
        dots = pack_dots(self.params.seed, int(rng.integers(PACKINGS))).turned(rng)
        is_figure = shape.covers(*dots.middles.T)
        rng = plan.stream(COLOURS)
        colours = self.colours if rng.random() < 0.5 else self.colours.swapped()
        if plan.item.use == "blank":
            is_figure = rng.permutation(is_figure)
        darker = KNOWN_DARKER if plan.item.use == "known" else 0.0
        return PaintedPlate(dots, is_figure, paint(is_figure, colours, self.params.jitter, darker, rng))

    def mask(self, key: str) -> Mask:
        """The place of the digit, bool (size_px, size_px); of a blank plate nothing."""
        if self._plan(key).item.use == "blank":
            return np.zeros((self.params.size_px,) * 2, bool)
        return draw_mask(self._shape(key), self.params.size_px)

    def content_digest(self) -> str:
        """SHA-256 over the recipe, all digits and a sample of drawn plates."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        recipe = canonical_json({**self.params.model_dump(), "path": "", "version": DRAWING_VERSION})
        total = hashlib.sha256(recipe.encode() + self.digits.digest().encode())
        keys = tuple(self.plans)
        for key in keys[:: max(1, len(keys) // 8)]:
            total.update(self.pixels(key).tobytes())
        return total.hexdigest()

    def _plan(self, key: str) -> PlatePlan:
        if key not in self.plans:
            raise BadSpec(f'there is no item "{key}" among the plates')
        return self.plans[key]

    def _shape(self, key: str) -> Shape:
        plan = self._plan(key)
        return draw_shape(self.digits.drawn(plan.source), plan.stream(SHAPE))


def open_plates(component: Component, folder: Path) -> PlatesDataset:
    """The plates that the parameters name; `path` is read from `folder`. BadSpec for wrong parameters, digits
    that cannot be read or are too few, and colours that cannot be shown.
    """
    params = read_params(component, PlatesParams, "dataset")
    colours = task_pair(params.axis, params.severity, params.jitter)
    digits = read_digits(folder / params.path if params.path else None)
    return PlatesDataset(params, digits, colours, {plan.item.key: plan for plan in _plans(params, digits)})


def _plans(params: PlatesParams, digits: Digits) -> list[PlatePlan]:
    """Digits go to known plates first (clear ones), then to tuning, tasks and blanks, each at most once; what
    is left trains the model, again and again if need be.
    """
    rng = np.random.default_rng([params.seed, 41])
    numbers: dict[Use, int] = {
        "known": params.known,
        "tuning": params.tuning,
        "task": params.count,
        "blank": params.blank,
    }
    wanted = {use: _labels(params, number, rng) for use, number in numbers.items()}
    model = _labels(params, params.model_count, rng)
    queues = {label: _queue(digits, label, rng) for label in params.digits}
    for label, queue in queues.items():
        _refuse_too_few(label, len(queue), sum(labels.count(label) for labels in wanted.values()))
        queues[label] = _clear_first(digits, queue, wanted["known"].count(label))
    plans = [
        _plan_of(params, digits, ("people", use, index), queues[label].popleft(), label)
        for use, labels in wanted.items()
        for index, label in enumerate(labels)
    ]
    for index, label in enumerate(model):
        source = queues[label][0]
        queues[label].rotate(-1)
        use: Use = "known" if index % MODEL_KNOWN_EVERY == 0 and params.known else "task"
        plans.append(_plan_of(params, digits, ("model", use, index), source, label))
    return plans


def _labels(params: PlatesParams, number: int, rng: np.random.Generator) -> list[int]:
    """So many labels, as equal in number as can be, in an order drawn."""
    turns = -(-number // len(params.digits))
    labels = np.concatenate([rng.permutation(params.digits) for _ in range(turns)] or [np.empty(0, int)])
    return [int(label) for label in rng.permutation(labels[:number])]


def _queue(digits: Digits, label: int, rng: np.random.Generator) -> deque[int]:
    """All digits of a label, in an order drawn."""
    return deque(rng.permutation(np.flatnonzero(digits.labels == label)).tolist())


def _refuse_too_few(label: int, there: int, asked: int) -> None:
    if there < asked + MODEL_SOURCES_MIN:
        raise BadSpec(
            f"plates for people take {asked} different handwritten digits {label}, and at least "
            f"{MODEL_SOURCES_MIN} more train the model, but there are {there}: lower count, known, tuning or "
            "blank, or give `path`, a folder with MNIST's files"
        )


def _clear_first(digits: Digits, queue: deque[int], number: int) -> deque[int]:
    """The queue with `number` of its clearest digits moved to its head, still in an order drawn."""
    clear = set(typical_first(digits, np.array(queue))[: max(number, int(len(queue) * CLEAR_SHARE))].tolist())
    head = dict.fromkeys([source for source in queue if source in clear][:number])
    return deque([*head, *(source for source in queue if source not in head)])


def _plan_of(
    params: PlatesParams, digits: Digits, place: tuple[Split, Use, int], source: int, label: int
) -> PlatePlan:
    split, use, index = place
    key = f"{split}-{use}-{index:05d}"
    is_blank = use == "blank"
    item = Item(key, "" if is_blank else str(label), digits.names[source], split, use)
    return PlatePlan(item, source, (params.seed, SPLIT_WORDS[split], KINDS[use], index))
