"""The pigeonhole bootstrap-t: against statsmodels, against rows written out copy by copy, and its level."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.typing import NDArray

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings.clustered_means import clustered_mean
from analysis.stats.shares.pigeonhole import pigeonhole
from tests.analysis.reviewed import Table, crossed_table, marginal
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]
Sds = tuple[float, float, float]
STUDIES, STUDIES_FULL = 40, 1000
LEAST, MOST = 0.92, 0.98
"""Measured over 1,000 studies of each kind: see docs/science.md."""


def table_of(seed: int, leads: int = 9, tasks: int = 14) -> Table:
    odds = {"model": 0.3, "people": 1.2}
    return crossed_table(odds, leads=leads, tasks=tasks, per_lead=10, sds=(0.8, 0.6, 0.4), seed=seed)


def witness(y: NDArray[np.float64], x: NDArray[np.float64], clusters: NDArray[np.intp]) -> float:
    """The two-way clustered error of the last coefficient, by statsmodels, whose factor (n - 1)/(n - k) is
    taken out; not below the larger of the two one-way errors."""
    n, k = x.shape
    parts = []
    for groups in (clusters[:, 0], clusters[:, 1], np.arange(n)):
        fit = sm.OLS(y, x).fit(cov_type="cluster", cov_kwds={"groups": groups})
        parts.append(fit.cov_params()[-1, -1] * (n - k) / (n - 1))
    return float(np.sqrt(max(parts[0] + parts[1] - parts[2], parts[0], parts[1])))


@pytest.mark.parametrize("seed", range(4))
def test_a_difference_has_statsmodels_clustered_error(seed: int) -> None:
    t = table_of(seed)
    made = pigeonhole(t.yes, t.source, t.leads, t.tasks, {"model": 1, "people": -1}, draws=50)
    first = np.array([float(name == "model") for name in t.source])
    assert made.estimate == pytest.approx(t.yes[first == 1].mean() - t.yes[first == 0].mean())
    x = np.column_stack([np.ones(t.yes.size), first])
    assert made.se == pytest.approx(witness(t.yes, x, np.column_stack([t.leads, t.tasks])))
    assert (made.people, made.items, made.answers) == (9, 14, 90)


def copies(count: int, draws: int, seed: int, stream: int) -> NDArray[np.intp]:
    """Who was drawn in each draw (draws, count), as the function promises: one stream for people, another for
    items."""
    rng = np.random.default_rng([seed, stream, count])
    return rng.integers(0, count, (draws, count))


def written_out(t: Table, people: Sequence[int], items: Sequence[int]) -> Table:
    """The rows of a draw, one by one: each copy of a person is another person, and so for items."""
    rows = [
        (row, at, place)
        for at, person in enumerate(people)
        for place, item in enumerate(items)
        for row in np.flatnonzero((t.leads == person) & (t.tasks == item))
    ]
    chosen, leads, tasks = (np.array(column, dtype=np.intp) for column in zip(*rows, strict=True))
    return Table(t.yes[chosen], [t.source[row] for row in chosen], leads, tasks)


def test_every_draw_is_that_of_the_rows_written_out() -> None:
    """The t values of a share's draws by naive repetition of rows and the clustered error of their mean."""
    t = table_of(2)
    share = float(t.yes.mean())
    expected = []
    for people, items in zip(copies(9, 25, 3, 0), copies(14, 25, 3, 1), strict=True):
        drawn = written_out(t, people.tolist(), items.tolist())
        told = clustered_mean(drawn.yes, drawn.leads, drawn.tasks)
        assert told.se is not None
        expected.append((told.estimate - share) / told.se)
    # Names are drawn in their order as text.
    leads, tasks = ([f"{code:02}" for code in codes] for codes in (t.leads, t.tasks))
    made = pigeonhole(t.yes, ["all"] * 90, leads, tasks, {"all": 1}, draws=25, seed=3)
    assert made.drawn == pytest.approx(expected)
    low, high = np.quantile(expected, [0.025, 0.975])
    ends = made.interval()
    assert ends is not None
    assert (ends.low, ends.high) == pytest.approx(
        (max(0, share - high * made.se), min(1, share - low * made.se))
    )


