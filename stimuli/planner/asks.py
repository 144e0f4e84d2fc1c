"""What an explainer or a metric may ask of the planner.

A method is a generator over one item: it yields an ask (or a tuple of asks, answered together), is resumed
with the answer, may ask again, and returns its result. It never runs the network. The planner drives the
methods of many items side by side, so that one pass serves everybody who asked for it, equal perturbations
run once, and batches are full. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from stimuli.planner.network import Network

Output = Literal["logit", "probability", "logits"]
Floats = NDArray[np.float64]


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
class Trace:
    """One pass of the picture itself, shared by all methods that ask for any part of it.

    `layers` are read as maps (C, h, w), tokens brought to their grid; `gradients` asks for the gradient of
    the explained logit with respect to them, `input_gradient` with respect to the pixels. `biases` asks for
    FullGrad's sum over all bias layers, `concepts` for the concept values of a bottleneck. The answer is a
    `Traced`.
    """

    layers: tuple[str, ...] = ()
    gradients: bool = False
    input_gradient: bool = False
    biases: bool = False
    concepts: bool = False


@dataclass(frozen=True, slots=True)
class Scores:
    """What the network says to perturbed copies of the picture.

    The answer is float64 (n,): the explained logit, or its probability (softmax over all labels); with
    "logits" float64 (n, K). In the order of `variants`.
    """

    variants: Variants
    output: Output = "logit"


@dataclass(frozen=True, slots=True)
class SummedGradient:
    """Sum over perturbed copies of weight times the gradient of the explained logit with respect to the copy.

    `weights` float (n,). The answer is a float64 Tensor (3, H, W) on the device; no more than a batch of
    gradients is ever kept.
    """

    variants: Variants
    weights: Sequence[float]


@dataclass(frozen=True, slots=True)
class LayerScores:
    """The explained logit when the output of `layer` is replaced; float64 (n,).

    Only what comes after the layer runs where the network can be cut there, else the whole network.
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
    """The gradient of the explained logit with respect to the embeddings of the text's own tokens.

    The answer is a `TextTraced`.
    """


Ask = Trace | Scores | SummedGradient | LayerScores | OwnPasses | TextScores | TextGradient
Steps = Generator[Ask | tuple[Ask, ...], Any, Any]
"""A running method: yields asks, is sent answers (a tuple for a tuple), returns its result."""


@dataclass(frozen=True, slots=True)
class Traced:
    """The answer to a `Trace`. What nobody asked for is empty. Tensors lie on the device, float32.

    `logits` (K,); `activations` and `gradients` by layer name (C, h, w); `input_gradient` (3, H, W);
    `bias_map` (H, W), not negative; `concepts` (number of concepts,).
    """

    logits: Tensor
    activations: Mapping[str, Tensor] = field(default_factory=dict)
    gradients: Mapping[str, Tensor] = field(default_factory=dict)
    input_gradient: Tensor | None = None
    bias_map: Tensor | None = None
    concepts: Tensor | None = None
    raw: Mapping[str, Tensor] = field(default_factory=dict)
    """Outputs of token layers with their class tokens, (prefix + h * w, C), by layer name."""


@dataclass(frozen=True, slots=True)
class TextTraced:
    """The answer to a `TextGradient`: per token of the encoder its span in the text (start, end) and the
    gradient and embedding, float32 (T, D).
    """

    spans: tuple[tuple[int, int], ...]
    gradients: NDArray[np.float32]
    embeddings: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Subject:
    """One item to be explained: `image` float32 (3, H, W) in 0-1 on the device, or a `text`.

    `target` is the index of the explained logit, `key` names the content, `seed` is the study's. `layer` is
    what layer methods read unless they name their own.
    """

    target: int
    key: str
    seed: int
    layer: str = ""
    image: Tensor | None = None
    text: str = ""

    @property
    def pixels(self) -> Tensor:
        """The picture, float32 (3, H, W); only for picture items."""
        assert self.image is not None
        return self.image

    def draws(self, word: str, number: int = 0) -> np.random.Generator:
        """A generator of its own for draw `number` of what `word` says: a function of key and seed alone."""
        return counted_generator(f"{word}\x1f{self.key}\x1f{self.seed}", number)


def counted_generator(name: str, number: int = 0) -> np.random.Generator:
    """Philox keyed by the SHA-256 of `name`, its counter at `number`: order and retries cannot matter."""
    import hashlib

    words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype="<u8")
    return np.random.Generator(np.random.Philox(key=words, counter=[0, 0, 0, number]))
