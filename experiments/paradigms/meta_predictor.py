"""Predict the predictor: training with explanations, then tests without (Colin et al., NeurIPS 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from experiments.definition.preregistration_table import Contrasts
from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.paradigms import base
from experiments.paradigms.answer_keys import answer_buttons
from experiments.paradigms.sampling import Blocks, ItemSampler
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import CheckDraw, draw_checks, matched_plans, planned_test, weave


def _reservoir(value: object) -> object:
    return "off" if value is False else value


class MetaPredictorDesign(base.Design):
    """Counts are per session. Defaults are those of the paper: 3 blocks of 5 training and 7 test trials.

    `items`: "per_slot" draws each slot j its own items, "fixed" gives every slot the same items, in orders of
    its own. `reservoir` (false means "off"), `display`, `min_view_ms`, `gap_ms` (blank between trials) and
    `picture_px` (CSS size) say how trials are shown. `test_explanations` shows the explanation at test as
    well.
    """

    blocks: int = Field(3, ge=1, le=20)
    train_per_block: int = Field(5, ge=1, le=100)
    test_per_block: int = Field(7, ge=1, le=200)
    reservoir: Annotated[Literal["on_request", "always", "off"], BeforeValidator(_reservoir)] = "on_request"
    items: Literal["per_slot", "fixed"] = "per_slot"
    display: Literal["beside", "overlay"] = "beside"
    min_view_ms: int = Field(1500, ge=0, le=60_000)
    gap_ms: int = Field(300, ge=0, le=10_000)
    picture_px: int = Field(320, ge=64, le=1024)
    test_explanations: bool = False


_SENSITIVITY = (
    "Utility as the ratio of mean accuracies to the baseline with Fieller's intervals, simultaneous over "
    "conditions; no interval and no p with fewer than 5 people in a condition or in the baseline. Beside "
    "them one-way ANOVA, eta squared with interval, and {beside}. Sensitivity: with and without rules that "
    "act after assignment; blocked by plan; as assigned."
)
DUNNETT = (
    "Each method and the control against the baseline, on each person's share of test answers that match "
    "the model: two-sided Dunnett, family-wise at alpha (.05 if no other is stated), no test before it; "
    "variances are pooled, or separate if planned sizes differ by more than a half. Key secondary, read only "
    "for methods with p < alpha there: against the control, if there is a single one; two-sided Dunnett over "
    "all methods at the same alpha, with variances by the same rule. "
    + _SENSITIVITY.format(beside="Tukey-Kramer for all pairs")
)
TUKEY = (
    "All pairs of conditions, on each person's share of test answers that match the model: two-sided "
    "Tukey-Kramer, family-wise at alpha (.05 if no other is stated), no test before it. "
    + _SENSITIVITY.format(beside="Dunnett against the baseline, exploratory")
)


@dataclass(frozen=True, slots=True)
class _Session:
    """What slot j fixes for every condition: the training, the woven tests, the buttons."""

    train: Blocks
    test: tuple[tuple[base.PoolItem | CheckDraw, ...], ...]
    buttons: tuple[Choice, ...]


class MetaPredictor(BaseParadigm):
    """Between subjects; slot j of every condition shares items, orders, sides and check positions."""

    name: ClassVar[str] = "meta_predictor"
    Design: ClassVar[type[base.Design]] = MetaPredictorDesign
    kinds: ClassVar[tuple[str, ...]] = ("learn", "predict", "instructed")
    roles: ClassVar[Mapping[str, base.Role]] = {
        "baseline": base.Role(explained=False, at_least=1, at_most=1),
        "control": base.Role(),
        "method": base.Role(),
    }
    answers_count: ClassVar[tuple[int, int]] = (2, 2)
    is_extensible: ClassVar[bool] = True
    checks: ClassVar[Mapping[str, int]] = {"instructed": 2, "repeat": 3}
    planned_contrasts: ClassVar[Mapping[Contrasts, str]] = {"dunnett": DUNNETT, "tukey": TUKEY}
    planned_analysis: ClassVar[str] = DUNNETT

    def plans(self, design: MetaPredictorDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """One plan per slot, conditions in permuted blocks by ordinal; the arm is the condition.

        Plans depend on the pool's items, choices, balance and checks, the design and j alone, so adding
        conditions or slots leaves the plans of the others as they were.
        """
        sessions = _sessions(design, pool, streams)
        return matched_plans(pool, streams, sessions, partial(_trials, design=design))


def _sessions(design: MetaPredictorDesign, pool: base.Pool, streams: Streams) -> Iterator[_Session]:
    sampler = ItemSampler(
        pool,
        (design.train_per_block,) * design.blocks,
        (design.test_per_block,) * design.blocks,
        streams,
        "ask for fewer trials ([design] blocks, train_per_block, test_per_block), add items",
    )
    index = 0
    drawn = None
    while True:
        if drawn is None or design.items == "per_slot":
            drawn = sampler.draw()
        train = _shuffle_blocks(drawn[0], "train", index, streams)
        test = _shuffle_blocks(drawn[1], "test", index, streams)
        checks = draw_checks(pool.check_instructed, pool.check_repeat, train, index, streams)
        places = streams("check places", index)
        woven = tuple(weave(block, inserted, places) for block, inserted in zip(test, checks, strict=True))
        yield _Session(train, woven, answer_buttons(pool.choices, index, streams))
        index += 1


def _shuffle_blocks(blocks: Blocks, phase: str, index: int, streams: Streams) -> Blocks:
    rng = streams("order", phase, index)
    return tuple(tuple(block[int(place)] for place in rng.permutation(len(block))) for block in blocks)


def _trials(
    session: _Session, condition: base.PlanCondition, design: MetaPredictorDesign
) -> tuple[base.PlannedTrial, ...]:
    explained = condition.role != "baseline"
    trials: list[base.PlannedTrial] = []
    seen: tuple[int, ...] = ()
    for block, (train, test) in enumerate(zip(session.train, session.test, strict=True)):
        for item in train:
            seen += (len(trials),)
            trials.append(
                base.PlannedTrial(
                    position=len(trials),
                    block=block,
                    phase="train",
                    kind="learn",
                    item=item.key,
                    condition=condition.name,
                    explained=explained,
                    choices=session.buttons,
                    label=item.predicted,
                )
            )
        for entry in test:
            trials.append(
                planned_test(
                    entry,
                    position=len(trials),
                    block=block,
                    condition=condition.name,
                    explained=explained and design.test_explanations,
                    buttons=session.buttons,
                    reservoir=() if design.reservoir == "off" else seen,
                )
            )
    return tuple(trials)
