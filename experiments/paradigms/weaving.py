"""Check trials woven among test trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TypeVar

import numpy as np

from experiments.design.block_randomization import permuted_blocks
from experiments.design.rng import Streams
from experiments.kinds.base import INSTRUCTED, REPEAT, Check, Choice

# Where a lab's own paradigm imports it from.
from experiments.paradigms.answer_keys import answer_buttons as answer_buttons
from experiments.paradigms.base import LANE, BadDesign, Plan, PlanCondition, PlannedTrial, Pool, PoolItem

INSTRUCTED_KEYS = ("d", "f", "j", "k")
"""The four keys, left to right, one of which an instructed check asks for (value, text and key alike)."""

Entry = TypeVar("Entry")
Drawn = TypeVar("Drawn")


def refuse_repeats(pool: Pool, why: str) -> None:
    """BadDesign if the pool asks for repeat checks where there are none."""
    if pool.check_repeat:
        raise BadDesign(f"[checks] repeat = {pool.check_repeat}: {why}; set repeat = 0")


@dataclass(frozen=True, slots=True)
class CheckDraw:
    """A check trial to come: an instructed one (no item, four options) or a repeat of a training item."""

    check: Check
    expected: str
    item: PoolItem | None = None


def instructed_buttons() -> tuple[Choice, ...]:
    """The four labelled keys of an instructed check, in keyboard order."""
    return tuple(Choice(key, key.upper(), key) for key in INSTRUCTED_KEYS)


def draw_checks(
    instructed: int,
    repeat: int,
    train: Sequence[Sequence[PoolItem]],
    index: int,
    streams: Streams,
    *,
    within_block: bool = False,
) -> tuple[tuple[CheckDraw, ...], ...]:
    """The checks of slot `index`, one tuple per block, in the order in which they are shown.

    Both kinds together are spread over the blocks to within one. A repeat's item was trained in the same
    block or, unless `within_block`, an earlier one; no item is repeated twice, and the expected labels go
    round the labels that were trained.
    """
    trained = sum(len(block) for block in train)
    if repeat > trained:
        raise BadDesign(
            f"[checks] repeat = {repeat} needs as many training trials, here {trained}: "
            "ask for fewer repeats, or train more"
        )
    rng = streams("checks", index)
    kinds: list[Check] = [INSTRUCTED for _ in range(instructed)]
    kinds += [REPEAT for _ in range(repeat)]
    per_block: list[list[Check]] = [[] for _ in train]
    order = rng.permutation(len(train))
    for place, kind in enumerate(kinds):
        per_block[int(order[place % len(train)])].append(kind)
    repeats = iter(_repeats([block.count(REPEAT) for block in per_block], train, rng, within_block))
    asked = iter(draw_instructed(instructed, None, rng))
    out = []
    for block in per_block:
        shown = [block[int(place)] for place in rng.permutation(len(block))]
        out.append(tuple(next(repeats) if kind == REPEAT else next(asked) for kind in shown))
    return tuple(out)


def draw_instructed(
    count: int, options: Sequence[str] | None, rng: np.random.Generator
) -> tuple[CheckDraw, ...]:
    """Instructed checks whose answers go round the options (by default the four keys) in a drawn order."""
    asked = options or INSTRUCTED_KEYS
    order = rng.permutation(len(asked))
    return tuple(CheckDraw(INSTRUCTED, asked[int(order[place % len(order)])]) for place in range(count))


def weave(
    items: Sequence[Entry], checks: Sequence[CheckDraw], rng: np.random.Generator
) -> tuple[Entry | CheckDraw, ...]:
    """The items in their order with the checks at drawn places, never before the first item.

    No two checks are neighbours if there are at least as many items as checks.
    """
    crowded = len(checks) > len(items)
    after = sorted(int(place) for place in rng.choice(len(items), size=len(checks), replace=crowded))
    at_place = defaultdict(list)
    for place, check in zip(after, checks, strict=True):
        at_place[place].append(check)
    out: list[Entry | CheckDraw] = []
    for place, item in enumerate(items):
        out += [item, *at_place[place]]
    return tuple(out)


def matched_plans(
    pool: Pool,
    streams: Streams,
    sessions: Iterator[Drawn],
    trials: Callable[[Drawn, PlanCondition], tuple[PlannedTrial, ...]],
) -> Iterator[Plan]:
    """One plan per slot, conditions in permuted blocks by ordinal; the arm is the condition. The n-th slot of
    each condition has the n-th of `sessions`.
    """
    known: list[Drawn] = []
    served = [0] * len(pool.conditions)
    for ordinal, level in enumerate(permuted_blocks([c.slots for c in pool.conditions], streams)):
        if served[level] == len(known):
            known.append(next(sessions))
        rank = served[level]
        served[level] += 1
        condition = pool.conditions[level]
        yield Plan(ordinal, LANE, condition.name, condition.name, trials(known[rank], condition), rank)


def planned_test(
    entry: PoolItem | CheckDraw,
    *,
    position: int,
    block: int,
    condition: str,
    explained: bool,
    buttons: tuple[Choice, ...],
    reservoir: tuple[int, ...] = (),
) -> PlannedTrial:
    """A test trial, or the check that takes its place; a repeat differs from a test by `check` alone."""
    if isinstance(entry, CheckDraw) and entry.item is None:
        return instructed_trial(entry, position, block, condition, reservoir)
    check = entry if isinstance(entry, CheckDraw) else None
    item = entry if isinstance(entry, PoolItem) else entry.item
    assert item is not None
    return PlannedTrial(
        position=position,
        block=block,
        phase="test",
        kind="predict",
        item=item.key,
        condition=condition,
        explained=explained,
        choices=buttons,
        check=check.check if check else "",
        expected=check.expected if check else "",
        right=None if check else item.predicted,
        reservoir=reservoir,
    )


def instructed_trial(
    check: CheckDraw, position: int, block: int, condition: str, reservoir: tuple[int, ...] = ()
) -> PlannedTrial:
    """The check that names its key; it stands under the condition of its neighbours."""
    return PlannedTrial(
        position=position,
        block=block,
        phase="test",
        kind="instructed",
        item=None,
        condition=condition,
        explained=False,
        choices=instructed_buttons(),
        check=check.check,
        expected=check.expected,
        reservoir=reservoir,
    )


def _repeats(
    counts: Sequence[int],
    train: Sequence[Sequence[PoolItem]],
    rng: np.random.Generator,
    within_block: bool,
) -> Iterator[CheckDraw]:
    labels = sorted({item.predicted for block in train for item in block})
    wanted = cycle([labels[int(place)] for place in rng.permutation(len(labels))])
    left: list[PoolItem] = []
    for count, block in zip(counts, train, strict=True):
        left = list(block) if within_block else [*left, *block]
        for _ in range(count):
            label = next(wanted)
            fitting = [item for item in left if item.predicted == label] or left
            item = fitting[int(rng.integers(len(fitting)))]
            left.remove(item)
            yield CheckDraw(REPEAT, item.predicted, item)
