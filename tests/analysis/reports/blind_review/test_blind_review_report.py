"""The report of a blind review: identities of the paper, numbers by hand, the seal, thin data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import StringIO
from statistics import NormalDist

import numpy as np
import pytest
from rich.console import Console
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from analysis.facts import QuestionFacts
from analysis.frames import Frames
from analysis.reports.blind_review.mixed_model import review_model
from analysis.reports.blind_review.report import report
from analysis.reports.blind_review.rows import MODEL as ALL_METHODS
from analysis.reports.blind_review.rows import review_rows
from analysis.reports.output.html import page
from analysis.reports.output.terminal import print_report
from analysis.reports.report import Report
from analysis.stats.ratings.ordinal_model import CrossedFit, fit_crossed, likelihood_ratio
from tests.analysis.reviewed import (
    MODEL,
    PEOPLE,
    Planted,
    planted,
    review,
    review_facts,
    review_frames,
    rows_of,
    small,
)

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("few_draws")]
undrawn = pytest.mark.usefixtures("undrawn")
sentences = pytest.mark.usefixtures("undrawn", "without_review_model")
"""For tests that read single sentences of a page."""
BOTH = {PEOPLE: 0.9, MODEL: 0.8, "grad_cam": 0.8}
DECODED = {"auc": 0.53, "low": 0.48, "high": 0.58, "p": 0.2, "pictures": 90}
SOURCES = [
    {"source": PEOPLE, "solutions": 120, "abstained": 3, "flat": 0, "areas": [30, 41, 52], "marked": 33},
    {"source": MODEL, "solutions": 120, "abstained": 0, "flat": 0, "areas": None, "marked": None},
]


def shown(made: Report) -> str:
    out = StringIO()
    print_report(made, Console(file=out, width=200, no_color=True))
    return page(made) + out.getvalue()


def is_told(made: Report) -> bool:
    """No value that is none: neither in the numbers nor on the page, its figures drawn."""
    text = shown(made).lower()
    return "NaN" not in json.dumps(made.json()) and "nan" not in text.replace("finance", "")


def test_acc_equals_ordinary_accuracy_if_leads_accept_just_what_is_true() -> None:
    """The paper's identity: E gives the true label, L accepts iff the answer is true."""
    rng = np.random.default_rng(4)
    right = rng.random(30) < 0.7
    frames = small({PEOPLE: [(True, True)] * 30, MODEL: [(bool(r), bool(r)) for r in right]}, leads=3)
    made = report(frames, review_facts(runs=1))
    (difference,) = made.json()["acceptance"]["differences"]
    assert difference["acc"]["estimate"] == pytest.approx(right.mean())
    assert rows_of(made)[PEOPLE]["accepted"]["estimate"] == 1
    assert rows_of(made)[MODEL]["right"] == pytest.approx(right.mean())
    first, second = made.tables()["acc"].rows
    assert first[1:] == ("1.00", "by definition", "100.0")
    assert second[1] == f"{right.mean():.2f}" and second[3] == f"{100 * right.mean():.1f}"
    assert is_told(made)


@sentences
def test_shares_are_counted_by_hand_and_naive_intervals_are_statsmodels() -> None:
    frames = small(
        {PEOPLE: [(True, True)] * 7 + [(False, True)] * 3, MODEL: [(True, True)] * 2 + [(False, False)] * 3}
    )
    made = report(frames, review_facts(runs=1))
    rows = rows_of(made)
    assert (rows[PEOPLE]["reviews"], rows[PEOPLE]["accepted"]["estimate"]) == (20, 0.7)
    assert (rows[MODEL]["reviews"], rows[MODEL]["accepted"]["estimate"]) == (10, 0.4)
    assert rows[PEOPLE]["accepted_naive"] == pytest.approx(proportion_confint(14, 20, method="wilson"))
    (difference,) = made.json()["acceptance"]["differences"]
    assert difference["difference"]["estimate"] == pytest.approx(-0.3)
    assert difference["newcombe_naive"] == pytest.approx(
        confint_proportions_2indep(4, 10, 14, 20, method="newcomb", compare="diff"), abs=1e-6
    )
    assert difference["acc"]["estimate"] == pytest.approx(0.4 / 0.7)


