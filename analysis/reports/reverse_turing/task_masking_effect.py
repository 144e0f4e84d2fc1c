"""Known against masked: whether people simulate a model better if they know its task, and how fast.

A test only in a crossed study, in which both halves of the people met the same texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import finding, number, p_value, percent, ratio_sentence, stars
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.reports.reverse_turing.mixed_model import (
    CROSSED_MIN,
    MixedTest,
    condition_columns,
    square_columns,
    together,
)
from analysis.reports.reverse_turing.person_scores import (
    Contrast,
    geometric_mean,
    rank_contrast,
    scored_tests,
    with_holm,
)
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings.ordinal_model import fit_crossed, likelihood_ratio
from experiments.paradigms.reverse_turing import SIDES

KNOWN, MASKED = SIDES
ALL = "all"
TITLE = "Known against masked task"
DESCRIBED = (
    "All people of this study were told the same of the task. Beside a study that told something else, its "
    "numbers are a description and no test: not the same texts, and not the same people."
)


def side_of(arms: pd.Series) -> pd.Series:
    """What people of these arms were told of the task, "" if all were told the same."""
    firsts = [str(arm).partition("/")[0] for arm in arms]
    return pd.Series([first if first in SIDES else "" for first in firsts], index=arms.index, dtype=object)


def masking_contrasts(rows: pd.DataFrame, facts: StudyFacts) -> tuple[Contrast, ...]:
    """Known against masked on agreement with the model: over all conditions (one score per person), then
    within each; Holm's correction over the latter."""
    sides = side_of(rows["arm"])
    of = {side: rows[sides == side] for side in SIDES}

    def contrast(name: str) -> Contrast:
        scores = []
        for side in SIDES:
            part = of[side] if name == ALL else of[side][of[side]["condition"] == name]
            scores.append(part.groupby("session")["accuracy"].mean().dropna())
        return rank_contrast(name, "accuracy", scores[0], scores[1], within=False)

    return (contrast(ALL), *with_holm([contrast(c.name) for c in facts.conditions]))


def masking_test(frames: Frames, facts: StudyFacts) -> MixedTest:
    """The logistic mixed model of single answers: whether knowing the task matters, given the conditions.
    Raises StatsError with too few people on a side or no convergence."""
    arms = frames.participants.set_index("session")["arm"]
    tests = scored_tests(frames)
    sides = side_of(tests["session"].map(arms))
    tests = tests[sides != ""]
    sides = sides[sides != ""]
    people = tests.groupby(sides)["session"].nunique()
    if len(people) < len(SIDES) or int(people.min()) < CROSSED_MIN:
        raise StatsError(
            f"A model of single answers needs at least {CROSSED_MIN} people on each side; "
            "wait for more participants."
        )
    names = [c.name for c in facts.conditions if (tests["condition"] == c.name).any()]
    fixed = condition_columns(tests, names)
    fixed |= together(square_columns(frames, tests, facts, fixed))
    known = {KNOWN: (sides == KNOWN).to_numpy(float)}
    cell = tests["item"].str.cat(sides, sep="\x1f")
    factors = {"person": list(tests["session"]), "text": list(tests["item"]), "text by side": list(cell)}
    answers = tests["matches_model"].to_numpy(float)
    whole, part = (fit_crossed(answers, columns, factors) for columns in ({**known, **fixed}, fixed))
    at_mean = {name: float(np.mean(column)) for name, column in fixed.items()}
    shares = {side: whole.probabilities({**at_mean, KNOWN: float(side == KNOWN)})[-1] for side in SIDES}
    return MixedTest(likelihood_ratio(whole, part), shares, whole.sds)


def masking_section(frames: Frames, rows: pd.DataFrame, facts: StudyFacts) -> Section:
    """The tests of a crossed study; in any other one sentence on what its numbers may be compared with."""
    if not (side_of(rows["arm"]) != "").any():
        return Section("masking", TITLE, None, (DESCRIBED,))
    made = masking_contrasts(rows, facts)
    labels = {ALL: "All conditions", **{c.name: c.label for c in facts.conditions}}
    content: list[dict[str, Any]] = []
    for c in made:
        row: dict[str, Any] = {"condition": c.condition, "n": list(c.n), "effect": c.effect, "p": c.p}
        content.append({**row, "p_holm": c.p_holm, **_means(rows, c.condition)})
    lines = tuple(
        (
            labels[row["condition"]],
            " and ".join(map(str, row["n"])),
            *(percent(row["accuracy"][side]) for side in SIDES),
            *(number(row["test_s"][side]) for side in SIDES),
            number(row["effect"]),
            p_value(row["p"]) + (stars(row["p"]) if row["condition"] == ALL else ""),
            p_value(row["p_holm"]) + stars(row["p_holm"]),
        )
        for row in content
    )
    table = Table(
        "masking",
        "Half of the people knew the task, on the same texts",
        ("Condition", "n", "Known %", "Masked %", "Known s", "Masked s", "Rank-biserial", "p", "p, Holm"),
        lines,
        "Agreement with the model, and the geometric mean of the time of the test. Mann-Whitney of different "
        "people, one score per person; rank-biserial above 0: higher if the task is known. "
        "Holm: over the conditions.",
    )
    told, single = _single_answers(frames, facts)
    return Section("masking", TITLE, {"rows": content, "single_answers": single}, told, (table,))


def _single_answers(frames: Frames, facts: StudyFacts) -> tuple[tuple[str, ...], dict[str, Any] | None]:
    try:
        test = masking_test(frames, facts)
    except StatsError as error:
        return (str(error),), None
    sentence = (
        f"Single answers, people and texts at random: {ratio_sentence(test.ratio)}: "
        f"{finding(test.ratio.p, 'agreement with the model of people who know the task and who do not')}; "
        f"modelled agreement {percent(test.shares[KNOWN])} % known, {percent(test.shares[MASKED])} % masked."
    )
    return (sentence,), {**test.ratio.as_json(), "shares": test.shares, "sds": test.sds}


def _means(rows: pd.DataFrame, name: str) -> dict[str, dict[str, float | None]]:
    """Mean agreement and the geometric mean of the test's seconds, by side; a person's conditions together
    if all are asked for."""
    part = rows if name == ALL else rows[rows["condition"] == name]
    sides = side_of(part["arm"])
    told: dict[str, dict[str, float | None]] = {"accuracy": {}, "test_s": {}}
    for side in SIDES:
        scores = part[sides == side].groupby("session")["accuracy"].mean()
        told["accuracy"][side] = None if scores.empty else float(scores.mean())
        told["test_s"][side] = geometric_mean(part.loc[sides == side, "test_s"])
    return told
