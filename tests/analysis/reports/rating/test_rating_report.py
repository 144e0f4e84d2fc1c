"""The report of ratings: numbers by hand, planted differences, what stays sealed, thin data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from statsmodels.stats.multitest import multipletests

from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.ratings import rated_once, rating_rows, repeated_anchors
from analysis.reports.output.html import page
from analysis.reports.output.terminal import print_report
from analysis.reports.parts.rater_agreement import TABLE_1, with_the_others
from analysis.reports.rating.method_means import pairs
from analysis.reports.rating.report import SAY, report
from analysis.reports.report import Report
from analysis.stats.ratings.agreement import modes, weighted_kappa
from stimuli.explainers import kind_of
from stimuli.spec import Component
from tests.analysis.rated import (
    METHODS,
    SIX,
    all_rated,
    pictures_of,
    planted,
    rated,
    rating_facts,
    rating_frames,
    sitting_row,
)
from tests.oracles import pasta

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("undrawn", "few_draws")]
without_odds = pytest.mark.usefixtures("without_odds")


def shown(made: Report) -> str:
    out = StringIO()
    print_report(made, Console(file=out, width=200, no_color=True))
    return page(made) + out.getvalue()


def is_told(made: Report) -> bool:
    """No value that is none: neither in the numbers nor on the page, its figures drawn."""
    return "NaN" not in json.dumps(made.json()) and "nan" not in shown(made).lower().replace("finance", "")


def rows_of(made: Report, by: str = "condition") -> dict[tuple[str, str], dict[str, Any]]:
    content = made.json()["conditions"] + made.json()["levels"]
    return {(row["name"], row["question"]): row for row in content if row["by"] == by}


def by_hand(points: Sequence[Sequence[int]], asked: Sequence[str]) -> Frames:
    """One item, one method; a row of points per rater."""
    trials = [
        rated(f"p{at}", f"p{at}", 0, ("i0", "grad_cam"), dict(zip(asked, row, strict=True)))
        for at, row in enumerate(points)
    ]
    people = [sitting_row(f"p{at}", f"p{at}", at) for at in range(len(points))]
    return rating_frames(trials, people, pictures_of(1, ("grad_cam",)))


def test_mean_and_mode_are_counted_by_hand_and_q5_is_turned_round() -> None:
    made = report(
        by_hand([(2, 1), (2, 1), (5, 4)], ("q1", "q5")), rating_facts(("grad_cam",), asked=("q1", "q5"))
    )
    q1, q5 = (rows_of(made)["grad_cam", name] for name in ("q1", "q5"))
    assert (q1["mean_asked"], q1["mean"], q1["mode"], q1["points"]) == (3.0, 3.0, 2.0, [0, 2, 0, 0, 1])
    assert (q5["mean_asked"], q5["mean"], q5["mode_asked"], q5["mode"]) == (2.0, 4.0, 1.0, 5.0)
    (line,) = made.tables()["conditions"].rows
    assert line[-3:] == ("3.00 (2)", "4.00 (5)", "0.0")
    assert made.tables()["conditions"].columns[-2:] == ("Q5, reversed", "not asked %")
    assert SAY in made.tables()["conditions"].note


def test_what_was_asked_stands_there_as_people_read_it() -> None:
    """In the words of a language file, if the study has one."""
    facts = replace(
        rating_facts(("grad_cam",), asked=("q1",)), wording={"rate_q1": "Питання", "rate_q1_low": "ні"}
    )
    ((_, *asked),) = (row[:4] for row in report(by_hand([(2,)], ("q1",)), facts).tables()["wording"].rows)
    assert asked == ["Питання", "ні", "completely"]


@without_odds
def test_its_counts_multiply_as_the_published_ones() -> None:
    """Questions by explanations by raters, which in PASTA make 633,000."""
    told = report(all_rated(lambda r, i, n, q: 1 + (r + i) % 5, raters=5, items=4), rating_facts()).json()
    of = told["pooled"]
    scale = Fraction(pasta.RATINGS, pasta.EXPLANATIONS)
    assert Fraction(of["ratings"], of["explanations"]) == scale and of["explanations"] == 4 * len(METHODS)


def test_the_twenty_methods_of_the_paper_are_there_by_form() -> None:
    """Thirteen methods on three networks, two of them not on CLIP, one on its own network, and 8 of concepts
    (two methods on two models each) are the 46 explanations of a picture."""
    assert {kind_of(Component(name)) for name in pasta.SALIENCY} == {"image"}
    assert {kind_of(Component(name)) for name in pasta.CONCEPTS} == {"concept"}
    assert len({*pasta.SALIENCY, *pasta.CONCEPTS}) == 20
    on_networks = {(name, network) for name in pasta.SALIENCY[1:] for network in pasta.NETWORKS}
    left = on_networks - {("full_grad", "clip"), ("score_cam", "clip")}
    assert len(left) + 1 + len(pasta.CONCEPTS) + 2 == pasta.POSSIBLE


@without_odds
def test_the_paper_s_table_stands_beside_ours_and_is_not_ours() -> None:
    printed = {(row[0], row[1]): tuple(map(float, row[2:])) for row in TABLE_1}
    assert printed == pasta.printed_means() and len(printed) == 15
    made = report(planted({"grad_cam": 0.5, "random": -0.5}, raters=8, items=12, per_item=4, seed=1),
                  rating_facts(("grad_cam", "random"), asked=("q1",)))  # fmt: skip
    table = made.tables()["human"]
    assert "Published, not recomputed" in table.note
    ours = [row for row in table.rows if "here" in row[1]]
    assert len(ours) == 6 and all(row[3:] == ("\N{EN DASH}",) * 5 for row in ours)
    shown = {row[:2]: row[2:] for row in table.rows}
    assert shown["SCC", "BLIP, published"] == ("0.484", "0.474", "0.150", "0.247", "0.216", "0.220")
    told = made.json()["agreement"]["q1"]
    assert told["own_left_out"]["mse"] > told["as_published"]["mse"]
    assert shown["MSE", "Human, here"][0] == f"{told['as_published']['mse']:.3f}"


@without_odds
def test_agreement_is_of_kept_raters_and_of_all() -> None:
    """Three raters agree wholly, a fourth contradicts them and was screened."""

    def point(rater: int, item: int, name: str, question: str) -> int:
        same = 1 + (item + len(name)) % 5
        return 6 - same if rater == 3 else same

    frames = all_rated(point, raters=4, items=6)
    people = frames.participants.copy()
    people.loc[people["session"] == "p003", "status"] = "screened"
    made = report(Frames(frames.trials, people, frames.stimuli, frames.extra), rating_facts())
    told = made.json()["agreement"]["q1"]
    assert told["alpha_kept"]["alpha"] == pytest.approx(1) and told["alpha_all"]["alpha"] < 0.5
    assert (told["alpha_kept"]["ratings"], told["alpha_all"]["ratings"]) == (3 * 18, 4 * 18)
    assert told["as_published"]["mse"] == 0 and told["as_published"]["kappa"] == pytest.approx(1)
    assert {r["participant"] for r in made.json()["raters"]} == {"p000", "p001", "p002"}


def test_each_rater_meets_the_mode_of_the_others() -> None:
    frames = planted({"grad_cam": 0.5, "random": -0.5}, raters=6, items=10, per_item=4, seed=4)
    rows = rated_once(rating_rows(frames))
    wide = rows.pivot_table(index=["item", "condition"], columns="participant", values="asked")
    mine = wide["p002"].dropna()
    others = modes(wide.loc[mine.index].drop(columns="p002").to_numpy())
    told = next(r for r in with_the_others(rows) if r["participant"] == "p002")
    assert told["n"] == len(mine)
    assert told["mse"] == pytest.approx(float(((mine.to_numpy() - others) ** 2).mean()))
    assert told["kappa"] == pytest.approx(weighted_kappa(mine.to_numpy(), others, (1, 2, 3, 4, 5)))


def test_anchors_tell_agreement_with_oneself_and_are_in_no_mean() -> None:
    names, trials, people = ("grad_cam",), [], []
    for rater in range(4):
        for sitting in range(2):
            session, person = f"p{rater}-{sitting}", f"p{rater}"
            people.append(sitting_row(session, person, 2 * rater + sitting, sitting=sitting))
            points = {"q1": 5 if sitting and rater == 0 else 1 + rater}
            trials.append(rated(session, person, 0, ("i9", "grad_cam"), points, anchor=True))
            trials.append(rated(session, person, 1, (f"i{sitting}", "grad_cam"), {"q1": 3}))
    frames = rating_frames(trials, people, pictures_of(10, names))
    made = report(frames, rating_facts(names, asked=("q1",)))
    told = made.json()["with_oneself"]["q1"]
    assert (told["pairs"], told["people"], told["same"], told["within_1"]) == (4, 4, 0.75, 0.75)
    assert told["kappa"] == pytest.approx(weighted_kappa([1, 2, 3, 4], [5, 2, 3, 4], (1, 2, 3, 4, 5)))
    assert rows_of(made)["grad_cam", "q1"]["mean"] == 3.0
    assert made.json()["pooled"]["anchor_ratings"] == 8 and made.json()["pooled"]["ratings"] == 8
    # The same explanation twice in one session is no agreement over time.
    assert repeated_anchors(rating_rows(rating_frames(trials[:1] * 2, people[:1]))).empty


@without_odds
def test_missing_pairs_are_counted_beside_the_means() -> None:
    def asked_of(item: int) -> tuple[str, ...]:
        return tuple(q for q in SIX if not (q == "q5" and item == 0) and not (q == "q6" and item < 3))

    trials = [
        rated(f"p{r}", f"p{r}", i, (f"i{i}", "grad_cam"), dict.fromkeys(asked_of(i), 1 + (r + i) % 5))
        for r in range(3)
        for i in range(4)
    ]
    people = [sitting_row(f"p{r}", f"p{r}", r) for r in range(3)]
    made = report(rating_frames(trials, people, pictures_of(4, ("grad_cam",))), rating_facts(("grad_cam",)))
    rows = rows_of(made)
    assert [rows["grad_cam", q]["missing"] for q in ("q4", "q5", "q6")] == [0, 0.25, 0.75]
    assert [rows["grad_cam", q]["explanations"] for q in ("q4", "q5", "q6")] == [4, 3, 1]
    assert [row[-1] for row in made.tables()["means_by_condition"].rows][-2:] == ["25.0", "75.0"]
    # In the first table each stands right behind the mean that it belongs to.
    first = made.tables()["conditions"]
    cells = dict(zip(first.columns, first.rows[0], strict=True))
    assert first.columns[-4:] == ("Q5, reversed", "not asked %", "Q6", "not asked %")
    assert (first.rows[0][-3], first.rows[0][-1]) == ("25.0", "75.0") and cells["Q4"].endswith(")")


@without_odds
def test_missing_pairs_stand_beside_modelled_means_and_above_the_figure() -> None:
    effects = {"grad_cam": 0.6, "random": -0.6}
    frames = planted(effects, raters=12, items=20, per_item=5, seed=3, asked=("q1", "q5"))

    def without(row: Any) -> str:
        points = json.loads(row["response"])
        if row["condition"] == "random" and row["item"] in {"i0", "i1", "i2", "i3", "i4"}:
            del points["q5"]
        return json.dumps(points)

    trials = frames.trials.assign(response=frames.trials.apply(without, axis=1).astype("string"))
    made = report(replace(frames, trials=trials), rating_facts(tuple(effects), asked=("q1", "q5")))
    table = made.tables()["ordinal"]
    at = table.columns.index("Not asked %")
    shares = {(row[0], row[2]): row[at] for row in table.rows}
    assert shares == {
        ("Q1", "Grad cam"): "0.0",
        ("Q1", "Random"): "0.0",
        ("Q5", "Grad cam"): "0.0",
        ("Q5", "Random"): "25.0",
    }
    (figure,) = [f for section in made.sections for f in section.figures if f.key == "means"]
    titles = [axes.get_title(loc="left") for axes in figure.draw().axes]
    assert titles[:2] == ["Q1", "Q5, reversed; 0 to 25 % not asked"]


@without_odds
def test_it_says_how_many_explanations_have_fewer_raters_than_wanted() -> None:
    """Of four explanations one has three raters, one has four, and two have five; anchors do not count."""
    trials, people = [], [sitting_row(f"p{r}", f"p{r}", r) for r in range(5)]
    for item, raters in enumerate((3, 4, 5, 5)):
        for r in range(raters):
            trials.append(rated(f"p{r}", f"p{r}", item, (f"i{item}", "grad_cam"), {"q1": 1 + r, "q2": 3}))
    trials.append(rated("p0", "p0", 9, ("i9", "grad_cam"), {"q1": 4}, anchor=True))
    frames = rating_frames(trials, people, pictures_of(10, ("grad_cam",)))
    made = report(frames, rating_facts(("grad_cam",), asked=("q1", "q2")))
    told = made.json()["coverage"]
    assert told == {"wanted": 5, "fewer": 4, "counts": [[5, 4], [4, 2], [3, 2]]}
    sentence = "4 of 8 questions about an explanation were answered by fewer than the 5 raters wanted."
    assert sentence in made.main[0].sentences and sentence in page(made)
    enough = all_rated(lambda r, i, n, q: 1 + (r + i) % 5, raters=5, items=2)
    assert report(enough, rating_facts()).json()["coverage"]["fewer"] == 0
    two = rating_facts()
    two = replace(two, design={**two.design, "raters_per_explanation": 2})
    more = report(enough, two).json()["coverage"]
    assert (more["wanted"], more["fewer"]) == (2, 0)


def test_an_equal_picture_s_rating_counts_for_both_and_is_said() -> None:
    names = ("grad_cam", "hires_cam")
    trials = [rated(f"p{r}", f"p{r}", 0, ("i0", "grad_cam"), {"q1": 2 + r}) for r in range(3)]
    trials += [rated(f"p{r}", f"p{r}", 1, ("i1", n), {"q1": 1 + r}) for r in range(3) for n in names]
    people = [sitting_row(f"p{r}", f"p{r}", r) for r in range(3)]
    same = {("i0", "hires_cam"): "grad_cam"}
    frames = rating_frames(trials, people, pictures_of(2, names), same)
    made = report(frames, rating_facts(names, asked=("q1",)))
    row = rows_of(made)["hires_cam", "q1"]
    assert (row["mean"], row["ratings"], row["shared"], row["explanations"]) == (2.5, 6, 3, 2)
    assert made.json()["pooled"]["ratings"] == 9, "raters gave no more"
    assert "Hires cam shows the same picture as Grad cam for 1 item: rated once" in page(made)
    (pair,) = made.json()["comparisons"]
    assert pair["pictures"] == 2 and pair["difference"] == pytest.approx(0, abs=1e-12)


@without_odds
def test_methods_are_compared_on_pictures_that_both_have() -> None:
    """Grad-CAM is better on the shared pictures; random has an easy picture of its own that would turn it."""
    trials = []
    for rater in range(6):
        who = f"p{rater}"
        wobble = (rater + np.arange(4)) % 2
        for item in range(4):
            better = {"q1": int(3 + wobble[item])}
            trials.append(rated(who, who, item, (f"i{item}", "grad_cam"), better))
            trials.append(
                rated(who, who, 10 + item, (f"i{item}", "random"), {"q1": int(2 + wobble[3 - item])})
            )
        for easy in range(4, 12):
            trials.append(rated(who, who, 20 + easy, (f"i{easy}", "random"), {"q1": 5}))
    people = [sitting_row(f"p{r}", f"p{r}", r) for r in range(6)]
    frames = rating_frames(trials, people, pictures_of(12, ("grad_cam", "random")))
    facts = rating_facts(("grad_cam", "random"), asked=("q1",))
    rows = rows_of(report(frames, facts))
    assert rows["random", "q1"]["mean"] > rows["grad_cam", "q1"]["mean"]
    (pair,) = pairs(rating_rows(frames), facts, ("q1",))
    assert pair.pictures == 4 and pair.result is not None and pair.result.estimate == pytest.approx(1.0)


@without_odds
def test_planned_comparisons_are_told_by_question_in_a_sentence() -> None:
    """The first thing that the terminal prints is the planned test; no sentence says more than its p."""
    effects = {"grad_cam": 0.8, "rise": 0.75, "random": -0.8}
    frames = planted(effects, raters=12, items=20, per_item=5, seed=3)
    facts = rating_facts(tuple(effects), asked=("q1",))
    made = report(frames, facts)
    rows = {(row["first"], row["second"]): row for row in made.json()["comparisons"]}
    (told,) = [line for line in made.main[0].sentences if line.startswith("Q1: ")]
    assert sum(row["p_holm"] < 0.05 for row in rows.values()) == 2
    clear = min(rows.values(), key=lambda row: (row["p_holm"], row["p"]))
    assert told.startswith("Q1: 2 of 3 pairs of conditions differ; the clearest: ")
    assert f" above Random by {clear['difference']:.2f} points, p < .001 (Holm)." in told
    # The same turned round: the second of a pair stands above the first.
    turned = report(planted({"random": -0.8, "grad_cam": 0.8}, raters=12, items=20, per_item=5, seed=3),
                    rating_facts(("random", "grad_cam"), asked=("q1",)))  # fmt: skip
    assert "Q1: 1 of 1 pair of conditions differs: Grad cam above Random by" in turned.main[0].sentences[0]
    none = report(planted({"grad_cam": 0, "random": 0}, raters=12, items=20, per_item=5, seed=3), facts)
    assert none.main[0].sentences[0].startswith("Q1: no difference in 1 pair of conditions was detected, ")
    thin = report(THIN["one rater"](), rating_facts(asked=("q1",)))
    assert "Q1: none of 3 pairs of conditions could be compared." in thin.main[0].sentences


@pytest.mark.long(stays="test_planned_comparisons_are_told_by_question_in_a_sentence")
@pytest.mark.usefixtures("without_odds")
def test_a_correction_is_named_by_what_it_goes_over() -> None:
    """Pairs are corrected within a question; saliency against concepts, one pair each, over the questions."""
    asked = ("q1", "q2", "q3")
    effects = {"grad_cam": 0.25, "rise": 0.1, "clip_linear": 0.0}
    frames = planted(effects, raters=10, items=20, per_item=5, seed=2, asked=asked)
    made = report(frames, rating_facts(tuple(effects), asked=asked))
    forms, of_pairs = made.json()["forms"], made.json()["comparisons"]
    raw = [row["p"] for row in forms]
    assert [row["p_holm"] for row in forms] == pytest.approx(multipletests(raw, method="holm")[1])
    for name in asked:
        mine = [row for row in of_pairs if row["question"] == name]
        raw = [row["p"] for row in mine]
        assert [row["p_holm"] for row in mine] == pytest.approx(multipletests(raw, method="holm")[1])
    assert "Holm: over the questions." in made.tables()["forms"].note
    assert "Holm: over the pairs of one question." in made.tables()["comparisons"].note


@without_odds
def test_saliency_and_concepts_stand_against_each_other_by_question() -> None:
    frames = planted({"grad_cam": 0.8, "clip_linear": -0.4}, raters=10, items=20, per_item=5, seed=2)
    made = report(frames, rating_facts(("grad_cam", "clip_linear"), asked=("q1",)))
    (pair,) = made.json()["forms"]
    assert (pair["first"], pair["second"], pair["pictures"]) == ("image", "concept", 20)
    assert pair["difference"] > 0.7 and pair["p"] < 0.001
    assert {row["label"] for row in made.json()["levels"]} == {"Saliency", "Concepts"}
    alone = report(
        frames, rating_facts(("grad_cam", "clip_linear"), asked=("q1",), forms={"clip_linear": "image"})
    )
    assert alone.json()["forms"] == [] and not any(t.startswith("forms") for t in alone.tables())


@without_odds
def test_a_control_is_in_no_mean_of_a_form() -> None:
    effects = {"grad_cam": 0.0, "random": -3.0, "clip_linear": 0.0}
    frames = planted(effects, raters=10, items=20, per_item=5, seed=2)
    made = report(frames, rating_facts(tuple(effects), asked=("q1",))).json()
    without = frames.trials[frames.trials["condition"] != "random"]
    alone = report(
        replace(frames, trials=without), rating_facts(("grad_cam", "clip_linear"), asked=("q1",))
    ).json()
    assert made["forms"] == alone["forms"] and abs(made["forms"][0]["difference"]) < 0.5
    by_form = [row for row in made["levels"] if row["by"] == "shows"]
    assert by_form == [row for row in alone["levels"] if row["by"] == "shows"] and len(by_form) == 2


@without_odds
def test_backbones_and_datasets_have_rows_of_their_own() -> None:
    names = ("grad_cam-a", "grad_cam-b", "rise-a", "rise-b")
    models = {name: name[-1] for name in names}
    frames = planted(dict.fromkeys(names, 0.0), raters=8, items=8, per_item=4, seed=5)
    made = report(frames, rating_facts(names, asked=("q1",), predictors=models))
    by = {row["by"] for row in made.json()["levels"]}
    assert by == {"method", "predictor"}
    rows = rating_rows(frames)
    expected = rows[rows["condition"].str.startswith("grad_cam")]["value"].mean()
    assert rows_of(made, "method")["grad_cam", "q1"]["mean"] == pytest.approx(expected)
    assert made.tables()["conditions"].columns[1:3] == ("Model", "Dataset")
    assert made.json()["ordinal"][0]["df"] == 3
    apart = report(frames, rating_facts(names, asked=("q1",), datasets={**models, "rise-b": "b"}))
    assert {row["dataset"] for row in apart.json()["ordinal"]} == {"a", "b"}


def test_the_model_finds_a_planted_difference_and_tells_means() -> None:
    facts = rating_facts(("grad_cam", "random"), asked=("q1",))
    made = report(planted({"grad_cam": 0.6, "random": -0.6}, raters=12, items=20, per_item=5, seed=3), facts)
    (test,) = made.json()["ordinal"]
    assert test["p"] < 0.001 and test["df"] == 1
    rows = rows_of(made)
    for name in ("grad_cam", "random"):
        assert test["means"][name] == pytest.approx(rows[name, "q1"]["mean"], abs=0.15)
    odds = test["log_odds"]["random"]
    assert odds["interval"][0] < odds["estimate"] < odds["interval"][1] < 0
    assert "differs between conditions" in made.main[1].sentences[0]


def test_without_a_model_a_sentence_says_why_and_people_s_means_stand_in() -> None:
    """Everybody gives one method always 5 and the other always 1: no finite estimate exists."""

    def point(rater: int, item: int, name: str, question: str) -> int:
        return 5 if name == "grad_cam" else 1 + (rater + item) % 2 * (rater == 0)

    frames = all_rated(point, raters=7, items=6, names=("grad_cam", "random"), asked=("q1",))
    made = report(frames, rating_facts(("grad_cam", "random"), asked=("q1",)))
    (test,) = made.json()["ordinal"]
    assert test["p"] is None and test["p_people"] < 0.001 and test["problem"]
    assert "The test of each person's means stands in, p < .001" in made.main[1].sentences[0]
    assert is_told(made)


def measured(value: float, name: str = "deletion", scores: str = "method") -> dict[str, object]:
    return {
        "metric": name,
        "parameters": {"steps": 10},
        "version": 1,
        "value": value,
        "unit": "s",
        "scores": scores,
    }


@without_odds
def test_ratings_are_set_against_both_columns_of_a_metric() -> None:
    frames = all_rated(
        lambda r, i, n, q: min(5, 1 + i % 5), raters=3, items=10, names=("grad_cam",), asked=("q1",)
    )
    cells = [
        json.dumps([measured(1.0 - i % 5), measured(float(i % 5), "deletion_drawn", "drawn"),
                    measured(float(i), "sparsity", "drawn")])
        for i in range(10)
    ]  # fmt: skip
    stimuli = frames.stimuli.assign(metrics=cells)
    facts = rating_facts(("grad_cam",), asked=("q1",))
    made = report(Frames(frames.trials, frames.participants, stimuli, frames.extra), facts)
    rows = {row["metric"]: row for row in made.json()["metrics"]}
    assert rows["deletion"]["method"]["rho"] == pytest.approx(-1)
    assert rows["deletion"]["seen"]["rho"] == pytest.approx(1)
    assert rows["sparsity"]["method"] is None and rows["sparsity"]["seen"]["n"] == 10
    assert "metrics" not in report(frames, facts).tables()


def test_nothing_by_condition_is_told_while_sealed() -> None:
    frames = planted({"grad_cam": 0.8, "random": -0.8}, raters=8, items=10, per_item=4, seed=1)
    facts: StudyFacts = rating_facts(("grad_cam", "random"), asked=("q1",), state="open")
    waiting = replace(facts, slots=(replace(facts.slots[0], kept=3),))
    made = report(frames, waiting)
    assert made.seal.sealed and "8 people kept, 80 ratings of 20 explanations" in made.opening
    assert set(made.tables()) <= {
        "conditions",
        "coverage",
        "arrival",
        "flow",
        "flow_by_condition",
        "exclusions",
    }
    text = json.dumps(made.json())
    for key in ("mean", "mode", "alpha", "difference", "likelihood_ratio", "raters"):
        assert f'"{key}' not in text, key
    assert [row["ratings"] for row in made.json()["conditions"]] == [40, 40]


THIN = {
    "one rater": lambda: all_rated(lambda r, i, n, q: 1 + i % 5, raters=1, items=6),
    "one item": lambda: all_rated(lambda r, i, n, q: 1 + r % 5, raters=6, items=1),
    "one answer": lambda: all_rated(lambda r, i, n, q: 3, raters=7, items=4),
    "one of each": lambda: all_rated(lambda r, i, n, q: 4, raters=1, items=1),
    "no pairs": lambda: all_rated(lambda r, i, n, q: 1 + (r * i) % 5, raters=7, items=4, asked=SIX[:4]),
    "nobody": lambda: rating_frames([], [], pictures_of(2, METHODS)),
    "no ratings yet": lambda: rating_frames([], [sitting_row("s", "p", 0)], pictures_of(2, METHODS)),
}


@pytest.mark.long(stays="test_constant_ratings_say_that_agreement_is_not_defined")
@pytest.mark.parametrize("name", THIN)
@pytest.mark.usefixtures("without_odds")
def test_thin_data_are_a_report_with_sentences(name: str) -> None:
    made = report(THIN[name](), rating_facts())
    assert is_told(made)
    said = [line for section in made.sections for line in section.paragraphs]
    assert any("no ordinal model" in line or "stands in" in line for line in said) or name == "no pairs"


@without_odds
def test_constant_ratings_say_that_agreement_is_not_defined() -> None:
    made = report(THIN["one answer"](), rating_facts())
    assert "Q1: All ratings are equal, so alpha is not defined" in page(made)
    rows = rows_of(made)
    assert rows["grad_cam", "q1"]["mean"] == 3 and rows["grad_cam", "q1"]["interval"] is None
    assert pd.isna(rows["grad_cam", "q1"]["interval"])
