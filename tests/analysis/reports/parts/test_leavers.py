"""Those who left count as assigned like the others; how much that is was counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from analysis.reports.parts.dropout import leavers_content, leavers_sentence

pytestmark = pytest.mark.pure


def people(*rows: tuple[str, str, float, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["condition", "status", "accuracy", "answers"])


def test_it_weighs_those_who_left_by_a_table_counted_by_hand() -> None:
    """Means are .6 and .5. Squares within: a .04 + .04 + .16 + .16 (the last left), b .04 + .04: .48."""
    told = leavers_content(
        people(
            ("a", "passed", 0.4, 20),
            ("a", "passed", 0.8, 20),
            ("a", "screened", 0.2, 20),
            ("a", "incomplete", 1.0, 2),
            ("b", "passed", 0.3, 20),
            ("b", "withdrawn", 0.7, 18),
            ("c", "withdrawn", 1.0, 1),
        )
    )
    assert (told["n"], told["answers"], told["answers_min"], told["answers_max"]) == (2, 20, 2, 18)
    assert told["share_of_people"] == pytest.approx(2 / 6)
    assert told["share_of_answers"] == pytest.approx(20 / 100)
    assert told["share_of_ss"] == pytest.approx((0.16 + 0.04) / 0.48)
    said = leavers_sentence(told)
    assert said.startswith(
        "2 people who left count here, with 2\N{EN DASH}18 answers, each as much as a person"
    )
    assert said.endswith(
        "33 % of the people, 20 % of the answers and 42 % of the sum of squares within conditions."
    )


def test_it_says_nothing_if_nobody_left() -> None:
    told = leavers_content(people(("a", "passed", 0.4, 20), ("a", "screened", 0.4, 20)))
    assert told["n"] == 0 and told["share_of_ss"] is None
    assert leavers_sentence(told) == ""
    assert leavers_content(people())["share_of_people"] is None


def test_it_leaves_out_a_share_of_nothing() -> None:
    told = leavers_content(people(("a", "passed", 0.5, 20), ("a", "incomplete", 0.5, 4)))
    assert told["share_of_ss"] is None
    assert leavers_sentence(told).endswith("50 % of the people and 17 % of the answers.")
