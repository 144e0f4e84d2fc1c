"""The logit's gradient with respect to the picture and to every bias, put on one map."""

from __future__ import annotations

from typing import ClassVar

from stimuli.errors import NotApplicable
from stimuli.explainers.base import AnyImage, refuse_probability, require_gradient
from stimuli.explainers.maps import centre_picture, pixel_map
from stimuli.planner.asks import Steps
from stimuli.planner.values import Operator, Subject, Trace
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters

TINY = 1e-7


@parameters
class FullGrad(AnyImage):
    """Magnitudes of input times gradient, and of bias times gradient of every convolution and batch
    normalisation; each channel scaled to 0-1 by its own range, brought to the picture's size, and added.
    Unsigned. [Srinivas and Fleuret 2019]

    The input is the one that the network has behind its normalisation of the picture, as in the paper and in
    libraries. On networks of convolutions, batch normalisations, ReLUs and poolings, input times gradient and
    all biases times their gradients, unscaled, add up to the logit; scaling gives that up for the picture.
    """

    version: ClassVar[int] = 1

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable if the biases are not those of a network of convolutions, or cannot be found."""
        from torch import nn

        from stimuli.planner.biases import BiasMaps

        require_gradient(predictor, "FullGrad")
        other = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.InstanceNorm2d)
        if any(layout.kind == "tokens" for layout in predictor.layouts.values()):
            raise NotApplicable(
                "FullGrad needs a network of convolutions: this one works on tokens, and of all its biases "
                "only those of the first layer would be seen. Use a convolutional network, or another method"
            )
        for name, part in predictor.module.named_modules():
            if isinstance(part, other):
                raise NotApplicable(
                    f"FullGrad needs normalisations with fixed statistics, but {name!r} is a "
                    f"{type(part).__name__}, whose effect is no bias: use a network with batch "
                    "normalisation, or another method"
                )
        if not BiasMaps.layers(predictor.module):
            raise NotApplicable(
                "FullGrad adds up the biases of convolutions and batch normalisations, and this network has "
                "none that can be found (an exported program keeps its steps, not its modules): build the "
                "network from weights and a builder, or use another method"
            )

    def follow(self, operator: Operator) -> None:
        """NotApplicable for a probability, which is no sum over biases."""
        reason = "FullGrad reads the sum over input and biases that a logit is, and a probability is none"
        refuse_probability(operator, reason, "'integrated_gradients'")

    def has_sign(self) -> bool:
        return False

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        traced = yield Trace(input_gradient=True, biases=True)
        if traced.bias_map is None:
            raise NotApplicable("FullGrad met no bias on its way through this network: use another method")
        # The gradient with respect to the pixels is that behind the normalisation over its scale.
        magnitudes = (traced.input_gradient * centre_picture(predictor, subject)).abs()
        low = magnitudes.amin((1, 2), keepdim=True)
        scaled = (magnitudes - low) / (TINY + magnitudes.amax((1, 2), keepdim=True) - low)
        return pixel_map(scaled.sum(0) + traced.bias_map, signed=self.has_sign())
