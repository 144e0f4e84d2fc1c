"""Layer-wise relevance propagation: the number shared out, layer after layer, down to the pixels."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from stimuli.errors import FAULTS, NotApplicable, StimulusError
from stimuli.explainers.base import ByGradient, refuse_probability
from stimuli.explainers.hook_requirements import once
from stimuli.explainers.maps import centre_picture, pixel_map
from stimuli.planner.asks import Steps
from stimuli.planner.values import Operator, Relevance, Subject
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters


@parameters
class Lrp(ByGradient):
    """Relevance of each pixel, summed over the colour channels. Signed. [Bach et al. 2015; composites as in
    Montavon et al. 2019; transformers by Achtibat et al. 2024, "AttnLRP"]

    `composite` "epsilon_plus" has the z+ rule (alpha 1, beta 0) for convolutions and the epsilon rule for
    linear layers, "epsilon" the latter for both. A batch normalisation behind a convolution is one with it;
    activations hand relevance on as it is, sums share it out in proportion, poolings too or to the largest, a
    layer normalisation's deviation is a constant, of a product each factor takes half. `softmax` "taylor"
    sends relevance through the scores of attention (AttnLRP), "constant" around them (CP-LRP; Ali et al.
    2022).

    The check `absorbed_share` is what biases, constants and epsilon keep of the number: 1 less the sum of the
    map as a share of it. Without them and with "constant" it is 0.
    """

    version: ClassVar[int] = 1
    composite: Literal["epsilon_plus", "epsilon"] = "epsilon_plus"
    epsilon: Annotated[float, Field(ge=0.0, le=10.0)] = 1e-6
    softmax: Literal["taylor", "constant"] = "taylor"

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable if the network has a step without a rule. Runs one grey picture."""
        ByGradient.require(self, predictor, layer)
        once(predictor, self._relevance(), lambda: _try(predictor, self._relevance()))

    def follow(self, operator: Operator) -> None:
        """NotApplicable for a probability, which is no sum that can be shared out."""
        reason = "Lrp shares out the sum that a logit is, and a probability is none"
        refuse_probability(operator, reason, "'integrated_gradients'")

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        traced = yield self._relevance()
        relevance = (traced.input_gradient * centre_picture(predictor, subject)).double().sum(0)
        number = float(subject.explained(traced.logits))
        absorbed = 1 - float(relevance.sum()) / number if number else 0.0
        return pixel_map(relevance, signed=self.has_sign(), checks={"absorbed_share": absorbed})

    def _relevance(self) -> Relevance:
        return Relevance(self.composite, self.epsilon, self.softmax)


def _try(predictor: ImagePredictor, asked: Relevance) -> None:
    import torch

    from stimuli.planner.steps.relevance import Propagating

    device = next((held.device for held in predictor.module.parameters()), torch.device("cpu"))
    side = predictor.input_px
    grey = torch.full((1, 3, side, side), 0.5, device=device, requires_grad=True)
    try:
        with torch.enable_grad():
            with Propagating(asked):
                logits = predictor.module(grey)
            torch.autograd.grad(logits.sum(), [grey])
    except (StimulusError, *FAULTS) as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise NotApplicable(
            f"Lrp cannot explain this network: {said}. Use another method, such as 'integrated_gradients'"
        ) from error
