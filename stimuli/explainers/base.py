"""What every explainer promises, and what it may ask of a predictor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import Field, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stimuli.types import PixelAttribution

MAX_PASSES = 8
"""How many copies of an image go through the network at once; bounds memory, and is not a parameter of a map.
"""


class Differentiable(Protocol):
    """The part of a predictor that explainers see.

    `module` is in evaluation mode, takes float32 (N, 3, H, W) in 0-1 and returns logits (N, K). `layer` is
    the module path that layer methods read by default, `layers` all that they may read.
    """

    @property
    def module(self) -> nn.Module: ...

    @property
    def layer(self) -> str: ...

    @property
    def layers(self) -> tuple[str, ...]: ...

    def layer_module(self, name: str) -> nn.Module: ...


@dataclass(frozen=True, slots=True)
class Batch:
    """Images to be explained: `inputs` float32 (N, 3, H, W) in 0-1, and per image the index of the explained
    logit, a key that names its content, and a seed. `layer` is what layer methods read unless they name their
    own.
    """

    inputs: Tensor
    targets: Sequence[int]
    keys: Sequence[str]
    seeds: Sequence[int]
    layer: str = ""


class Explainer(Protocol):
    """A method with its parameters: a frozen dataclass whose fields are the parameters.

    The explained number is the logit of `targets[i]` (before softmax). All parameters live in 0-1 pixels. A
    map depends on its image, target, key, seed and the parameters alone: not on the rest of the batch, its
    order, or how often it was tried. The predictor is left as it was. `version` is raised whenever the maps
    change.
    """

    version: ClassVar[int]

    def require(self, predictor: Differentiable, layer: str) -> None:
        """NotApplicable if this method cannot explain `predictor`."""
        ...

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        """Return maps float32 (N, H, W); larger = more important."""
        ...


class AnyPredictor:
    """A method that explains whatever is differentiable, or needs no network at all."""

    __slots__ = ()

    def require(self, predictor: Differentiable, layer: str) -> None:
        """Accept every predictor."""


def number(default: float, low: float, high: float) -> Any:
    """Declare a parameter with its default (whose type it has) and its limits, both included."""
    return field(default=default, metadata={"low": low, "high": high})


def limits(parameter: Field[Any]) -> tuple[float, float] | None:
    """The limits that `number` declared, or None."""
    if "low" not in parameter.metadata:
        return None
    return parameter.metadata["low"], parameter.metadata["high"]
