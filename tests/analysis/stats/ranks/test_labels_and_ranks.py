"""F1 against scikit-learn, the signed-rank test against all sign patterns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.metrics import accuracy_score, f1_score

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ranks.two_groups import mann_whitney, signed_rank
from analysis.stats.shares.label_scores import label_scores

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]


def test_f1_is_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    classes = list("abcd")
    right, answered = (list(map(str, rng.choice(classes[:3], 50))) for _ in range(2))
    scores = label_scores(right, answered, classes)
    expected = f1_score(right, answered, labels=classes, average="macro", zero_division=0)
    assert scores.f1 == pytest.approx(expected)
    assert scores.accuracy == pytest.approx(accuracy_score(right, answered))
    assert scores.absent == ("d",)
    binary = [["a" if label == "a" else "b" for label in labels] for labels in (right, answered)]
    positive = label_scores(binary[0], binary[1], ["a", "b"], "b")
    assert positive.f1 == pytest.approx(f1_score(binary[0], binary[1], pos_label="b"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([], [], "ab"), "0 labels and 0 answers"),
        ((["a"], ["a", "b"], "ab"), "1 labels and 2 answers"),
        ((["a"], ["a"], "a"), "at least 2 classes"),
        ((["a"], ["c"], "ab"), "'c' is none of the classes"),
        ((["a"], ["b"], "ab", "c"), "'c' is none of the classes"),
    ],
)
def test_bad_labels_get_a_sentence(arguments: tuple[object, ...], sentence: str) -> None:
    with pytest.raises(StatsError, match=sentence):
        label_scores(*arguments)  # type: ignore[arg-type]


def test_the_exact_p_counts_all_sign_patterns() -> None:
    first, second = [0.9, 0.7, 0.4, 0.8, 0.3, 0.95], [0.5, 0.75, 0.1, 0.6, 0.15, 0.3]
    result = signed_rank(first, second)
    change = np.array(first) - np.array(second)
    ranks = rankdata(np.abs(change))
    w = ranks[change > 0].sum()
    sums = [sum(rank for rank, up in zip(ranks, signs, strict=True) if up)
            for signs in product((0, 1), repeat=6)]  # fmt: skip
    extreme = min(w, ranks.sum() - w)
    p = np.mean([min(s, ranks.sum() - s) <= extreme for s in sums])
    assert result.method == "exact" and (result.w, result.pairs, result.equal) == (w, 6, 0)
    assert result.p == pytest.approx(p)
    assert result.rank_biserial == pytest.approx((w - (ranks.sum() - w)) / ranks.sum())


def test_equal_pairs_and_ties_by_rounding_are_seen() -> None:
    result = signed_rank([0.3, 0.2, 0.1 + 0.2, 0.9], [0.2, 0.1, 0.3, 0.1])
    # .3 - .2 and .2 - .1 are one tie, and .1 + .2 is .3.
    assert (result.pairs, result.equal, result.method, result.w) == (3, 1, "asymptotic", 6.0)


def test_no_difference_is_a_sentence() -> None:
    with pytest.raises(StatsError, match="None of 2 pairs differs"):
        signed_rank([1, 2], [1, 2])
    with pytest.raises(StatsError, match="2 and 1 values"):
        signed_rank([1, 2], [1])


def test_results_are_tables_of_their_numbers() -> None:
    """As pandas takes them, one row each."""
    first, second = [0.2, 0.5, 0.6, 0.9], [0.1, 0.3, 0.8, 0.4]
    for result in (mann_whitney(first, second), signed_rank(first, second)):
        (row,) = pd.DataFrame(result.table()).to_dict("records")
        assert row == {name: getattr(result, name) for name in row} and row["p"] == result.p
        assert {"rank_biserial", "method"} < set(row)
    scores = label_scores(["a", "b", "a"], ["a", "a", "a"], "abcd")
    (row,) = pd.DataFrame(scores.table()).to_dict("records")
    assert (row["accuracy"], row["f1"], row["count"], row["absent"]) == (2 / 3, scores.f1, 3, "c, d")
