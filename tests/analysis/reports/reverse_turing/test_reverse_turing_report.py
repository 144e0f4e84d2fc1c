"""The report of a reverse Turing test: numbers by hand, planted effects, what stays sealed."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from analysis.facts import AnswerFacts, ConditionFacts, SlotFacts, StudyFacts
from analysis.frames import Frames, frame
from analysis.reports.drawing.figures import Look
from analysis.reports.output.html import page
from analysis.reports.reverse_turing.figures import times
from analysis.reports.reverse_turing.person_scores import (
    contrasts,
    coverage,
    geometric_interval,
    geometric_mean,
    learning_curve,
    person_rows,
    with_holm,
)
from analysis.reports.reverse_turing.report import TABLE_1, minutes, report
from analysis.stats.ranks.two_groups import mann_whitney
from experiments.design.squares import latin_square, williams
from tests.analysis.worlds import person_row

pytestmark = pytest.mark.pure
NAMES = ("none", "lime", "control")
ROLES = dict(zip(NAMES, ("baseline", "method", "control"), strict=True))


TWO = (AnswerFacts("a", "A"), AnswerFacts("b", "B"))


def turing_facts(state: str = "closed", kept: int = 18, wanted: int = 18) -> StudyFacts:
    return StudyFacts(
        slug="past-or-present",
        title="What will it say?",
        paradigm="reverse_turing",
        digest="f" * 64,
        seed=1,
        state=state,
        conditions=tuple(ConditionFacts(n, n.upper(), ROLES[n], wanted, kept) for n in NAMES),
        slots=tuple(SlotFacts(n, n.upper(), wanted, kept) for n in NAMES),
        answers=TWO,
    )


def answer(
    session: str, condition: str, block: int, at: int, item: int, phase: str, model: str, given: str
) -> dict[str, object]:
    scored = {"scored_index": at, "matches_model": float(given == model)} if phase == "test" else {}
    truth = truth_of(item)
    return {
        "study": "past-or-present",
        "session": session,
        "origin": "human",
        "condition": condition,
        "role": ROLES[condition],
        "block": block,
        "phase": phase,
        "kind": "predict" if phase == "test" else "learn",
        "check": "",
        "trial_index": at,
        "item": f"item-{item}",
        "response": given,
        "model_label": model,
        "rt_ms": 2000,
        "shown_ms": 2000,
        "late": False,
        **scored,
        **({"matches_truth": float(given == truth)} if phase == "test" else {}),
    }


def model_of(item: int) -> str:
    return "ab"[item % 2]


def truth_of(item: int) -> str:
    """The model is wrong about every fourth text."""
    return model_of(item) if item % 4 else model_of(item + 1)


Sitting = tuple[str, Sequence[tuple[str, Sequence[bool]]]]


def turing_frames(
    sittings: Sequence[Sitting],
    arms: Mapping[str, str] | None = None,
    first_text: Callable[[str, int], int] = lambda session, block: 100 * block,
) -> Frames:
    """Sessions by name, each with its conditions in order and whether each test answer met the model; two
    training texts before each. The test texts of a block are numbered from `first_text`. `arms` by session.
    """
    people: list[dict[str, object]] = []
    trials: list[dict[str, object]] = []
    for place, (session, blocks) in enumerate(sittings):
        condition = blocks[0][0] if len(blocks) == 1 else ""
        shared = {"study": "past-or-present", "session": session, "participant": session, "origin": "human"}
        people.append(
            shared
            | {"condition": condition, "arm": (arms or {}).get(session, "x"), "slot": place}
            | person_row(place)
        )
        at = 0
        for block, (name, met) in enumerate(blocks):
            for step in range(2):
                item = 50 + step
                trials.append(answer(session, name, block, at, item, "train", model_of(item), "a"))
                at += 1
            for step, right in enumerate(met):
                item = first_text(session, block) + step
                model = model_of(item)
                given = model if right else model_of(item + 1)
                trials.append(answer(session, name, block, at, item, "test", model, given))
                at += 1
    items = {int(str(row["item"]).removeprefix("item-")) for row in trials}
    stimuli = [
        {"study": "past-or-present", "item": f"item-{i}", "condition": "none", "truth": truth_of(i),
         "predicted": model_of(i)} for i in sorted(items)
    ]  # fmt: skip
    return Frames(frame("trials", trials), frame("participants", people), frame("stimuli", stimuli))


def between(accuracy: dict[str, float], people: int, seed: int, tests: int = 15) -> Frames:
    rng = np.random.default_rng(seed)
    return turing_frames(
        [
            (f"{name}-{j}", [(name, [bool(x) for x in rng.random(tests) < accuracy[name]])])
            for name in NAMES
            for j in range(people)
        ]
    )


def square(accuracy: dict[str, float], rounds: int, seed: int, tests: int = 10) -> Frames:
    rng = np.random.default_rng(seed)
    cells = [order for order in williams(3) for _ in latin_square(3)] * rounds
    return turing_frames(
        [
            (f"s{j}", [(NAMES[c], [bool(x) for x in rng.random(tests) < accuracy[NAMES[c]]]) for c in order])
            for j, order in enumerate(cells)
        ]
    )


def test_the_main_table_is_counted_by_hand() -> None:
    frames = turing_frames(
        [
            ("p1", [("none", [True, True, False, False])]),
            ("p2", [("none", [True, False, False, False])]),
            ("p3", [("lime", [True, True, True, True])]),
            ("p4", [("lime", [True, True, True, False])]),
            ("p5", [("control", [False, False, True, True])]),
        ]
    )
    made = report(frames, turing_facts())
    rows = {row["name"]: row for row in made.json()["conditions"]["rows"]}
    assert (rows["none"]["n"], rows["none"]["accuracy"]) == (2, 0.375)
    assert rows["lime"]["accuracy"] == 0.875
    # The model is wrong about text 0, right about 1, 2 and 3: who says as the model on 1 says the truth.
    assert rows["none"]["truth"] == np.mean([1 / 4, 0 / 4])
    assert rows["lime"]["truth"] == np.mean([3 / 4, 2 / 4])
    assert rows["none"]["test_s"] == pytest.approx(8.0) and rows["none"]["train_s"] == pytest.approx(4.0)
    # Two classes, both answered and both right half of the time: the person p1 has a as (1, 0), b as (1, 0).
    assert made.json()["conditions"]["strategies"] == {"chance": 0.5, "majority": 0.5, "gold": 0.75}
    assert {name: row["strategies"]["gold"] for name, row in rows.items()} == dict.fromkeys(NAMES, 0.75)
    belief = made.json()["belief"]
    assert (belief["lime"]["n"], belief["lime"]["model"], belief["lime"]["truth"]) == (2, 1.0, 0.0)
    assert belief["control"]["truth"] == 1.0


def test_every_row_stands_beside_what_its_own_texts_give_to_blind_answers() -> None:
    """Chance is of the answers that were offered, not of those that came: of six it is a sixth."""
    texts = {"p1": 1, "p2": 4, "p3": 1, "p4": 4}
    frames = turing_frames(
        [
            ("p1", [("none", [True] * 3)]),
            ("p2", [("lime", [True])]),
            ("p3", [("control", [False] * 3)]),
            ("p4", [("control", [True])]),
        ],
        first_text=lambda session, block: texts[session],
    )
    six = tuple(AnswerFacts(name, name.upper()) for name in "abcdef")
    made = report(frames, dataclasses.replace(turing_facts(), answers=six))
    rows = {row["name"]: row["strategies"] for row in made.json()["conditions"]["rows"]}
    # Texts 1, 2, 3: the model says b, a, b and is right; text 4: it says a and is wrong.
    assert rows["none"] == {"chance": 1 / 6, "majority": 2 / 3, "gold": 1.0}
    assert rows["lime"] == {"chance": 1 / 6, "majority": 1.0, "gold": 0.0}
    assert rows["control"] == {"chance": 1 / 6, "majority": 0.5, "gold": 0.75}
    table = made.tables()["conditions"]
    assert table.columns[-3:] == ("Chance %", "Most frequent %", "Always gold %")
    assert [row[-3:] for row in table.rows] == [
        ("16.7", "66.7", "100.0"),
        ("16.7", "100.0", "0.0"),
        ("16.7", "50.0", "75.0"),
    ]
    assert "16.7 % by chance" in made.main[0].sentences[0]
    (people,) = [f for s in made.sections for f in s.figures if f.key == "people"]
    dashed = [line for line in people.draw().axes[0].lines if line.get_linestyle() == "--"]
    assert [list(line.get_xdata()) for line in dashed] == [pytest.approx([100 / 6] * 2)]


def test_f1_is_over_the_classes_that_a_person_met_or_answered() -> None:
    """As scikit-learn has it without a list of classes; others of the study are no fault of this person."""
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(3)
    sittings = [(f"p{n}", [("none", [bool(x) for x in rng.random(7) < 0.5])]) for n in range(6)]
    frames = turing_frames([*sittings, ("p6", [("lime", [True] * 7)]), ("p7", [("lime", [True])])])
    rows = person_rows(frames).set_index("session")
    tests = frames.trials[frames.trials["phase"] == "test"]
    for session, given in tests.groupby("session"):
        expected = f1_score(given["model_label"], given["response"], average="macro")
        assert rows.at[session, "f1"] == pytest.approx(expected), session
    assert rows.at["p7", "f1"] == 1.0, "one text, one class, and right"


def test_times_are_means_of_logarithms() -> None:
    assert geometric_mean(pd.Series([10.0, 1000.0])) == pytest.approx(100)
    assert geometric_mean(pd.Series([], dtype=float)) is None
    # Three times that are 1, 2 and 3 powers of ten: mean 2, SD 1, Student's t with 2 df.
    half = 4.302653 / np.sqrt(3)
    assert geometric_interval(pd.Series([10.0, 100.0, 1000.0])) == pytest.approx(
        [10 ** (2 - half), 10 ** (2 + half)], rel=1e-5
    )
    assert geometric_interval(pd.Series([10.0])) is None
    assert (minutes(90), minutes(119.6), minutes(None)) == ("1:30", "2:00", "\N{EN DASH}")


def test_the_paper_s_figure_3_follows_from_its_table() -> None:
    """LIME 90.0 v 438.7 s, none 159.0 v 445.7: unweighted means over known and unknown tasks."""

    def seconds(cell: str) -> int:
        whole, rest = cell.rstrip("*").split(":")
        return 60 * int(whole) + int(rest)

    known, unknown = TABLE_1[:2], TABLE_1[2:]
    means = [
        [round(float(np.mean([seconds(row[column]) for row in part])), 1) for part in (known, unknown)]
        for column in (4, 3)
    ]
    assert means == [[90.0, 438.7], [159.0, 445.7]]


@pytest.mark.parametrize("is_crossed", [False, True])
def test_times_are_drawn_by_condition_and_by_what_people_were_told(is_crossed: bool) -> None:
    names = [f"{side}{n}" for n in range(3) for side in ("known", "masked")]
    frames = turing_frames([(f"{c}-{name}", [(c, [True] * 3)]) for c in NAMES for name in names])
    trials = frames.trials
    slow = trials["session"].str.contains("masked") & (trials["condition"] == "lime")
    frames = dataclasses.replace(frames, trials=trials.assign(rt_ms=trials["rt_ms"].where(~slow, 20_000)))
    rows = person_rows(frames)
    side = rows["session"].str.split("-").str[1].str.rstrip("012") if is_crossed else ""
    drawn = times(rows.assign(side=side), turing_facts(), Look.of(turing_facts(), "human"))
    (axes,) = drawn.axes
    marks = [line for line in axes.lines if line.get_marker() == "o"]
    at = [
        (round(float(m.get_xdata()[0]), 2), float(m.get_ydata()[0]), m.get_markerfacecolor()) for m in marks
    ]
    assert axes.get_yscale() == "log"
    if is_crossed:
        assert [y for _, y, _ in at] == pytest.approx([6, 6, 6, 60, 6, 6])
        assert [face == "white" for *_, face in at] == [False, True] * 3
    else:
        assert [y for _, y, _ in at] == pytest.approx([6, np.sqrt(360), 6])
        assert not [face for *_, face in at if face == "white"]


def test_the_names_of_answers_are_explained_where_they_say_nothing() -> None:
    frames = turing_frames([("p1", [("none", [True])])])
    assert "answers" not in report(frames, turing_facts()).json()
    named = (AnswerFacts("class_1", "Class 1", "present"), AnswerFacts("class_2", "Class 2", "past"))
    made = report(frames, dataclasses.replace(turing_facts("open", kept=1), answers=named))
    assert made.json()["answers"] == {"class_1": "present", "class_2": "past"}
    assert made.tables()["answers"].rows[0] == ("Class 1", "class_1", "present")


def test_different_people_are_compared_by_mann_whitney_and_the_same_by_signed_ranks() -> None:
    facts = turing_facts()
    frames = between({"none": 0.5, "lime": 0.8, "control": 0.5}, 12, 3)
    rows = person_rows(frames)
    lime, control = contrasts(rows, facts, "accuracy")
    of = {name: rows.loc[rows["condition"] == name, "accuracy"].to_numpy(float) for name in NAMES}
    assert not lime.within and lime.p == mann_whitney(of["lime"], of["none"]).p
    assert control.p is not None
    smaller, larger = sorted((lime.p, control.p))
    corrected = {smaller: min(1.0, 2 * smaller), larger: max(min(1.0, 2 * smaller), larger)}
    assert [lime.p_holm, control.p_holm] == pytest.approx([corrected[lime.p], corrected[control.p]])
    same = person_rows(square({"none": 0.5, "lime": 0.8, "control": 0.5}, 1, 3))
    assert [c.within for c in contrasts(same, facts, "accuracy")] == [True, True]


def test_holm_is_that_of_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    facts = turing_facts()
    made = contrasts(person_rows(between(dict.fromkeys(NAMES, 0.6), 9, 5)), facts, "accuracy")
    expected = multipletests([c.p for c in made], method="holm")[1]
    assert [c.p_holm for c in with_holm(made)] == pytest.approx(list(expected))


def test_a_square_gets_its_first_period_and_a_model_with_the_order() -> None:
    made = report(square({"none": 0.45, "lime": 0.85, "control": 0.45}, 1, 2), turing_facts())
    content = made.json()
    assert [row["n"] for row in content["first_period"]] == [[6, 6], [6, 6]]
    single = content["single_answers"]
    assert single["adjusted"] == ["period", "before"] and single["df"] == 2 and single["p"] < 0.001
    assert single["shares"]["lime"] > single["shares"]["none"] + 0.15
    assert "place in the session, condition before" in made.tables()["single_answers"].note


def test_guesses_and_coverage_are_counted() -> None:
    frames = turing_frames([("p1", [("none", [True] * 3)]), ("p2", [("none", [True] * 3)])])
    # Training texts 50 and 51 have the labels a and b; everybody guesses a.
    assert learning_curve(frames, ["none"], parts=2) == {"none": [1.0, 0.0]}
    assert coverage(frames) == {"none": {"fewest": 2, "most": 2, "texts": 3}}


def test_nothing_by_condition_is_told_while_sealed() -> None:
    frames = between({"none": 0.5, "lime": 0.9, "control": 0.5}, 8, 1)
    made = report(frames, turing_facts(state="open", kept=8))
    assert made.seal.sealed
    text = json.dumps(made.json())
    for key in ('accuracy"', "p_holm", "belief", "single_answers", "first_period"):
        assert key not in text.replace('"accuracy_mean"', "")
    assert [row["n"] for row in made.json()["conditions"]] == [8, 8, 8]


@pytest.mark.parametrize("people", [0, 1, 2])
def test_thin_data_are_a_report_with_sentences(people: int) -> None:
    frames = between(dict.fromkeys(NAMES, 1.0), people, 1)
    made = report(frames, turing_facts())
    html = page(made)
    assert "NaN" not in json.dumps(made.json()) and "nan" not in html.lower().replace("finance", "")


def test_a_planted_effect_is_found_at_the_promised_power_and_none_where_there_is_none() -> None:
    """The paper's SST: .557 against .694 on 15 items. Power .8 with 16 people without any spread, and 24 with
    a spread of .1 (computed by simulation, science.md 7); at equal means at most 7 % of 600 studies."""
    rng = np.random.default_rng(8)

    def share(first: float, second: float, people: int, sd: float, studies: int = 600) -> float:
        hits = 0
        for _ in range(studies):
            scores = [
                rng.binomial(15, np.clip(rng.normal(p, sd, people), 0.02, 0.98)) / 15 for p in (first, second)
            ]
            hits += mann_whitney(*scores).p < 0.05
        return hits / studies

    error = 2 * math.sqrt(0.8 * 0.2 / 600)
    assert share(0.557, 0.694, 16, 0.0) > 0.8 - error
    assert share(0.557, 0.694, 24, 0.1) > 0.8 - error
    assert share(0.6, 0.6, 16, 0.1) <= 0.07
    assert share(0.6, 0.6, 24, 0.0) <= 0.07
