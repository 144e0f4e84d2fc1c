"""The report of a study of advice: numbers by hand, what is undefined, what stays sealed, planted effects."""

from __future__ import annotations

import json
from statistics import NormalDist

import pytest

from analysis.any_table.result_tables import Table
from analysis.reports.assisted_decision.accuracy_and_reliance import (
    SHARES,
    accuracy_rows,
    contrasts,
    decision_rows,
    reliance_rows,
)
from analysis.reports.assisted_decision.report import POST_TREATMENT, report
from analysis.reports.output.html import page
from analysis.reports.report import Report
from tests.analysis.advised import Habit, advised_facts, decisions, frames_of, planted

pytestmark = pytest.mark.pure

# item truth advice first second; the advice is right about i1 to i3 and wrong about i4.
BY_HAND = {
    "alone": {
        "p3": decisions("i1 a a a a\ni2 b b b a\ni3 a a b b\ni4 b a b b"),
        "p4": decisions("i1 a a b a\ni2 b b b b\ni3 a a a a\ni4 b a a a"),
    },
    "plain": {
        "p1": decisions("i1 a a b a\ni2 b b a a\ni3 a a a a\ni4 b a b a"),
        "p2": decisions("i1 a a a a\ni2 b b b b\ni3 a a b a\ni4 b a b b"),
    },
    "marked": {
        "p5": decisions("i1 a a a a\ni2 b b b b\ni3 a a a a\ni4 b a b b"),
        "p6": decisions("i1 a a a a\ni2 b b b b\ni3 a a a a\ni4 b a b b"),
    },
}
NAMES = tuple(BY_HAND)
FACTS = advised_facts(NAMES, wanted=2, kept=2)
Z = NormalDist().inv_cdf


@pytest.fixture(scope="module")
def made() -> Report:
    return report(frames_of(BY_HAND), FACTS)


def rows_of(table: Table) -> dict[str, list[str]]:
    return {row[0]: list(row[1:]) for row in table.rows}


def test_it_counts_first_and_second_decisions_by_hand() -> None:
    """Of 8 each: without advice 5 and 5 right, with plain advice 5 and 6, with a map 8 and 8; advice 6."""
    rows = decision_rows(frames_of(BY_HAND))
    assert rows.groupby("condition")[["initial", "final", "advice", "switched"]].sum().to_dict("index") == {
        "alone": {"initial": 5, "final": 5, "advice": 6, "switched": 2},
        "plain": {"initial": 5, "final": 6, "advice": 6, "switched": 3},
        "marked": {"initial": 8, "final": 8, "advice": 6, "switched": 0},
    }
    told = {row.condition.name: row for row in accuracy_rows(rows, FACTS)}
    plain = told["plain"]
    assert plain.initial and plain.final and plain.gain and plain.over_advice and plain.over_better
    assert (plain.people, plain.items, plain.advice) == (2, 4, 0.75)
    assert [group.estimate for group in (plain.initial, plain.final, plain.gain)] == [0.625, 0.75, 0.125]
    assert (plain.over_advice.estimate, plain.over_better.estimate) == (0.0, 0.0)
    marked = told["marked"]
    assert marked.over_advice and marked.over_better
    assert (marked.over_advice.estimate, marked.over_better.estimate) == (0.25, 0.0)


@pytest.mark.parametrize(
    ("condition", "share", "yes", "total"),
    [
        ("plain", "rair", 2, 3),  # p1 i1 and p2 i3 taken, p1 i2 not
        ("plain", "rsr", 1, 2),  # i4: p2 kept it, p1 did not
        ("plain", "over_reliance", 1, 2),
        ("plain", "under_reliance", 1, 6),
        ("plain", "to_right", 2, 3),
        ("plain", "to_wrong", 1, 2),
        ("plain", "from_right", 1, 5),
        ("plain", "from_wrong", 2, 3),
        ("plain", "switched", 3, 8),
        ("alone", "rair", 1, 2),  # p4 i1 changed by itself, p3 i3 did not
        ("alone", "rsr", 1, 1),  # p3 i4
        ("alone", "switched", 2, 8),
        ("alone", "from_right", 1, 5),
        ("alone", "from_wrong", 1, 3),
        ("marked", "rsr", 2, 2),
        ("marked", "over_reliance", 0, 2),
    ],
)
def test_reliance_is_that_of_a_table_counted_by_hand(
    condition: str, share: str, yes: int, total: int
) -> None:
    rows = {row.condition.name: row for row in reliance_rows(decision_rows(frames_of(BY_HAND)), FACTS)}
    told = rows[condition].shares[share].told
    assert told is not None and (told.yes, told.total) == (yes, total)
    assert told.share == pytest.approx(yes / total)