@sentences
def test_only_real_solutions_of_tasks_count_and_cannot_say_is_a_solution() -> None:
    trials = [
        review("p0", "i0", PEOPLE, accepted=True),
        review("p0", "i1", PEOPLE, accepted=True, right=False, answer="cannot_say"),
        review("p0", "i2", MODEL, accepted=False),
        review("p0", "i3", MODEL, accepted=True, right=False, use="lure"),
        review("p0", "k0", MODEL, accepted=True, use="known"),
        review("p0", "b0", MODEL, accepted=True, right=None, use="alone"),
    ]
    made = report(review_frames(trials), review_facts(runs=1))
    rows = rows_of(made)
    assert (rows[PEOPLE]["reviews"], rows[PEOPLE]["cannot_say"], rows[PEOPLE]["cannot_say_accepted"]) == (
        2,
        1,
        1,
    )
    assert rows[PEOPLE]["accepted"]["estimate"] == 1.0
    assert (rows[MODEL]["reviews"], rows[MODEL]["accepted"]["estimate"]) == (1, 0.0)
    assert made.tables()["acceptance"].rows[0][-1] == "1 (1)"
    # In neither hits nor false acceptances: it is no answer that is right or wrong.
    signal = {row["name"]: row for row in made.json()["signal"] if row["budget_ms"] is None}
    assert signal[PEOPLE]["hits"]["answers"] == 1 and signal[PEOPLE]["false"]["estimate"] is None
    assert signal[MODEL]["lures"]["answers"] == 1 and signal[MODEL]["errors"]["estimate"] is None


@sentences
def test_the_budget_turns_late_acceptances_into_rejections() -> None:
    times = [2000, 3000, 3001, 9000]
    trials = [
        review(f"p{lead}", f"i{at}", source, accepted=True, rt_ms=rt)
        for lead in range(2)
        for source in (PEOPLE, MODEL)
        for at, rt in enumerate(times)
    ]
    made = report(review_frames(trials), review_facts(runs=1))
    assert rows_of(made)[MODEL]["within_budget"]["estimate"] == 0.5
    told = next(c for c in made.json()["budget"]["curves"] if c["name"] == MODEL)
    by = {row["budget_ms"]: row["share"] for row in told["curve"]}
    assert by[0] == 0 and by[3000] == 0.5 and told["at_any_time"] == 1
    shares = [row["share"] for row in told["curve"]]
    assert shares == sorted(shares) and shares[-1] == 1
    line = next(row for row in made.tables()["budget"].rows if row[0] == "Occlusion")
    assert line[2:] == ("8", "0.0", "25.0", "50.0", "75.0", "100.0", "100.0")
    shorter = report(review_frames(trials), review_facts(runs=1, budget_ms=2000))
    assert rows_of(shorter)[MODEL]["within_budget"]["estimate"] == 0.25


def explained(
    lead: str, counts: Mapping[tuple[str, bool, bool], tuple[int, int]]
) -> Iterator[dict[str, object]]:
    """Reviews of one lead: (source, explained, right) -> accepted and all."""
    for (source, shows, right), (yes, of) in counts.items():
        for at in range(of):
            item = f"{source}-{shows}-{right}-{at}"
            yield review(
                lead, item, source, accepted=at < yes, right=right, explained=shows, block=int(shows)
            )


HALF = {
    (PEOPLE, False, True): (6, 10), (PEOPLE, False, False): (2, 4),
    (PEOPLE, True, True): (9, 10), (PEOPLE, True, False): (1, 4),
    (MODEL, False, True): (5, 10), (MODEL, False, False): (1, 5),
    (MODEL, True, True): (6, 10), (MODEL, True, False): (4, 5),
}  # fmt: skip
"""Explanations help with people's solutions; with the model's they make wrong answers convincing."""


@sentences
def test_hits_false_acceptances_and_d_prime_are_counted_by_hand() -> None:
    frames = review_frames([row for lead in ("p0", "p1", "p2") for row in explained(lead, HALF)])
    made = report(frames, review_facts())
    told = {(row["name"], row["explained"]): row for row in made.json()["signal"] if row["budget_ms"] is None}
    row = told[MODEL, True]
    assert (row["hits"]["estimate"], row["false"]["estimate"]) == (0.6, 0.8)
    z = NormalDist().inv_cdf
    h, f = z((18 + 0.5) / (30 + 1)), z((12 + 0.5) / (15 + 1))
    assert row["d_prime"]["estimate"] == pytest.approx(h - f)
    assert row["criterion"]["estimate"] == pytest.approx(-(h + f) / 2)
    assert told[PEOPLE, True]["d_prime"]["estimate"] > told[PEOPLE, False]["d_prime"]["estimate"]


