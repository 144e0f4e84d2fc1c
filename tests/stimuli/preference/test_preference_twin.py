"""The synthetic twin: what is planted, what is not, and the properties of maps that are its baseline."""

from __future__ import annotations

import numpy as np
import pytest

from stimuli.errors import BadRatings, ShapeMismatch
from stimuli.preference.embedding import embed
from stimuli.preference.encoders import Histograms
from stimuli.preference.map_property_baseline import properties_of
from stimuli.preference.prediction_agreement import kappa, spearman, target_of
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.synthetic_twin import Twin, draw_twin

pytestmark = pytest.mark.pure
IMAGES, METHODS = 120, 21


def test_properties_of_a_map_drawn_by_hand() -> None:
    values = np.zeros((8, 10), np.float32)
    values[0:2, 0:2] = 1
    values[4:6, 8:10] = 0.75
    thing = np.zeros((8, 10), np.bool_)
    thing[:, 8:] = True
    area, fragments, row, column, overlap = properties_of(values, thing)
    assert (area, fragments, overlap) == (0.1, pytest.approx(np.sqrt(2)), 0.5)
    # Weights 4 and 3 at the centres (1, 1) and (5, 9).
    assert (row, column) == (pytest.approx((4 * 1 + 3 * 5) / 7 / 8), pytest.approx((4 * 1 + 3 * 9) / 7 / 10))
    assert properties_of(np.zeros((4, 4), np.float32)).tolist() == [0, 0, 0.5, 0.5, 0]
    assert properties_of(values)[4] == 0
    with pytest.raises(ShapeMismatch, match="of the same shape"):
        properties_of(values, thing[:4])


def test_a_twin_repeats_and_grows() -> None:
    first, again, larger = draw_twin(images=10), draw_twin(images=10), draw_twin(images=12)
    assert first.subjects == again.subjects and (first.ratings == again.ratings).all()
    assert larger.subjects[: 10 * METHODS] == first.subjects
    assert first.ratings.shape == (10 * METHODS, 6, 5) and set(np.unique(first.ratings)) <= {1, 2, 3, 4, 5}
    assert draw_twin(images=10, seed=1).subjects != first.subjects
    for given, said in (
        ({"plant": "luck"}, "there is no twin 'luck'"),
        ({"images": 3}, "a twin of 3 images"),
        ({"raters": 0}, "0 raters cannot be split"),
    ):
        with pytest.raises(BadRatings, match=said):
            draw_twin(**given)


def of_new_images(twin: Twin, features: np.ndarray) -> np.ndarray:
    """Predicted ratings (test rows, Q) of the last quarter of the images, from the first half."""
    rows = np.arange(len(twin.ratings)) // METHODS
    wanted = target_of(twin.ratings)
    train, held, test = (
        rows < IMAGES // 2,
        (rows >= IMAGES // 2) & (rows < 3 * IMAGES // 4),
        rows >= 3 * IMAGES // 4,
    )
    scorer = PreferenceScorer(epochs=40, n_jobs=2)
    scorer.fit(features[train], wanted[train], validation=(features[held], wanted[held]))
    return scorer.predict(features[test])


def by_images(answers: np.ndarray, wanted: np.ndarray, draws: int = 200) -> tuple[float, float]:
    """The middle 99 % of Spearman if whole images were exchanged, which keeps what an image's rows share."""
    rng = np.random.default_rng(5)
    table = answers.reshape(-1, METHODS)
    drawn = [spearman(table[rng.permutation(len(table))].ravel(), wanted) or 0.0 for _ in range(draws)]
    low, high = np.quantile(drawn, [0.005, 0.995])
    return float(low), float(high)


@pytest.mark.long(stays="test_properties_reach_their_ceiling_on_their_own_twin")
def test_what_is_planted_on_content_is_seen_by_the_embedding_and_not_by_properties() -> None:
    """T15, T16: the embedding stands above chance on new images, plain properties do not."""
    twin = draw_twin("content", images=IMAGES)
    test = np.arange(len(twin.ratings)) // METHODS >= 3 * IMAGES // 4
    wanted, planted = target_of(twin.ratings)[test], twin.values[test]
    seen = of_new_images(twin, embed(twin.subjects, Histograms()))
    blind = of_new_images(twin, twin.properties)
    for question in range(6):
        right = wanted[:, question]
        low, high = by_images(blind[:, question], right)
        assert low <= (spearman(blind[:, question], right) or 0.0) <= high
        low, high = by_images(seen[:, question], right)
        assert (spearman(seen[:, question], right) or 0.0) > high
        assert kappa(seen[:, question], right) >= 0.6 * kappa(planted[:, question], right)
        assert np.ptp(seen[:, question]) > 0.5, "predictions are not constant"


def test_properties_reach_their_ceiling_on_their_own_twin() -> None:
    """T15: why their row must stand beside every scorer."""
    twin = draw_twin("properties", images=IMAGES)
    test = np.arange(len(twin.ratings)) // METHODS >= 3 * IMAGES // 4
    wanted, planted = target_of(twin.ratings)[test], twin.values[test]
    answers = of_new_images(twin, twin.properties)
    for question in range(6):
        ceiling = kappa(planted[:, question], wanted[:, question])
        assert kappa(answers[:, question], wanted[:, question]) >= 0.9 * ceiling
