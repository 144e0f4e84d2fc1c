"""Payouts and lines of a statement: each matches at most once, and no cent is lost or counted twice."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowd.money.matching import Attempt, Match, match
from crowd.platforms.base import Line

pytestmark = pytest.mark.pure
CENTS = st.integers(1, 6)


def bonuses(*cents: int, doubt: int = 0) -> list[Attempt]:
    return [Attempt(key, "bonus", amount, f"ref-{key}", doubt) for key, amount in enumerate(cents)]


def shown(*cents: int) -> list[Line]:
    return [Line("bonus", amount, count) for amount, count in Counter(cents).items()]


def plain(lines: list[Line], attempts: list[Attempt]) -> Match:
    return match(lines, attempts, keeps_references=False)


def test_it_tells_two_equal_bonuses_from_one() -> None:
    assert plain(shown(20, 20), bonuses(20, 20)).lacking == ()
    once = plain(shown(20), bonuses(20, 20))
    assert len(once.matched) == 1 and len(once.lacking) == 1 and once.surplus == ()
    thrice = plain(shown(20, 20, 20), bonuses(20, 20))
    assert thrice.lacking == () and thrice.surplus == (("bonus", 20),)


def test_it_sees_two_payouts_in_a_line_that_is_their_sum() -> None:
    result = plain(shown(50), bonuses(20, 30))
    assert result.by_sum == result.matched == {0, 1} and result.surplus == ()
    # A line of the amount itself comes first; the sum is made of what is left.
    both = plain(shown(20, 50), bonuses(20, 20, 30))
    assert both.lacking == () and len(both.by_sum) == 2 and both.surplus == ()


def test_it_guesses_no_sum_that_several_sets_of_payouts_have() -> None:
    result = plain(shown(50), bonuses(20, 30, 10, 40))
    assert result.matched == frozenset() and result.surplus == (("bonus", 50),)
    assert result.lacking == (0, 1, 2, 3)


def test_it_gives_a_line_to_the_more_certain_payout() -> None:
    sent, unknown = Attempt(1, "bonus", 20, doubt=1), Attempt(0, "bonus", 20, doubt=2)
    assert plain(shown(20), [unknown, sent]).matched == {1}
    confirmed = Attempt(2, "bonus", 20, doubt=0)
    assert plain(shown(20), [unknown, sent, confirmed]).matched == {2}


def test_it_believes_no_amount_if_the_platform_keeps_references() -> None:
    lines = [Line("bonus", 20, reference="ref-1"), Line("bonus", 20, reference="by-hand")]
    result = match(lines, bonuses(20, 20), keeps_references=True)
    assert result.matched == {1} and result.lacking == (0,) and result.surplus == (("bonus", 20),)
    assert not result.by_amount
    other_amount = match([Line("bonus", 21, reference="ref-0")], bonuses(20), keeps_references=True)
    assert other_amount.lacking == (0,) and other_amount.surplus == (("bonus", 21),)


def test_it_keeps_rewards_and_bonuses_apart() -> None:
    """A reward is no proof of an equal bonus; a payment for being screened out is the platform's own."""
    reward = Attempt(7, "own", 20)
    result = plain([Line("reward", 20)], [*bonuses(20), reward])
    assert result.matched == {7} and result.lacking == (0,)
    assert plain([Line("screen_out", 20)], [reward]).matched == {7}
    assert plain([Line("bonus", 20)], [reward]).surplus == (("bonus", 20),)


@given(st.lists(CENTS, max_size=7), st.lists(CENTS, max_size=7), st.booleans())
def test_it_loses_no_cent_and_counts_none_twice(sent: list[int], listed: list[int], keeps: bool) -> None:
    """Conservation: what is shown is matched or surplus, what was sent is matched or lacking."""
    attempts = bonuses(*sent)
    result = match(shown(*listed), attempts, keeps_references=keeps)
    matched = sum(attempt.cents for attempt in attempts if attempt.key in result.matched)
    assert sum(listed) == matched + result.surplus_cents
    assert sorted([*result.matched, *result.lacking]) == [attempt.key for attempt in attempts]
    if keeps:
        assert not result.matched  # No line carries a reference of ours.


@given(st.lists(CENTS, max_size=9), st.lists(CENTS, max_size=9))
def test_it_matches_as_many_equal_amounts_as_there_are_on_both_sides(
    sent: list[int], listed: list[int]
) -> None:
    """Multisets, counted in another way: the smaller of both counts for each amount."""
    result = plain(shown(*listed), bonuses(*sent))
    alike = sum((Counter(sent) & Counter(listed)).values())
    assert len(result.matched) - len(result.by_sum) == alike


@given(st.lists(CENTS, max_size=6), st.permutations(range(6)))
def test_it_does_not_depend_on_the_order_of_rows(sent: list[int], order: list[int]) -> None:
    attempts = bonuses(*sent)
    turned = [attempts[place] for place in order if place < len(attempts)]
    lines = shown(*sent[: len(sent) // 2], 3)
    assert plain(lines, turned).matched == plain(lines, attempts).matched
    assert plain(lines, turned).surplus == plain(lines[::-1], attempts).surplus
