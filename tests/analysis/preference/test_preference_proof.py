"""The whole pipeline on synthetic twins: its bar, and its p if nothing is planted. `make prove` takes PASTA's
size; a test alone takes a few images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from analysis.preference.evaluation import PLAIN, PLANTED, SCORER, Evaluation
from analysis.preference.fitting import FitPlan, fit
from analysis.preference.rated_explanations import RatedExplanations, from_twin
from analysis.preference.splits import SplitName, splits_of
from stimuli.preference.embedding import embed
from stimuli.preference.encoders import Histograms
from stimuli.preference.prediction_agreement import spearman, target_of
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.synthetic_twin import Plant
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
METHODS = 21


def silent(what: str, done: int, total: int) -> None:
    """No progress is shown."""


def told(made: Evaluation, metric: str, source: str) -> list[tuple[float, float, float]]:
    """Mean, low and high of each question, printed."""
    rows = []
    for cell in made.of(metric, source).values():
        assert cell.over.mean is not None and cell.interval is not None
        rows.append((cell.over.mean, cell.interval.low, cell.interval.high))
    text = ", ".join(f"{mean:.3f} [{low:.3f}, {high:.3f}]" for mean, low, high in rows)
    print(f"{metric}, {source}: {text}")
    return rows


@pytest.mark.full
@pytest.mark.parametrize("plant", ["properties", "content"])
def test_the_twin_of_pasta_s_size_is_learned(plant: Plant, tmp_path: Path, scale: Scale) -> None:
    """Science 9: with new images at least .8 of the ceiling; other splits are told with their intervals."""
    rated = from_twin(plant, 1000, scale.seed)
    plan = FitPlan(split="images", seed=scale.seed)
    learned = fit(rated, Histograms(), plan, tmp_path / "images", silent)
    print(f"{plant} planted, new images:")
    ceiling = told(learned.evaluation, "QWK", PLANTED)
    reached = told(learned.evaluation, "QWK", SCORER)
    plain = told(learned.evaluation, "QWK", PLAIN)
    ranks, of_plain = (told(learned.evaluation, "Spearman", source) for source in (SCORER, PLAIN))
    for (most, *_), (mean, *_) in zip(ceiling, reached, strict=True):
        assert mean >= 0.8 * most
    if plant == "properties":
        assert all(mean >= 0.9 * most for (mean, *_), (most, *_) in zip(plain, ceiling, strict=True))
    else:
        assert all(low > 0 for _, low, _ in ranks)
        assert len(of_plain) == 6
        stay_at_chance(rated, scale.seed)
    others: tuple[SplitName, ...] = ("strict", "released", "dataset_out")
    for split in others:
        made = fit(rated, Histograms(), FitPlan(split=split, seed=scale.seed), tmp_path / split, silent)
        print(f"{plant} planted, split {split}, {made.splits[0].counts}:")
        for source in (SCORER, PLAIN, PLANTED):
            told(made.evaluation, "QWK", source)


def stay_at_chance(rated: RatedExplanations, seed: int) -> None:
    """Spearman of the properties alone among those with the images of the test exchanged, which keeps what
    the explanations of an image share: inside the middle 99.9 % for each question."""
    assert rated.plain is not None
    (split,) = splits_of(rated, "images", [seed])
    wanted = target_of(rated.ratings)
    scorer = PreferenceScorer(epochs=60, seed=seed)
    held = rated.plain[split.validation], wanted[split.validation]
    scorer.fit(rated.plain[split.train], wanted[split.train], validation=held)
    answers = scorer.predict(rated.plain[split.test])
    rng = np.random.default_rng(seed)
    for question, name in enumerate(rated.questions):
        table, right = answers[:, question].reshape(-1, METHODS), wanted[split.test, question]
        drawn = [spearman(table[rng.permutation(len(table))].ravel(), right) or 0.0 for _ in range(4000)]
        low, high = np.quantile(drawn, [0.0005, 0.9995])
        seen = spearman(table.ravel(), right) or 0.0
        print(f"{name}, properties alone: Spearman {seen:.3f}, images exchanged [{low:.3f}, {high:.3f}]")
        assert low <= seen <= high


def p_of_shuffled(rated: RatedExplanations, vectors: Any, seed: int, draws: int = 199) -> float:
    """The ratings of each image's explanations are given to another image's; then the pipeline runs, and its
    Spearman on new images stands among those with the test's images exchanged."""
    rng = np.random.default_rng([seed, 1])
    images = len(rated.images) // METHODS
    wanted = target_of(rated.ratings)[:, :1].reshape(images, METHODS)[rng.permutation(images)]
    # Methods differ, so that their ratings are exchanged too: nothing is left that could be learned.
    wanted = rng.permuted(wanted, axis=1).ravel()
    place = np.arange(len(wanted)) // METHODS
    train, held = place < images // 2, (place >= images // 2) & (place < 3 * images // 4)
    test = place >= 3 * images // 4
    scorer = PreferenceScorer(epochs=4, hidden=(64, 16), seed=seed, n_jobs=1)
    scorer.fit(vectors[train], wanted[train], validation=(vectors[held], wanted[held]))
    answers = scorer.predict(vectors[test])
    assert np.ptp(answers) > 0.01, "predictions are constant"
    seen = spearman(answers, wanted[test]) or 0.0
    drawn = [spearman(rng.permutation(answers), wanted[test]) or 0.0 for _ in range(draws)]
    return (1 + sum(value >= seen for value in drawn)) / (draws + 1)


def test_shuffled_ratings_give_a_uniform_p(scale: Scale) -> None:
    rated = from_twin("content", 40, scale.seed)
    vectors = embed(rated.subjects, Histograms())
    count = scale.of(12, 200)
    ps = [p_of_shuffled(rated, vectors, seed) for seed in range(count)]
    uniform = kstest(ps, "uniform")
    below = np.mean(np.array(ps) <= 0.05)
    print(f"{count} shuffles: p <= .05 in {below:.3f}, Kolmogorov-Smirnov p = {uniform.pvalue:.3f}")
    assert uniform.pvalue > 0.001


def test_what_is_not_shuffled_is_told(scale: Scale) -> None:
    """A test that says no difference needs a case in which there is one."""
    rated = from_twin("content", 80, scale.seed)
    vectors = embed(rated.subjects, Histograms())
    wanted = target_of(rated.ratings)[:, 0]
    half = len(wanted) // 2
    scorer = PreferenceScorer(epochs=12, seed=1).fit(vectors[:half], wanted[:half])
    assert (spearman(scorer.predict(vectors[half:]), wanted[half:]) or 0.0) > 0.3
