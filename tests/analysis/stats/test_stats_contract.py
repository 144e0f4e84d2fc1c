"""What every function of `analysis/stats` does with any input: finite numbers, or a sentence and a remedy."""

from __future__ import annotations

import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis import stats
from analysis.stats import acceptance_within_budget, check, intervals_and_checks, utility
from analysis.stats.intervals_and_checks import Interval, StatsError
from analysis.stats.means import anova, randomised_block, tukey_and_corrections
from analysis.stats.planning import anova_power, rank_power, rating_power
from analysis.stats.ranks import grouped_correlation, two_groups
from analysis.stats.ratings import (
    agreement,
    clustered_means,
    condition_order_agreement,
    ordinal_model,
    region_overlap,
)
from analysis.stats.shares import (
    label_scores,
    margin_decision,
    pigeonhole,
    pooled,
    proportions,
    signal_detection,
)
from tests.analysis.stats.table_calls import TABLE_CALLS

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]
Call = Callable[..., object]

near = st.sampled_from([0.3, 0.1 + 0.2, 0.1 * 3, np.nextafter(0.3, 1), 1e-5, 0.0])
numbers = st.one_of(st.floats(-10, 10), near, st.integers(-3, 40), st.floats(), st.booleans())
anything = st.one_of(numbers, st.none(), st.text(max_size=3), st.sampled_from(["1", 1j, 10**400, np.nan]))
shares = st.one_of(st.sampled_from([0.0, 1 / 7, 0.5, 1.0]), st.floats(0, 1))
counts = st.one_of(st.integers(0, 40), st.integers(), anything)
clean = st.lists(st.one_of(st.floats(-10, 10), near), max_size=8)
lists = st.one_of(
    clean, st.lists(near, max_size=6), st.lists(anything, max_size=5), st.lists(clean, max_size=3)
)
tables = st.one_of(
    st.integers(0, 3).flatmap(lambda n: st.lists(st.lists(shares, min_size=n, max_size=n), max_size=5)),
    st.lists(st.lists(st.one_of(shares, st.just(np.nan), anything), max_size=3), max_size=4),
    lists,
)
names = st.sampled_from("abc")
OTHER_NUMBERS = [np.float32(0.9), np.float16(0.9), Fraction(9, 10), Decimal("0.9")]
FEW_DRAWS = st.sampled_from([20, 0, -1, 2.5, "9", None])
SEEDS = st.sampled_from([0, 3, -1, 2.5, "9", None])
levels = st.one_of(st.just(0.95), st.floats(0, 1), anything, st.sampled_from(OTHER_NUMBERS))


