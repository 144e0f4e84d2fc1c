"""Guided backpropagation: the gradient without its negative part, at every rectifier."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, ClassVar

from stimuli.explainers.base import Kind, require_gradient
from stimuli.explainers.hook_requirements import explained_module, require_relu_modules
from stimuli.explainers.maps import pixel_map
from stimuli.planner.asks import OwnPasses, Steps
from stimuli.planner.values import Operator, Subject
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters

if TYPE_CHECKING:
    from torch import Tensor

    from stimuli.planner.network import Network


@parameters
class GuidedBackprop:
    """Gradient of the logit that at every ReLU lets positive values pass only; mean over the colour channels.
    Signed. [Springenberg et al. 2015]

    By captum, whose hooks see ReLU modules only. A network whose rectifiers are no modules, or that has none
    (GELU, SiLU), would silently get the plain gradient: NotApplicable.
    """

    version: ClassVar[int] = 1
    kind: ClassVar[Kind] = "image"

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable unless every rectifier of the network is a ReLU module. Runs one grey picture."""
        require_gradient(predictor, "GuidedBackprop")
        require_relu_modules(predictor, "GuidedBackprop")

    def follow(self, operator: Operator) -> None:
        """Accept every number."""

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        gradient = yield OwnPasses(_guided_gradient)
        return pixel_map(gradient.mean(0), signed=self.has_sign())


def _guided_gradient(network: Network, subject: Subject) -> Tensor:
    from captum.attr import GuidedBackprop as Guided

    image = subject.pixels[None].detach().to(network.device).clone().requires_grad_()
    with warnings.catch_warnings():
        # captum warns of its hooks at every call.
        warnings.filterwarnings("ignore", message="Setting backward hooks on ReLU")
        gradient: Tensor = Guided(explained_module(network.module, subject)).attribute(image, target=0)
    network.bill.forwards += 1
    network.bill.backwards += 1
    return gradient[0].detach()
