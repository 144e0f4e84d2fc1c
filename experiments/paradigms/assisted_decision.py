"""Decide alone, see what the model says with or without an explanation, decide again (the two-step design of
studies of reliance on advice; its measures are named after Schemmer et al. 2023).

People decide about what an item really is, so that the true class is right and not the model's answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from experiments.definition.study import ANSWERS_MAX, StudyDefinition
from experiments.design.cell_balance import RIGHT, WRONG, Cell, cell_cycle, windows
from experiments.design.rng import Streams
from experiments.errors import Problem
from experiments.kinds.base import Choice, TrialView
from experiments.kinds.decide import FIRST, STEPS
from experiments.paradigms import base
from experiments.paradigms.answer_keys import answer_buttons
from experiments.paradigms.sampling import CellBlocks, ItemSampler, mark_of
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import (
    CheckDraw,
    draw_instructed,
    instructed_trial,
    matched_plans,
    refuse_repeats,
    weave,
)

BASELINE, ADVICE = "baseline", "advice"
"""Roles of the conditions without an explanation: a second look without advice, and with it."""
ROUNDING = 0.0005
"""Shares are written with three digits."""
AGAIN_TEXT, ADVICE_TEXT = "instructions_again", "instructions_advice"


class AssistedDecisionDesign(base.Design):
    """Counts are per session. Every item of the test is decided twice.

    `advice_accuracy` (0-1) is the share of the test items of which the model's answer is right, the same in
    every session and condition; it must be a whole number of `test_items`. `train_items` are guessed first,
    and then it is said what they are; 0: no training.
    """

    advice_accuracy: float = Field(ge=0, le=1)
    test_items: int = Field(20, ge=2, le=200)
    train_items: int = Field(6, ge=0, le=100)
    min_view_ms: int = Field(1000, ge=0, le=60_000)
    gap_ms: int = Field(300, ge=0, le=10_000)
    picture_px: int = Field(320, ge=64, le=1024)

    @property
    def right_items(self) -> int:
        """Test items of which the model's answer is right."""
        return round(self.advice_accuracy * self.test_items)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        exact, right = self.advice_accuracy * self.test_items, self.right_items
        if abs(exact - right) > ROUNDING * self.test_items:
            low = int(exact)
            near = " or ".join(f"{count / self.test_items:.3g}" for count in (low, low + 1))
            raise ValueError(
                f"advice_accuracy = {self.advice_accuracy:g} of {self.test_items} test_items are {exact:.3g} "
                f"items: give a share that makes a whole number, such as {near}, or other test_items"
            )
        return self


