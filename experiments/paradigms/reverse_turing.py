"""Simulate the model from examples: guess-then-reveal training, timed test (Gonzalez and Søgaard 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from experiments.definition import ANSWERS_MAX, StudyDefinition
from experiments.design.blocks import permuted_blocks, permuted_level
from experiments.design.rng import Streams
from experiments.design.squares import latin_square, williams
from experiments.errors import Problem
from experiments.kinds.base import TrialView
from experiments.paradigms import base
from experiments.paradigms.material import as_asked, material_of
from experiments.paradigms.sampling import Blocks, ItemSampler
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import answer_buttons, draw_checks, planned_test, weave


class ReverseTuringDesign(base.Design):
    """Sizes are per condition and session; the paper's are 25 and 15, its published stimuli 25 and 10.

    `task`: "known" describes the task, "masked" hides it. `assignment`: "between" gives a session one
    condition and one of `subsets` item subsets; "square" gives it every condition, in a Williams order, each
    with a subset of its own. `test_explanations` shows the mark-up, never the label, at test. Every
    (evaluation item, condition) gets at least `predictions_per_item_min` planned predictions. `predictions`:
    "wrong" takes only items that the model gets wrong, as the paper's pre-experiment does. `train_items` 0 is
    its run without training.
    """

    task: Literal["known", "masked"] = "known"
    assignment: Literal["between", "square"] = "between"
    train_items: int = Field(25, ge=0, le=200)
    test_items: int = Field(15, ge=1, le=200)
    subsets: int = Field(3, ge=1, le=20)
    test_explanations: bool = True
    predictions: Literal["all", "wrong"] = "all"
    predictions_per_item_min: int = Field(2, ge=1, le=1000)
    min_view_ms: int = Field(0, ge=0, le=60_000)
    gap_ms: int = Field(300, ge=0, le=10_000)


class ReverseTuring(BaseParadigm):
    """Subsets are drawn once per study, so every evaluation item is predicted under every condition."""

    name: ClassVar[str] = "reverse_turing"
    Design: ClassVar[type[base.Design]] = ReverseTuringDesign
    kinds: ClassVar[tuple[str, ...]] = ("learn", "predict", "instructed")
    roles: ClassVar[Mapping[str, base.Role]] = {
        "baseline": base.Role(explained=False, at_most=1),
        "control": base.Role(),
        "method": base.Role(),
    }
    answers_count: ClassVar[tuple[int, int]] = (2, ANSWERS_MAX)
    modalities: ClassVar[tuple[str, ...]] = ("text",)

    def material(
        self, definition: StudyDefinition, surveys: Mapping[base.Source, base.Survey]
    ) -> base.Material:
        """One corpus, one model; with `predictions` "wrong" only what the model gets wrong."""
        if definition.design.get("predictions") == "wrong":
            surveys = {source: _wrong(definition, survey) for source, survey in surveys.items()}
        return material_of(definition, surveys)

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        if (
            definition.design.get("predictions") == "wrong"
            and definition.stimuli.balance == "prediction_x_correct"
        ):
            yield Problem(
                "stimuli.balance",
                '"prediction_x_correct"',
                'asks for right predictions too, and design.predictions = "wrong" leaves none',
                'Set balance = "prediction" or "none".',
            )

    def plans(self, design: ReverseTuringDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """Between: one condition per slot, slot j of every condition alike. Square: all conditions per slot.

        In the square, cells (order x group) come in permuted blocks; with group g and condition c counted
        from 0 the subset is (g + c) mod n. Its slot counts must be equal and a multiple of the number of
        cells (18 for three conditions).
        """
        if design.assignment == "square":
            return _square_plans(design, pool, streams)
        return _between_plans(design, pool, streams)

    def pilot_slots(self, design: ReverseTuringDesign, pool: base.Pool, count: int) -> int:
        """Between: enough slots for every subset; in the square a multiple of its cells."""
        size = len(pool.conditions)
        if design.assignment == "square":
            cells = len(williams(size)) * size
            return cells * -(-max(count, size * design.predictions_per_item_min) // cells)
        return max(-(-count // size), design.subsets * design.predictions_per_item_min)

    def feedback(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """After a guess in training: the model's label, and whether the guess met it."""
        if trial.phase != "train" or trial.predicted is None:
            return None
        return {"label": trial.predicted, "correct": value["choice"] == trial.predicted}


def _wrong(definition: StudyDefinition, survey: base.Survey) -> base.Survey:
    """What the model gets wrong, as the question sees it: a prediction outside the classes is no answer."""
    wrong = {item.key for item in as_asked(definition, survey) if item.truth != item.predicted}
    return base.Survey(survey.labels, tuple(item for item in survey.items if item.key in wrong))


