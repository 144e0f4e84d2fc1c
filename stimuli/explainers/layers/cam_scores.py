"""Class activation maps whose channels are weighted by trying: the channel kept alone, or left out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.explainers.layers.base import LayerMethod
from stimuli.explainers.maps import enlarge_map, pixel_map
from stimuli.planner.asks import LayerScores, Scores, Steps
from stimuli.planner.values import Subject, Trace
from stimuli.planner.variants import MaskedPictures, digest
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import LATER, parameters
from stimuli.types import PixelAttribution

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
FLAT = 1e-6
"""A channel whose range is less than this share of its largest magnitude differs by rounding only."""
LINEAR = 5e-3
"""How far scores may be from a linear prediction, as a share of everything that it adds up: what scores in
bfloat16 lose.
"""
SINGLES = 16
"""How many channels are tried alone before the closed form is accepted."""
SINGLE = 1e-3
"""How far the fall of one channel may be from its prediction, as a share of that prediction."""
ROUNDED = 2e-6
"""What scores in single precision lose, as a share of everything that they add up."""


@parameters
class ScoreCam(LayerMethod):
    """Channels weighted by the explained number of the picture that is seen through them alone, summed,
    negative values set to 0. Unsigned. [Wang et al. 2020]

    The mask of a channel is its map at the picture's size, scaled to 0-1 by its own range, multiplied with
    the pixels in 0-1: what is hidden is black. The weights are a softmax over the channels' logits, as in the
    paper, and so depend on how large the network's logits are. Equal masks are tried once; all channels
    without a range have the same empty mask. No gradient is needed.

    With `masks` "grad-cam" they are those of pytorch-grad-cam: enlarged with the corners' centres in the
    corners of the picture, and multiplied with the input behind its normalisation, so that what is hidden has
    the mean colour that the network's preprocessing subtracts.
    """

    needs_gradient: ClassVar[bool] = False
    version: ClassVar[int] = 1
    masks: Annotated[Literal["paper", "grad-cam"], LATER] = "paper"

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        name = self.chosen(predictor, subject.layer)
        traced = yield Trace(layers=(name,))
        activation = traced.activations[name]

        is_flat = _flat(activation)

        def masks(places: Sequence[int], image: Tensor) -> Tensor:
            chosen = list(places)
            fine = _scale_maps(_fine(activation[chosen], image, is_aligned=self.masks == "grad-cam"))
            return fine.where(~is_flat[chosen, None, None], 0).to(image.device)

        ground = _zero_colour(predictor) if self.masks == "grad-cam" else None
        logits = yield Scores(MaskedPictures(_names(activation, is_flat), masks, ground))
        shares = np.exp(logits - logits.max())
        return _weighted_map(shares / shares.sum(), activation, subject)


@parameters
class AblationCam(LayerMethod):
    """Channels weighted by how far the logit falls when the channel is set to 0, summed, negative values set
    to 0. Unsigned. [Desai and Ramaswamy 2020]

    The paper's division by the logit is left out: it changes no picture unless the logit is negative, when it
    would reverse the map. A class token stays as it is. If the logit is linear in which channels are kept, as
    before global average pooling and one linear layer, the fall is the sum of activation times gradient, and
    no channel is tried; that it is linear is seen from the scores with no channel, with six halves of them,
    and without 16 single ones, the eight of the largest predicted falls and eight drawn (the check
    `closed_form` is then 1). Otherwise every channel is tried. In reduced precision the fall of one channel
    among many is less than the rounding of the score, and the single channels decide little.
    """

    version: ClassVar[int] = 2

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        name = self.chosen(predictor, subject.layer)
        traced = yield Trace(layers=(name,), gradients=True)
        activation = traced.activations[name]
        falls = (traced.gradients[name].double() * activation.double()).sum((1, 2)).cpu().numpy()
        groups, alone = _groups(subject, len(falls)), _alone(subject, falls)
        kept = np.concatenate([groups, _all_but(alone, len(falls))])
        scores = yield LayerScores(name, ChannelSubsets(kept))
        is_linear = _is_linear(scores, kept, falls, float(subject.explained(traced.logits)))
        if not is_linear:
            falls[alone] = scores[0] - scores[len(groups) :]
            rest = np.setdiff1d(np.arange(len(falls)), alone)
            if len(rest):
                falls[rest] = scores[0] - (
                    yield LayerScores(name, ChannelSubsets(_all_but(rest, len(falls))))
                )
        return _weighted_map(falls, activation, subject, {"closed_form": float(is_linear)})


@dataclass(frozen=True, eq=False)
class ChannelSubsets:
    """A layer's output with some channels set to 0: `kept` bool (n, C) says which stay."""

    kept: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kept)

    def make(self, activation: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        kept = torch.from_numpy(self.kept[list(places)]).to(activation.device)
        return activation * kept[:, :, None, None]


def _groups(subject: Subject, channels: int) -> NDArray[np.bool_]:
    """Which channels stay: all, none, three times a random half and the other half; bool (8, channels)."""
    groups = np.zeros((8, channels), bool)
    groups[0] = True
    for at in range(2, len(groups), 2):
        groups[at, subject.draws("ablation", at).permutation(channels)[: channels // 2]] = True
        groups[at + 1] = ~groups[at]
    return groups


def _alone(subject: Subject, falls: Floats) -> NDArray[np.int64]:
    """The `SINGLES` channels, or all if there are fewer, that are tried alone: half of them those of the
    largest predicted falls, the others drawn.
    """
    order = np.argsort(-np.abs(falls), kind="stable")
    largest, others = np.split(order, [SINGLES // 2])
    drawn = subject.draws("ablation", 8).permutation(others)[: SINGLES - SINGLES // 2]
    return np.concatenate([largest, drawn])


def _all_but(places: NDArray[np.int64], channels: int) -> NDArray[np.bool_]:
    """Rows that keep all channels but one each of `places`, bool (len(places), channels)."""
    return np.not_equal.outer(places, np.arange(channels)).astype(bool)


def _is_linear(scores: Floats, kept: NDArray[np.bool_], falls: Floats, logit: float) -> bool:
    """Whether the scores agree with the added falls of single channels.

    `logit` is the score of the picture in single precision. Groups of channels may miss by `LINEAR` of all
    that is added up; a single channel, which would be lost in that, by `SINGLE` of its own fall, unless the
    scores are of reduced precision.
    """
    size = abs(scores[0]) + np.abs(falls).sum()
    expected = ~kept @ falls
    missed = np.abs(scores[0] - scores - expected)
    if missed.max() > LINEAR * size:
        return False
    if _is_reduced(scores, logit, size):
        return True
    is_single = (~kept).sum(1) == 1
    allowed = SINGLE * np.abs(expected) + ROUNDED * size
    return bool((missed <= allowed)[is_single].all())


def _is_reduced(scores: Floats, logit: float, size: float) -> bool:
    """Whether scores (n,) were computed in less than single precision: they are all numbers of bfloat16, or
    the picture's own is not its `logit`.
    """
    low_bits = scores.astype(np.float32).view(np.uint32) & 0xFFFF
    return not low_bits.any() or bool(abs(scores[0] - logit) > 10 * ROUNDED * size)


def _flat(activation: Tensor) -> Tensor:
    """Which channels (C, h, w) have the same value everywhere, bool (C,)."""
    spread = activation.amax((1, 2)) - activation.amin((1, 2))
    return spread <= FLAT * activation.abs().amax((1, 2))


def _names(activation: Tensor, is_flat: Tensor) -> list[Hashable]:
    """Equal names for channels (C, h, w) whose masks are equal."""
    scaled = _scale_maps(activation).cpu().numpy()
    return [
        "empty" if flat else digest(channel) for channel, flat in zip(scaled, is_flat.tolist(), strict=True)
    ]


def _scale_maps(maps: Tensor) -> Tensor:
    """Maps (n, h, w) brought to 0-1 by their own range."""
    low = maps.amin((1, 2), keepdim=True)
    return (maps - low) / (maps.amax((1, 2), keepdim=True) - low).clamp(min=1e-30)


def _fine(maps: Tensor, image: Tensor, *, is_aligned: bool) -> Tensor:
    """Maps (n, h, w) at the picture's size, bilinear with half-pixel centres, or with aligned corners."""
    from torch.nn import functional

    size = image.shape[-2:]
    return functional.interpolate(maps[:, None], size=size, mode="bilinear", align_corners=is_aligned)[:, 0]


def _zero_colour(predictor: ImagePredictor) -> tuple[float, ...]:
    """The colour that the network's normalisation maps to 0; black if it has none."""
    mean = getattr(predictor.module, "mean", None)
    return (0.0, 0.0, 0.0) if mean is None else tuple(mean.flatten().tolist())


def _weighted_map(
    weights: Floats, activation: Tensor, subject: Subject, checks: dict[str, float] | None = None
) -> PixelAttribution:
    import torch

    shares = torch.from_numpy(np.ascontiguousarray(weights)).to(activation)
    coarse = (shares[:, None, None] * activation).sum(0).relu()
    return pixel_map(enlarge_map(coarse, subject.pixels), signed=False, checks=checks)