@sentences
def test_usefulness_is_not_the_gain_in_acceptance() -> None:
    """The model's wrong answers gain more than its right ones: acceptance rises, usefulness falls."""
    frames = review_frames([row for lead in ("p0", "p1", "p2") for row in explained(lead, HALF)])
    made = report(frames, review_facts())
    content = {(row["name"], row["budget_ms"]): row for row in made.json()["usefulness"]["rows"]}
    model, people = content[MODEL, 3000.0], content[PEOPLE, 3000.0]
    assert model["gain_hits"]["estimate"] == pytest.approx(0.1)
    assert model["gain_false"]["estimate"] == pytest.approx(0.6)
    assert model["usefulness"]["estimate"] == pytest.approx(-0.5)
    assert model["paper_difference"]["estimate"] == pytest.approx(10 / 15 - 6 / 15)
    assert people["usefulness"]["estimate"] == pytest.approx(0.3 + 0.25)
    assert people["paper_difference"]["estimate"] == pytest.approx(10 / 14 - 8 / 14)
    assert "p(with) \N{MINUS SIGN} p(without)" in made.tables()["usefulness"].columns


def test_a_whole_study_is_told_without_gaps() -> None:
    plan = Planted(right_gain=1.5, wrong_gain=-0.8, solved=BOTH)
    frames = planted(plan, leads=24, tasks=120, seed=3)
    facts = review_facts(
        (MODEL, "grad_cam"),
        frozen={
            "told": {MODEL: DECODED, "grad_cam": None},
            "sources": SOURCES,
            "settings": {"region": "hull"},
        },
    )
    made = report(frames, facts)
    assert is_told(made)
    assert [row["name"] for row in made.json()["acceptance"]["rows"]] == [
        PEOPLE,
        ALL_METHODS,
        MODEL,
        "grad_cam",
    ]
    useful = {r["name"]: r for r in made.json()["usefulness"]["rows"] if r["budget_ms"] is None}
    for row in useful.values():
        assert row["usefulness"]["estimate"] == pytest.approx(
            row["gain_hits"]["estimate"] - row["gain_false"]["estimate"]
        )
    assert useful[ALL_METHODS]["usefulness"]["interval"][0] > 0
    (pair,) = made.json()["explainers"]
    assert {pair["first"], pair["second"]} == {MODEL, "grad_cam"}
    assert "helped to tell right from wrong answers" in shown(made)
    model = made.json()["single_reviews"]
    assert (
        set(model["tests"]) == {"interaction", "source", "explained"}
        and model["tests"]["explained"]["p"] < 0.01
    )
    assert [row["name"] for row in made.json()["order"]] == [PEOPLE, ALL_METHODS, MODEL, "grad_cam"]
    assert "the upper end is no higher than 0.60" in page(made)
    assert "12 leads with and 12 others without" in made.tables()["first_run"].note
    first = review_rows(frames)
    first = first[(first["block"] == 0) & (first["use"] == "task") & (first["condition"] == PEOPLE)]
    by_hand = first[first["explained"]]["accepted"].mean() - first[~first["explained"]]["accepted"].mean()
    told = {(row["name"], row["budget_ms"]): row for row in made.json()["first_run"]}
    assert told[PEOPLE, None]["paper_difference"]["estimate"] == pytest.approx(by_hand)


@sentences
def test_simulated_reviews_say_so_inside_every_figure() -> None:
    frames = planted(Planted(), leads=8, tasks=100, seed=1)
    people = frames.participants.assign(origin="simulated")
    made = report(Frames(frames.trials, people, frames.stimuli, frames.extra), review_facts())
    figures = [figure for section in made.sections for figure in section.figures]
    assert [figure.key for figure in figures] == ["budget", "signal", "flow"]
    for figure in figures:
        assert "computational observers" in [text.get_text() for text in figure.draw().texts]
        assert "observers" in figure.caption and "n = 8 observers" in figure.caption
    assert "Computational observers, not people." in page(made)