def _between_plans(design: ReverseTuringDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    for condition in pool.conditions:
        if condition.slots // design.subsets < design.predictions_per_item_min:
            raise base.BadDesign(
                f"condition {condition.name!r} has {condition.slots} slots over {design.subsets} subsets, so "
                f"that an evaluation item gets {condition.slots // design.subsets} predictions and not the "
                f"{design.predictions_per_item_min} of predictions_per_item_min: ask for at least "
                f"{design.subsets * design.predictions_per_item_min} slots, or fewer subsets"
            )
    train, test = _subsets(design, design.subsets, pool, streams)
    served = [0] * len(pool.conditions)
    for ordinal, level in enumerate(permuted_blocks([c.slots for c in pool.conditions], streams)):
        index = served[level]
        served[level] += 1
        subset = permuted_level(design.subsets, index, streams, "subsets")
        condition = pool.conditions[level]
        parts = [(condition, train[subset], test[subset])]
        trials = _trials(parts, design, pool, index, streams)
        yield base.Plan(ordinal, base.LANE, f"subset-{subset}", condition.name, trials, index)


def _square_plans(design: ReverseTuringDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    size = len(pool.conditions)
    orders, groups = williams(size), latin_square(size)
    cells = [(order, group) for order in range(len(orders)) for group in range(size)]
    slots = pool.conditions[0].slots
    if any(condition.slots != slots for condition in pool.conditions) or slots % len(cells):
        raise base.BadDesign(
            f'assignment = "square" serves everybody all conditions in {len(cells)} cells (order x group): '
            f"all conditions need the same number of slots, a multiple of {len(cells)}; got "
            f"{', '.join(f'{condition.name}: {condition.slots}' for condition in pool.conditions)}"
        )
    if slots // size < design.predictions_per_item_min:
        raise base.BadDesign(
            f"{slots} slots give an evaluation item {slots // size} predictions per condition and not the "
            f"{design.predictions_per_item_min} of predictions_per_item_min: ask for more slots"
        )
    train, test = _subsets(design, size, pool, streams)
    for ordinal in range(slots):
        order, group = cells[permuted_level(len(cells), ordinal, streams, "cells of the square")]
        parts = [(pool.conditions[c], train[groups[group][c]], test[groups[group][c]]) for c in orders[order]]
        trials = _trials(parts, design, pool, ordinal, streams)
        yield base.Plan(ordinal, base.LANE, f"order-{order}/group-{group}", None, trials)


def _subsets(
    design: ReverseTuringDesign, count: int, pool: base.Pool, streams: Streams
) -> tuple[Blocks, Blocks]:
    sampler = ItemSampler(
        pool,
        (design.train_items,) * count,
        (design.test_items,) * count,
        streams,
        f"ask for fewer trials ([design] train_items, test_items; the study has {count} subsets), add items",
    )
    return sampler.draw()


def _trials(
    parts: Sequence[tuple[base.PlanCondition, Sequence[base.PoolItem], Sequence[base.PoolItem]]],
    design: ReverseTuringDesign,
    pool: base.Pool,
    index: int,
    streams: Streams,
) -> tuple[base.PlannedTrial, ...]:
    order = streams("order", index)
    shuffled = [(c, _reordered(train, order), _reordered(test, order)) for c, train, test in parts]
    buttons = answer_buttons(pool.choices, index, streams)
    learned = [train for _, train, _ in shuffled]
    checks = draw_checks(pool.check_instructed, pool.check_repeat, learned, index, streams, within_block=True)
    places = streams("check places", index)
    trials: list[base.PlannedTrial] = []
    for block, (condition, train, test) in enumerate(shuffled):
        explained = condition.role != "baseline"
        for item in train:
            trials.append(
                base.PlannedTrial(
                    position=len(trials),
                    block=block,
                    phase="train",
                    kind="learn",
                    item=item.key,
                    condition=condition.name,
                    explained=explained,
                    choices=buttons,
                )
            )
        for entry in weave(test, checks[block], places):
            trials.append(
                planned_test(
                    entry,
                    position=len(trials),
                    block=block,
                    condition=condition.name,
                    explained=explained and design.test_explanations,
                    buttons=buttons,
                )
            )
    return tuple(trials)


def _reordered(items: Sequence[base.PoolItem], rng: Any) -> tuple[base.PoolItem, ...]:
    return tuple(items[int(place)] for place in rng.permutation(len(items)))
