"""What explainers and the planner see of a predictor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn

    from stimuli.planner.asks import TextTraced
    from stimuli.predictors.bottleneck import Bottleneck
    from stimuli.types import Layout


class ImagePredictor(Protocol):
    """The part of an image predictor that explainers and the planner see.

    `module` is in evaluation mode, takes float32 (N, 3, H, W) in 0-1 and returns logits (N, K). `layouts`
    says of every layer that can be read as maps how; `layer` is the one that layer methods read by default.
    `bottleneck` is there where the logits are a function of named concepts, which `concept_module` puts out.
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
    def bottleneck(self) -> Bottleneck | None: ...

    def layer_module(self, name: str) -> nn.Module: ...

    def concept_module(self) -> nn.Module: ...


class TextPredictor(Protocol):
    """The part of a text predictor that explainers and the planner see."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def text_logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Logits float32 (N, K). A text's row does not depend on the other texts."""
        ...

    def text_gradient(self, text: str, target: int) -> TextTraced:
        """The gradient of logit `target` with respect to the embeddings of the text's own tokens."""
        ...
