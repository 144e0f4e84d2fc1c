"""Class activation maps: which places of a late layer speak for the explained logit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stimuli.errors import NotApplicable
from stimuli.explainers.base import Batch, Differentiable
from stimuli.types import PixelAttribution


@dataclass(frozen=True, slots=True)
class GradCam:
    """Channels of a layer weighted by their mean gradient, summed, negative values set to 0. Unsigned.

    `layer` is a module path of the predictor; empty takes the one that the spec names. Its output must be (N,
    C, h, w); the map is brought to the picture's size bilinearly, with half-pixel centres. [Selvaraju et al.
    2017]
    """

    version: ClassVar[int] = 1
    layer: str = ""

    def require(self, predictor: Differentiable, layer: str) -> None:
        """NotApplicable if the predictor does not offer the layer."""
        name = self.layer or layer or predictor.layer
        if name not in predictor.layers:
            offered = ", ".join(predictor.layers) or "none"
            raise NotApplicable(
                f"grad_cam reads layer {name!r}, which this predictor does not have: name one of {offered}"
            )

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        from stimuli.explainers import passes

        self.require(predictor, batch.layer)
        module = predictor.layer_module(self.layer or batch.layer or predictor.layer)
        return passes.each(predictor, batch, passes.grad_cam, signed=False, layer=module)