def some(values: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(names, values, max_size=most)


levels_of = st.one_of(st.just([1, 2, 3]), clean, lists)
ratings = st.one_of(
    st.lists(st.lists(st.sampled_from([1, 2, 3, np.nan]), min_size=3, max_size=3), max_size=5), tables
)
rater = st.one_of(st.lists(st.sampled_from([1, 2, 3]), min_size=4, max_size=4), lists)
answers = st.one_of(st.lists(st.integers(0, 2), min_size=6, max_size=6), lists)
columns = st.one_of(st.lists(st.integers(0, 1), min_size=6, max_size=6), lists)
rows_of = st.one_of(st.lists(names, min_size=6, max_size=6), st.lists(names, max_size=8))


def small_fit(effects: bool) -> ordinal_model.CrossedFit:
    rng = np.random.default_rng(6)
    people = [str(row // 6) for row in range(60)]
    return ordinal_model.fit_crossed(
        rng.integers(0, 3, 60), {"a": rng.normal(0, 1, 60)} if effects else {}, {"person": people}
    )


def small_difference(people: int, items: int) -> pigeonhole.CrossedEstimate:
    rng = np.random.default_rng(7)
    person, item = np.divmod(np.arange(people * items), items)
    cells = ["a" if cell else "b" for cell in (person + item) % 2]
    yes = rng.integers(0, 2, person.size)
    return pigeonhole.pigeonhole(yes, cells, person, item, {"a": 1, "b": -1}, draws=50)


fits = st.sampled_from([small_fit(True), small_fit(False)])
differences = st.sampled_from([small_difference(12, 30), small_difference(13, 40), small_difference(3, 4)])
regions = st.lists(st.one_of(st.lists(st.integers(0, 5), min_size=1, max_size=4), anything), max_size=4)
yes = st.one_of(st.lists(st.sampled_from([0, 1, True]), min_size=6, max_size=6), lists)
times = st.one_of(st.lists(st.sampled_from([0, 900, 3000, np.nan]), min_size=6, max_size=6), lists)
summaries = st.builds(anova.Summary, counts, anything, anything)
# By module and name: the arguments in order; a mapping as the last one holds those given by keyword.
CALLS: dict[tuple[Any, str], tuple[st.SearchStrategy[Any], ...]] = {
    (agreement, "krippendorff_alpha"): (
        ratings,
        levels_of,
        st.sampled_from(["nominal", "ordinal", "interval"]),
        st.fixed_dictionaries({"draws": FEW_DRAWS, "seed": SEEDS, "level": levels}),
    ),
    (agreement, "weighted_kappa"): (rater, rater, levels_of, st.sampled_from(["linear", "quadratic"])),
    (agreement, "spearman"): (rater, rater),
    (agreement, "modes"): (ratings,),
    (agreement, "human_row"): (
        ratings,
        levels_of,
        st.fixed_dictionaries(
            {
                "leave_one_out": st.booleans(),
                "draws": FEW_DRAWS,
                "seed": SEEDS,
                "answers": st.one_of(st.none(), rater),
            }
        ),
    ),
    (anova, "one_way"): (some(lists),),
    (anova, "one_way_from_summaries"): (st.lists(summaries, max_size=3),),
    (anova, "eta_squared_interval"): (anything, counts, counts, st.fixed_dictionaries({"level": levels})),
    (anova, "eta_squared_condition_by_session"): (some(tables),),
    (grouped_correlation, "rank_association"): (
        rater,
        rater,
        rater,
        st.fixed_dictionaries({"level": levels}),
    ),
    (clustered_means, "clustered_mean"): (rater, rater, rater, st.fixed_dictionaries({"level": levels})),
    (clustered_means, "clustered_difference"): (
        rater,
        st.one_of(st.just([1, 0, 1, 0]), rater),
        rater,
        st.one_of(st.just([1, 1, 2, 2]), rater),
        st.fixed_dictionaries({"level": levels}),
    ),
    (randomised_block, "randomised_block"): (
        lists,
        st.lists(st.text(max_size=1), max_size=8),
        st.lists(st.integers(0, 3), max_size=8),
    ),
    (acceptance_within_budget, "within_budget"): (yes, times, st.one_of(st.none(), st.just(3000), anything)),
    (acceptance_within_budget, "budget_curve"): (
        yes,
        times,
        rows_of,
        rows_of,
        st.one_of(st.just([0, 1000, 3000]), lists),
        st.fixed_dictionaries({"level": levels}),
    ),
    (ordinal_model, "fit_crossed"): (answers, some(columns), some(rows_of)),
    (ordinal_model, "likelihood_ratio"): (fits, fits),
    (ordinal_model, "profile_interval"): (
        fits,
        st.sampled_from(["a", "b"]),
        st.fixed_dictionaries({"level": st.sampled_from([0.9, 0.95, 2, "9"])}),
    ),
    (label_scores, "label_scores"): (
        st.lists(names, max_size=6),
        st.lists(names, max_size=6),
        st.lists(names, max_size=3),
        st.one_of(st.none(), names),
    ),
    (margin_decision, "margin_decision"): (
        differences,
        st.one_of(st.floats(0.01, 0.6), anything),
        st.fixed_dictionaries({"power": levels}),
    ),
    (two_groups, "mann_whitney"): (lists, lists),
    (two_groups, "signed_rank"): (rater, rater),
    (region_overlap, "intersection_over_union"): (
        st.one_of(st.lists(st.integers(0, 5)), anything),
        st.lists(st.integers(0, 5)),
    ),
    (region_overlap, "region_overlap"): (
        regions,
        st.one_of(st.lists(names, max_size=4), lists),
        st.lists(st.integers(0, 1), max_size=4),
        st.fixed_dictionaries({"level": levels}),
    ),
    (pigeonhole, "pigeonhole"): (
        yes,
        rows_of,
        rows_of,
        rows_of,
        some(st.one_of(st.sampled_from([1, -1, 0.5]), anything)),
        st.fixed_dictionaries(
            {
                "scale": st.sampled_from(["share", "logit", "log", "probit", "cube"]),
                "draws": FEW_DRAWS,
                "seed": st.sampled_from([0, 3, -1, "9"]),
            }
        ),
    ),
    (pooled, "pooled_share"): (
        yes,
        rows_of,
        st.fixed_dictionaries(
            {"draws": FEW_DRAWS, "seed": st.sampled_from([0, 3, -1, "9"]), "level": levels}
        ),
    ),
    (tukey_and_corrections, "holm"): (st.one_of(st.lists(shares, max_size=5), lists),),
    (tukey_and_corrections, "tukey_kramer"): (some(lists),),
    (tukey_and_corrections, "tukey_kramer_from_summaries"): (
        some(anything),
        some(counts),
        st.fixed_dictionaries({"ms_within": anything, "df_within": counts}),
    ),
    (anova_power, "effect_size_f"): (lists, anything, st.one_of(st.none(), lists)),
    (anova_power, "effect_size_f_from_eta_squared"): (anything,),
    (anova_power, "anova_power"): (st.lists(counts, max_size=4), anything),
    (anova_power, "minimal_detectable_f"): (
        st.lists(counts, max_size=4),
        st.fixed_dictionaries({"power": levels, "alpha": levels}),
    ),
    (rating_power, "pair_power"): (
        counts,
        counts,
        counts,
        st.fixed_dictionaries(
            {"pairs": counts, "rater_sd": anything, "explanation_sd": anything, "person_share": levels}
            | {"alpha": levels, "draws": FEW_DRAWS, "seed": SEEDS}
        ),
    ),
    (rank_power, "rank_power"): (
        st.one_of(st.just([0.5, 0.7]), lists),
        counts,
        counts,
        st.fixed_dictionaries({"spread": levels, "within": st.booleans(), "alpha": levels}),
    ),
    (rank_power, "people_needed"): (
        st.one_of(st.just([0.5, 0.8]), lists),
        counts,
        st.fixed_dictionaries({"spread": levels, "within": st.booleans(), "power": levels}),
    ),
    (condition_order_agreement, "rank_agreement"): (
        rater,
        rater,
        rater,
        rater,
        rater,
        rater,
        rater,
        st.fixed_dictionaries({"draws": FEW_DRAWS, "level": levels}),
    ),
    (proportions, "wilson"): (counts, counts, st.fixed_dictionaries({"level": levels})),
    (proportions, "newcombe"): (counts, counts, counts, counts),
    (proportions, "compare_rates"): (
        st.lists(counts, max_size=3),
        st.lists(counts, max_size=3),
        st.fixed_dictionaries({"seed": SEEDS, "draws": FEW_DRAWS}),
    ),
    (check, "level"): (levels,),
    (check, "number"): (anything, st.just("It")),
    (check, "count"): (anything, st.just("It")),
    (check, "codes"): (st.one_of(rows_of, lists, tables), st.just("people")),
    (check, "array"): (tables, st.just("It")),
    (check, "groups"): (some(lists),),
    (intervals_and_checks, "mean_interval"): (lists, st.fixed_dictionaries({"level": levels})),
    (signal_detection, "signal_detection"): (counts, counts, counts, counts),
    (utility, "utilities"): (
        some(tables),
        names,
        st.fixed_dictionaries({"seed": SEEDS, "draws": FEW_DRAWS}),
    ),
    (utility, "utility_trapezoid"): (lists, lists),
    (utility, "utility_mean_of_ratios"): (lists, lists),
    (utility, "fieller"): (lists, lists, st.fixed_dictionaries({"level": levels})),
} | TABLE_CALLS
INTERNAL = (
    {
        "has_spread",
        "finite",
        "codes_again",
        "ends_of",
        "row_of",
        "json_of",
        "spreads",
        "critical_value",
        "decide_margin",
    }
    | {"largest_tail", "denominator_df"}
    | {"sequence", "mapping", "word"}
)
"""Of checked values, or of results; the last three hand back what they are given, or nothing."""
CLOSED = {"CrossedFit", "CrossedEstimate", "LookPlan", "str", "str | None"}
"""Annotations of what is a result or plan of this room, or one name: `mypy` tells a wrong one."""


def contract(examples: int) -> settings:
    """The same draws in every run, so that a change alone can make a test fail. Other draws: without
    `derandomize`, and with more examples."""
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )


def test_it_knows_every_public_function() -> None:
    there = set()
    modules = {each.name for each in pkgutil.walk_packages(stats.__path__, "analysis.stats.")}
    for module in map(import_module, sorted(modules - {"analysis.stats.proportions"})):  # an old address
        for name, member in inspect.getmembers(module, inspect.isfunction):
            if member.__module__ == module.__name__ and not name.startswith("_"):
                there.add((module.__name__, name))
    covered = {(module.__name__, name) for module, name in CALLS}
    assert {(module, name) for module, name in there if name not in INTERNAL} == covered


@pytest.mark.parametrize(("module", "name"), list(CALLS), ids=[name for _, name in CALLS])
@contract(60)
@given(data=st.data())
def test_it_answers_with_finite_numbers_or_one_sentence(module: Any, name: str, data: st.DataObject) -> None:
    arguments = [data.draw(strategy) for strategy in CALLS[module, name]]
    keywords: Mapping[str, Any] = {}
    if (
        list(inspect.signature(getattr(module, name)).parameters.values())[-1].kind
        == inspect.Parameter.KEYWORD_ONLY
    ):
        keywords = arguments.pop() if len(arguments) > positional(module, name) else {}
    try:
        result = getattr(module, name)(*arguments, **keywords)
    except StatsError as error:
        assert len(str(error)) > 20 and str(error).endswith(".") and "\n" not in str(error)
    else:
        assert all(is_told(value) for value in values_in(result))
        assert all(is_told(value) for value in values_in(table_rows(result)))


# Built anew for each call, as a generator is used up by the first.
ODD: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "scalar": lambda: 3,
    "generator": lambda: (value for value in (1, 0, 1)),
    "frame": lambda: pd.DataFrame({"a": [1, 0], "b": [0.5, 1.0]}),
    "dict": lambda: {"a": [1, 0], "b": [0.5, 1.0]},
    "set": lambda: {1, 2},
    "list": lambda: [1, 0, None],
    "records": lambda: [object(), object()],
}


@pytest.mark.long(stays="test_it_answers_with_finite_numbers_or_one_sentence")
@pytest.mark.parametrize(("module", "name"), list(CALLS), ids=[name for _, name in CALLS])
@contract(4)
@given(data=st.data())
def test_it_answers_so_if_an_argument_is_of_another_type(module: Any, name: str, data: st.DataObject) -> None:
    """Every argument in turn, but for results of this room and words of a few, as every odd thing."""
    arguments = [data.draw(strategy) for strategy in CALLS[module, name]]
    keywords = arguments.pop() if len(arguments) > positional(module, name) else {}
    hints = list(inspect.signature(getattr(module, name)).parameters.values())[: len(arguments)]
    places = [at for at, hint in enumerate(hints) if str(hint.annotation) not in CLOSED]
    for place, odd in product(places, ODD.values()):
        try:
            result = getattr(module, name)(*arguments[:place], odd(), *arguments[place + 1 :], **keywords)
        except StatsError as error:
            assert len(str(error)) > 20 and str(error).endswith(".") and "\n" not in str(error)
        else:
            assert all(is_told(value) for value in values_in(result))


def table_rows(result: Any) -> list[dict[str, Any]]:
    """The result as a table; none if it is no table."""
    return result.table() if hasattr(result, "table") else []


def test_a_result_is_a_table_of_its_own_numbers() -> None:
    """One row, but for a fit, which has one per parameter; every number of the result is in it."""
    votes = [[1, 2, 2], [4, 4, 5], [3, 3, 3], [5, 4, 4], [2, 1, 2]]
    answers, people, items = [1.0, 2, 4, 5, 3, 4, 2, 5], [1, 1, 2, 2, 3, 3, 4, 4], [1, 2, 1, 2, 1, 2, 1, 2]
    fit = ordinal_model.fit_crossed(
        [0, 1, 1, 0, 1, 0, 1, 1], {"x": [0, 0, 1, 1, 0, 1, 0, 1]}, {"person": people}
    )
    results_made = [
        agreement.krippendorff_alpha(votes, (1, 2, 3, 4, 5), draws=20, seed=1),
        agreement.human_row(votes, (1, 2, 3, 4, 5), leave_one_out=False, draws=20),
        clustered_means.clustered_mean(answers, people, items),
        grouped_correlation.rank_association(answers, answers[::-1], people),
        ordinal_model.LikelihoodRatio(4.2, 1, 36, 0.048),
    ]
    for result in results_made:
        (row,) = table_rows(result)
        numbers = [value for value in values_in(result) if not isinstance(value, Interval)]
        held = [*row.values(), *(getattr(result, "interval", None) and [0.95] or [])]
        assert all(value in held for value in numbers), (result, row)
    terms = {(row["kind"], row["name"]): row["value"] for row in table_rows(fit)}
    assert terms["effect", "x"] == fit.effects["x"] and terms["sd", "person"] == fit.sds["person"]
    assert terms["threshold", "0"] == fit.thresholds[0] and len(terms) == 3


def positional(module: Any, name: str) -> int:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
    return sum(p.kind in kinds for p in inspect.signature(getattr(module, name)).parameters.values())


def values_in(result: object) -> Iterator[object]:
    """Every number of a result, however deep; an interval's end may be infinite, and then says so."""
    if isinstance(result, Interval):
        yield from (0.0 if math.isinf(end) else end for end in (result.low, result.high))
    elif is_dataclass(result):
        for field in fields(result):
            yield from values_in(getattr(result, field.name))
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from values_in(value)
    elif isinstance(result, (tuple, list, np.ndarray)):
        for value in result:
            yield from values_in(value)
    else:
        yield result


def is_told(value: object) -> bool:
    return value is None or isinstance(value, (str, bool)) or math.isfinite(value)  # type: ignore[arg-type]


NEAR_CONSTANT: list[dict[str, list[float]]] = [
    {"a": [0.3, 0.1 + 0.2, 0.3], "b": [0.9, 0.9, 0.9]},
    {"a": [0.1 + 0.2] * 5, "b": [0.3] * 4 + [0.1 + 0.2]},
]


@pytest.mark.parametrize("groups", NEAR_CONSTANT)
def test_it_counts_a_spread_below_rounding_as_none(groups: dict[str, list[float]]) -> None:
    for test in (anova.one_way, tukey_and_corrections.tukey_kramer):
        with pytest.raises(StatsError, match="No group has any variance"):
            test(groups)
    values = [value for group in groups.values() for value in group]
    conditions = [name for name, group in groups.items() for _ in group]
    with pytest.raises(StatsError, match="some spread"):
        randomised_block.randomised_block(values, conditions, [i % 2 for i in range(len(values))])
    assert intervals_and_checks.mean_interval(groups["a"]) is None
    assert utility.fieller(groups["a"], groups["b"]) is None
    with pytest.raises(StatsError, match="ranks say nothing"):
        two_groups.mann_whitney(groups["a"], [groups["a"][0]] * 3)


def test_it_refuses_an_f_that_no_people_make() -> None:
    groups = {"a": [0.0] * 30 + [1e-5], "b": [1.0] * 31, "c": [0.5] * 31}
    with pytest.raises(StatsError, match="next to no spread"):
        anova.one_way(groups)
    for f in (math.inf, math.nan, -1.0, 1e9):
        with pytest.raises(StatsError):
            anova.eta_squared_interval(f, 2, 30)
    low, high = (
        anova.eta_squared_interval(anova.F_MAX, 2, 30).low,
        anova.eta_squared_interval(1e8, 2, 30).high,
    )
    assert 1 - 1e-6 < low < high < 1


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_it_depends_on_no_unit(scale: float) -> None:
    rng = np.random.default_rng(4)
    groups = {name: rng.normal(10 + at, 1, 9) for at, name in enumerate("abc")}
    values = np.concatenate(list(groups.values()))
    conditions, blocks = [name for name in "abc" for _ in range(9)], list(range(9)) * 3
    scaled = {name: scale * group for name, group in groups.items()}
    assert anova.one_way(scaled).f == pytest.approx(anova.one_way(groups).f)
    assert tukey_and_corrections.tukey_kramer(scaled).pairs[0].q == pytest.approx(
        tukey_and_corrections.tukey_kramer(groups).pairs[0].q
    )
    assert randomised_block.randomised_block(scale * values, conditions, blocks).f == pytest.approx(
        randomised_block.randomised_block(values, conditions, blocks).f
    )
    mine, plain = utility.fieller(scaled["a"], groups["b"]), utility.fieller(groups["a"], groups["b"])
    assert mine is not None and plain is not None
    assert (mine.low, mine.high) == pytest.approx((scale * plain.low, scale * plain.high))


def test_it_takes_a_small_spread_for_one_if_it_is_more_than_rounding() -> None:
    """The limit is relative and on deviations: a mean square is compared with its square."""
    means, sizes = {"a": 1.0, "b": 1.0 + 1e-10}, {"a": 5, "b": 5}
    result = tukey_and_corrections.tukey_kramer_from_summaries(means, sizes, ms_within=1e-20, df_within=8)
    assert result.pairs[0].q == pytest.approx(5**0.5, rel=1e-5)
    with pytest.raises(StatsError, match="mean square within above"):
        tukey_and_corrections.tukey_kramer_from_summaries(means, sizes, ms_within=1e-28, df_within=8)
    rows = [anova.Summary(5, mean, 1e-20) for mean in means.values()]
    assert anova.one_way_from_summaries(rows).f == pytest.approx(2.5, rel=1e-5)
    with pytest.raises(StatsError, match="squares within groups"):
        anova.one_way_from_summaries([anova.Summary(5, mean, 1e-28) for mean in means.values()])


def test_it_draws_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    scores = {name: rng.binomial(7, 0.6, (6, 3)) / 7 for name in ("b", "m")}
    whole = utility.utilities(scores, "b", seed=2, draws=100)
    monkeypatch.setattr(utility, "CHUNK_CELLS", 40)
    assert utility.utilities(scores, "b", seed=2, draws=100) == whole
