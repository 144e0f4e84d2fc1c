"""Matches payouts to the lines of a platform's statement, for one submission. Pure.

A line with a reference is the payout of that reference. Other lines have no identity, so both sides are
multisets of amounts: an amount that is shown twice matches two payouts, never more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from crowd.platforms.base import Line

Way = Literal["own", "bonus"]
"""How a payment reaches a person: by the platform's own act (a reward, a screen-out), or as a bonus."""
OWN_KINDS = frozenset({"reward", "screen_out"})
SUM_MAX = 8
"""For more unmatched payouts than that, no sum of them is looked for: there would be too many."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One payout that was sent or may have been. The more certain it is that it was paid, the smaller is
    `doubt`: of two equal amounts the more certain one is matched first. `key` is the row's."""

    key: int
    way: Way
    cents: int
    reference: str = ""
    doubt: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """The result. `matched`: the payouts that the statement shows; `by_sum`: those of them that it shows as
    one line together; `by_amount`: those that only their amount connects with a line. `lacking`: payouts that
    it does not show. `surplus`: what it shows and no payout explains, as (kind, cents) for each payment."""

    matched: frozenset[int] = frozenset()
    by_sum: frozenset[int] = frozenset()
    by_amount: frozenset[int] = frozenset()
    lacking: tuple[int, ...] = ()
    surplus: tuple[tuple[str, int], ...] = ()

    @property
    def surplus_cents(self) -> int:
        return sum(cents for _, cents in self.surplus)


def match(lines: Sequence[Line], attempts: Sequence[Attempt], *, keeps_references: bool) -> Match:
    """Matches every payout and every line at most once. With `keeps_references` the platform shows our
    reference with each bonus, so that an equal amount alone proves nothing."""
    matched: set[int] = set()
    by_sum: set[int] = set()
    by_amount: set[int] = set()
    surplus: list[tuple[str, int]] = []
    for way in ("own", "bonus"):
        left = Counter(_of_way(lines, way))
        waiting = [attempt for attempt in attempts if attempt.way == way]
        referenced = way == "bonus" and keeps_references
        for attempt in sorted(waiting, key=lambda each: (each.doubt, each.key)):
            line = next((each for each in left if left[each] > 0 and _fits(each, attempt, referenced)), None)
            if line is not None:
                left[line] -= 1
                matched.add(attempt.key)
                by_amount |= {attempt.key} if way == "bonus" and not line[2] else set()
        rest = [attempt for attempt in waiting if attempt.key not in matched]
        if way == "bonus" and not referenced:
            by_sum |= _sums(left, rest)
        surplus += [(kind, cents) for kind, cents, _ in left.elements()]
    matched |= by_sum
    lacking = tuple(attempt.key for attempt in attempts if attempt.key not in matched)
    return Match(frozenset(matched), frozenset(by_sum), frozenset(by_amount), lacking, tuple(sorted(surplus)))


def _of_way(lines: Iterable[Line], way: str) -> Iterator[tuple[str, int, str]]:
    for line in lines:
        if (line.kind in OWN_KINDS) == (way == "own"):
            for _ in range(line.count):
                yield line.kind, line.cents, line.reference


def _fits(line: tuple[str, int, str], attempt: Attempt, referenced: bool) -> bool:
    _, cents, reference = line
    if cents != attempt.cents:
        return False
    return reference == attempt.reference if referenced else reference in ("", attempt.reference)


def _sums(left: Counter[tuple[str, int, str]], rest: Sequence[Attempt]) -> set[int]:
    """The payouts that one line shows together. Only if a single set of them has that sum: two possible sets
    prove nothing. Takes the line from `left`."""
    together: set[int] = set()
    for line in sorted(left.elements()):
        free = [attempt for attempt in rest if attempt.key not in together]
        if not 2 <= len(free) <= SUM_MAX:
            break
        sets = [
            chosen
            for size in range(2, len(free) + 1)
            for chosen in combinations(free, size)
            if sum(attempt.cents for attempt in chosen) == line[1]
        ]
        if len(sets) == 1:
            left[line] -= 1
            together |= {attempt.key for attempt in sets[0]}
    return together