def test_nothing_by_source_is_told_while_sealed() -> None:
    frames = planted(Planted(solved=BOTH), leads=8, tasks=100, seed=1)
    made = report(frames, review_facts((MODEL, "grad_cam"), state="open", kept=8))
    assert made.seal.sealed and made.json()["acceptance"] is None
    text = json.dumps({k: v for k, v in made.json().items() if k != "flow"}) + json.dumps(
        [table.rows for section in made.sections for table in section.tables]
    )
    for word in ("Experts", "Occlusion", "Grad-CAM", PEOPLE, MODEL, "usefulness", "explained"):
        assert word not in text
    rows = review_rows(frames)
    rows = rows[rows["use"] == "task"]
    assert made.json()["pooled"]["share"] == rows["accepted"].mean()
    assert made.json()["pooled"]["answers"] == len(rows) == 8 * 40
    assert [figure.key for section in made.sections for figure in section.figures] == ["flow"]


@pytest.mark.parametrize(("difference", "verdict"), [(-0.3, "worse"), (0.0, "equivalent"), (0.3, "superior")])
@sentences
def test_the_verdict_follows_the_margin(difference: float, verdict: str) -> None:
    """Everybody is equally strict, and tasks are equal: the intervals are narrow around what is planted."""
    rng = np.random.default_rng(2)
    trials = []
    for lead in range(40):
        for at, item in enumerate(rng.permutation(60)[:40]):
            source = PEOPLE if at % 2 else MODEL
            yes = rng.random() < 0.5 + (difference if source == MODEL else 0.0)
            trials.append(review(f"p{lead:02}", f"i{item:02}", source, accepted=bool(yes)))
    made = report(review_frames(trials), review_facts(runs=1))
    (row,) = made.json()["acceptance"]["differences"]
    assert row["verdict"]["decision"] == verdict and row["no_verdict"] == ""
    assert f"Verdict: Occlusion is {verdict}" in page(made)
    wider = report(review_frames(trials), review_facts(runs=1, margin=0.45))
    assert wider.json()["acceptance"]["differences"][0]["verdict"]["decision"] != (
        verdict if verdict != "equivalent" else "worse"
    )


@sentences
def test_an_undecided_study_names_the_numbers_that_would_decide() -> None:
    frames = planted(Planted(solved={PEOPLE: 0.8, MODEL: 0.8}), leads=12, tasks=60, seed=5)
    made = report(frames, review_facts(margin=0.05))
    (row,) = made.json()["acceptance"]["differences"]
    assert row["verdict"]["decision"] == "inconclusive"
    text = page(made)
    if row["verdict"]["factor"] is None:
        assert "no number of leads and tasks within reach" in text
    else:
        assert (
            f"{row['verdict']['people_needed']:,} leads and {row['verdict']['items_needed']:,} tasks" in text
        )


@sentences
def test_below_12_leads_or_30_tasks_there_is_no_verdict() -> None:
    for leads, tasks in ((11, 100), (20, 25)):
        frames = planted(Planted(), leads=leads, tasks=tasks, seed=1, per_run=10, lures=2)
        made = report(frames, review_facts())
        (row,) = made.json()["acceptance"]["differences"]
        assert row["verdict"] is None and "a decision needs at least 12 and 30" in row["no_verdict"]
        assert "No verdict: there are" in page(made)


@sentences
def test_no_solution_of_people_accepted_is_a_sentence() -> None:
    frames = small({PEOPLE: [(False, True)] * 5, MODEL: [(True, True), (False, True)]})
    made = report(frames, review_facts(runs=1))
    (row,) = made.json()["acceptance"]["differences"]
    assert row["acc"]["estimate"] is None
    assert "acc_L is not defined: none of the 10 reviews of Experts ended in acceptance" in page(made)
    assert made.tables()["acc"].rows[0][1] == "\N{EN DASH}" and is_told(made)


@pytest.mark.parametrize(
    "name", ["one lead", "all accepted", "no lure", "no run with", "no run without", "nobody"]
)
def test_thin_data_are_a_report_with_sentences(name: str) -> None:
    plan = Planted(solved=BOTH)
    frames = {
        "one lead": lambda: planted(plan, leads=1, tasks=100, seed=1),
        "all accepted": lambda: small({PEOPLE: [(True, True)] * 4, MODEL: [(True, True)] * 4}),
        "no lure": lambda: planted(plan, leads=6, tasks=100, seed=1, lures=0, known=0, alone=0),
        "no run with": lambda: planted(plan, leads=6, tasks=100, seed=1, runs=1),
        "no run without": lambda: review_frames(
            [review("p0", f"i{at}", PEOPLE if at % 2 else MODEL, accepted=at % 3 > 0, explained=True)
             for at in range(8)]
        ),
        "nobody": lambda: review_frames([]),
    }[name]()  # fmt: skip
    made = report(frames, review_facts((MODEL, "grad_cam")))
    assert is_told(made)
    text = page(made)
    said = {
        "one lead": "an interval needs 2 people and 2 items, there are 1 and",
        "all accepted": "the answers do not vary, so there is no interval",
        "no lure": "Usefulness of explanations",
        "no run with": "There are no reviews with an explanation",
        "no run without": "There are no reviews without an explanation",
        "nobody": "No solution was reviewed yet",
    }[name]
    assert said in text


