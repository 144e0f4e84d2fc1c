"""What a scorer of preferences is trained to make small: a weighted sum of three terms, each per head."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from stimuli.errors import BadRatings

Similarity = Literal["batch", "released"]
SIMILARITIES: tuple[Similarity, ...] = get_args(Similarity)


@dataclass(frozen=True, slots=True)
class LossWeights:
    """The weight of each term, at least 0 and not all 0. They have names because the paper and its code give
    the same Greek letters to different terms. Raises BadRatings for others.
    """

    mse: float
    rank: float
    similarity: float

    def __post_init__(self) -> None:
        values = asdict(self)
        for name, value in values.items():
            if not 0 <= value < float("inf"):
                raise BadRatings(f"the weight {name} of the loss is {value}: give a finite number from 0 on")
        if not any(values.values()):
            raise BadRatings("all weights of the loss are 0, so nothing would be learned: raise one of them")


RELEASED_TRAINING = LossWeights(mse=10.0, rank=0.01, similarity=0.01)
"""As PASTA's training script has them."""
RELEASED_SCORING = LossWeights(mse=1.0, rank=0.001, similarity=0.01)
"""As PASTA's scoring script has them."""


def squared_error(predicted: Tensor, wanted: Tensor) -> Tensor:
    """The mean squared difference of each head, (H,), of float (H, B)."""
    return (predicted - wanted).square().mean(dim=1)


def ranking(predicted: Tensor, wanted: Tensor) -> Tensor:
    """By how much neighbours in the shuffled batch stand in the wrong order, with margin 0: (H,) of float
    (H, B).

    The mean over the B - 1 pairs; a pair with equal ratings counts 0. A batch of a single row has no pair and
    gives 0.
    """
    if predicted.shape[1] < 2:
        return predicted.sum(dim=1) * 0
    order = torch.sign(wanted[:, :-1] - wanted[:, 1:])
    return torch.relu(-order * (predicted[:, :-1] - predicted[:, 1:])).mean(dim=1)


def dissimilarity(predicted: Tensor, wanted: Tensor, over: Similarity) -> Tensor:
    """1 - cosine of predictions and ratings, both as shares of the scale: (H,) of float (H, B).

    "batch" takes the cosine of the two vectors over the batch [Yang et al. 2020]. "released" is what PASTA's
    code computes: the mean cosine of vectors of one number, which is the product of two signs and so has
    gradient 0 everywhere.
    """
    if over == "released":
        return 1 - (torch.sign(predicted) * torch.sign(wanted)).mean(dim=1)
    return 1 - functional.cosine_similarity(predicted, wanted, dim=1)


def loss(predicted: Tensor, wanted: Tensor, weights: LossWeights, over: Similarity) -> Tensor:
    """The weighted sum for each head, (H,), of shares of the scale, float (H, B): 0 = rating 1, 1 = rating 5.

    The gradient of a head's loss to another head's predictions is 0. Source: PASTA [AAAI 2026], with weights
    by name.
    """
    return (
        weights.mse * squared_error(predicted, wanted)
        + weights.rank * ranking(predicted, wanted)
        + weights.similarity * dissimilarity(predicted, wanted, over)
    )
