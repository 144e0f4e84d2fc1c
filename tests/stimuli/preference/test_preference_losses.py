"""The terms of a scorer's loss, beside torch's own and beside what the published code computes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stimuli.errors import BadRatings
from stimuli.preference.ensemble import forward
from stimuli.preference.losses import (
    RELEASED_SCORING,
    RELEASED_TRAINING,
    LossWeights,
    Similarity,
    dissimilarity,
    loss,
    ranking,
    squared_error,
)
from stimuli.preference.scorer_estimator import PRESETS, PreferenceScorer

pytestmark = pytest.mark.pure


def drawn(heads: int = 3, rows: int = 40, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Predictions, some below 0 and above 1, and ratings with ties."""
    generator = torch.Generator().manual_seed(seed)
    answers = torch.rand((heads, rows), generator=generator, dtype=torch.float64) * 1.6 - 0.3
    ratings = torch.randint(0, 5, (heads, rows), generator=generator).double() / 4
    return answers.requires_grad_(), ratings


def slope(value: Tensor, answers: Tensor) -> Tensor:
    return torch.autograd.grad(value.sum(), answers)[0]


def test_it_agrees_with_torch_on_every_term() -> None:
    answers, ratings = drawn()
    for head in range(3):
        p, y = answers[head], ratings[head]
        assert squared_error(answers, ratings)[head].item() == pytest.approx(functional.mse_loss(p, y).item())
        theirs = functional.margin_ranking_loss(p[:-1], p[1:], torch.sign(y[:-1] - y[1:]))
        assert ranking(answers, ratings)[head].item() == pytest.approx(theirs.item())
        cosine = functional.cosine_similarity(p, y, dim=0)
        assert dissimilarity(answers, ratings, "batch")[head].item() == pytest.approx(1 - cosine.item())


def test_it_computes_the_terms_of_a_batch_done_by_hand() -> None:
    answers, ratings = torch.tensor([[0.5, 0.25, 1.0]]), torch.tensor([[0.25, 0.5, 0.5]])
    assert squared_error(answers, ratings).item() == pytest.approx((1 / 16 + 1 / 16 + 1 / 4) / 3)
    assert ranking(answers, ratings).item() == pytest.approx(0.25 / 2)  # one pair turned round, one tie
    cosine = (1 / 8 + 1 / 8 + 1 / 2) / ((1 / 4 + 1 / 16 + 1) ** 0.5 * (1 / 16 + 1 / 4 + 1 / 4) ** 0.5)
    assert dissimilarity(answers, ratings, "batch").item() == pytest.approx(1 - cosine)
    assert loss(answers, ratings, LossWeights(10, 0.5, 2), "batch").item() == pytest.approx(
        10 * 0.125 + 0.5 * 0.125 + 2 * (1 - cosine)
    )


def test_it_finds_the_released_similarity_without_gradient() -> None:
    """T2: the cosine of a one-column tensor is a product of signs."""
    answers, ratings = drawn()
    released = dissimilarity(answers, ratings, "released")
    theirs = 1 - functional.cosine_similarity(answers[..., None], ratings[..., None], dim=2).mean(dim=1)
    assert released.tolist() == pytest.approx(theirs.tolist())
    assert (slope(released, answers) == 0).all()
    assert (slope(dissimilarity(answers, ratings, "batch"), answers) != 0).all()


def test_it_learns_the_same_with_any_weight_of_the_released_similarity() -> None:
    """What has no gradient cannot change a scorer; the same term over the batch does."""
    generator = torch.Generator().manual_seed(2)
    X = torch.randn((60, 4), generator=generator).numpy()
    y = (3 + X[:, 0]).clip(1, 5)

    def learned(over: Similarity, weight: float) -> list[float]:
        scorer = PreferenceScorer(similarity_over=over, similarity=weight, hidden=(8,), epochs=3, batch=16)
        return list(scorer.fit(X, y).predict(X))

    assert learned("released", 0.0) == learned("released", 5.0)
    assert learned("batch", 0.0) != learned("batch", 5.0)


def test_it_has_the_gradients_of_finite_differences() -> None:
    answers, ratings = drawn(2, 7, seed=3)
    weights = LossWeights(10.0, 0.7, 0.3)
    assert torch.autograd.gradcheck(lambda p: loss(p, ratings, weights, "batch"), (answers,))


def test_it_keeps_heads_apart() -> None:
    answers, ratings = drawn()
    gradient = torch.autograd.grad(loss(answers, ratings, RELEASED_TRAINING, "batch")[1], answers)[0]
    assert (gradient[[0, 2]] == 0).all() and (gradient[1] != 0).all()


def test_it_counts_a_tie_and_a_single_row_as_no_wrong_order() -> None:
    answers, ratings = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.5, 0.5]])
    assert ranking(answers, ratings).item() == 0 == ranking(answers[:, :1], ratings[:, :1]).item()
    assert ranking(answers, torch.tensor([[0.0, 1.0]])).item() == pytest.approx(0.8)


def test_it_lets_no_head_die_as_the_released_output_does() -> None:
    """T1: where all outputs begin below 0, ReLU has no gradient left, and ours has."""
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn((1, 3, 4), generator=generator), torch.zeros((1, 1, 4))]
    weights += [torch.randn((1, 4, 1), generator=generator), torch.full((1, 1, 1), -50.0)]
    weights = [weight.requires_grad_() for weight in weights]
    views = torch.zeros((1, 1, 3)), torch.ones((1, 1, 3))
    rows, ratings = torch.randn((1, 20, 3), generator=generator), torch.rand((1, 20), generator=generator)
    assert (forward(weights, views, rows.clone(), "linear") < 0).all()

    def steepest(output: str) -> list[float]:
        shares = forward(weights, views, rows.clone(), output)  # type: ignore[arg-type]
        total = loss(shares, ratings, RELEASED_TRAINING, "batch").sum()
        return [float(part.abs().max()) for part in torch.autograd.grad(total, weights)]

    assert steepest("relu") == [0.0] * 4
    assert all(value > 0 for value in steepest("linear"))


def test_it_names_the_weights_of_the_released_scripts() -> None:
    """T3: paper and code give alpha, beta and gamma to different terms."""
    assert LossWeights(mse=10, rank=0.01, similarity=0.01) == RELEASED_TRAINING
    assert LossWeights(mse=1, rank=0.001, similarity=0.01) == RELEASED_SCORING
    training = PreferenceScorer.preset("pasta_released").get_params()
    assert {name: training[name] for name in ("mse", "rank", "similarity")} == {
        "mse": 10.0, "rank": 0.01, "similarity": 0.01,
    }  # fmt: skip
    scoring = PreferenceScorer.preset("pasta_released_scoring", seed=4).get_params()
    assert (scoring["mse"], scoring["rank"], scoring["similarity"], scoring["seed"]) == (1.0, 0.001, 0.01, 4)
    published = {"learning_rate": 2e-6, "weight_decay": 1e-6, "batch": 256, "epochs": 600, "check_every": 5}
    assert published.items() <= PRESETS["pasta_released"].items()


@pytest.mark.parametrize(
    ("weights", "said"),
    [((-1, 0, 0), "the weight mse of the loss is -1"), ((1, float("nan"), 0), "the weight rank .* is nan"),
     ((0, 0, 0), "all weights of the loss are 0")],
)  # fmt: skip
def test_it_refuses_weights_that_cannot_be(weights: tuple[float, float, float], said: str) -> None:
    with pytest.raises(BadRatings, match=said):
        LossWeights(*weights)
