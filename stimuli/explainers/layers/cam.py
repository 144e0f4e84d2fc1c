"""Class activation maps: which places of a layer speak for the explained number, by activation and gradient.

All of them read the same trace, so that any number of them costs one pass forwards and one backwards. With
A the layer's maps (C, h, w), G the gradient of that number with respect to them, and sums over places
written S: on a network whose layer is followed by global average pooling and one linear layer, GradCam,
HiResCam and XGradCam are the same map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from stimuli.explainers.base import refuse_probability
from stimuli.explainers.layers.base import LayerMethod
from stimuli.explainers.maps import enlarge_map, pixel_map
from stimuli.planner.asks import Steps
from stimuli.planner.values import Operator, Subject, Trace
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters

if TYPE_CHECKING:
    from torch import Tensor


@parameters
class ClassActivationMap(LayerMethod):
    """What these methods share: one trace, a coarse map, enlarged bilinearly with half-pixel centres."""

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        name = self.chosen(predictor, subject.layer)
        traced = yield Trace(layers=(name,), gradients=True)
        coarse = self.coarse(traced.activations[name], traced.gradients[name])
        return pixel_map(enlarge_map(coarse, subject.pixels), signed=self.has_sign())

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        """The map (h, w) from the layer's output and its gradient, both (C, h, w)."""
        raise NotImplementedError


@parameters
class GradCam(ClassActivationMap):
    """Channels of a layer weighted by their mean gradient, summed, negative values set to 0. Unsigned.

    [Selvaraju et al. 2017]
    """

    version: ClassVar[int] = 2

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        return _weighted_sum(gradient.mean((1, 2)), activation)


@parameters
class HiResCam(ClassActivationMap):
    """Activation times gradient, summed over the channels. [Draelos and Carin 2020]

    Negative values are set to 0, as libraries do, unless `signed`: then the map is the paper's, and sums,
    before it is enlarged, to the logit less its bias if only a linear layer follows.
    """

    version: ClassVar[int] = 1
    signed: bool = False

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        summed = (gradient * activation).sum(0)
        return summed if self.signed else summed.relu()

    def has_sign(self) -> bool:
        return self.signed


@parameters
class GradCamElementWise(ClassActivationMap):
    """Activation times gradient with negative products set to 0, summed over the channels. Unsigned.

    From the library pytorch-grad-cam [Gildenblat et al. 2021]; there is no paper of its own.
    """

    version: ClassVar[int] = 1

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        return (gradient * activation).relu().sum(0)


@parameters
class GradCamPlusPlus(ClassActivationMap):
    """Channels weighted by the sum of their positive gradients, each times G^2 / (2 G^2 + S(A) G^3), summed,
    negative values set to 0. Unsigned. [Chattopadhay et al. 2018, equations 7 and 19]

    `epsilon` is added to the denominator. The definition has none; pytorch-grad-cam adds 1e-6, which is more
    than G^2 itself at the end of usual networks, and so changes the weights. The definition is meant for
    layers whose maps are not negative: if S(A) G is near -2, as can be on tokens, a weight has a pole.
    """

    version: ClassVar[int] = 1
    epsilon: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0

    def follow(self, operator: Operator) -> None:
        """NotApplicable for a probability: the weights are derived for the exponential of a logit."""
        reason = "GradCamPlusPlus weighs by derivatives of the exponential of a logit, not of a probability"
        refuse_probability(operator, reason, "'grad_cam'")

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        total = activation.sum((1, 2), keepdim=True)
        if self.epsilon:
            squared = gradient.square()
            share = squared / (2 * squared + total * squared * gradient + self.epsilon)
        else:
            # The square is cancelled, for it would vanish in single precision.
            share = 1 / (2 + total * gradient)
        return _weighted_sum((gradient.relu() * share.where(gradient > 0, 0)).sum((1, 2)), activation)


@parameters
class XGradCam(ClassActivationMap):
    """Channels weighted by their gradient, averaged with the channel's own activation as weights; summed,
    negative values set to 0. Unsigned. [Fu et al. 2020]

    A channel that adds up to exactly 0 has no weight. The definition is meant for layers whose maps are not
    negative: in others a channel may add up to almost 0, and weighs too much.
    """

    version: ClassVar[int] = 1

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        total = activation.sum((1, 2))
        weights = (gradient * activation).sum((1, 2)) / total
        return _weighted_sum(weights.where(total != 0, 0), activation)


@parameters
class LayerCam(ClassActivationMap):
    """Activation times positive gradient, place by place, summed over the channels, negative values set to 0.
    Unsigned. Meant for early layers too. [Jiang et al. 2021]
    """

    version: ClassVar[int] = 1

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        return (gradient.relu() * activation).sum(0).relu()


def _weighted_sum(weights: Tensor, activation: Tensor) -> Tensor:
    """Maps (C, h, w) summed with weights (C,), negative values set to 0."""
    return (weights[:, None, None] * activation).sum(0).relu()
