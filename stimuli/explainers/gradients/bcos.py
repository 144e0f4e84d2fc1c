"""B-cos explanations: the sum that such a network's logit is, pixel by pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from stimuli.errors import NotApplicable
from stimuli.explainers.base import Kind, refuse_probability
from stimuli.explainers.maps import pixel_map
from stimuli.planner.asks import OwnPasses, Steps
from stimuli.planner.values import Operator, Subject
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters

if TYPE_CHECKING:
    from torch import Tensor

    from stimuli.planner.network import Network


@parameters
class BCos:
    """What each pixel adds to the logit of a B-cos network, W(x) x summed over the six channels of the coded
    picture. [Böhle, Fritz and Schiele 2022]

    `drawn` is "contributions" (signed: their sum is the logit), "positive" (negative ones set to 0) or
    "alpha", the opacity of the authors' own pictures: the length of a pixel's column of W(x) if its
    contribution is not negative, averaged over `smooth_px` pixels (the next odd number). The authors cut it
    at its 99.5th percentile, which is left to the drawing. The check `completeness_gap` is the difference of
    the sum of all contributions from the logit, as a share of it.
    """

    version: ClassVar[int] = 1
    kind: ClassVar[Kind] = "image"
    drawn: Literal["contributions", "positive", "alpha"] = "contributions"
    smooth_px: Annotated[int, Field(ge=1, le=101)] = 15

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable for networks that are not made of B-cos layers alone."""
        from stimuli.predictors.image.bcos_layers import encoding_of

        if encoding_of(predictor.module) is None:
            raise NotApplicable(
                "BCos explains networks of B-cos layers alone, and this one has others: use predictor "
                "'trained_bcos', or another method such as 'gradient_x_input'"
            )

    def follow(self, operator: Operator) -> None:
        """NotApplicable for a probability, which is no sum over pixels."""
        reason = "BCos reads the sum over pixels that a logit is, and a probability is none"
        refuse_probability(operator, reason, "'integrated_gradients'")

    def has_sign(self) -> bool:
        return self.drawn == "contributions"

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        from torch.nn import functional

        matrix, coded, logit = yield OwnPasses(_dynamic_matrix)
        contributions = (matrix.double() * coded.double()).sum(0)
        gap = abs(float(contributions.sum()) - logit) / max(abs(logit), 1e-12)
        if self.drawn == "contributions":
            values = contributions
        elif self.drawn == "positive":
            values = contributions.relu()
        else:
            lengths = matrix.norm(dim=0).where(contributions >= 0, 0.0)
            half = self.smooth_px // 2
            values = functional.avg_pool2d(lengths[None], 2 * half + 1, stride=1, padding=half)[0]
        return pixel_map(values, signed=self.has_sign(), checks={"completeness_gap": gap})


def _dynamic_matrix(network: Network, subject: Subject) -> tuple[Tensor, Tensor, float]:
    """The row of W(x) for the explained number and the coded picture, both (6, H, W), and the number."""
    import torch

    from stimuli.predictors.image.bcos_layers import encoding_of, scales_still

    encoding = encoding_of(network.module)
    if encoding is None:
        raise NotApplicable("BCos explains networks of B-cos layers alone")
    kept: list[Tensor] = []

    def begin(_module: Any, _inputs: Any, output: Tensor) -> Tensor:
        kept.append(output.detach().requires_grad_())
        return kept[0]

    hook = encoding.register_forward_hook(begin)
    try:
        with scales_still(network.module):
            image = subject.pixels[None].to(network.device)
            number = subject.explained(network.module(image)[0])
            (matrix,) = torch.autograd.grad(number, kept)
    finally:
        hook.remove()
    network.bill.forwards += 1
    network.bill.backwards += 1
    return matrix[0], kept[0][0].detach(), float(number.detach())
