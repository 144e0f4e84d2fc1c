"""Denominators of balanced designs by closed forms, a published table, and plain ranks of dense matrices."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from analysis.stats.containment import denominator_df
from analysis.stats.intervals_and_checks import Codes, Floats, StatsError

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]


def coded(**factors: ArrayLike) -> dict[str, Codes]:
    return {name: np.unique(rows, return_inverse=True)[1].astype(np.intp) for name, rows in factors.items()}


def dummies(*levels: ArrayLike) -> Floats:
    """A column for each level but the first, of each of the given variables."""
    made = [(np.asarray(rows) == level).astype(float) for rows in levels for level in np.unique(rows)[1:]]
    return np.column_stack(made)


def grid(*sizes: int) -> list[NDArray[np.intp]]:
    return list(np.array(list(product(*map(range, sizes)))).T)


NONE = np.empty((0, 0))


def df_of(columns: Floats, factors: Mapping[str, Codes], kept: Floats = NONE) -> int:
    return denominator_df(columns, kept if kept.size else columns[:, :0], factors)


def test_people_of_one_condition_are_judged_by_people() -> None:
    """One-way analysis of variance: people less conditions; items by condition have (a - 1)(j - 1)."""
    condition, person, item = grid(4, 10, 21)
    factors = coded(person=condition * 10 + person, item=item, cell=item * 4 + condition)
    assert df_of(dummies(condition), factors) == 40 - 4
    # With many people the pictures by condition are fewer.
    condition, person, item = grid(4, 30, 21)
    factors = coded(person=condition * 30 + person, item=item, cell=item * 4 + condition)
    assert df_of(dummies(condition), factors) == 3 * 20


def test_people_who_met_all_conditions_are_judged_by_what_varies_there() -> None:
    person, condition, item = grid(12, 3, 8)
    whole = {"person": person, "item": item}
    x = dummies(condition)
    assert df_of(x, coded(**whole)) == 288 - 1 - 2 - 11 - 7, "nothing contains it: what is left of the rows"
    by_item = {"item by condition": item * 3 + condition}
    assert df_of(x, coded(**whole, **by_item)) == 2 * 7
    by_person = {"person by condition": person * 3 + condition}
    assert df_of(x, coded(**whole, **by_person)) == 2 * 11
    assert df_of(x, coded(**whole, **by_item, **by_person)) == 2 * 7


def test_items_of_one_condition_are_judged_by_items_and_schools_before_pupils() -> None:
    person, item = grid(20, 9)
    assert df_of(dummies(item % 3), coded(person=person, item=item)) == 9 - 3
    school, pupil, _ = grid(8, 15, 6)
    pupils = {"school": school, "pupil": school * 15 + pupil}
    assert df_of(dummies(school % 2), coded(**pupils)) == 8 - 2
    # Age is a number of each pupil: 120 pupils, less 8 schools, less itself.
    age = np.random.default_rng(1).normal(1e6, 1e5, 120)[pupils["pupil"]][:, None]
    assert df_of(age, coded(**pupils)) == 120 - 8 - 1
    both = np.column_stack([dummies(school % 2), age])
    assert df_of(both, coded(**pupils), kept=age) == 8 - 2
    assert df_of(both, coded(**pupils), kept=both[:, :1]) == 120 - 8 - 1


def test_it_equals_the_published_split_plot() -> None:
    """Pinheiro and Bates 2000, section 1.6, Yates's oats: 6 blocks, 3 varieties as plots, 4 amounts of
    nitrogen; denDF 10 for variety, 45 for nitrogen and for the interaction."""
    block, variety, nitrogen = grid(6, 3, 4)
    factors = coded(block=block, plot=block * 3 + variety)
    of_variety, of_nitrogen = dummies(variety), dummies(nitrogen)
    both = np.column_stack([a * b for a, b in product(of_variety.T, of_nitrogen.T)])
    everything = np.column_stack([of_variety, of_nitrogen, both])
    assert df_of(everything, factors, kept=everything[:, 2:]) == 10
    assert df_of(everything, factors, kept=np.delete(everything, [2, 3, 4], axis=1)) == 45
    assert df_of(everything, factors, kept=everything[:, :5]) == 45


def test_without_a_container_it_is_what_the_rank_of_all_columns_leaves() -> None:
    """Against the rank of the dense matrix [1, X, Z], rows and levels at random."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        n = int(rng.integers(60, 200))
        rows = {"person": rng.integers(0, 12, n), "item": rng.integers(0, 7, n)}
        rows["part"] = rows["item"] * 3 + rng.integers(0, 3, n)
        factors = coded(**rows)
        x = np.column_stack([rng.normal(0, 1, (n, 2)), rng.normal(0, 1, 12)[rows["person"]]])
        levels = [np.eye(codes.max() + 1)[codes] for codes in factors.values()]
        everything = np.column_stack([np.ones(n), x, *levels])
        assert df_of(x, factors, kept=x[:, 1:]) == n - np.linalg.matrix_rank(everything)


def test_too_few_people_get_a_sentence() -> None:
    condition, item = grid(4, 21)
    with pytest.raises(StatsError, match="4 levels of person leave nothing to judge"):
        df_of(dummies(condition), coded(person=condition, item=item))
    with pytest.raises(StatsError, match="3 answers leave nothing"):
        df_of(np.array([[0.0], [1.0], [2.0]]), coded(person=[0, 1, 1], item=[0, 0, 1]))
