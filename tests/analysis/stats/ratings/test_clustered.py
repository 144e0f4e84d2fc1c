"""Two-way clustered errors against statsmodels, by hand, and their level over simulated studies."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import spearmanr
from scipy.stats import t as student

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.tukey_and_corrections import holm
from analysis.stats.ranks.grouped_correlation import rank_association
from analysis.stats.ratings.clustered_means import clustered_difference, clustered_mean
from tests.proofs.chance import likely_share

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]


def crossed(
    seed: int,
    people: int = 12,
    items: int = 10,
    share: float = 0.6,
    sds: tuple[float, float, float] = (1, 1, 1),
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values with random people and items; a share of all pairs was answered."""
    rng = np.random.default_rng(seed)
    person, item = np.nonzero(rng.random((people, items)) < share)
    by_person, by_item = rng.normal(0, sds[0], people), rng.normal(0, sds[1], items)
    return by_person[person] + by_item[item] + rng.normal(0, sds[2], person.size), person, item


def witness(y: np.ndarray, x: np.ndarray, weights: np.ndarray, clusters: np.ndarray) -> float:
    """The clustered error of the last coefficient, with G/(G - 1) and no other factor: statsmodels has
    (n - 1)/(n - k) beside it, which is taken out."""
    n, k = x.shape
    parts = []
    for groups in (clusters[:, 0], clusters[:, 1], clusters[:, 0] * 10_000 + clusters[:, 1]):
        fit = sm.WLS(y, x, weights=weights).fit(cov_type="cluster", cov_kwds={"groups": groups})
        parts.append(fit.cov_params()[-1, -1] * (n - k) / (n - 1))
    return float(np.sqrt(max(parts[0] + parts[1] - parts[2], parts[0], parts[1])))


@pytest.mark.parametrize("seed", range(4))
def test_the_mean_has_statsmodels_clustered_error(seed: int) -> None:
    y, person, item = crossed(seed)
    result = clustered_mean(y, person, item)
    assert result.estimate == pytest.approx(y.mean())
    expected = witness(y, np.ones((y.size, 1)), np.ones(y.size), np.column_stack([person, item]))
    assert result.se == pytest.approx(expected)
    assert (result.people, result.items, result.values, result.df) == (12, 10, y.size, 9)


@pytest.mark.parametrize("seed", range(4))
def test_the_difference_is_that_of_the_items_that_both_have(seed: int) -> None:
    y, person, item = crossed(seed)
    first = (np.random.default_rng(seed + 50).random(y.size) < 0.4).astype(float)
    # Items 0 and 1 have one group each.
    first[item == 0], first[item == 1] = 1, 0
    shared = [i for i in range(10) if i > 1 and len(set(first[item == i])) == 2]
    by_hand = np.mean(
        [y[(item == i) & (first == 1)].mean() - y[(item == i) & (first == 0)].mean() for i in shared]
    )
    result = clustered_difference(y, first, person.astype(str), item.astype(str))
    assert result.estimate == pytest.approx(by_hand)
    assert result.items == len(shared)
    kept = np.isin(item, shared)
    y, first, person, item = y[kept], first[kept], person[kept], item[kept]
    counts = [((item == i) & (first == g)).sum() for i, g in zip(item, first, strict=True)]
    x = np.column_stack([np.ones(y.size), first])
    expected = witness(y, x, 1 / np.array(counts), np.column_stack([person, item]))
    assert result.se == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_strata_count_by_their_share_of_the_values(seed: int) -> None:
    """Against the differences within strata, and WLS with a mean for each group of each."""
    y, person, item = crossed(seed, people=14, items=12)
    first = (np.random.default_rng(seed + 90).random(y.size) < 0.5).astype(float)
    stratum = (item < 4).astype(int)
    counts = {(i, g): ((item == i) & (first == g)).sum() for i in range(12) for g in (0, 1)}
    kept = np.array([min(counts[i, 0], counts[i, 1]) > 0 for i in item])
    result = clustered_difference(y, first, person, item, strata=stratum.astype(str))
    y, first, person, item = y[kept], first[kept], person[kept], item[kept]
    share = {s: float(np.mean(stratum == s)) for s in (0, 1)}
    stratum = stratum[kept]
    within = [clustered_difference(*(v[stratum == s] for v in (y, first, person, item))) for s in (0, 1)]
    assert result.estimate == pytest.approx(sum(share[s] * within[s].estimate for s in (0, 1)))
    # Both coefficients before the last are set so that the last one is the weighted difference itself.
    means = np.column_stack([(stratum == s) & (first == g) for s in (0, 1) for g in (0, 1)]).astype(float)
    turn = np.eye(4)
    turn[-1] = [-share[0], share[0], -share[1], share[1]]
    weights = [1 / counts[i, int(g)] for i, g in zip(item, first, strict=True)]
    expected = witness(y, means @ np.linalg.inv(turn), np.array(weights), np.column_stack([person, item]))
    assert result.se == pytest.approx(expected)


def test_equal_answers_of_shared_pictures_make_no_difference() -> None:
    y, person, item = crossed(3)
    twice = [np.concatenate([values, values]) for values in (y, person, item)]
    result = clustered_difference(twice[0], np.repeat([1.0, 0.0], y.size), twice[1], twice[2])
    assert result.estimate == 0 and result.se is None and result.p is None


