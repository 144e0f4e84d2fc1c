"""Class activation maps whose channels are weighted by trying: the channel kept alone, or left out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from stimuli.explainers.layers import LayerMethod
from stimuli.explainers.maps import enlarged, pixel_map
from stimuli.planner.asks import LayerScores, Scores, Steps, Subject, Trace
from stimuli.planner.variants import Weighted, digest
from stimuli.predictors.interface import ImagePredictor
from stimuli.types import PixelAttribution

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
FLAT = 1e-6
"""A channel whose range is less than this share of its largest magnitude differs by rounding only."""
LINEAR = 5e-3
"""How far scores may be from a linear prediction, as a share of everything that it adds up: what scores in
bfloat16 lose. One channel of many is then far closer to it than trying could tell.
"""


@dataclass(frozen=True, slots=True)
class ScoreCam(LayerMethod):
    """Channels weighted by the logit of the picture that is seen through them alone, summed, negative values
    set to 0. Unsigned. [Wang et al. 2020]

    The mask of a channel is its map at the picture's size, scaled to 0-1 by its own range, multiplied with
    the pixels in 0-1: what is hidden is black. The weights are a softmax over the channels' logits, as in the
    paper, and so depend on how large the network's logits are. Equal masks are tried once; all channels
    without a range have the same empty mask. No gradient is needed.
    """

    needs_gradient: ClassVar[bool] = False
    version: ClassVar[int] = 1

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        name = self.chosen(predictor, subject.layer)
        traced = yield Trace(layers=(name,))
        activation = traced.activations[name]

        is_flat = _flat(activation)

        def masks(places: Sequence[int], image: Tensor) -> Tensor:
            chosen = list(places)
            fine = _scaled(_fine(activation[chosen], image))
            return fine.where(~is_flat[chosen, None, None], 0).to(image.device)

        logits = yield Scores(Weighted(_names(activation, is_flat), masks))
        shares = np.exp(logits - logits.max())
        return _weighted_map(shares / shares.sum(), activation, subject)


@dataclass(frozen=True, slots=True)
class AblationCam(LayerMethod):
    """Channels weighted by how far the logit falls when the channel is set to 0, summed, negative values set
    to 0. Unsigned. [Desai and Ramaswamy 2020]

    The paper's division by the logit is left out: it changes no picture, but where the logit is negative it
    would turn it over. A class token stays as it is. Where the logit is linear in which channels are kept, as
    before global average pooling and one linear layer, the fall is the sum of activation times gradient, and
    no channel is tried; that it is linear is seen from the scores with no channel, and with six halves of
    them (the check `closed_form` is then 1). Elsewhere every channel is tried.
    """

    version: ClassVar[int] = 1

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        name = self.chosen(predictor, subject.layer)
        traced = yield Trace(layers=(name,), gradients=True)
        activation = traced.activations[name]
        falls = (traced.gradients[name].double() * activation.double()).sum((1, 2)).cpu().numpy()
        kept = _trials(subject, len(activation))
        scores = yield LayerScores(name, Kept(kept))
        is_linear = _is_linear(scores, kept, falls)
        if not is_linear:
            without = yield LayerScores(name, Kept(~np.eye(len(activation), dtype=bool)))
            falls = scores[0] - without
        return _weighted_map(falls, activation, subject, {"closed_form": float(is_linear)})


@dataclass(frozen=True, eq=False)
class Kept:
    """A layer's output with some channels set to 0: `kept` bool (n, C) says which stay."""

    kept: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.kept)

    def make(self, activation: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        kept = torch.from_numpy(self.kept[list(places)]).to(activation.device)
        return activation * kept[:, :, None, None]


def _trials(subject: Subject, channels: int) -> NDArray[np.bool_]:
    """Which channels stay: all, none, three times a random half and the other half; bool (8, channels)."""
    kept = np.zeros((8, channels), bool)
    kept[0] = True
    for at in range(2, len(kept), 2):
        kept[at, subject.draws("ablation", at).permutation(channels)[: channels // 2]] = True
        kept[at + 1] = ~kept[at]
    return kept


def _is_linear(scores: Floats, kept: NDArray[np.bool_], falls: Floats) -> bool:
    """Whether the scores are what the falls of single channels, added up, say."""
    expected = scores[0] - ~kept @ falls
    return bool(np.abs(scores - expected).max() <= LINEAR * (abs(scores[0]) + np.abs(falls).sum()))


def _flat(activation: Tensor) -> Tensor:
    """Which channels (C, h, w) have the same value everywhere, bool (C,)."""
    spread = activation.amax((1, 2)) - activation.amin((1, 2))
    return spread <= FLAT * activation.abs().amax((1, 2))


def _names(activation: Tensor, is_flat: Tensor) -> list[Hashable]:
    """Equal names for channels (C, h, w) whose masks are equal."""
    scaled = _scaled(activation).cpu().numpy()
    return [
        "empty" if flat else digest(channel) for channel, flat in zip(scaled, is_flat.tolist(), strict=True)
    ]


def _scaled(maps: Tensor) -> Tensor:
    """Maps (n, h, w) brought to 0-1 by their own range."""
    low = maps.amin((1, 2), keepdim=True)
    return (maps - low) / (maps.amax((1, 2), keepdim=True) - low).clamp(min=1e-30)


def _fine(maps: Tensor, image: Tensor) -> Tensor:
    """Maps (n, h, w) at the picture's size, bilinear with half-pixel centres."""
    from torch.nn import functional

    return functional.interpolate(maps[:, None], size=image.shape[-2:], mode="bilinear")[:, 0]


def _weighted_map(
    weights: Floats, activation: Tensor, subject: Subject, checks: dict[str, float] | None = None
) -> PixelAttribution:
    import torch

    shares = torch.from_numpy(np.ascontiguousarray(weights)).to(activation)
    coarse = (shares[:, None, None] * activation).sum(0).relu()
    return pixel_map(enlarged(coarse, subject.pixels), signed=False, checks=checks)