@dataclass(frozen=True, slots=True)
class AdviceCells:
    """True class x whether the advice is right. Of the test items of each session `right` have right advice;
    these, the others, and all together hold every class alike, to within one. Training is even over both."""

    labels: tuple[str, ...]
    right: int
    remedy: ClassVar[str] = ", or another advice_accuracy"

    def of(self, item: base.PoolItem) -> Cell:
        return (item.truth, mark_of(item))

    def drawn(
        self, train_sizes: Sequence[int], test_sizes: Sequence[int], index: int, streams: Streams
    ) -> tuple[CellBlocks, CellBlocks]:
        """One block of tests; which classes get the odd places rotates as the index grows."""
        count = len(self.labels)
        rng = streams("cells", index // count)
        labels = [self.labels[int(place)] for place in rng.permutation(count)]
        start = int(rng.permutation(count)[index % count])
        cycle = [(label, "") for label in labels]
        (test_size,) = test_sizes
        right, wrong = windows(cycle, (self.right, test_size - self.right), start)
        test = (*((label, RIGHT) for label, _ in right), *((label, WRONG) for label, _ in wrong))
        first = int(rng.permutation(2 * count)[index % count])
        return windows(cell_cycle(labels, True), train_sizes, first), (test,)

    def most_needed(self, train_count: int, test_count: int) -> tuple[Counter[Cell], Counter[str]]:
        count = len(self.labels)
        by_mark = {RIGHT: self.right, WRONG: test_count - self.right}
        cells = Counter(
            {
                (label, mark): -(-tests // count) + -(-train_count // (2 * count))
                for mark, tests in by_mark.items()
                for label in self.labels
            }
        )
        marks = Counter({mark: tests + -(-train_count // 2) for mark, tests in by_mark.items()})
        return cells, marks

    def words(self, cell: Cell) -> str:
        label, mark = cell
        return f"items of {label!r} about which the model is {mark}"


@dataclass(frozen=True, slots=True)
class _Session:
    """What slot j fixes for every condition: the training, the tests with their checks, the buttons."""

    train: tuple[base.PoolItem, ...]
    test: tuple[base.PoolItem | CheckDraw, ...]
    buttons: tuple[Choice, ...]


class AssistedDecision(BaseParadigm):
    """Between subjects; slot j of every condition shares items, orders, sides and check positions."""

    name: ClassVar[str] = "assisted_decision"
    Design: ClassVar[type[base.Design]] = AssistedDecisionDesign
    kinds: ClassVar[tuple[str, ...]] = ("learn", "decide", "instructed")
    roles: ClassVar[Mapping[str, base.Role]] = {
        BASELINE: base.Role(explained=False, at_least=1, at_most=1),
        ADVICE: base.Role(explained=False, at_least=1, at_most=1),
        "control": base.Role(),
        "method": base.Role(),
    }
    answers_count: ClassVar[tuple[int, int]] = (2, ANSWERS_MAX)
    texts: ClassVar[tuple[str, ...]] = (AGAIN_TEXT, ADVICE_TEXT)
    planned_test: ClassVar[base.PlannedTest] = "contrasts"
    planned_analysis: ClassVar[str] = (
        "Primary: the accuracy gain (second less first decision, against what the item is) of each condition "
        "with advice against the second look without advice, and of each condition with an explanation "
        "against unexplained advice; matched items, at the declared accuracy of the advice (items of right "
        "and of wrong advice are strata), people and items both as drawn at random (two-way clustered "
        "errors), two-sided, with Holm's correction over the contrasts of each of the two families. Final "
        "accuracy likewise, and against first decisions, the advice alone, and the better of both. "
        "Secondary: RAIR and RSR (after Schemmer et al. 2023), pooled over trials, bootstrap over people; "
        "over- and under-reliance; switches by correctness of the advice and without advice; "
        "d' and criterion of following."
    )

    def plans(self, design: AssistedDecisionDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """One plan per slot, conditions in permuted blocks by ordinal; the arm is the condition.

        Plans depend on the pool's items, choices and checks, the design and j alone, so adding conditions or
        slots leaves the plans of the others as they were.
        """
        refuse_repeats(pool, "no repeat checks here, as tests do not ask for what was trained")
        yield from matched_plans(pool, streams, _sessions(design, pool, streams), _trials)

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        if definition.stimuli.balance != "none":
            yield Problem(
                "stimuli.balance",
                repr(definition.stimuli.balance),
                "is given by [design] advice_accuracy: which of the model's answers are right is declared",
                'Set balance = "none".',
            )
        if definition.checks.repeat:
            limit = "no repeat checks here, as tests do not ask for what was trained"
            yield Problem("checks.repeat", str(definition.checks.repeat), limit, "Set repeat = 0.")

    def arm_texts(self, definition: StudyDefinition) -> Mapping[str, str]:
        """What is told of the second decision, right after the claim, if the study has a text for it."""
        roles = {c.name: c.role for c in definition.conditions}
        told = {name: AGAIN_TEXT if role == BASELINE else ADVICE_TEXT for name, role in roles.items()}
        return {name: text for name, text in told.items() if definition.texts.get(text)}

    def feedback(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """After a guess in training: what the item is."""
        if trial.phase != "train" or trial.truth is None:
            return None
        return {"label": trial.truth, "correct": value["choice"] == trial.truth}


def _sessions(design: AssistedDecisionDesign, pool: base.Pool, streams: Streams) -> Iterator[_Session]:
    sampler = ItemSampler(
        pool,
        (design.train_items,),
        (design.test_items,),
        streams,
        "ask for fewer trials ([design] train_items, test_items), add items",
        cells=AdviceCells(tuple(value for value, _ in pool.choices), design.right_items),
    )
    index = 0
    while True:
        (train,), (test,) = sampler.draw()
        checks = draw_instructed(pool.check_instructed, None, streams("checks", index))
        woven = weave(test, checks, streams("check places", index))
        yield _Session(train, woven, answer_buttons(pool.choices, index, streams))
        index += 1


def _trials(session: _Session, condition: base.PlanCondition) -> tuple[base.PlannedTrial, ...]:
    trials = [
        base.PlannedTrial(
            position=place,
            block=0,
            phase="train",
            kind="learn",
            item=item.key,
            condition=condition.name,
            explained=False,
            choices=session.buttons,
        )
        for place, item in enumerate(session.train)
    ]
    block = 1 if trials else 0
    for entry in session.test:
        if isinstance(entry, CheckDraw):
            trials.append(instructed_trial(entry, len(trials), block, condition.name))
            continue
        for step in STEPS:
            trials.append(_decision(entry, step, len(trials), block, condition, session.buttons))
    return tuple(trials)


def _decision(
    item: base.PoolItem,
    step: str,
    position: int,
    block: int,
    condition: base.PlanCondition,
    buttons: tuple[Choice, ...],
) -> base.PlannedTrial:
    is_advised = step != FIRST and condition.role != BASELINE
    return base.PlannedTrial(
        position=position,
        block=block,
        phase="test",
        kind="decide",
        item=item.key,
        condition=condition.name,
        explained=is_advised and condition.role != ADVICE,
        choices=buttons,
        label=item.predicted if is_advised else None,
        right=item.truth,
        extra={"step": step},
    )
