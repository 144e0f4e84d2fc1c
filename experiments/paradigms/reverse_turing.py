"""Simulate the model from examples: guess-then-reveal training, timed test (Gonzalez and Søgaard 2020)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from experiments.definition.study import ANSWERS_MAX, StudyDefinition
from experiments.definition.text_tables import practice_of
from experiments.design.block_randomization import permuted_blocks, permuted_level
from experiments.design.rng import Streams
from experiments.design.squares import latin_square, williams
from experiments.errors import Problem
from experiments.kinds.base import TrialView
from experiments.paradigms import base
from experiments.paradigms.answer_keys import answer_buttons
from experiments.paradigms.masking import task_said
from experiments.paradigms.material import as_asked, material_of
from experiments.paradigms.sampling import Blocks, ItemSampler
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import draw_checks, planned_test, weave
from stimuli.datasets.practice import practice_sentences

SIDES = ("known", "masked")
"""What half of the people of a crossed study are told of the task, in the first part of their arm."""
SECONDS: Mapping[str, float] = {"known": 8.0, "masked": 29.5}
"""Per text: the means of the paper's Figure 3 over both conditions, 124.5 and 442.2 s for 15 texts."""
TOLD = {side: f"instructions_{side}" for side in SIDES}


class ReverseTuringDesign(base.Design):
    """Sizes are per condition and session; the paper's are 25 and 15, its published stimuli 25 and 10.

    `task`: "known" describes the task, "masked" hides it: then `task_words` lists what no page may say.
    `masking` "crossed" shows the same texts to both halves of the people of a masked study and tells the task
    to one half, right after the claim. `assignment`: "between" gives a session one condition and one of
    `subsets` item subsets; "square" gives it every condition, in a Williams order, each with a subset of its
    own. `test_explanations` shows the mark-up, never the label, at test. Every (evaluation item, condition),
    in a crossed study on each side, gets at least `predictions_per_item_min` planned predictions.
    `predictions`: "wrong" takes only items that the model gets wrong, as the paper's pre-experiment does.
    `train_items` 0 is its run without training.
    """

    task: Literal["known", "masked"] = "known"
    task_words: tuple[Annotated[str, Field(min_length=2, max_length=60)], ...] = Field((), max_length=100)
    masking: Literal["none", "crossed"] = "none"
    assignment: Literal["between", "square"] = "between"
    train_items: int = Field(25, ge=0, le=200)
    test_items: int = Field(15, ge=1, le=200)
    subsets: int = Field(3, ge=1, le=20)
    test_explanations: bool = True
    predictions: Literal["all", "wrong"] = "all"
    predictions_per_item_min: int = Field(2, ge=1, le=1000)
    min_view_ms: int = Field(0, ge=0, le=60_000)
    gap_ms: int = Field(300, ge=0, le=10_000)

    @property
    def sides(self) -> int:
        """How many parts of the people are told different things of the task."""
        return len(SIDES) if self.masking == "crossed" else 1


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
    planned_test: ClassVar[base.PlannedTest] = "ranks"
    planned_analysis: ClassVar[str] = (
        "Primary: each condition against the baseline on agreement with the model, one score per person and "
        "condition: Mann-Whitney's test if people meet one condition, Wilcoxon's signed ranks if they meet "
        "all, two-sided, with Holm's correction over the conditions. Agreement with the gold label and the "
        "time of the test likewise. Sensitivity: a logistic mixed model of single answers with people, texts "
        "and texts by condition; in the square with period and preceding condition, and the first period "
        "alone. In a crossed study, people who know the task against people who do not, on the same texts. "
        "Conclusions hold on this study's texts unless the mixed model supports them."
    )
    render: ClassVar[Mapping[str, str]] = {"preset": "reverse-turing"}
    texts: ClassVar[tuple[str, ...]] = tuple(TOLD.values())

    def material(
        self, definition: StudyDefinition, surveys: Mapping[base.Source, base.Survey]
    ) -> base.Material:
        """One corpus, one model; with `predictions` "wrong" only what the model gets wrong."""
        if definition.design.get("predictions") == "wrong":
            surveys = {source: _wrong(definition, survey) for source, survey in surveys.items()}
        return material_of(definition, surveys)

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        design = ReverseTuringDesign(**definition.design)
        if design.predictions == "wrong" and definition.stimuli.balance == "prediction_x_correct":
            yield Problem(
                "stimuli.balance",
                '"prediction_x_correct"',
                'asks for right predictions too, and design.predictions = "wrong" leaves none',
                'Set balance = "prediction" or "none".',
            )
        yield from _sign_problems(definition, design)
        yield from _side_problems(definition, design)
        if design.task == "masked":
            yield from _masking_problems(definition, design)

    def voices(self, definition: StudyDefinition) -> tuple[str, ...]:
        """Only a study whose task is known speaks of a machine."""
        is_masked = ReverseTuringDesign(**definition.design).task == "masked"
        return (self.name, "neutral" if is_masked else "reverse_turing_known")

    def arm_texts(self, definition: StudyDefinition) -> Mapping[str, str]:
        """In a crossed study each half has its text."""
        return TOLD if ReverseTuringDesign(**definition.design).masking == "crossed" else {}

    def withholds(self, definition: StudyDefinition) -> tuple[str, ...]:
        """The task, if it is masked, and that a control's marks stand for no explanation."""
        is_masked = ReverseTuringDesign(**definition.design).task == "masked"
        controls = [c.name for c in definition.conditions if c.role == "control" and c.explainer is not None]
        task = 'what the model was made for ([design] task = "masked")' if is_masked else ""
        marks = f'that marks of {" and ".join(controls)} say nothing of the model (role = "control")'
        return tuple(filter(None, (task, marks if controls else "")))

    def seconds(self, design: ReverseTuringDesign) -> Mapping[str, float]:
        """A text takes longer than a picture, and longest if the task is hidden."""
        return dict.fromkeys(("learn", "predict"), SECONDS[design.task])

    def plans(self, design: ReverseTuringDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """Between: one condition per slot, slot j of every condition alike. Square: all conditions per slot.

        In the square, cells (order x group) come in permuted blocks; with group g and condition c counted
        from 0 the subset is (g + c) mod n. Its slot counts must be equal and a multiple of the number of
        cells (18 for three conditions). In a crossed study slots 2i and 2i + 1 of a condition, or of the
        square, are twins: they differ in what their people are told.
        """
        if design.assignment == "square":
            return _square_plans(design, pool, streams)
        return _between_plans(design, pool, streams)

    def pilot_slots(self, design: ReverseTuringDesign, pool: base.Pool, count: int) -> int:
        """Between: enough slots for every subset; in the square a multiple of its cells."""
        size, sides = len(pool.conditions), design.sides
        if design.assignment == "square":
            cells = len(williams(size)) * size * sides
            return cells * -(-max(count, size * design.predictions_per_item_min * sides) // cells)
        fewest = max(-(-count // size), design.subsets * design.predictions_per_item_min * sides)
        return sides * -(-fewest // sides)

    def feedback(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """After a guess in training: the model's label, and whether the guess met it."""
        if trial.phase != "train" or trial.predicted is None:
            return None
        return {"label": trial.predicted, "correct": value["choice"] == trial.predicted}


def _wrong(definition: StudyDefinition, survey: base.Survey) -> base.Survey:
    """What the model gets wrong, as the question sees it: a prediction outside the classes is no answer."""
    wrong = {item.key for item in as_asked(definition, survey) if item.truth != item.predicted}
    return base.Survey(survey.labels, tuple(item for item in survey.items if item.key in wrong))


def _sign_problems(definition: StudyDefinition, design: ReverseTuringDesign) -> Iterator[Problem]:
    sign = definition.render.spec().sign
    if sign != "magnitude" and design.test_explanations and any(c.explainer for c in definition.conditions):
        yield Problem(
            "render.sign",
            repr(sign),
            "a signed colour would hint at the answer, which people are asked for while they see the marks",
            'Set [render] preset = "reverse-turing", or sign = "magnitude", or '
            "[design] test_explanations = false.",
        )


def _side_problems(definition: StudyDefinition, design: ReverseTuringDesign) -> Iterator[Problem]:
    if design.masking == "crossed" and design.task != "masked":
        yield Problem(
            "design.masking",
            '"crossed"',
            "tells the task to one half alone, so that the pages of all must hide it",
            'Set task = "masked".',
        )


def _masking_problems(definition: StudyDefinition, design: ReverseTuringDesign) -> Iterator[Problem]:
    if not design.task_words:
        yield Problem(
            "design.task_words",
            "",
            'is needed with task = "masked": no page of the study may say one of them',
            'List what would tell the task, such as task_words = ["tense", "past", "present"].',
        )
    if not definition.stimuli.classes:
        yield Problem(
            "stimuli.classes",
            "",
            "is needed in a masked study, whose pages may not name a class",
            "List the classes of the material.",
        )
    sentences = practice_of(definition.language, definition.interface)
    practised = [text for _, text, _ in practice_sentences(definition.seed, sentences)]
    yield from task_said(definition, design.task_words, {"practice": " ".join(practised)})


def _side(design: ReverseTuringDesign, index: int, streams: Streams) -> tuple[int, str]:
    """The number of the twins that a slot belongs to, and the first part of its arm."""
    if design.sides == 1:
        return index, ""
    side = SIDES[permuted_level(len(SIDES), index, streams, "masking")]
    return index // len(SIDES), f"{side}/"


def _between_plans(design: ReverseTuringDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    least = design.subsets * design.predictions_per_item_min * design.sides
    for condition in pool.conditions:
        times = condition.slots // (design.subsets * design.sides)
        if times < design.predictions_per_item_min:
            told = f" and {design.sides} sides" if design.sides > 1 else ""
            raise base.BadDesign(
                f"condition {condition.name!r} has {condition.slots} slots over {design.subsets} subsets"
                f"{told}, so that an evaluation item gets {times} predictions and not the "
                f"{design.predictions_per_item_min} of predictions_per_item_min: ask for at least "
                f"{least} slots, or fewer subsets"
            )
        if condition.slots % design.sides:
            raise base.BadDesign(
                f"condition {condition.name!r} has {condition.slots} slots, of which half are to be told the "
                f"task: ask for an even number, such as {condition.slots + 1}"
            )
    train, test = _subsets(design, design.subsets, pool, streams)
    served = [0] * len(pool.conditions)
    for ordinal, level in enumerate(permuted_blocks([c.slots for c in pool.conditions], streams)):
        twins, side = _side(design, served[level], streams)
        served[level] += 1
        subset = permuted_level(design.subsets, twins, streams, "subsets")
        condition = pool.conditions[level]
        parts = [(condition, train[subset], test[subset])]
        trials = _trials(parts, design, pool, twins, streams)
        yield base.Plan(ordinal, base.LANE, f"{side}subset-{subset}", condition.name, trials, twins)


def _square_plans(design: ReverseTuringDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    size = len(pool.conditions)
    orders, groups = williams(size), latin_square(size)
    cells = [(order, group) for order in range(len(orders)) for group in range(size)]
    slots, fewest = pool.conditions[0].slots, len(cells) * design.sides
    if any(condition.slots != slots for condition in pool.conditions) or slots % fewest:
        told = f", each for {design.sides} sides" if design.sides > 1 else ""
        raise base.BadDesign(
            f'assignment = "square" serves everybody all conditions in {len(cells)} cells (order x group)'
            f"{told}: all conditions need the same number of slots, a multiple of {fewest}; got "
            f"{', '.join(f'{condition.name}: {condition.slots}' for condition in pool.conditions)}"
        )
    times = slots // (size * design.sides)
    if times < design.predictions_per_item_min:
        raise base.BadDesign(
            f"{slots} slots give an evaluation item {times} predictions per condition and not the "
            f"{design.predictions_per_item_min} of predictions_per_item_min: ask for more slots"
        )
    train, test = _subsets(design, size, pool, streams)
    for ordinal in range(slots):
        twins, side = _side(design, ordinal, streams)
        order, group = cells[permuted_level(len(cells), twins, streams, "cells of the square")]
        parts = [(pool.conditions[c], train[groups[group][c]], test[groups[group][c]]) for c in orders[order]]
        trials = _trials(parts, design, pool, twins, streams)
        arm = f"{side}order-{order}/group-{group}"
        yield base.Plan(ordinal, base.LANE, arm, None, trials, twins if side else None)


def _subsets(
    design: ReverseTuringDesign, count: int, pool: base.Pool, streams: Streams
) -> tuple[Blocks, Blocks]:
    sampler = ItemSampler(
        pool,
        (design.train_items,) * count,
        (design.test_items,) * count,
        streams,
        "ask for fewer trials ([design] train_items, test_items) or subsets, add items",
        f"for the {count} disjoint subsets of {design.train_items} + {design.test_items} items",
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
    shuffled = [(c, _shuffle_items(train, order), _shuffle_items(test, order)) for c, train, test in parts]
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


def _shuffle_items(items: Sequence[base.PoolItem], rng: Any) -> tuple[base.PoolItem, ...]:
    return tuple(items[int(place)] for place in rng.permutation(len(items)))
