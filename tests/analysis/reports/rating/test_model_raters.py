"""Models beside people: one mode for both, the order of conditions, and origins that are never pooled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from analysis.facts import SlotFacts, StudyFacts
from analysis.frames import Frames
from analysis.reports.output.html import page
from analysis.reports.report import Report
from analysis.reports.report_assembly import report_of_origin
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings.agreement import human_row
from analysis.stats.ratings.condition_order_agreement import rank_agreement
from tests.analysis.rated import METHODS, pictures_of, rated, rating_facts, rating_frames, sitting_row

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("undrawn", "few_draws", "without_odds")]
SCALE = (1, 2, 3, 4, 5)
ASKED = ("q1", "q2")
ITEMS, RATERS = 8, 4
LEVEL = {"grad_cam": 0, "random": 2, "clip_linear": 1}
"""How much lower each condition is rated."""


def usual(item: int, condition: str) -> int:
    return 5 - LEVEL[condition] - item % 3


def asked_as(prompt: str = "plain", order: str = "given", **more: Any) -> dict[str, Any]:
    return {
        "model": "stand-in", "host": "there", "prompt": prompt, "order": order, "prompt_digest": "d" * 12,
        "trained_on_data": "unknown", "faults": {}, **more,
    }  # fmt: skip


def both(
    people: Any, models: Mapping[str, tuple[dict[str, Any], Any]], items: int = ITEMS, raters: int = RATERS
) -> Frames:
    """People who all give one point, and models: each with a function of item and condition."""
    trials, sittings = [], []
    rows = [(f"p{n}", "human", "", people) for n in range(raters)]
    rows += [(name, "model", json.dumps(asked), point) for name, (asked, point) in models.items()]
    for at, (name, origin, asked, point) in enumerate(rows):
        sittings.append(sitting_row(name, name, at, origin=origin, asked=asked))
        pairs = [(item, method) for item in range(items) for method in METHODS]
        trials += [
            rated(
                name,
                name,
                place,
                (f"i{item}", method),
                dict.fromkeys(ASKED, point(item, method)),
                origin=origin,
            )
            for place, (item, method) in enumerate(pairs)
        ]
    return rating_frames(trials, sittings, pictures_of(items, METHODS))


def facts(**more: Any) -> StudyFacts:
    return rating_facts(asked=ASKED, **more)


def of_models(frames: Frames, **more: Any) -> Report:
    return report_of_origin(frames, facts(**more), "rating", "model", "")


def content(report: Report, key: str) -> Any:
    return next(section.content for section in report.sections if section.key == key)


# One rater's answers in place of a person's


def test_another_rater_is_scored_against_the_same_modes() -> None:
    """People who agree leave nothing to the draw, so the textbook's formulas give every number."""
    rng = np.random.default_rng(1)
    mode, answers = rng.integers(1, 6, 60).astype(float), rng.integers(1, 6, 60).astype(float)
    row = human_row(np.repeat(mode[:, None], 3, axis=1), SCALE, leave_one_out=True, answers=answers)
    assert row.mse == pytest.approx(((answers - mode) ** 2).mean())
    assert row.kappa == pytest.approx(cohen_kappa_score(answers, mode, weights="quadratic", labels=SCALE))
    assert row.spearman == pytest.approx(spearmanr(answers, mode).statistic)


def test_it_is_as_kind_to_the_other_rater_as_to_people() -> None:
    """A rater who copies the first of two people meets a mode that is the first or the second, by chance:
    half the squared distance of the two people; the person drawn meets the other person always."""
    rng = np.random.default_rng(2)
    people = rng.integers(1, 6, (400, 2)).astype(float)
    apart = ((people[:, 0] - people[:, 1]) ** 2).mean()
    person = human_row(people, SCALE, leave_one_out=True, draws=400)
    other = human_row(people, SCALE, leave_one_out=True, draws=400, answers=people[:, 0])
    assert person.mse == pytest.approx(apart)
    assert other.mse == pytest.approx(apart / 2, rel=0.05)


@pytest.mark.parametrize(
    ("answers", "says"),
    [([1.0], "1 answers to 3 units"), ([1, 2, 9], "none of the levels"), ([1, 2, np.nan], "The answers")],
)
def test_answers_that_do_not_fit_are_told(answers: list[float], says: str) -> None:
    with pytest.raises(StatsError, match=says):
        human_row(np.ones((3, 2)) * [[1], [2], [3]], SCALE, leave_one_out=True, answers=answers)


# The order of conditions