def test_following_is_told_apart_by_the_quantiles_of_corrected_rates() -> None:
    """Plain advice: 5 of 6 right and 1 of 2 wrong answers are followed."""
    rows = {row.condition.name: row for row in reliance_rows(decision_rows(frames_of(BY_HAND)), FACTS)}
    plain = rows["plain"]
    assert plain.d_prime is not None and plain.criterion is not None
    hits, false = Z(5.5 / 7), Z(1.5 / 3)
    assert plain.d_prime.estimate == pytest.approx(hits - false)
    assert plain.criterion.estimate == pytest.approx(-(hits + false) / 2)


def test_contrasts_are_of_means_on_shared_items() -> None:
    rows = decision_rows(frames_of(BY_HAND))
    made = {(c.family, c.first, c.measure): c for m in ("gain", "final") for c in contrasts(rows, FACTS, m)}
    assert [(c.first, c.second) for c in contrasts(rows, FACTS, "gain")] == [
        ("plain", "alone"), ("marked", "alone"), ("marked", "plain")
    ]  # fmt: skip
    estimates = {key: c.result.estimate for key, c in made.items() if c.result}
    assert estimates["advice", "plain", "gain"] == pytest.approx(0.125)
    assert estimates["advice", "marked", "gain"] == pytest.approx(0.0)
    assert estimates["explanation", "marked", "final"] == pytest.approx(0.25)
    # Holm's correction is over the two contrasts of one family, and a family of one needs none.
    single = made["explanation", "marked", "final"]
    assert single.result is not None and single.p_holm == single.result.p


def test_items_that_one_condition_lacks_are_left_out_of_a_contrast() -> None:
    less = {**BY_HAND, "plain": {p: [rows[1], rows[3]] for p, rows in BY_HAND["plain"].items()}}
    made = contrasts(decision_rows(frames_of(less)), FACTS, "final")
    assert made[0].result is not None and made[0].result.items == 2
    # Of i2 and of i4 one decision of two is right, in both conditions.
    assert made[0].result.estimate == 0
    right = {**BY_HAND, "plain": {p: rows[:2] for p, rows in BY_HAND["plain"].items()}}
    (none_wrong, *_) = contrasts(decision_rows(frames_of(right)), FACTS, "final")
    assert none_wrong.result is None and "No item of one of the strata" in none_wrong.problem
    apart = {**BY_HAND, "plain": {"p1": decisions("j1 a a a a")}}
    (first, *_) = contrasts(decision_rows(frames_of(apart)), FACTS, "final")
    assert first.result is None and "No item was answered in both groups" in first.problem


def test_what_has_no_decision_to_be_a_share_of_is_said(made: Report) -> None:
    """With a map no person was wrong at first, so there is no RAIR."""
    section = next(s for s in made.sections if s.key == "reliance")
    assert POST_TREATMENT in section.paragraphs
    assert (
        "Marked: RAIR not defined, as there is no decision that it would be a share of." in section.paragraphs
    )
    told = rows_of(made.tables()["reliance"])
    assert told["Marked"] == ["–", "–", "0 of 0", "100.0", "–", "2 of 2"]
    assert told["Plain"][:3] == ["66.7", "–", "2 of 3"]
    assert told["Alone (advice not shown)"][2] == "1 of 2"
    assert "Schemmer et al. 2023" in made.tables()["reliance"].title


def test_advice_that_is_always_right_leaves_self_reliance_undefined() -> None:
    always = {
        n: {p: [d for d in rows if d.item != "i4"] for p, rows in people.items()}
        for n, people in BY_HAND.items()
    }
    rows = reliance_rows(decision_rows(frames_of(always)), FACTS)
    assert all(row.shares["rsr"].told is None and row.shares["over_reliance"].told is None for row in rows)
    assert all("No answer is in wrong" in row.problem and row.d_prime is None for row in rows)
    assert report(frames_of(always), FACTS).json()["reliance"][0]["rsr"]["problem"]


