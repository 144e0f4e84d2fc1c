"""The interface of every explainer, and what it may know of a predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from stimuli.errors import NotApplicable

if TYPE_CHECKING:
    from stimuli.planner.asks import Steps
    from stimuli.planner.values import Subject
    from stimuli.predictors.interface import ImagePredictor

Kind = Literal["image", "text", "concept"]


class Explainer(Protocol):
    """A method with its parameters: a class under `registry.parameters`, whose fields they are.

    The explained number is the logit of the subject's target (before softmax) unless the method's docstring
    says otherwise. All parameters live in 0-1 pixels. A result depends on the item, target, key, seed and the
    parameters alone: not on other items, their order, or how often it was tried. `version` is raised whenever
    results change; `kind` says what is explained with.
    """

    version: ClassVar[int]
    kind: ClassVar[Kind]

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable, with the reason and the remedy, if this method cannot explain `predictor`."""
        ...

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        """Ask for passes; return a PixelAttribution, TokenAttribution or ConceptAttribution."""
        ...


class ByGradient:
    """A method that reads gradients with respect to the picture."""

    __slots__ = ()
    kind: ClassVar[Kind] = "image"

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable if the network lets no gradient through."""
        require_gradient(predictor, type(self).__name__)


def require_gradient(predictor: ImagePredictor, method: str) -> None:
    """NotApplicable for `method` if no gradient leads from the logits to the picture."""
    if predictor.no_gradient:
        raise NotApplicable(
            f"{method} reads the gradient of this network, which has none: {predictor.no_gradient}. Export "
            "it without that step, or use a method that only changes the picture, such as 'occlusion', "
            "'rise', 'lime_image' or 'shap_partition'"
        )


class AnyImage:
    """A method that explains every image predictor, or needs no network at all."""

    __slots__ = ()
    kind: ClassVar[Kind] = "image"

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """Accept every image predictor."""