@pytest.mark.parametrize(
    ("kept", "words"),
    [(slice(1, None), "0 conditions of role 'source' and 1"), (slice(1), "1 conditions of")],
)
def test_a_review_of_one_side_alone_says_that_it_compares_nothing(kept: slice, words: str) -> None:
    facts = review_facts()
    alone = replace(facts, conditions=facts.conditions[kept])
    made = report(small({name.name: [(True, True)] for name in alone.conditions}), alone)
    assert made.json()["acceptance"] is None and is_told(made)
    assert words in " ".join(text for section in made.sections for text in section.paragraphs)


@sentences
def test_labels_that_leads_reject_are_uncertain() -> None:
    """Instantiation 1 with several annotators: two answers for one task."""
    trials = []
    for lead in range(4):
        name = f"p{lead}"
        trials += [
            review(name, "i0", "labels", accepted=True, answer="cat"),
            review(name, "i1", "labels", accepted=lead == 0, answer="dog"),
            review(name, "i2", "labels", accepted=lead > 1, answer="dog" if lead % 2 else "wolf",
                   right=bool(lead % 2)),
            review(name, "i3", "predicted", accepted=lead > 0, answer="cat"),
        ]  # fmt: skip
    made = report(review_frames(trials), review_facts(("predicted",), people="labels", runs=1))
    told = made.json()["labels"]
    assert told["summary"] == {"items": 3, "rejected": 2, "by_half": 2, "several": 1}
    worst = told["answers"][0]
    assert (worst["item"], worst["reviews"], worst["rejected"], worst["right"]) == ("i1", 4, 3, True)
    assert worst["wilson"] == pytest.approx(proportion_confint(3, 4, method="wilson"))
    assert [(r["answer"], r["reviews"], r["rejected"]) for r in told["answers"] if r["item"] == "i2"] == [
        ("dog", 2, 1), ("wolf", 2, 1)
    ]  # fmt: skip
    assert "Of 3 tasks with a reviewed answer of Labels, 2 had one that some lead rejected" in page(made)
    assert made.json()["usefulness"] is None and made.json()["order"] is None
    assert "a run is missing" not in shown(made), "the study asks for one run"


@sentences
def test_regions_alone_audits_and_flags_are_counted_apart() -> None:
    trials = []
    for lead in range(3):
        name = f"p{lead}"
        trials += [
            review(name, "i0", PEOPLE, accepted=True, reloads=1 if lead == 0 else 0),
            review(name, "i1", MODEL, accepted=lead > 0, rt_ms=2000, server_ms=1500 if lead == 1 else 2100),
            review(
                name, "b0", PEOPLE, accepted=lead == 0, right=None, use="alone", answer="3", explained=True
            ),
            review(name, "b1", MODEL, accepted=False, right=None, use="alone", answer="8", explained=True),
            review(name, "k0", PEOPLE, accepted=True, use="known"),
            review(name, "k1", PEOPLE, accepted=lead == 2, right=False, use="known", rt_ms=None),
        ]
    made = report(review_frames(trials), review_facts())
    alone = {row["name"]: row for row in made.json()["region_alone"]["sources"]}
    assert (alone[PEOPLE]["estimate"], alone[MODEL]["estimate"]) == (pytest.approx(1 / 3), 0.0)
    assert made.tables()["region_alone_answers"].rows == (("3", "1 of 3", ""), ("8", "", "0 of 3"))
    audits = made.json()["audits"]
    assert (audits["accept"], audits["reject"]) == ({"reviews": 3, "met": 3}, {"reviews": 3, "met": 2})
    assert "2 of 3 leads judged every known task as expected." in page(made)
    flags = made.json()["timing"]
    names = ("reloaded", "ahead", "untimed", "flagged", "server_ms_missing")
    assert [flags[name] for name in names] == [1, 1, 3, 5, 3]
    clean = {row["name"]: row["accepted"] for row in flags["without_flagged"]}
    assert clean[PEOPLE]["answers"] == 2 and clean[MODEL]["estimate"] == 0.5
    assert rows_of(made)[MODEL]["accepted"]["estimate"] == pytest.approx(2 / 3)


