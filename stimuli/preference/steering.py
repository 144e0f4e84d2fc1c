"""Steered RISE: masks weighted by what people would say of them beside what the network says.

A mask counts by lambda x S_pasta + (1 - lambda) x S_prob: the predicted rating of the picture on which the
mask is drawn, brought from 1..5 to 0-1, and the network's probability of the explained class behind the mask
[Kazmierczak et al. 2025]. Both are of the same masks, so lambda 0 is RISE and lambda 1 shows what the scorer
likes without regard to the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from stimuli.errors import BadRatings
from stimuli.explainers.perturbation.rise import MaskBank, mask_bank
from stimuli.predictors.base import TorchPredictor
from stimuli.preference.embedding import ShownExplanation, embed
from stimuli.preference.encoders import PreferenceEncoder, Vectors
from stimuli.preference.prediction_agreement import HIGHEST, LOWEST, Floats
from stimuli.preference.scorer_file import SavedScorer
from stimuli.render.heatmap import overlay
from stimuli.render.png import encode
from stimuli.render.recipe import RenderSpec
from stimuli.types import PixelAttribution, Pixels, Plane

AT_ONCE = 64
LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Steering:
    """`masks` masks of `grid` x `grid` cells, each kept with probability `keep`, the same for all pictures;
    `question` is the scorer's, answered for `label` if it takes labels; `recipe` draws masks and maps."""

    question: str
    masks: int = 500
    grid: int = 7
    keep: float = 0.5
    seed: int = 0
    recipe: RenderSpec = RenderSpec()
    lambdas: tuple[float, ...] = LAMBDAS

    def __post_init__(self) -> None:
        wrong = [share for share in self.lambdas if not 0 <= share <= 1]
        if wrong or not self.lambdas:
            raise BadRatings(f"lambda is {wrong or 'not given'}: give shares from 0 to 1")


class Predicts:
    """Predicted ratings of drawn explanations, by one question of a scorer."""

    def __init__(self, saved: SavedScorer, encoder: PreferenceEncoder, question: str) -> None:
        """Raises BadRatings for a scorer of pairs, and for a question that the scorer does not answer."""
        if saved.card.inputs != "single":
            raise BadRatings(
                f"the scorer compares a picture with its {saved.card.inputs} copy, and here is one picture: "
                "take a scorer that was fitted without --pair"
            )
        names = [head.question for head in saved.card.heads]
        self.heads = [place for place, name in enumerate(names) if name == question]
        if not self.heads:
            known = ", ".join(dict.fromkeys(names))
            raise BadRatings(f"the scorer does not answer {question!r}; known are {known}")
        self.saved, self.encoder = saved, encoder

    def of(self, pictures: Sequence[Pixels], label: str = "") -> Floats:
        """The mean over the heads, 1..5, float64 (n,), of uint8 (H, W, 3)."""
        shown = [ShownExplanation(encode(picture), label=label) for picture in pictures]
        vectors: Vectors = embed(shown, self.encoder, self.saved.card.labels)
        answers = self.saved.predict(vectors, self.encoder).reshape(len(shown), -1)
        return np.asarray(answers[:, self.heads].mean(axis=1))


def steered_maps(
    predictor: TorchPredictor,
    view: Pixels,
    target: int,
    predicts: Predicts,
    steering: Steering,
    label: str = "",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[float, Plane]:
    """By lambda the map of one view, uint8 (H, W, 3): float32 (H, W), the mean weight of the masks that show
    the pixel, 0-1."""
    height, width = view.shape[:2]
    bank = mask_bank(steering.seed, steering.masks, steering.grid, steering.keep, height, width)
    picture = torch.from_numpy(view.transpose(2, 0, 1).copy()).float() / 255
    by_network, by_people = np.empty(steering.masks), np.empty(steering.masks)
    for start in range(0, steering.masks, AT_ONCE):
        progress(start, steering.masks)
        places = list(range(start, min(start + AT_ONCE, steering.masks)))
        masks = bank.masks(places, picture)
        with torch.inference_mode():
            logits = predictor.module(picture[None] * masks[:, None])
        by_network[places] = torch.softmax(logits.double(), dim=1)[:, target].numpy()
        drawn = [
            overlay(view, PixelAttribution(mask, signed=False), steering.recipe) for mask in masks.numpy()
        ]
        by_people[places] = (predicts.of(drawn, label) - LOWEST) / (HIGHEST - LOWEST)
    progress(steering.masks, steering.masks)
    return {
        share: mean_weight(bank, share * by_people + (1 - share) * by_network) for share in steering.lambdas
    }


def mean_weight(bank: MaskBank, weights: Floats) -> Plane:
    """The mean weight given that a pixel is seen, as RISE takes it: float32 (H, W)."""
    mean = float(weights.mean())
    seen, gains = bank.seen, bank.weighed(weights - mean)
    return np.asarray(mean + np.divide(gains, seen, np.zeros_like(seen), where=seen > 0), np.float32)
