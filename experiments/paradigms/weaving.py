"""Answer buttons, and check trials woven among test trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TypeVar

import numpy as np

from experiments.design.blocks import permuted_level
from experiments.design.rng import Streams
from experiments.kinds.base import INSTRUCTED, REPEAT, Check, Choice
from experiments.paradigms.base import BadDesign, PlannedTrial, PoolItem

INSTRUCTED_KEYS = ("d", "f", "j", "k")
"""The four keys, left to right, one of which an instructed check asks for (value, text and key alike)."""

PAIR_KEYS = ("f", "j")
ROW_KEYS = tuple("1234567890qwertyuiop")
KEYS_TO_CHOOSE_MAX = 4

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class CheckDraw:
    """A check trial to come: an instructed one (no item, four options) or a repeat of a training item."""

    check: Check
    expected: str
    item: PoolItem | None = None


def answer_buttons(choices: Sequence[tuple[str, str]], index: int, streams: Streams) -> tuple[Choice, ...]:
    """The buttons of slot `index`, left to right, the same throughout the session.

    Of two answers, each is left in one of slots 2i and 2i + 1 (stream "sides"), with keys f and j. More than
    two keep their canonical order, which may be a scale. A one-character text is its own key, otherwise keys
    are 1 to 9, 0 and the upper letter row.
    """
    if not 2 <= len(choices) <= len(ROW_KEYS):
        raise BadDesign(f"a trial has 2 to {len(ROW_KEYS)} answers, this study has {len(choices)}")
    keys, ordered = answer_keys(choices), tuple(choices)
    if len(choices) == 2 and permuted_level(2, index, streams, "sides") == 1:
        ordered = (ordered[1], ordered[0])
    return tuple(Choice(value, text, key) for (value, text), key in zip(ordered, keys, strict=True))


def answer_keys(choices: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The keys of a study's answers, left to right."""
    letters = [text.lower() for _, text in choices]
    if len(choices) == 2:
        return PAIR_KEYS
    return tuple(letters) if _are_keys(letters) else ROW_KEYS[: len(choices)]


def keys_to_choose(choices: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The keys that a person may replace by others: of two to four answers that are not their own keys."""
    keys = answer_keys(choices)
    is_own = any(key == text.lower() for key, (_, text) in zip(keys, choices, strict=True))
    return () if is_own or not 2 <= len(choices) <= KEYS_TO_CHOOSE_MAX else keys


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


def _are_keys(texts: Sequence[str]) -> bool:
    return len(set(texts)) == len(texts) and all(len(text) == 1 and text.isalnum() for text in texts)
