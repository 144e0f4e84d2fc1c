"""How numbers, p and findings are written."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.any_table.formats import (
    LABELS,
    NONE,
    condition_label,
    finding,
    interval,
    number,
    p_sentence,
    p_value,
    percent,
    stars,
)
from analysis.stats.intervals_and_checks import Interval
from stimuli.explainers import EXPLAINERS

pytestmark = pytest.mark.pure
MINUS = "\N{MINUS SIGN}"
shares = st.floats(0, 1)


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (None, NONE),
        (0.0, "< .001"),
        (0.00099, "< .001"),
        (0.001, ".001"),
        (0.0499, ".050"),
        (0.05, ".050"),
        (0.4, ".400"),
        (1.0, "1.000"),
    ],
)
def test_it_writes_p_with_three_decimals_and_never_as_zero(p: float | None, text: str) -> None:
    assert p_value(p) == text


def test_it_writes_p_in_a_sentence() -> None:
    assert p_sentence(0.0002) == "p < .001"
    assert p_sentence(0.899) == "p = .899"


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.049, "loss differs between lanes"),
        (0.05, "no difference in loss between lanes was detected"),
        (0.899, "no difference in loss between lanes was detected"),
        (None, "loss was not compared between lanes"),
        (0.0, "loss differs between lanes"),
    ],
)
def test_it_says_what_a_test_found(p: float | None, said: str) -> None:
    assert finding(p, "loss", "lanes") == said


@given(shares)
def test_it_gives_a_star_exactly_if_it_says_that_something_differs(p: float) -> None:
    assert bool(stars(p)) == ("differs" in finding(p, "accuracy"))
    assert stars(None) == ""


@given(shares)
def test_it_rounds_a_share_to_a_tenth_of_a_percent(share: float) -> None:
    assert abs(float(percent(share)) - 100 * share) <= 0.05 + 1e-9


@given(st.floats(-1e6, 1e6))
def test_it_writes_minus_as_a_minus_sign(value: float) -> None:
    text = number(value)
    assert "-" not in text
    assert math.isclose(float(text.replace("\N{MINUS SIGN}", "-")), value, abs_tol=0.005 + 1e-9)


def test_it_writes_nothing_without_a_sign() -> None:
    assert (number(-0.04, 1), number(-0.05001, 1)) == ("0.0", "\N{MINUS SIGN}0.1")


@given(st.floats(-1e-3, 1e-3), st.integers(0, 2))
def test_it_never_writes_a_minus_before_nothing(value: float, digits: int) -> None:
    for text in (number(value, digits), percent(value / 100, digits), interval([value, value], digits)):
        assert not re.search(rf"{MINUS}0(\.0+)?(?!\.?\d)", text), text


def test_it_writes_a_dash_for_what_is_not_there() -> None:
    assert number(None) == percent(None) == interval(None) == NONE


def test_it_writes_an_interval_in_the_unit_of_the_table() -> None:
    assert interval(Interval(0.123, 0.456), 1, 100) == "[12.3, 45.6]"
    assert interval([None, -0.5]) == "[\N{INFINITY}, \N{MINUS SIGN}0.50]"
    assert interval(Interval(0.5, math.inf)) == "[0.50, \N{INFINITY}]"


def test_it_names_conditions_as_papers_do() -> None:
    assert condition_label("grad_cam") == "Grad-CAM"
    assert condition_label("my-own_method") == "My own method"
    assert set(LABELS) <= set(EXPLAINERS), "a label for a method that is gone"