def test_thin_data_have_a_point_without_interval() -> None:
    for people, items in (([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [1, 1, 1])):
        told = clustered_mean([1.0, 2.0, 4.0], people, items)
        assert told.estimate == pytest.approx(7 / 3) and told.interval is None and told.p is None
    assert clustered_mean([3, 3, 3, 3], [1, 1, 2, 2], [1, 2, 1, 2]).interval is None


def test_the_level_holds_with_random_people_items_and_cells() -> None:
    """Null differences between two conditions on 20 shared items, 16 people, each explanation rated by 5:
    the share of p < .05 is near .05 over 500 studies, with item-by-condition spread .5."""
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(500):
        person, item = rng.normal(0, 0.5, 16), rng.normal(0, 0.5, 20)
        cell = rng.normal(0, 0.5, (20, 2))
        i, c, _ = (part.ravel() for part in np.meshgrid(range(20), range(2), range(5), indexing="ij"))
        who = np.concatenate([rng.permutation(16)[:5] for _ in range(40)])
        y = person[who] + item[i] + cell[i, c] + rng.normal(0, 0.8, who.size)
        p = clustered_difference(y, c == 0, who, i).p
        hits += p is not None and p < 0.05
    assert hits / 500 <= likely_share(0.05, 500).high
    assert hits / 500 >= 0.01


def test_holm_is_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    p = np.random.default_rng(2).random(9) ** 3
    assert holm(p) == pytest.approx(tuple(multipletests(p, method="holm")[1]))
    assert holm([]) == ()
    with pytest.raises(StatsError, match="from 0 to 1"):
        holm([0.2, 1.2])


def test_an_association_is_scipys_and_its_interval_leaves_out_whole_groups() -> None:
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(30), 4)
    common = rng.normal(0, 1, 30)[group]
    x, y = common + rng.normal(0, 0.2, 120), common + rng.normal(0, 1, 120)
    told = rank_association(x, y, group)
    assert told.rho == pytest.approx(spearmanr(x, y).statistic) and (told.n, told.groups) == (120, 30)
    # By the formula of the jackknife, on Fisher's z.
    left = np.arctanh([spearmanr(x[group != g], y[group != g]).statistic for g in range(30)])
    half = student.ppf(0.975, 29) * np.sqrt(29 / 30 * ((left - left.mean()) ** 2).sum())
    ends = np.tanh(np.arctanh(told.rho) + np.array([-half, half]))
    assert told.interval is not None
    assert (told.interval.low, told.interval.high) == pytest.approx(tuple(ends))
    alone = rank_association(x, y, np.arange(120))
    assert alone.interval is not None
    # Things of a group go together, so that the groups' interval is the wider one.
    assert told.interval.high - told.interval.low > 1.3 * (alone.interval.high - alone.interval.low)
    assert rank_association(x[:16], y[:16], group[:16]).interval is None
    assert rank_association(x, 3 * x + 1, group).interval is None, "a perfect correlation has no error"
    many = rank_association(rng.normal(0, 1, 900), rng.normal(0, 1, 900), np.arange(900))
    assert many.interval is not None and many.interval.high - many.interval.low < 0.2


@pytest.mark.long(stays="test_an_association_is_scipys_and_its_interval_leaves_out_whole_groups")
@pytest.mark.parametrize(("groups", "slope"), [(6, 0.0), (24, 0.0), (24, 0.6)])
def test_the_interval_of_an_association_holds_the_true_one(groups: int, slope: float) -> None:
    """In 95 % of studies, as far as 150 of them tell: four things of a group share a part, as pictures under
    several methods do. The true correlation is that of a very large study."""

    def study(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        group = np.repeat(np.arange(count), 4)
        x = rng.normal(0, 1, count)[group] + rng.normal(0, 1, group.size)
        return x, slope * x + rng.normal(0, 0.7, count)[group] + rng.normal(0, 1, group.size), group

    rng = np.random.default_rng(8)
    x, y, _ = study(20_000, rng)
    truth = spearmanr(x, y).statistic if slope else 0.0
    held = 0
    for _ in range(150):
        told = rank_association(*study(groups, rng))
        held += told.interval is not None and told.interval.holds(truth)
    assert likely_share(0.95, 150).low <= held / 150, held / 150


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: clustered_mean([], [], []), "0 values"),
        (lambda: clustered_mean([1, 2], [1], [1, 2]), "one of each"),
        (lambda: clustered_difference([1, 2], [1, 0], [1, 2], [1, 2]), "No item was answered in both"),
        (lambda: clustered_difference([1, 2], [1, 2], [1, 2], [1, 1]), "give 1 or 0"),
        (lambda: clustered_difference([1, 2], [1, 0], [1, 2], [1, 1], strata=["a"]), "There are 1 strata"),
        (lambda: clustered_difference([1, 2], [1, 0], [1, 2], [1, 1], strata=["a", "b"]), "in two strata"),
        (
            lambda: clustered_difference([1, 2, 3], [1, 0, 1], [1, 2, 3], [1, 1, 2], strata=["a", "a", "b"]),
            "No item of one of the strata",
        ),
        (lambda: rank_association([1, 2], [1, 2], [1]), "1 groups"),
        (lambda: rank_association([1, 1], [1, 2], [1, 2]), "values that differ"),
    ],
)
def test_bad_input_gets_a_sentence(call: object, sentence: str) -> None:
    with pytest.raises(StatsError, match=sentence):
        call()  # type: ignore[operator]