def order(means: Mapping[str, float], noise: float, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = [(name, f"p{p}", f"i{i}", mean + noise * rng.normal()) for name, mean in means.items()
            for p in range(5) for i in range(6)]  # fmt: skip
    return pd.DataFrame(rows, columns=["group", "person", "item", "value"])


def compared(ours: pd.DataFrame, theirs: pd.DataFrame, **more: Any) -> Any:
    return rank_agreement(
        ours["value"].to_list(), ours["group"].to_list(), ours["person"].to_list(), ours["item"].to_list(),
        theirs["value"].to_list(), theirs["group"].to_list(), theirs["item"].to_list(), **more,
    )  # fmt: skip


def test_the_rank_correlation_is_that_of_the_means() -> None:
    names = "abcdef"
    ours = order(dict(zip(names, range(6), strict=True)), 3.0, 1)
    theirs = order(dict(zip(names, (2, 0, 1, 5, 3, 4), strict=True)), 3.0, 2)
    told = compared(ours, theirs)
    means = [frame.groupby("group")["value"].mean() for frame in (ours, theirs)]
    assert told.rho == pytest.approx(spearmanr(*means).statistic)
    assert (told.groups, told.people, told.items) == (6, 5, 6)
    assert told.range.low <= told.rho <= told.range.high and told.range.low < told.range.high
    assert compared(ours, theirs, seed=0) == told != compared(ours, theirs, seed=1)


def test_clear_orders_leave_nothing_to_the_draws() -> None:
    ours, turned = order({"a": 1, "b": 5, "c": 9}, 0.1, 1), order({"a": 9, "b": 5, "c": 1}, 0.1, 2)
    same, opposite = compared(ours, ours), compared(ours, turned)
    assert (same.rho, same.range.as_json()) == (1, [1, 1])
    assert (opposite.rho, opposite.range.as_json()) == (-1, [-1, -1])


def test_groups_that_one_side_alone_rated_are_left_out() -> None:
    ours, theirs = (
        order({"a": 1, "b": 5, "c": 9, "x": 0}, 0.1, 1),
        order({"a": 1, "b": 5, "c": 9, "y": 3}, 0.1, 2),
    )
    assert compared(ours, theirs).groups == 3
    with pytest.raises(StatsError, match="2 groups"):
        compared(ours[ours["group"] != "a"], theirs)
    flat = theirs.assign(value=3.0)
    with pytest.raises(StatsError, match="do not differ"):
        compared(ours, flat)
    alone = ours[ours["person"] == "p0"]
    assert compared(alone, theirs).range is None, "one person says nothing of others"


# The report


def test_a_model_that_answers_as_people_do_agrees_wholly_and_one_that_does_not_less() -> None:
    frames = both(
        usual,
        {
            "m1": (asked_as(), usual),
            "m2": (asked_as("layperson"), lambda item, method: 6 - usual(item, method)),
        },
    )
    told = content(of_models(frames), "beside_people")
    by = {(row["question"], row["manner"]): row for row in told["items"]}
    same, opposite = (
        by["q1", f"stand-in at there, {prompt}, answers given"] for prompt in ("plain", "layperson")
    )
    assert same["model"]["mse"] == 0 and same["model"]["kappa"] == same["model"]["spearman"] == 1
    assert same["model"]["units"] == ITEMS * len(METHODS)
    assert same["person"] == opposite["person"] and same["person"]["kappa"] == 1
    assert opposite["model"]["spearman"] == pytest.approx(-1)
    rhos = {(row["question"], row["manner"].split(", ")[1]): row["rho"] for row in told["orders"]}
    assert rhos["q2", "plain"] == 1 and rhos["q2", "layperson"] == -1
    assert told["people"] == RATERS
    manners = content(of_models(frames), "models")
    assert [row["sessions"] for row in manners["manners"]] == [1, 1]
    # The point in the middle of the scale is its own opposite.
    middle = np.mean([usual(i, m) == 3 for i in range(ITEMS) for m in METHODS])
    assert manners["same_point"]["stand-in at there"]["share"] == pytest.approx(middle)


def test_people_and_models_are_never_pooled() -> None:
    alone = both(usual, {})
    with_models = both(usual, {"m": (asked_as(), lambda item, method: 1)})
    first, second = (report_of_origin(f, facts(), "rating", "human", "").json() for f in (alone, with_models))
    assert first == second
    told = of_models(with_models)
    assert told.heading == "A model answered, not people." and told.origin == "model"
    assert {row["mean"] for row in content(told, "conditions")} == {1.0}


def test_the_comparison_is_sealed_as_people_s_results_are() -> None:
    frames = both(usual, {"m": (asked_as(), usual)})
    sealed = replace(facts(state="open"), slots=(SlotFacts("round-0", "Round 0", 8, 3, by="lane"),))
    report = report_of_origin(frames, sealed, "rating", "model", "")
    assert content(report, "beside_people") is None and not report.seal.sealed
    assert {row["mean"] for row in content(report, "conditions")} != {None}, "a model's own results are open"
    full = replace(sealed, slots=(SlotFacts("round-0", "Round 0", 8, 8, by="lane"),))
    assert content(report_of_origin(frames, full, "rating", "model", ""), "beside_people") is not None


def test_without_people_nothing_is_compared_and_sessions_that_did_not_pass_are_not_in_it() -> None:
    frames = both(usual, {"m": (asked_as(), usual), "n": (asked_as("layperson"), usual)}, raters=0)
    report = of_models(frames)
    assert "beside_people" not in {section.key for section in report.sections}
    screened = both(
        usual, {"m": (asked_as(), usual), "n": (asked_as("layperson", faults={"empty": 2}), usual)}
    )
    screened.participants.loc[screened.participants["session"] == "n", "status"] = "incomplete"
    told = of_models(screened)
    assert {row["manner"] for row in content(told, "beside_people")["items"]} == {
        "stand-in at there, plain, answers given"
    }
    (row,) = (row for row in content(told, "models")["manners"] if row["prompt"] == "layperson")
    assert (row["sessions"], row["passed"], row["faults"]) == (1, 0, {"empty": 2})


@pytest.mark.parametrize(
    ("trained", "says"),
    [("unknown", "is unknown"), ("yes", "declared as trained"), ("no", "declared as not")],
)
def test_it_says_whether_the_data_may_have_been_in_its_training(trained: str, says: str) -> None:
    text = page(of_models(both(usual, {"m": (asked_as(trained_on_data=trained), usual)})))
    assert says in text and "A model answered, not people." in text
    for word in ("replace", "instead of people", "substitute", "as good as people"):
        assert word not in text.lower()
