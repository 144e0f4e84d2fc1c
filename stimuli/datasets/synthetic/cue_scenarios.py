"""Four planted scenarios, drawn by our own code: the cue that the model uses is known, and can be exchanged
alone.

Each item has a class and a cue. While the model learns, the cue agrees with the class nearly always, so
that the model comes to rely on it; among the items for people it agrees only so often, so that the model is
wrong there, for a reason that an explanation can show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from stimuli.datasets.synthetic import concept_presence, scenario_pictures
from stimuli.errors import BadSpec
from stimuli.registry import Params, read_params
from stimuli.spec import Component, canonical_json
from stimuli.types import Item, Mask, Part, Pixels, Split

DRAWING_VERSION = 1
DRAWN_KEPT = 256
"""Pictures that stay in memory after they are drawn: 26 MB at the usual size."""
SPLIT_WORDS: dict[Split, int] = {"model": 1, "people": 2}


@dataclass(frozen=True, slots=True)
class Scenario:
    """`number` is a part of every item's seed. `aspects` names the cue and the rest. `draw` makes the picture
    of a plan, `show` says which concepts are in it. `agree_people` is the share (0-1) of people's items whose
    cue fits their class, as it does in all of the model's.
    """

    number: int
    labels: tuple[str, str]
    aspects: tuple[str, str]
    draw: Callable[[scenario_pictures.Plan], scenario_pictures.Scene]
    show: concept_presence.Show
    agree_people: float = 0.5


FOXES = ("kit fox", "red fox")
SCENARIOS = {
    "biased": Scenario(
        0,
        ("husky", "wolf"),
        ("background", "animal"),
        scenario_pictures.draw_biased,
        concept_presence.show_biased,
    ),
    "strategy": Scenario(
        2,
        ("alder", "dogwood"),
        ("margin", "veins"),
        scenario_pictures.draw_strategy,
        concept_presence.show_strategy,
    ),
    "lookalike": Scenario(
        1,
        FOXES,
        ("coat", "ears"),
        scenario_pictures.draw_lookalike,
        concept_presence.show_lookalike,
        agree_people=0.6,
    ),
    "imperceptible": Scenario(
        3,
        FOXES,
        ("camera", "ears"),
        scenario_pictures.draw_imperceptible,
        concept_presence.show_imperceptible,
    ),
}


class SyntheticParams(Params):
    """`count` items for people and `model_count` for training the model, square pictures of `size_px`."""

    scenario: Literal["biased", "strategy", "lookalike", "imperceptible"]
    count: Annotated[int, Field(ge=8, le=10_000)] = 240
    model_count: Annotated[int, Field(ge=16, le=20_000)] = 600
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    size_px: Annotated[int, Field(ge=64, le=640)] = 160

    @model_validator(mode="after")
    def _even(self) -> SyntheticParams:
        if self.count % 4 or self.model_count % 4:
            raise ValueError("count and model_count must be multiples of 4, for equal cells of class and cue")
        return self


@dataclass(frozen=True)
class SyntheticDataset:
    """A planted scenario. Every picture depends on the seed and its own number alone, and is drawn when
    asked for.
    """

    params: SyntheticParams
    scenario: Scenario
    plans: dict[str, scenario_pictures.Plan]
    all_items: tuple[Item, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        return self.scenario.labels

    @property
    def aspects(self) -> tuple[str, str]:
        """What `swap` can exchange: the planted cue first, then what the class truly is."""
        return self.scenario.aspects

    @property
    def concepts(self) -> tuple[str, ...]:
        """The two sides of the cue first, then what describes the thing itself."""
        return tuple(entry.concept for entry in self.scenario.show(self.plans[self.all_items[0].key]))

    def items(self, split: Split) -> Sequence[Item]:
        return tuple(item for item in self.all_items if item.split == split)

    def pixels(self, key: str) -> Pixels:
        """uint8 (size_px, size_px, 3)."""
        return self._draw(self._plan(key)).pixels.copy()

    def mask(self, key: str) -> Mask:
        """The place of the planted cue, bool (size_px, size_px)."""
        return self._draw(self._plan(key)).mask.copy()

    def swap(self, key: str, what: str) -> Pixels:
        """The picture with only one part exchanged for the other class's: pose, light and the rest stay."""
        if what not in self.aspects:
            raise BadSpec(
                f'swap: there is no part "{what}"; {self.params.scenario} has {", ".join(self.aspects)}'
            )
        return self._draw(self._plan(key).swapped(cue=what == self.aspects[0])).pixels.copy()

    def concept_values(self, key: str) -> NDArray[np.float32]:
        """How much of each concept the picture shows, float32 (concepts,) in 0-1, known from its plan."""
        return np.array([entry.value for entry in self.scenario.show(self._plan(key))], dtype=np.float32)

    def parts(self, key: str) -> Sequence[Part]:
        """The places of the concepts that the picture shows, boxes in shares of its side."""
        return concept_presence.parts_of(self.scenario.show(self._plan(key)))

    def content_digest(self) -> str:
        """SHA-256 over the recipe and a sample of drawn pictures, which notices a changed drawing library."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        recipe = canonical_json({**self.params.model_dump(), "version": DRAWING_VERSION})
        total = hashlib.sha256(recipe.encode())
        for item in self.all_items[:: max(1, len(self.all_items) // 8)]:
            total.update(self.pixels(item.key).tobytes())
        return total.hexdigest()

    def _plan(self, key: str) -> scenario_pictures.Plan:
        if key not in self.plans:
            raise BadSpec(f'there is no item "{key}" in the scenario {self.params.scenario}')
        return self.plans[key]

    def _draw(self, plan: scenario_pictures.Plan) -> scenario_pictures.Scene:
        return _draw_scene(self.scenario.draw, plan)


@lru_cache(maxsize=DRAWN_KEPT)
def _draw_scene(
    draw: Callable[[scenario_pictures.Plan], scenario_pictures.Scene], plan: scenario_pictures.Plan
) -> scenario_pictures.Scene:
    """A picture is asked for several times in a row: as the network's view, as what people see, as a mask."""
    return draw(plan)


def open_synthetic(component: Component, folder: Path) -> SyntheticDataset:
    """The scenario that the parameters name; nothing is read from the folder. Raises BadSpec for wrong
    parameters.
    """
    params = read_params(component, SyntheticParams, "dataset")
    scenario = SCENARIOS[params.scenario]
    plans = {
        **_plan_split(params, scenario, "model", params.model_count, 1.0),
        **_plan_split(params, scenario, "people", params.count, scenario.agree_people),
    }
    items = tuple(
        Item(key, scenario.labels[plan.truth], key, "model" if key.startswith("model") else "people")
        for key, plan in plans.items()
    )
    return SyntheticDataset(params, scenario, plans, items)


def _plan_split(
    params: SyntheticParams, scenario: Scenario, split: Split, count: int, agree_share: float
) -> dict[str, scenario_pictures.Plan]:
    """Classes in equal numbers, the cue contradicting equally often in both; their order is shuffled."""
    word = SPLIT_WORDS[split]
    contrary = round((1 - agree_share) * count / 2)
    cells = [(truth, truth ^ (place < contrary)) for truth in (0, 1) for place in range(count // 2)]
    order = np.random.default_rng([params.seed, scenario.number, word]).permutation(count)
    return {
        f"{split}-{index:05d}": scenario_pictures.Plan(
            truth=cells[cell][0],
            cue=int(cells[cell][1]),
            seed=(params.seed, scenario.number, word, index),
            size_px=params.size_px,
        )
        for index, cell in enumerate(order)
    }
