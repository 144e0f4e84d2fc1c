"""Over which numbers of people a 95 % interval of Utility keeps its level: a grid of baselines, Utilities,
spreads and sizes. People differ by a beta-distributed ability and answer 21 trials.

2,000 studies per cell in full, 200 in short. From PEOPLE_MIN people on, the mean over the cells of one size
lies in [.93, .97] and no cell below .91. Those of three people beside 20 hold too seldom, which is why the
least number is what it is.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import t as t_distribution

from analysis.reports.utility.accuracy_anova import PEOPLE_MIN
from analysis.stats.utility import fieller
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
BASELINES = (0.55, 0.65, 0.75, 0.85)
UTILITIES = (0.9, 1.0, 1.13, 1.35)
SPREADS = (8.0, 40.0)
"""Ability is beta(c m, c (1 - m)): standard deviation sqrt(m (1 - m) / (c + 1))."""
HIGHEST = 0.95
TRIALS = 21
SIZES = ((3, 20), (5, 5), (10, 10), (20, 20), (30, 30), (5, 20), (20, 5), (10, 30))
"""People in the condition and in the baseline."""
SHORT, FULL = 200, 2000
CELLS = [
    (base, base * utility, spread)
    for base, utility, spread in product(BASELINES, UTILITIES, SPREADS)
    if base * utility <= HIGHEST
]


def people(rng: np.random.Generator, mean: float, spread: float, shape: tuple[int, int]) -> np.ndarray:
    ability = rng.beta(spread * mean, spread * (1 - mean), shape)
    return np.asarray(rng.binomial(TRIALS, ability) / TRIALS)


def coverage(sizes: tuple[int, int], cell: tuple[float, float, float], count: int, seed: int) -> float:
    """Share of studies whose interval holds the true ratio; one without an interval prints none, and does not
    count."""
    base, mean, spread = cell
    rng = np.random.default_rng([seed, *sizes, *(round(1000 * number) for number in cell)])
    methods = people(rng, mean, spread, (count, sizes[0]))
    baselines = people(rng, base, spread, (count, sizes[1]))
    intervals = [fieller(x, y) for x, y in zip(methods, baselines, strict=True)]
    return float(np.mean([interval.holds(mean / base) for interval in intervals if interval is not None]))


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: f"{sizes[0]}-{sizes[1]}")
def test_it_keeps_its_level_from_the_least_number_of_people_on(sizes: tuple[int, int], scale: Scale) -> None:
    count = scale.of(SHORT, FULL)
    held = {cell: coverage(sizes, cell, count, scale.seed) for cell in CELLS}
    mean, (worst, least) = float(np.mean(list(held.values()))), min(held.items(), key=lambda item: item[1])
    print(
        f"{sizes[0]:>3} and {sizes[1]:>2} people: mean {mean:.3f} over {len(held)} cells of {count}, least "
        f"{least:.3f} (baseline {worst[0]:.2f}, Utility {worst[1] / worst[0]:.2f}, spread {worst[2]:g})"
    )
    assert (0.93 <= mean <= 0.97) == (min(sizes) >= PEOPLE_MIN)
    if min(sizes) >= PEOPLE_MIN:
        assert least >= (0.91 if scale.is_full else likely_share(0.91, count).low)


def test_the_grid_notices_a_pooled_variance() -> None:
    """The same with one variance for both groups, by hand: 5 and 20 people of unlike spread."""
    rng = np.random.default_rng(1)
    held = []
    for _ in range(2000):
        x, y = people(rng, 0.6, 2.0, (1, 5))[0], people(rng, 0.6, 200.0, (1, 20))[0]
        pooled = (4 * x.var(ddof=1) + 19 * y.var(ddof=1)) / 23
        off = x.mean() - y.mean()
        held.append(abs(off) <= t_distribution.ppf(0.975, 23) * np.sqrt(pooled * (1 / 5 + 1 / 20)))
    assert np.mean(held) < 0.9