@sentences
def test_what_leads_suspected_is_listed_and_counted() -> None:
    questions = (
        QuestionFacts("suspect_1", "after", "text", "What was this about?"),
        QuestionFacts("suspect_2", "after", "choice", "Did anything seem odd?"),
        QuestionFacts("age", "before", "number", "Your age?"),
    )
    answers: dict[str, dict[str, object]] = {
        "p0": {"suspect_1": "digits <b>", "suspect_2": "yes", "age": 30},
        "p1": {"suspect_1": "", "suspect_2": "no", "age": 40},
        "p2": {"suspect_2": "yes"},
    }
    frames = review_frames(
        [review(lead, f"i{at}", source, accepted=True) for lead in answers
         for at, source in enumerate((PEOPLE, MODEL))],
        answers=answers,
    )  # fmt: skip
    made = report(frames, review_facts(questions=questions, runs=1))
    assert made.json()["suspicion"] == {"suspect_1": ["digits <b>"], "suspect_2": ["yes", "no", "yes"]}
    assert made.tables()["suspicion_suspect_2"].rows == (("no", "1"), ("yes", "2"))
    assert made.tables()["suspicion_suspect_1"].rows == (("digits <b>",),)
    assert "digits &lt;b&gt;" in page(made) and "digits <b>" not in page(made)


@pytest.mark.parametrize(
    ("high", "words"), [(0.58, "is no higher than 0.60"), (0.66, "is above 0.60, so leads may have told")]
)
@sentences
def test_the_source_s_auc_is_read_as_its_interval_says(high: float, words: str) -> None:
    frozen = {"told": {MODEL: {**DECODED, "high": high}}}
    made = report(
        small({PEOPLE: [(True, True)], MODEL: [(False, True)]}), review_facts(runs=1, frozen=frozen)
    )
    assert words in page(made) and made.json()["source_auc"][MODEL]["pictures"] == 90
    plain = report(small({PEOPLE: [(True, True)], MODEL: [(False, True)]}), review_facts(runs=1))
    assert plain.json()["source_auc"] is None and "told by the region" not in page(plain)


@undrawn
def test_everybody_in_the_paper_s_order_is_told_what_that_confounds() -> None:
    plan = Planted(right_gain=1.0)
    frames = planted(plan, leads=12, tasks=100, seed=1)
    rows = frames.trials.copy()
    rows["block"] = rows["explained"].astype(int)
    made = report(
        Frames(rows, frames.participants, frames.stimuli, frames.extra), review_facts(order="paper")
    )
    text = page(made)
    assert "cannot be told from what practice changes" in text
    assert "In the first run nobody reviewed with explanations" in text
    assert made.json()["order"] is None


def test_the_model_of_single_reviews_has_the_interaction_and_the_run() -> None:
    """Against the fit (whose own witness is R) of columns that are made here by hand."""
    frames = planted(
        Planted(right_gain=1.0, wrong_gain=-1.0), leads=12, tasks=60, seed=8, per_run=10, lures=0
    )
    facts = review_facts()
    rows = review_rows(frames)
    made = review_model(rows, facts, is_ordered=False)
    rows = rows[rows["use"] == "task"]
    source = [float(name == MODEL) for name in rows["condition"]]
    shows = [float(value) for value in rows["explained"]]
    run = [float(value) for value in rows["block"]]
    columns = {"s": source, "e": shows, "r": run, "x": np.multiply(source, shows)}
    factors = {name: list(rows[name]) for name in ("participant", "item", "solution")}

    def fit(*names: str) -> CrossedFit:
        return fit_crossed(list(rows["accepted"]), {name: columns[name] for name in names}, factors)

    pairs = {"interaction": ("serx", "ser"), "source": ("ser", "er"), "explained": ("ser", "sr")}
    for name, (whole, part) in pairs.items():
        expected = likelihood_ratio(fit(*whole), fit(*part))
        assert made.tests[name].statistic == pytest.approx(expected.statistic, abs=1e-3)
        assert made.tests[name].df == 1
    assert 0 < made.shares[PEOPLE, False] < 1 and len(made.shares) == 4 and made.rows == len(rows)
