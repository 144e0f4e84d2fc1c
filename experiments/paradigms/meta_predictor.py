"""Predict the predictor: training with explanations, then tests without (Colin et al., NeurIPS 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from experiments.design.blocks import permuted_blocks
from experiments.design.rng import Streams
from experiments.paradigms import answers, base, screening
from experiments.paradigms.sampling import Blocks, ItemSampler
from experiments.paradigms.weaving import (
    CheckDraw,
    answer_buttons,
    draw_checks,
    planned_test,
    weave,
)


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


@dataclass(frozen=True, slots=True)
class _Sitting:
    """What slot j fixes for every condition: the training, the woven tests, the buttons."""

    train: Blocks
    test: tuple[tuple[base.PoolItem | CheckDraw, ...], ...]
    buttons: tuple[base.Choice, ...]


class MetaPredictor:
    """Between subjects; slot j of every condition shares items, orders, sides and check positions."""

    name: ClassVar[str] = "meta_predictor"
    Design: ClassVar[type[base.Design]] = MetaPredictorDesign
    kinds: ClassVar[tuple[base.TrialKind, ...]] = ("learn", "predict")
    gates: ClassVar[tuple[str, ...]] = ("device", "consent", "questions", "instructions", "quiz", "practice")

    def plans(self, design: MetaPredictorDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """One plan per slot, conditions in permuted blocks by ordinal; the arm is the condition.

        Plans depend on the pool's items, choices, balance and checks, the design and j alone, so adding
        conditions or slots leaves the plans of the others as they were.
        """
        sittings = _sittings(design, pool, streams)
        known: list[_Sitting] = []
        served = [0] * len(pool.conditions)
        for ordinal, level in enumerate(permuted_blocks([c.slots for c in pool.conditions], streams)):
            if served[level] == len(known):
                known.append(next(sittings))
            sitting = known[served[level]]
            served[level] += 1
            condition = pool.conditions[level]
            trials = _trials(sitting, condition, design)
            yield base.Plan(ordinal, "participant", condition.name, condition.name, trials)

    def check(
        self,
        kind: base.TrialKind,
        choices: Sequence[str],
        value: Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Training takes {"seen": true}, tests {"choice"}."""
        if kind == "predict":
            answers.check_choice(choices, value)
        elif kind == "learn":
            answers.check_seen(value)
        else:
            raise answers.refuse_kind(kind)

    def score(self, trial: base.TrialView, value: Mapping[str, Any]) -> float | None:
        """1.0 where the choice is what the model says, 0.0 where not; None for training and checks."""
        if trial.kind != "predict" or trial.check or trial.predicted is None:
            return None
        return float(value["choice"] == trial.predicted)

    def feedback(self, trial: base.TrialView, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Nothing: training shows the label beforehand, and tests reveal nothing."""
        return None

    screen = staticmethod(screening.screen)


def _sittings(design: MetaPredictorDesign, pool: base.Pool, streams: Streams) -> Iterator[_Sitting]:
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
        train = _reordered(drawn[0], "train", index, streams)
        test = _reordered(drawn[1], "test", index, streams)
        checks = draw_checks(pool.check_instructed, pool.check_repeat, train, index, streams)
        places = streams("check places", index)
        woven = tuple(weave(block, found, places) for block, found in zip(test, checks, strict=True))
        yield _Sitting(train, woven, answer_buttons(pool.choices, index, streams))
        index += 1


def _reordered(blocks: Blocks, phase: str, index: int, streams: Streams) -> Blocks:
    rng = streams("order", phase, index)
    return tuple(tuple(block[int(place)] for place in rng.permutation(len(block))) for block in blocks)


def _trials(
    sitting: _Sitting, condition: base.PlanCondition, design: MetaPredictorDesign
) -> tuple[base.PlannedTrial, ...]:
    explained = condition.role != "baseline"
    trials: list[base.PlannedTrial] = []
    seen: tuple[int, ...] = ()
    for block, (train, test) in enumerate(zip(sitting.train, sitting.test, strict=True)):
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
                    choices=sitting.buttons,
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
                    buttons=sitting.buttons,
                    reservoir=() if design.reservoir == "off" else seen,
                )
            )
    return tuple(trials)
