"""Whether a network would know its pictures under another normalisation: tried, not guessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.predictors.base import NormalisedNetwork, TorchPredictor
from stimuli.predictors.framing import Channels
from stimuli.types import Pixels

PICTURES_MAX = 128
"""Of one picture per group; each is asked about once for every normalisation."""
P_MAX = 0.05
GAIN_MIN = 0.05
ONE: Channels = (1.0, 1.0, 1.0)
HALF: Channels = (0.5, 0.5, 0.5)
IMAGENET_MEAN: Channels = (0.485, 0.456, 0.406)
BYTE: Channels = (1 / 255, 1 / 255, 1 / 255)
COMMON: tuple[tuple[str, Channels, Channels], ...] = (
    ("pictures in 0 to 1 as they are", (0.0, 0.0, 0.0), ONE),
    ("pictures in -1 to 1", HALF, HALF),
    ("pictures in -2 to 2", HALF, (0.25, 0.25, 0.25)),
    ("the normalisation of ImageNet", IMAGENET_MEAN, (0.229, 0.224, 0.225)),
    ("pictures in 0 to 255 as they are", (0.0, 0.0, 0.0), BYTE),
    ("pictures in 0 to 255 without the mean of ImageNet", IMAGENET_MEAN, BYTE),
)
"""In words, mean, std; for pictures in 0-1."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A normalisation under which a network is right on `right` of `of` pictures, as declared on `before`."""

    words: str
    mean: Channels
    std: Channels
    right: int
    before: int
    of: int


def better_normalisation(
    predictor: TorchPredictor, views: Sequence[Pixels], truths: Sequence[str]
) -> Probe | None:
    """The common normalisation under which the network is right most often, if that is no chance: by the
    exact McNemar test against the declared one at .05 over all that are tried, by a twentieth of the
    pictures at least, and more often than any one answer would be. Views as uint8 (N, side, side, 3) of
    independent pictures.
    """
    labels = predictor.labels
    at = {name: place for place, name in enumerate(labels)}
    targets = np.array([at.get(truth, -1) for truth in truths])
    count = len(targets)
    if not count or (targets < 0).all():
        return None
    declared = predictor.logits(views).argmax(1) == targets
    tried = _other_normalisations(predictor)
    best: Probe | None = None
    floor = max(np.bincount(targets[targets >= 0]).max() / count, declared.mean()) + GAIN_MIN
    for words, mean, std in tried:
        right = _answers(predictor, views, mean, std) == targets
        if right.mean() < max(floor, best.right / count if best else 0.0):
            continue
        if _mcnemar(right, declared) * len(tried) < P_MAX:
            best = Probe(words, mean, std, int(right.sum()), int(declared.sum()), count)
    return best


def _other_normalisations(predictor: TorchPredictor) -> list[tuple[str, Channels, Channels]]:
    """The common ones that differ from the declared one, and that one brought from 0-255 to 0-1."""
    tried = [entry for entry in COMMON if entry[1:] != (predictor.mean, predictor.std)]
    if max(*predictor.mean, *predictor.std) > 1:
        mean, std = (_divide_by_255(values) for values in (predictor.mean, predictor.std))
        tried.append(("the declared mean and std, divided by 255", mean, std))
    return tried


def _divide_by_255(values: Channels) -> Channels:
    red, green, blue = values
    return red / 255, green / 255, blue / 255


def _answers(
    predictor: TorchPredictor, views: Sequence[Pixels], mean: Channels, std: Channels
) -> NDArray[np.int64]:
    module = NormalisedNetwork(predictor.module.network, mean, std)
    module.is_binary = predictor.module.is_binary
    module = module.to(predictor.module.mean.device)
    said: list[Tensor] = []
    with torch.inference_mode():
        for start in range(0, len(views), 16):
            inputs = predictor.inputs(views[start : start + 16]).to(predictor.module.mean.device)
            said.append(module(inputs).argmax(1).cpu())
    return np.asarray(torch.cat(said).numpy(), np.int64)


def _mcnemar(right: NDArray[np.bool_], before: NDArray[np.bool_]) -> float:
    """One-sided exact p that the new answers are no better."""
    from scipy.stats import binomtest

    gained, lost = int((right & ~before).sum()), int((~right & before).sum())
    if not gained + lost:
        return 1.0
    return float(binomtest(gained, gained + lost, 0.5, alternative="greater").pvalue)


def is_untouched(network: nn.Module) -> bool:
    """Whether every normalisation layer has its first weights: all of one value, 1 or 0, shifts 0, and
    running means 0. Training changes them in its first step. False for networks without such layers.
    """
    has_norms = False
    for part in network.modules():
        weight, bias = getattr(part, "weight", None), getattr(part, "bias", None)
        kind = str(getattr(part, "_ty", None) or type(part).__name__)
        if "Norm" not in kind or not isinstance(weight, Tensor) or weight.ndim != 1:
            continue
        has_norms = True
        running = getattr(part, "running_mean", None)
        if weight.min() != weight.max() or float(weight[0]) not in {0.0, 1.0}:
            return False
        if any(isinstance(shift, Tensor) and bool(shift.any()) for shift in (bias, running)):
            return False
    return has_norms
