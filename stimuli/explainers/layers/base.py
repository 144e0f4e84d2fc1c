"""What all methods that read a layer of the network share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stimuli.errors import NotApplicable
from stimuli.explainers.base import Kind, require_gradient
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters

if TYPE_CHECKING:
    from stimuli.planner.values import Operator


@parameters
class LayerMethod:
    """`layer` is a module path of the predictor; empty takes the one that the spec names. The layer must put
    out maps of at least 2 x 2 cells, or tokens whose layout the predictor declares.
    """

    kind: ClassVar[Kind] = "image"
    needs_gradient: ClassVar[bool] = True
    layer: str = ""

    def chosen(self, predictor: ImagePredictor, layer: str) -> str:
        """The layer that is read, "" if there is none."""
        return self.layer or layer or predictor.layer

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable if the predictor does not offer the layer, or nothing can be read there."""
        name = self.chosen(predictor, layer)
        layout = predictor.layouts.get(name)
        method = type(self).__name__
        if self.needs_gradient:
            require_gradient(predictor, method)
        if layout is None:
            offered = ", ".join(predictor.layouts) or "none"
            raise NotApplicable(
                f"{method} reads layer {name!r}, which this predictor does not have: name one of {offered}"
            )
        if min(layout.height, layout.width) < 2:
            raise NotApplicable(
                f"{method} needs a layer with a spatial output of at least 2 x 2 cells, but {name!r} has "
                f"{layout.height} x {layout.width}: name an earlier layer"
            )
        if self.needs_gradient and not layout.sees_target:
            raise NotApplicable(
                f"{method} reads the gradient at layer {name!r}, which is zero in every cell: only the class "
                "token is read behind it. Name an earlier layer, such as the first normalisation "
                "of the last block"
            )

    def has_sign(self) -> bool:
        """Negative values are set to 0, unless a method says otherwise."""
        return False

    def follow(self, operator: Operator) -> None:
        """Accept every number: what the planner answers is that of the subject."""
