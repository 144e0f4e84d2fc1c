"""What an explainer or a metric may ask of the planner.

A method is a generator over one item: it yields an ask (or a tuple of asks, answered together), is resumed
with the answer, may ask again, and returns its result. It never runs the network. The planner runs the
methods of many items together, so that one pass answers all asks for it, equal perturbations run once, and
batches are full. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from stimuli.planner.values import AttentionTrace, Relevance, Subject, Trace

if TYPE_CHECKING:
    from torch import Tensor

    from stimuli.planner.network import Network

Output = Literal["logit", "probability", "logits"]


class Variants(Protocol):
    """Perturbed copies of one picture, made on the device when their turn comes."""

    def __len__(self) -> int: ...

    def identity(self, place: int) -> Hashable:
        """Equal exactly for copies that are equal pixel by pixel: those run once per picture.

        `ORIGINAL` for a copy that is the picture itself; `("flat", value)` for one of a single value.
        """
        ...

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        """The copies at `places`, float32 (n, 3, H, W) on the device of `image`, float32 (3, H, W) in 0-1."""
        ...


class LayerVariants(Protocol):
    """Changed outputs of a layer for one picture."""

    def __len__(self) -> int: ...

    def make(self, activation: Tensor, places: Sequence[int]) -> Tensor:
        """The outputs at `places`, (n, C, h, w), from the layer's own for the picture, (C, h, w)."""
        ...


ORIGINAL = ("original",)


@dataclass(frozen=True, slots=True)
class Scores:
    """What the network says to perturbed copies of the picture.

    The answer is float64 (n,), in the order of `variants`. With "logit" it is the explained number: the
    target's logit, unless the study names another operator; with "probability" the target's share of the
    softmax over all labels, under every operator. With "logits" it is float64 (n, K).
    """

    variants: Variants
    output: Output = "logit"


@dataclass(frozen=True, slots=True)
class SummedGradient:
    """Sum over perturbed copies of weight times the gradient of the explained number with respect to each.

    `weights` float (n,). The answer is a float64 Tensor (3, H, W) on the device; no more than a batch of
    gradients is ever kept.
    """

    variants: Variants
    weights: Sequence[float]


@dataclass(frozen=True, slots=True)
class LayerScores:
    """The explained number when the output of `layer` is replaced; float64 (n,).

    If the network can be cut there, only what comes after the layer runs, else the whole network.
    """

    layer: str
    variants: LayerVariants


@dataclass(frozen=True, slots=True)
class OwnPasses:
    """Work that cannot be planned: `run` is called alone with the network and the item, and its result is
    the answer.
    """

    run: Callable[[Network, Subject], Any]


@dataclass(frozen=True, slots=True)
class TextScores:
    """The probabilities of all labels for altered texts, float64 (n, K); equal texts run once."""

    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class TextGradient:
    """The gradient of the explained number with respect to the embeddings of the text's own tokens.

    The answer is a `TextTrace`.
    """


Ask = (
    Trace
    | AttentionTrace
    | Relevance
    | Scores
    | SummedGradient
    | LayerScores
    | OwnPasses
    | TextScores
    | TextGradient
)
Steps = Generator[Ask | tuple[Ask, ...], Any, Any]
"""A running method: yields asks, is sent answers (a tuple for a tuple), returns its result."""