def test_it_names_every_table_and_says_what_the_advice_alone_reaches(made: Report) -> None:
    keys = {"conditions", "beside", "gain_contrasts", "final_contrasts", "reliance", "following"}
    assert keys | {"discrimination", "spontaneous", "sets"} <= set(made.tables())
    accuracy = rows_of(made.tables()["conditions"])
    assert accuracy["Plain"][:3] == ["2", "62.5", "75.0"] and accuracy["Plain"][4] == "12.5"
    beside = rows_of(made.tables()["beside"])
    assert "Alone" not in beside, "without advice nothing is held against it"
    assert (beside["Plain"][::2], beside["Marked"][::2]) == (["12.5", "0.0", "0.0"], ["0.0", "25.0", "0.0"])
    assert "75.0 % by design" in made.tables()["beside"].note
    following = rows_of(made.tables()["discrimination"])["Plain"]
    assert following[0] == f"{Z(5.5 / 7) - Z(1.5 / 3):.2f}"
    said = next(s for s in made.sections if s.key == "conditions").paragraphs
    assert said[0] == (
        "Plain: 75.0 % of second decisions are right, of first ones 62.5 %, and of the advice 75.0 %: that "
        "people with advice are above both was not shown."
    )
    spontaneous = rows_of(made.tables()["spontaneous"])
    assert [cells[-1] for cells in spontaneous.values()] == ["2 of 8", "1 of 5", "1 of 3"]
    assert len(page(made)) > 2000 and json.loads(json.dumps(made.json()))["conditions"][1]["n"] == 2
    assert set(made.json()["reliance"][0]) > set(SHARES)


def test_every_condition_without_people_has_its_row() -> None:
    few = report(frames_of({"alone": BY_HAND["alone"]}), FACTS)
    assert rows_of(few.tables()["conditions"])["Plain"] == ["0", *["–"] * 5]
    nobody = report(frames_of({}), FACTS)
    assert nobody.opening == "" and rows_of(nobody.tables()["conditions"])["Alone"][0] == "0"


def test_nothing_is_told_by_condition_while_data_are_collected() -> None:
    collecting = advised_facts(NAMES, state="open", kept=2, wanted=30)
    made = report(frames_of(BY_HAND), collecting)
    assert made.seal.sealed
    assert made.tables()["conditions"].columns == ("Condition", "n", "Wanted")
    assert not {"reliance", "gain_contrasts", "spontaneous"} & set(made.tables())
    assert made.opening == "6 people kept; 79.2 % of second decisions are right."


def test_who_is_counted_is_told_apart() -> None:
    screened = frames_of(BY_HAND, status={"p2": "screened"})
    made = report(screened, FACTS)
    rows = [row for row in made.tables()["sets"].rows if row[:2] == ("Plain", "Alone")]
    assert [(row[2], row[3]) for row in rows] == [
        ("Kept", "3"), ("With those left out by hand", "3"), ("As assigned", "4")
    ]  # fmt: skip
    assert rows_of(made.tables()["conditions"])["Plain"][0] == "1"


def test_people_above_both_are_said_to_be() -> None:
    """Wrong advice is refused and right advice is taken, so the second decisions beat both."""
    habits = {"alone": Habit(), "plain": Habit(takes_right=0.9, changes=0.0)}
    rows = decision_rows(planted(habits, people=40, seed=4))
    told = {row.condition.name: row for row in accuracy_rows(rows, advised_facts(("alone", "plain")))}
    assert told["plain"].is_above_both and not told["alone"].is_above_both
    better = told["plain"].over_better
    assert better is not None and better.interval is not None and better.interval.low > 0
    follows_all = {"alone": Habit(), "plain": Habit(takes_right=1.0, takes_wrong=1.0, changes=0.0)}
    rows = decision_rows(planted(follows_all, people=40, seed=4))
    told = {row.condition.name: row for row in accuracy_rows(rows, advised_facts(("alone", "plain")))}
    assert told["plain"].over_advice is not None and told["plain"].over_advice.estimate == 0
    assert not told["plain"].is_above_both


def test_the_figure_is_drawn_with_the_words_for_observers() -> None:
    made = report(frames_of(BY_HAND, origin="simulated"), FACTS)
    (figure,) = next(s for s in made.sections if s.key == "conditions").figures
    drawn = figure.draw()
    assert drawn.get_suptitle() == "computational observers"
