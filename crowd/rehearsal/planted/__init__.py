"""Two planted cases, in memory and without HTTP: observers to whom the evidence is marked, and the same masks
on other pictures. The first is to be found, the second is its null; neither is a result about a method."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from analysis.stats.means.dunnett import Dunnett, dunnett
from crowd.rehearsal.planted.pictures import LABELS, Picture, series
from experiments.design.rng import Streams
from experiments.errors import StudyError
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Plan, PlanCondition, Pool, PoolItem
from experiments.simulation import person_class
from experiments.simulation.controls.substitute_explanations import Pictures, agreement
from experiments.simulation.versions import version_of
from stimuli.predictors import restore
from stimuli.render.recipe import RenderSpec
from stimuli.spec import content_key

FOLDER = Path(__file__).parent
NETWORK, FROZEN = FOLDER / "network.bin", FOLDER / "frozen.toml"
CASES: Mapping[str, str] = {"baseline": "baseline", "marked": "oracle", "null": "other_image"}
"""The groups of people, each with the control that it is shown; each person is in one."""


@dataclass(frozen=True, slots=True)
class Plant:
    """What was frozen before the first run: the kind of observer, how many of them each group has, how many
    pictures are drawn, the level of the test, and the seed of the shipped run."""

    kind: str
    people: int
    pictures: int
    alpha: float
    seed: int
    digest: str
    paradigm: str


@dataclass(frozen=True, slots=True)
class Run:
    """The accuracy of each person (0-1) by group, and what Dunnett's test says of both cases."""

    seed: int
    scores: Mapping[str, tuple[float, ...]]
    test: Dunnett

    def found(self, case: str, alpha: float) -> bool:
        return any(each.p < alpha for each in self.test.comparisons if each.first == case)


def load_plant() -> Plant:
    """Raises StudyError if network, pictures, observers or numbers are not those that were frozen."""
    read = tomllib.loads(FROZEN.read_text(encoding="utf-8"))
    plant = Plant(**{name: read[name] for name in Plant.__dataclass_fields__})
    if digest_of(plant) != plant.digest:
        raise StudyError(
            "the planted cases are not those that were frozen (crowd/rehearsal/planted/frozen.toml), so they "
            "were not run"
        )
    return plant


def digest_of(plant: Plant) -> str:
    """Over the network, the source that draws the pictures, the version of the observers and the numbers."""
    files = [NETWORK, FOLDER / "pictures.py"]
    version = version_of(plant.kind)
    return content_key(
        {
            "files": [sha256(file.read_bytes()).hexdigest() for file in files],
            "observers": version.digest if version else "",
            "numbers": [plant.kind, plant.people, plant.pictures, plant.alpha, plant.seed],
        }
    )


def run(plant: Plant, seed: int, progress: Callable[[int, int], None] = lambda done, total: None) -> Run:
    """Both cases and their baseline: pictures, plans and people are drawn from the seed."""
    drawn = {f"stone-{number}": each for number, each in enumerate(series(seed, plant.pictures))}
    predicted = _answers(drawn)
    plans = _plans(plant, predicted, seed)
    material = Pictures(
        original=lambda item: drawn[item].pixels,
        shown=lambda item, condition: None,
        predicted=predicted,
        render=RenderSpec(),
        mask=lambda item: drawn[item].mask,
    )
    items = sorted({t.item for plan in plans for t in plan.trials if t.phase == "train" and t.item})
    eye = material.eye(Streams(seed), items)
    people = person_class(plant.kind)
    scores: dict[str, tuple[float, ...]] = {}
    for place, (case, control) in enumerate(CASES.items()):
        first = place * plant.people
        sittings = [(people.drawn(seed, first + at), plan) for at, plan in enumerate(plans)]
        scores[case] = tuple(agreement(person, plan, material, eye, control, "") for person, plan in sittings)
        progress(place + 1, len(CASES))
    return Run(seed, scores, dunnett(scores, "baseline", level=1 - plant.alpha))


def _answers(drawn: Mapping[str, Picture]) -> dict[str, str]:
    """What the network says of each picture."""
    network: Any = restore(NETWORK.read_bytes())
    rows = network.logits([network.view(each.pixels) for each in drawn.values()])
    return {item: LABELS[int(row.argmax())] for item, row in zip(drawn, rows, strict=True)}


def _plans(plant: Plant, predicted: Mapping[str, str], seed: int) -> list[Plan]:
    """The trials of the usual design, the same in every group."""
    items = tuple(PoolItem(key, said, said, 1.0, key) for key, said in predicted.items())
    conditions = (PlanCondition("baseline", "baseline", plant.people),)
    choices = tuple((label, label.title()) for label in LABELS)
    pool = Pool(items, conditions, choices, "prediction", 0, 0)
    paradigm = get_paradigm(plant.paradigm)
    return list(paradigm.plans(paradigm.Design(), pool, Streams(seed)))
