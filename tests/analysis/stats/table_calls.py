"""The functions that `analyse` calls for anybody's table, with any input: see test_stats_contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from analysis.stats import bayes_utility, cluster_correlation, response_times
from analysis.stats.means import (
    assumptions,
    dunnett,
    effect_size,
    equivalence,
    factorial,
    one_sample,
    paired,
    repeated_measures,
    trimmed,
    tukey_and_corrections,
    welch,
)
from analysis.stats.planning import contrast_power, sequential_looks
from analysis.stats.ranks import method_rank_intervals, several_groups, two_groups
from analysis.stats.ratings import reliability
from analysis.stats.shares import proportions

near = st.sampled_from([0.3, 0.1 + 0.2, 0.1 * 3, np.nextafter(0.3, 1), 1e-5, 0.0])
anything = st.one_of(st.floats(), st.integers(-3, 40), st.none(), st.text(max_size=3), st.just(1j))
counts = st.one_of(st.integers(0, 40), anything)
levels = st.one_of(st.just(0.95), st.floats(0, 1), anything)
clean = st.lists(st.one_of(st.floats(-10, 10), near), max_size=8)
lists = st.one_of(clean, clean, st.lists(anything, max_size=5), st.lists(clean, max_size=3))
tables = st.one_of(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(st.one_of(near, st.floats(-3, 3)), min_size=n, max_size=n), max_size=8)
    ),
    lists,
)
names = st.lists(st.sampled_from("ab"), max_size=8)
some_values = st.one_of(st.lists(st.one_of(near, st.floats(-3, 3)), min_size=9, max_size=9), lists)
some_names = st.one_of(st.lists(st.sampled_from("pq"), min_size=9, max_size=9), names, lists)
some_times = st.one_of(st.lists(st.floats(0.1, 9), min_size=9, max_size=9), some_values, lists)
three = st.lists(st.one_of(near, st.floats(-3, 3)), min_size=3, max_size=3)
groups = st.dictionaries(st.sampled_from("abc"), lists, max_size=3)
shares = st.lists(st.floats(0, 1), min_size=2, max_size=9)
effects = st.one_of(st.floats(-2, 2), anything)
alphas = st.one_of(st.just(0.05), anything)
seeds = st.sampled_from([0, 3, -1, "9"])
looks = st.builds(
    sequential_looks.LookPlan,
    st.one_of(st.sampled_from([(1.0,), (0.5, 1.0), (0.2, 0.7, 1.0), (0.7, 0.2, 1.0)]), lists, anything),
    st.sampled_from(["obrien_fleming", "pocock", "none"]),
    alphas,
)
LEVEL = st.fixed_dictionaries({"level": levels})
# By module and name: the arguments in order; a mapping as the last one holds those given by keyword.
TABLE_CALLS: dict[tuple[Any, str], tuple[st.SearchStrategy[Any], ...]] = {
    (dunnett, "dunnett"): (
        groups,
        st.sampled_from("abc"),
        st.fixed_dictionaries({"variances": st.sampled_from(["equal", "separate", "none"]), "level": levels}),
    ),
    (effect_size, "hedges_g"): (lists, lists, LEVEL),
    (method_rank_intervals, "rank_methods"): (
        st.dictionaries(st.sampled_from("st"), groups, max_size=2),
        st.dictionaries(st.sampled_from("st"), st.sampled_from("abz"), max_size=2),
        LEVEL,
    ),
    (effect_size, "standardised_change"): (some_values, some_values, LEVEL),
    (paired, "paired_differences"): (
        tables,
        st.sampled_from(["ab", "abc", "abcd", "aab"]),
        st.sampled_from([None, "a", "z"]),
        st.fixed_dictionaries(
            {"correction": st.sampled_from(["holm", "bonferroni", "bh", "none"]), "level": levels}
        ),
    ),
    (factorial, "factorial_anova"): (
        some_values,
        st.dictionaries(st.sampled_from("ab"), some_names, max_size=2),
        st.one_of(st.none(), st.dictionaries(st.sampled_from("bx"), some_values, max_size=1)),
        st.fixed_dictionaries({"sum_of_squares": st.sampled_from(["II", "III", "IV"]), "level": levels}),
    ),
    (tukey_and_corrections, "bonferroni"): (st.one_of(st.lists(st.floats(0, 1), max_size=5), lists),),
    (tukey_and_corrections, "benjamini_hochberg"): (st.one_of(st.lists(st.floats(0, 1), max_size=5), lists),),
    (two_groups, "signed_rank_interval"): (some_values, some_values, LEVEL),
    (equivalence, "equivalent_means"): (
        lists,
        lists,
        st.one_of(st.floats(0, 2), anything),
        st.fixed_dictionaries({"alpha": alphas}),
    ),
    (equivalence, "equivalent_changes"): (
        some_values,
        some_values,
        st.one_of(st.floats(0, 2), anything),
    ),
    (equivalence, "equivalent_shares"): (counts, counts, counts, counts, levels),
    (proportions, "odds_ratio"): (counts, counts, counts, counts, LEVEL),
    (reliability, "split_half"): (
        tables,
        st.fixed_dictionaries(
            {"draws": st.sampled_from([20, 0, -1, "9"]), "seed": st.sampled_from([0, -1, "9"])}
        ),
    ),
    (reliability, "intraclass"): (tables, LEVEL),
    (reliability, "item_statistics"): (
        st.one_of(
            st.lists(st.lists(st.sampled_from([0, 1, np.nan]), min_size=2, max_size=2), max_size=6), tables
        ),
        st.sampled_from(["ab", "abc", ""]),
        LEVEL,
    ),
    (response_times, "log_summary"): (some_times, LEVEL),
    (response_times, "ex_gaussian"): (
        st.one_of(st.lists(st.floats(0.1, 9), min_size=40, max_size=44), some_times),
    ),
    (response_times, "speed_accuracy"): (
        st.one_of(st.lists(st.sampled_from([0, 1]), min_size=9, max_size=9), lists),
        some_times,
        some_names,
        st.fixed_dictionaries({"bins": st.sampled_from([2, 3, 0, "9"]), "level": levels}),
    ),
    (several_groups, "kruskal_wallis"): (groups, LEVEL),
    (several_groups, "friedman"): (tables, st.sampled_from(["ab", "abc", "abcd", "aab"]), LEVEL),
    (several_groups, "rank_biserial_interval"): (
        st.one_of(st.floats(-1, 1), anything),
        counts,
        counts,
        LEVEL,
    ),
    (repeated_measures, "repeated_measures"): (
        tables,
        st.sampled_from([{"w": "xy"}, {"w": "xyz"}, {"v": "xy", "w": "xy"}, {}, {"w": "xx"}]),
        st.one_of(st.none(), names),
        st.fixed_dictionaries({"between": st.sampled_from("gw"), "level": levels}),
    ),
    (bayes_utility, "bayes_utility"): (st.one_of(shares, lists), st.one_of(shares, lists), LEVEL),
    (cluster_correlation, "correlation"): (
        some_values,
        some_values,
        st.one_of(st.none(), some_names),
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["pearson", "spearman", "none"]), "seed": seeds, "level": levels}
            | {"draws": st.sampled_from([20, 0, -1, "9"])}
        ),
    ),
    (contrast_power, "dunnett_power"): (
        counts,
        st.lists(counts, max_size=3),
        st.lists(effects, max_size=3),
        st.fixed_dictionaries({"alpha": alphas}),
    ),
    (contrast_power, "detectable_contrast"): (
        counts,
        st.lists(counts, max_size=3),
        st.fixed_dictionaries({"alpha": alphas, "power": levels}),
    ),
    (contrast_power, "paired_power"): (
        counts,
        effects,
        st.fixed_dictionaries({"tests": counts, "alpha": alphas}),
    ),
    (contrast_power, "equivalence_power"): (
        counts,
        counts,
        effects,
        st.fixed_dictionaries({"difference": effects, "alpha": alphas}),
    ),
    (contrast_power, "utility_power"): (
        st.one_of(st.tuples(counts, counts), lists),
        st.one_of(st.tuples(st.floats(0, 1), st.floats(0, 1)), lists),
        st.one_of(st.tuples(st.floats(0, 1), st.floats(0, 1)), lists),
        st.fixed_dictionaries({"tests": counts, "alpha": alphas, "seed": seeds, "draws": counts}),
    ),
    (sequential_looks, "cumulative_alpha"): (
        levels,
        st.sampled_from(["obrien_fleming", "pocock", "none"]),
        alphas,
    ),
    (sequential_looks, "look_limits"): (looks,),
    (sequential_looks, "crossing_probability"): (
        st.one_of(st.just([2.0, 2.0]), lists),
        st.one_of(st.just([0.5, 1.0]), lists),
        effects,
    ),
    (sequential_looks, "look"): (looks, counts, levels),
    (sequential_looks, "family_levels"): (looks, counts),
    (welch, "welch_anova"): (groups,),
    (welch, "games_howell"): (groups, LEVEL),
    (welch, "bonferroni_pairs"): (groups, LEVEL),
    (assumptions, "variance_tests"): (groups,),
    (assumptions, "normality"): (some_values,),
    (assumptions, "influence"): (
        st.one_of(st.fixed_dictionaries({"a": three, "b": three}), groups),
        st.one_of(st.just({"a": "pqr", "b": ["s", "t", "u"]}), groups),
    ),
    (trimmed, "yuen"): (
        st.one_of(st.fixed_dictionaries({"a": some_values, "b": some_values}), groups),
        LEVEL,
    ),
    (one_sample, "one_sample"): (some_values, effects, LEVEL),
}
