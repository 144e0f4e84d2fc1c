"""Which explanations are rated next, and what that saves at equal kappa."""

from __future__ import annotations

import numpy as np
import pytest

from stimuli.errors import BadRatings
from stimuli.preference.active_annotation import disagreement, rated_next
from stimuli.preference.embedding import embed
from stimuli.preference.encoders import Histograms
from stimuli.preference.prediction_agreement import target_of
from stimuli.preference.synthetic_twin import draw_twin
from tests.proofs.annotation import AnnotationPlan, learning_curves, ratings_saved
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
QUICK = (("hidden", (32, 8)), ("epochs", 12), ("batch", 32), ("learning_rate", 2e-3), ("n_jobs", 2))


def test_the_largest_disagreement_comes_first() -> None:
    answers = np.array([[1.0, 2, 3, 3], [4, 4, 2, 4], [1, 5, 1, 5]])
    spread = disagreement(answers, ["a", "a", "b", "b"])
    by_hand = [(np.sqrt(0.5) + 0) / 2, (0 + np.sqrt(2)) / 2, (np.sqrt(8) + np.sqrt(8)) / 2]
    assert spread == pytest.approx(by_hand)
    assert rated_next(spread, np.array([False, False, True]), 5).tolist() == [1, 0]
    assert rated_next(np.ones(4), np.zeros(4, np.bool_), 2).tolist() == [0, 1]
    with pytest.raises(BadRatings, match="one head for a question"):
        disagreement(answers, ["a", "a", "b", "c"])


def test_what_is_saved_by_hand() -> None:
    """One way reaches after 20 ratings what the other has after 40, and goes on beyond it."""
    active = np.tile([0.2, 0.6, 0.7, 0.7], (20, 1))
    random = np.tile([0.2, 0.3, 0.5, 0.6], (20, 1))
    counts = [10, 20, 30, 40]
    saved = ratings_saved(active, random, counts, draws=20)
    assert [saved.share, saved.low, saved.high] == pytest.approx([0.5, 0.5, 0.5])
    assert ratings_saved(random, active, counts, draws=20).share == pytest.approx(-1.0)
    assert ratings_saved(random, random, counts, draws=20).share == 0
    between = np.tile([0.2, 0.3, 0.3, 1.0], (20, 1))
    # 0.6 is reached at 30 + 10 x (0.6 - 0.3) / 0.7.
    assert ratings_saved(between, random, counts, draws=20).share == pytest.approx(1 - (30 + 10 * 3 / 7) / 40)
    with pytest.raises(BadRatings, match="curves of 3 runs"):
        ratings_saved(active[:3], random[:3], counts, draws=20)


def test_both_ways_begin_alike_and_never_choose_the_test(scale: Scale) -> None:
    twin = draw_twin("properties", images=16)
    vectors, wanted = embed(twin.subjects, Histograms()), target_of(twin.ratings)[:, 0]
    plan = AnnotationPlan(first=40, step=30, rounds=2, options=QUICK)
    active, random = learning_curves(vectors, wanted, plan, seed=1)
    assert active[0] == random[0] and len(active) == len(random) == 3
    assert learning_curves(vectors, wanted, plan, seed=1) == (active, random)
    assert learning_curves(vectors, wanted, plan, seed=2)[0] != active
    with pytest.raises(BadRatings, match="can be chosen from"):
        learning_curves(vectors, wanted, AnnotationPlan(first=400), seed=1)


@pytest.mark.full
@pytest.mark.parametrize("planted", [True, False])
def test_what_active_annotation_saves(planted: bool, scale: Scale) -> None:
    """T20: over 24 runs; nothing on ratings that follow from nothing."""
    twin = draw_twin("properties", images=100, seed=scale.seed)
    vectors, wanted = embed(twin.subjects, Histograms()), target_of(twin.ratings)[:, 0]
    if not planted:
        wanted = np.random.default_rng(scale.seed).permutation(wanted)
    plan = AnnotationPlan(first=60, step=60, rounds=6, heads=5, options=QUICK)
    curves = np.array([learning_curves(vectors, wanted, plan, seed) for seed in range(24)])
    for name, curve in zip(("chosen", "random"), curves.mean(axis=0), strict=True):
        told = ", ".join(f"{n}: {k:.3f}" for n, k in zip(plan.counts, curve, strict=True))
        print(f"{'planted' if planted else 'null'}, {name}, mean kappa after ratings {told}")
    saved = ratings_saved(curves[:, 0], curves[:, 1], plan.counts)
    print(
        f"ratings saved at equal kappa: {saved.share:.1%} [{saved.low:.1%}, {saved.high:.1%}], "
        f"{saved.runs} runs"
    )
    assert saved.low > 0 if planted else saved.low <= 0 <= saved.high