def test_ratio_and_d_prime_are_those_of_the_counts() -> None:
    t = table_of(5)
    counts = {
        name: (sum(t.yes[i] for i in range(90) if t.source[i] == name), t.source.count(name))
        for name in ("model", "people")
    }
    share = {name: yes / of for name, (yes, of) in counts.items()}
    corrected = {name: NormalDist().inv_cdf((yes + 0.5) / (of + 1)) for name, (yes, of) in counts.items()}
    weights = {"model": 1.0, "people": -1.0}
    ratio = pigeonhole(t.yes, t.source, t.leads, t.tasks, weights, scale="log")
    assert ratio.estimate == pytest.approx(share["model"] / share["people"])
    d_prime = pigeonhole(t.yes, t.source, t.leads, t.tasks, weights, scale="probit")
    assert d_prime.estimate == pytest.approx(corrected["model"] - corrected["people"])
    alone = pigeonhole(t.yes, t.source, t.leads, t.tasks, {"model": 1.0}, scale="logit")
    ends = alone.interval()
    assert (
        alone.estimate == share["model"]
        and ends is not None
        and 0 < ends.low < alone.estimate < ends.high < 1
    )
    assert alone.p() is None


@pytest.mark.parametrize("scale", ["share", "log", "logit", "probit"])
def test_errors_of_every_scale_are_those_of_small_changes(scale: str) -> None:
    """The delta method: the contrast moves by its slope if one more answer of a cell is a yes."""
    rng = np.random.default_rng(1)
    leads, tasks = np.divmod(np.arange(40_000), 200)
    yes = (rng.random(40_000) < 0.3).astype(float)
    weights = {"all": 1.0}
    made = pigeonhole(yes, ["all"] * 40_000, leads, tasks, weights, scale=scale, draws=20)  # type: ignore[arg-type]
    plain = pigeonhole(yes, ["all"] * 40_000, leads, tasks, weights, draws=20)
    p = float(yes.mean())
    slope = {
        "share": 1.0,
        "log": 1 / p,
        "logit": 1 / (p * (1 - p)),
        "probit": 1 / NormalDist().pdf(NormalDist().inv_cdf(p)),
    }[scale]
    assert made.se == pytest.approx(slope * plain.se, rel=1e-3)


@pytest.mark.parametrize("seed", range(12))
def test_p_is_below_five_percent_just_when_the_interval_leaves_zero_out(seed: int) -> None:
    t = table_of(seed, leads=14)
    made = pigeonhole(t.yes, t.source, t.leads, t.tasks, {"model": 1, "people": -1}, draws=400, seed=seed)
    ends, p = made.interval(), made.p()
    assert ends is not None and p is not None
    # On the border a quantile lies between two draws.
    if abs(p - 0.05) > 2 / 401:
        assert (p < 0.05) == (not ends.holds(0))
    wide, narrow = made.interval(0.95), made.interval(0.9)
    assert wide is not None and narrow is not None and wide.low <= narrow.low < narrow.high <= wide.high


def test_the_same_seed_gives_the_same_interval_and_draws_are_shared_between_contrasts() -> None:
    t = table_of(1)
    weights = {"model": 1.0, "people": -1.0}
    first, again = (pigeonhole(t.yes, t.source, t.leads, t.tasks, weights, seed=4) for _ in range(2))
    turned = pigeonhole(t.yes, t.source, t.leads, t.tasks, {"people": 1.0, "model": -1.0}, seed=4)
    a, b, c = first.interval(), again.interval(), turned.interval()
    assert a is not None and c is not None and a == b
    assert (c.low, c.high) == pytest.approx((-a.high, -a.low))
    assert pigeonhole(t.yes, t.source, t.leads, t.tasks, weights, seed=5).interval() != a


