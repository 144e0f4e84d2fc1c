"""What is printed beside a scorer: people, halves, means, and intervals over images and methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from analysis.preference.evaluation import (
    HALVES,
    HUMAN_OTHERS,
    HUMAN_PUBLISHED,
    MEAN,
    PLAIN,
    SCORER,
    SCORER_OTHERS,
    Cell,
    evaluate,
)
from analysis.preference.rated_explanations import RatedExplanations
from analysis.preference.splits import Split
from analysis.reports.parts import published_ratings
from analysis.stats.ratings.agreement import human_row
from stimuli.preference.prediction_agreement import kappa, target_of
from tests.analysis.preference.rated_rows import rated
from tests.oracles import pasta

pytestmark = pytest.mark.pure


def split_of(made: RatedExplanations, train: int = 40) -> Split:
    rows = np.arange(len(made.images))
    return Split("strict", rows[: max(train, 1)], rows[train : train + 10], rows[train + 10 :], 0)


def noisy(seed: int = 0, **others: int) -> RatedExplanations:
    """Ratings that raters share, up to a point."""
    made = rated(**others)  # type: ignore[arg-type]
    rng = np.random.default_rng(seed)
    usual = rng.integers(1, 6, (len(made.images), 1, 1)) + rng.normal(0, 0.8, made.ratings.shape)
    made.ratings[:] = np.clip(np.rint(usual), 1, 5)
    return made


def test_perfect_predictions_and_the_mean_of_the_training() -> None:
    made = noisy()
    wanted = target_of(made.ratings)
    split = split_of(made)
    told = evaluate(made, [split], wanted[None], 6 - wanted[None], "mode", draws=60)
    cells = {(cell.metric, cell.source): cell for cell in told.cells}
    assert [cells[name, SCORER].over.mean for name in ("MSE", "QWK", "Spearman")] == [0, 1, pytest.approx(1)]
    interval = cells["QWK", SCORER].interval
    assert interval is not None and interval.low == 1
    turned = cells["QWK", PLAIN].over.mean
    assert turned is not None and turned < 0
    mean = np.mean(wanted[split.train, 0])
    assert cells["MSE", MEAN].over.mean == pytest.approx(np.mean((wanted[split.test, 0] - mean) ** 2))
    # T4: a constant's kappa is 0 and counts, its correlation is undefined and is counted as such.
    assert (cells["QWK", MEAN].over.mean, cells["QWK", MEAN].over.defined) == (0, 1)
    assert cells["Spearman", MEAN].over.mean is None and cells["Spearman", MEAN].over.undefined == 1
    assert cells["Spearman", MEAN].interval is None


def test_a_person_is_judged_by_the_others_as_the_scorer_is() -> None:
    """T10: the published row counts a rater's own vote, and so is too kind. Beside our own row of people in
    reports, which draws raters anew many times."""
    made = noisy(images=60, methods=12)
    split = split_of(made, 0)
    zeros = np.full((1, *made.ratings.shape[:2]), 3.0)
    told = evaluate(made, [split], zeros, None, "mode", draws=20)
    mean = {source: told.of("QWK", source)["Q1"].over.mean for source in told.sources}
    test = made.ratings[split.test, 0]
    for source, is_other in ((HUMAN_OTHERS, True), (HUMAN_PUBLISHED, False)):
        wanted = human_row(test, [1, 2, 3, 4, 5], leave_one_out=is_other)
        assert mean[source] == pytest.approx(wanted.kappa, abs=4 * wanted.sd_kappa)
    assert mean[HUMAN_PUBLISHED] > mean[HUMAN_OTHERS]  # type: ignore[operator]
    assert mean[SCORER_OTHERS] == 0 == mean[SCORER], "a constant agrees by no more than chance"
    assert 0.4 < mean[HALVES] < 1  # type: ignore[operator]


def test_halves_and_others_by_hand() -> None:
    """Three raters agree and two others say something else: a half of two may be either."""
    made = rated(6, 4, raters=5)
    made.ratings[:] = np.array([1, 1, 1, 5, 5.0])
    made.ratings[::2] = np.array([4, 4, 4, 2, 2.0])
    told = evaluate(made, [split_of(made, 0)], np.full((1, 24, 1), 3.0), None, "mode", draws=20)
    (others,) = told.of("MSE", HUMAN_OTHERS).values()
    # Of 1,1,1,5,5: a drawn 1 (3 of 5) leaves 1,1,5,5 with mode 1: 0; a drawn 5 leaves mode 1: 16.
    # Of 4,4,4,2,2: a drawn 4 leaves 2,2,4,4, whose smallest mode is 2: 4; a drawn 2 leaves mode 4: 4.
    test = split_of(made, 0).test
    of_fours = int((made.ratings[test, 0, 0] == 4).sum())
    of_ones = len(test) - of_fours
    fives = _drawn(others, len(test), 4 * of_fours, 16)
    assert 0 <= fives <= of_ones and binomtest(fives, of_ones, 0.4).pvalue > 0.001
    (published,) = told.of("MSE", HUMAN_PUBLISHED).values()
    # Against the mode of all five: a drawn 1 or 4 gives 0, a drawn 5 gives 16 and a drawn 2 gives 4.
    twos = _drawn(published, len(test), 16 * fives, 4)
    assert 0 <= twos <= of_fours and binomtest(twos, of_fours, 0.4).pvalue > 0.001


def _drawn(cell: Cell, rows: int, less: float, each: float) -> int:
    """How many rows had the other vote: the sum of squares less what is sure, each of that size."""
    assert cell.over.mean is not None
    count = (cell.over.mean * rows - less) / each
    assert count == pytest.approx(round(count), abs=1e-6)
    return round(count)


def test_intervals_draw_images_and_methods_together() -> None:
    """Beside a naive loop over the drawn names; half of the interval's width is the methods'."""
    made = noisy(images=12, methods=8, seed=3)
    rng = np.random.default_rng(1)
    split = split_of(made, 0)
    of_method = np.array([int(name[1:]) for name in made.methods])
    predicted = target_of(made.ratings) + 0.9 * np.sin(of_method)[:, None]
    told = evaluate(made, [split], predicted[None], None, "mode", draws=400)
    interval = told.of("MSE", SCORER)["Q1"].interval
    assert interval is not None
    wanted = target_of(made.ratings)[:, 0]
    values = []
    for _ in range(400):
        images, methods = rng.integers(0, 12, 12), rng.integers(0, 8, 8)
        rows = [
            row
            for image in images
            for method in methods
            for row in split.test
            if made.images[row] == f"i{image}" and made.methods[row] == f"m{method}"
        ]
        values.append(np.mean((predicted[rows, 0] - wanted[rows]) ** 2))
    low, high = np.quantile(values, [0.025, 0.975])
    assert interval.low == pytest.approx(low, abs=0.15 * (high - low))
    assert interval.high == pytest.approx(high, abs=0.15 * (high - low))


def test_several_runs_are_summed_up_over_their_own_tests() -> None:
    made = noisy(images=20, methods=6)
    rows = np.arange(120)
    splits = [Split("strict", rows[:60], rows[60:70], rows[70 + 10 * k : 80 + 10 * k], 0) for k in range(4)]
    predicted = np.random.default_rng(2).uniform(1, 5, (4, 120, 1))
    told = evaluate(made, splits, predicted, None, "mode", draws=20)
    wanted = target_of(made.ratings)[:, 0]
    each = [kappa(predicted[k, split.test, 0], wanted[split.test]) for k, split in enumerate(splits)]
    cell = told.of("QWK", SCORER)["Q1"]
    assert cell.over.mean == pytest.approx(np.mean(each)) and cell.over.sd == pytest.approx(
        np.std(each, ddof=1)
    )


def test_missing_ratings_are_left_out() -> None:
    made = noisy(images=20, methods=6)
    made.ratings[::3, 0, 1:] = np.nan
    made.ratings[1::3] = np.nan
    told = evaluate(made, [split_of(made, 30)], np.full((1, 120, 1), 2.0), None, "mode", draws=20)
    assert all(cell.over.mean is not None for cell in told.of("MSE", HUMAN_OTHERS).values())


def test_table_1_is_the_published_one() -> None:
    """Two transcriptions of the same table."""
    lines = [line.split() for line in pasta.TABLE_1.strip().splitlines()]
    wanted = {(metric, name): " ".join(cells) for metric, name, *cells in lines}
    told = {
        (m, name): cells for m, rows in published_ratings.PUBLISHED.items() for name, cells in rows.items()
    }
    assert told == wanted and len(told) == 15
