"""The functions that `analyse` calls for anybody's table, with any input: see test_stats_contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from analysis.stats import dunnett, effect_size, factorial, posthoc, repeated, welch

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
groups = st.dictionaries(st.sampled_from("abc"), lists, max_size=3)
LEVEL = st.fixed_dictionaries({"level": levels})
# By module and name: the arguments in order; a mapping as the last one holds those given by keyword.
TABLE_CALLS: dict[tuple[Any, str], tuple[st.SearchStrategy[Any], ...]] = {
    (dunnett, "dunnett"): (
        groups,
        st.sampled_from("abc"),
        st.fixed_dictionaries({"variances": st.sampled_from(["equal", "separate", "none"]), "level": levels}),
    ),
    (effect_size, "hedges_g"): (lists, lists, LEVEL),
    (factorial, "factorial_anova"): (
        some_values,
        st.dictionaries(st.sampled_from("ab"), some_names, max_size=2),
        st.one_of(st.none(), st.dictionaries(st.sampled_from("bx"), some_values, max_size=1)),
        st.fixed_dictionaries({"sum_of_squares": st.sampled_from(["II", "III", "IV"]), "level": levels}),
    ),
    (posthoc, "benjamini_hochberg"): (st.one_of(st.lists(st.floats(0, 1), max_size=5), lists),),
    (repeated, "repeated_measures"): (
        tables,
        st.sampled_from([{"w": "xy"}, {"w": "xyz"}, {"v": "xy", "w": "xy"}, {}, {"w": "xx"}]),
        st.one_of(st.none(), names),
        st.fixed_dictionaries({"between": st.sampled_from("gw"), "level": levels}),
    ),
    (welch, "welch_anova"): (groups,),
    (welch, "games_howell"): (groups, LEVEL),
}