def test_what_cannot_be_computed_is_a_sentence() -> None:
    t = table_of(1)
    with pytest.raises(StatsError, match="No answer is in nothing; leave the contrast out"):
        pigeonhole(t.yes, t.source, t.leads, t.tasks, {"model": 1, "nothing": -1})
    with pytest.raises(StatsError, match="Nobody said yes in people, so a ratio is not defined"):
        yes = [float(name == "model") for name in t.source]
        pigeonhole(yes, t.source, t.leads, t.tasks, {"model": 1, "people": -1}, scale="log")
    with pytest.raises(StatsError, match="0 or 1"):
        pigeonhole(t.yes + 1, t.source, t.leads, t.tasks, {"model": 1})
    with pytest.raises(StatsError, match="on log odds give one cell"):
        pigeonhole(t.yes, t.source, t.leads, t.tasks, {"model": 1, "people": -1}, scale="logit")
    one_lead = pigeonhole([1, 0, 1], ["a"] * 3, ["x"] * 3, [1, 2, 3], {"a": 1})
    assert one_lead.estimate == pytest.approx(2 / 3) and one_lead.interval() is None and one_lead.p() is None
    assert "needs 2 people and 2 items, there are 1 and 3" in one_lead.problem
    always = pigeonhole(np.ones(90), t.source, t.leads, t.tasks, {"model": 1})
    assert always.estimate == 1 and always.interval() is None and "do not vary" in always.problem
    rare = pigeonhole([1.0] + [0.0] * 89, t.source, t.leads, t.tasks, dict.fromkeys(t.source[:1], 1))
    assert rare.interval() is None and "of the draws there is no value" in rare.problem
    assert always.table()[0]["interval"] is None


def coverage(
    odds: dict[str, float], weights: dict[str, float], sds: Sds, size: tuple[int, int], scale: Scale
) -> tuple[float, float]:
    """The share of studies whose interval holds the planted value; for a difference also that of a plain
    percentile interval of such draws."""
    shares = {name: marginal(logit, sds) for name, logit in odds.items()}
    truth = sum(weight * shares[name] for name, weight in weights.items())
    is_share = len(weights) == 1
    held, plain = [], []
    for number in range(scale.of(STUDIES, STUDIES_FULL)):
        seed = number + 10_000 * scale.seed
        t = crossed_table(odds, leads=size[0], tasks=size[1], per_lead=40, sds=sds, seed=seed)
        made = pigeonhole(
            t.yes, t.source, t.leads, t.tasks, weights,
            scale="logit" if is_share else "share", draws=600, seed=seed,
        )  # fmt: skip
        ends = made.interval()
        held.append(ends is not None and ends.holds(truth))
        if not is_share:
            low, high = percentile(t, weights, seed)
            plain.append(low <= truth <= high)
    return float(np.mean(held)), float(np.mean(plain)) if plain else float("nan")


def percentile(t: Table, weights: dict[str, float], seed: int, draws: int = 200) -> tuple[float, float]:
    """The percentile interval of the plain pigeonhole bootstrap, from the table itself."""
    rng = np.random.default_rng(seed)
    leads, tasks = int(t.leads.max()) + 1, int(t.tasks.max()) + 1
    cell = {name: np.array([other == name for other in t.source]) for name in weights}
    values = []
    for _ in range(draws):
        people = np.bincount(rng.integers(0, leads, leads), minlength=leads)
        items = np.bincount(rng.integers(0, tasks, tasks), minlength=tasks)
        times = people[t.leads] * items[t.tasks]
        values.append(sum(w * np.average(t.yes[cell[n]], weights=times[cell[n]]) for n, w in weights.items()))
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


@pytest.mark.parametrize(
    ("size", "sds"),
    [
        ((12, 40), (0.0, 0.0, 0.0)),
        ((12, 40), (0.7, 0.7, 0.5)),
        ((24, 60), (0.7, 0.7, 0.5)),
        ((24, 60), (1.2, 1.0, 1.0)),
    ],
)
def test_intervals_of_a_share_and_of_a_difference_keep_their_level(
    size: tuple[int, int], sds: Sds, scale: Scale
) -> None:
    odds = {"model": 0.8, "people": 1.6}
    count = scale.of(STUDIES, STUDIES_FULL)
    for weights in ({"model": 1.0}, {"model": 1.0, "people": -1.0}):
        held, plain = coverage(odds, weights, sds, size, scale)
        print(f"{size}, sds {sds}, {len(weights)} cells: {held:.3f} (plain percentile {plain:.3f})")
        assert likely_share(LEAST, count).low <= held <= likely_share(MOST, count).high, held
        if len(weights) > 1:
            # Why draws are divided by their errors: the plain interval of a difference hardly ever fails.
            assert plain >= likely_share(0.98, count).low, plain
