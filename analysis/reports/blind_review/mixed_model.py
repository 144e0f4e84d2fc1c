"""Single reviews as a crossed mixed model: leads, tasks and solutions at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.any_table.formats import finding, number, percent, ratio_sentence
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Section
from analysis.reports.blind_review.rows import DeclaredDesign, real
from analysis.stats.intervals_and_checks import Floats, StatsError
from analysis.stats.ratings.ordinal_model import CrossedFit, LikelihoodRatio, fit_crossed, likelihood_ratio

LEADS_MIN = 6
"""With fewer leads a mixed model says nothing about them."""
SECOND = "second run"
TITLE = "Single reviews: leads, tasks and solutions at random"
EFFECTS = {
    "interaction": "what explanations change in acceptance",
    "source": "acceptance",
    "explained": "acceptance",
}
BETWEEN = {
    "interaction": "sources",
    "source": "sources",
    "explained": "the runs with and without explanations",
}


@dataclass(frozen=True, slots=True)
class ReviewModel:
    """`tests`: the likelihood ratio of each effect, that of a main effect without the interaction. `shares`:
    the modelled share accepted by source and explanation, over all leads, tasks and solutions."""

    tests: Mapping[str, LikelihoodRatio]
    shares: Mapping[tuple[str, bool], float]
    sds: Mapping[str, float]
    rows: int


def review_model(rows: pd.DataFrame, facts: StudyFacts, is_ordered: bool) -> ReviewModel:
    """The logistic model of acceptance of real solutions. `is_ordered`: everybody had the same order of runs,
    so that the second run is the one with explanations. Raises StatsError with too few leads, or if it has no
    fit."""
    told = real(rows)
    names = [c.name for c in facts.conditions if (told["condition"] == c.name).any()]
    if told["participant"].nunique() < LEADS_MIN or len(names) < 2:
        raise StatsError(
            f"A model of single reviews needs at least {LEADS_MIN} leads and 2 sources, there are "
            f"{told['participant'].nunique()} and {len(names)}; wait for more leads."
        )
    source = {name: (told["condition"] == name).to_numpy(float) for name in names[1:]}
    shown = told["explained"].to_numpy(float)
    has_runs = 0 < shown.mean() < 1
    explained = {"explained": shown} if has_runs else {}
    interaction = {f"{name} explained": column * shown for name, column in source.items()} if has_runs else {}
    run = (told["block"] > told["block"].min()).to_numpy(float)
    order = {SECOND: run} if has_runs and not is_ordered else {}
    factors = {
        "lead": list(told["participant"]),
        "task": list(told["item"]),
        "solution": list(told["solution"]),
    }
    accepted = told["accepted"].to_numpy(float)

    def fit(*parts: Mapping[str, Floats]) -> CrossedFit:
        return fit_crossed(accepted, {name: c for part in parts for name, c in part.items()}, factors)

    main = fit(source, explained, order)
    tests = {"source": likelihood_ratio(main, fit(explained, order))}
    whole = main
    if has_runs:
        whole = fit(source, explained, interaction, order)
        tests = {
            "interaction": likelihood_ratio(whole, main),
            **tests,
            "explained": likelihood_ratio(main, fit(source, order)),
        }
    at_mean = {name: float(np.mean(column)) for name, column in order.items()}
    shares = {}
    for name in names:
        for value in (False, True) if has_runs else (bool(shown.any()),):
            fixed = {name: 1.0} if name in source else {}
            if has_runs and value:
                fixed |= {"explained": 1.0} | ({f"{name} explained": 1.0} if name in source else {})
            shares[name, value] = whole.probabilities({**at_mean, **fixed})[-1]
    return ReviewModel(tests, shares, whole.sds, len(told))


def model_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """The tests that may speak of other leads, tasks and solutions."""
    try:
        made = review_model(rows, facts, told.order == "paper")
    except StatsError as error:
        return Section("single_reviews", TITLE, None, (str(error),))
    labels = facts.labels
    sentences = tuple(
        f"{name.capitalize()}: {ratio_sentence(ratio)}: {finding(ratio.p, EFFECTS[name], BETWEEN[name])}."
        for name, ratio in made.tests.items()
    )
    sources = dict.fromkeys(name for name, _ in made.shares)
    lines = tuple(
        (labels[name], *(percent(made.shares.get((name, value))) for value in (False, True)))
        for name in sources
    )
    sds = ", ".join(f"{name} {number(sd)}" for name, sd in made.sds.items())
    note = (
        f"Logistic mixed model (Laplace) of {made.rows} reviews of real solutions, with random intercepts of "
        f"leads, tasks and solutions; SD in log odds: {sds}. Likelihood ratios; a main effect is tested "
        "without the interaction. Shares are over all leads, tasks and solutions like these."
    )
    columns = ("Solutions of", "Accepted %, not explained", "Accepted %, explained")
    table = Table("single_reviews", "Modelled acceptance", columns, lines, note)
    content = {
        "tests": {name: ratio.as_json() for name, ratio in made.tests.items()},
        "shares": [
            {"name": name, "explained": value, "accepted": share}
            for (name, value), share in made.shares.items()
        ],
        "sds": dict(made.sds),
        "reviews": made.rows,
    }
    return Section("single_reviews", TITLE, content, sentences, (table,))
