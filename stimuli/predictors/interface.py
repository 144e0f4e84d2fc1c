"""What explainers and the planner see of a predictor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import nn

    from stimuli.predictors.concepts.head_interface import Bottleneck
    from stimuli.types import Layout


class ImagePredictor(Protocol):
    """The part of an image predictor that explainers and the planner see.

    `module` is in evaluation mode, takes float32 (N, 3, H, W) in 0-1 and returns logits (N, K). `layouts`
    says for every layer that can be read as maps how to do so; `layer` is the one that layer methods read by
    default. `bottleneck` is there if the logits are a function of named concepts, which `concept_module` puts
    out. `no_gradient` says why no gradient leads from the logits to the picture, "" if one does.
    """

    @property
    def module(self) -> nn.Module: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def input_px(self) -> int: ...

    @property
    def layer(self) -> str: ...

    @property
    def layouts(self) -> Mapping[str, Layout]: ...

    @property
    def no_gradient(self) -> str: ...

    @property
    def bottleneck(self) -> Bottleneck | None: ...

    def layer_module(self, name: str) -> nn.Module: ...

    def concept_module(self) -> nn.Module: ...
