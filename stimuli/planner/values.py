"""What passes between methods and the planner: the item, what a pass is asked for, and what it answered.

Nothing here imports torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast, overload

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import BadSpec
from stimuli.types import Mask, Span, Weights

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
Operator = Literal["logit", "margin", "probability"]
"""What is made of an item's logits: one of them, a difference of two, or a share of the softmax."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One pass of the picture itself, shared by all methods that ask for any part of it.

    `layers` are read as maps (C, h, w), tokens brought to their grid; `gradients` asks for the gradient of
    the explained number with respect to them, `input_gradient` with respect to the pixels. `biases` asks for
    FullGrad's sum over all bias layers, `concepts` for the concept values of a bottleneck. The answer is a
    `TraceAnswer`.
    """

    layers: tuple[str, ...] = ()
    gradients: bool = False
    input_gradient: bool = False
    biases: bool = False
    concepts: bool = False


@dataclass(frozen=True, slots=True)
class AttentionTrace:
    """A pass of the picture whose attention is taken apart. The answer is a `TraceAnswer` with
    `attention`, the weights of every block averaged over its heads, and `relevancy`, the average of
    weights times the gradient of the explained number with respect to them, negative products set to 0
    [Chefer, Gur and Wolf 2021, equation 5]; and `read`, which of the last block's tokens the logits are
    read from.
    """


@dataclass(frozen=True, slots=True)
class Relevance:
    """A pass of the picture whose gradient is that of layer-wise relevance propagation.

    `composite` "epsilon_plus": the z+ rule (alpha 1, beta 0) for convolutions, the epsilon rule for linear
    layers; "epsilon": the latter for both. `softmax` "taylor": relevance goes through the attention's scores
    [Achtibat et al. 2024]; "constant": around them [Ali et al. 2022]. The answer is a `TraceAnswer` with
    `input_gradient`: what the network is given times it is the relevance.
    """

    composite: Literal["epsilon_plus", "epsilon"] = "epsilon_plus"
    epsilon: float = 1e-6
    softmax: Literal["taylor", "constant"] = "taylor"


@dataclass(frozen=True, slots=True)
class TraceAnswer:
    """The answer to a `Trace`. What was not asked for is empty. Tensors lie on the device, float32.

    `logits` (K,); `activations` and `gradients` by layer name (C, h, w); `input_gradient` (3, H, W);
    `bias_map` (H, W), not negative; `concepts` (number of concepts,). `attention` and `relevancy` (blocks, T,
    T), rows for the tokens that attend; `read` bool (T,).
    """

    logits: Tensor
    activations: Mapping[str, Tensor] = field(default_factory=dict)
    gradients: Mapping[str, Tensor] = field(default_factory=dict)
    input_gradient: Tensor | None = None
    bias_map: Tensor | None = None
    concepts: Tensor | None = None
    attention: Tensor | None = None
    relevancy: Tensor | None = None
    read: Tensor | None = None
    raw: Mapping[str, Tensor] = field(default_factory=dict)
    """Outputs of token layers with their class tokens, (prefix + h * w, C), by layer name."""


@dataclass(frozen=True, slots=True)
class TextTrace:
    """The answer to a `TextGradient`: per token of the encoder its span in the text (start, end) and the
    gradient and embedding, float32 (T, D).
    """

    spans: tuple[tuple[int, int], ...]
    gradients: NDArray[np.float32]
    embeddings: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ExplainedNumber:
    """The explained number, a function of an item's logits.

    "logit": that of label `target`, before softmax. "margin": that logit less the one of label `against`.
    "probability": the share of `target` in the softmax over all labels. Labels are counted from 0 in the
    order of the logits.
    """

    target: int
    operator: Operator = field(default="logit", kw_only=True)
    against: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.operator == "margin") != (self.against is not None):
            raise BadSpec(
                f"operator {self.operator!r} with against = {self.against}: name the label that a margin is "
                "taken against, and none for other operators"
            )

    @property
    def number(self) -> Hashable:
        """Equal exactly for the same number."""
        return self.target, self.operator, self.against

    @overload
    def explained(self, logits: Floats) -> Floats: ...
    @overload
    def explained(self, logits: Tensor) -> Tensor: ...
    def explained(self, logits: Floats | Tensor) -> Floats | Tensor:
        """The number for logits (..., K), an array or a tensor, which can be differentiated: (...)."""
        values: Floats | Tensor = softmax(logits) if self.operator == "probability" else logits
        number: Floats | Tensor = values[..., self.target]
        if self.against is not None:
            number = number - logits[..., self.against]
        return number

    def slopes(self, logits: Floats) -> Floats:
        """The derivative of the number with respect to each of the logits (K,); float64 (K,).

        Of a probability near 1 too: what is missing from 1 is the sum of the others.
        """
        slopes = np.zeros(len(logits))
        if self.operator == "probability":
            shares = softmax(logits)
            slopes -= shares[self.target] * shares
            slopes[self.target] = 0.0
            slopes[self.target] = -slopes.sum()
            return slopes
        slopes[self.target] = 1.0
        if self.against is not None:
            slopes[self.against] -= 1.0
        return slopes


@dataclass(frozen=True, slots=True)
class Subject(ExplainedNumber):
    """One item to be explained: `image` float32 (3, H, W) in 0-1 on the device, or a `text`; and which number
    of it.

    `key` names the content, `seed` is the study's. `layer` is what layer methods read unless they name their
    own. `lent` are the maps that a method or metric named as its lenders, by name; None if none is lent.
    `region` is the planted or annotated part of the picture, bool (H, W), if it is known. `units` are the
    spans (start, end) of the text that can be marked; None for those that the predictor finds.
    """

    key: str
    seed: int
    layer: str = ""
    image: Tensor | None = None
    text: str = ""
    lent: Mapping[str, Weights] | None = None
    region: Mask | None = None
    units: tuple[Span, ...] | None = None

    @property
    def pixels(self) -> Tensor:
        """The picture, float32 (3, H, W); only for picture items."""
        assert self.image is not None
        return self.image

    def draws(self, word: str, number: int = 0) -> np.random.Generator:
        """A generator of its own for draw `number` of what `word` says: a function of key and seed alone."""
        return counted_generator(f"{word}\x1f{self.key}\x1f{self.seed}", number)


@overload
def softmax(logits: NDArray[np.floating]) -> Floats: ...
@overload
def softmax(logits: Tensor) -> Tensor: ...
def softmax(logits: NDArray[np.floating] | Tensor) -> Floats | Tensor:
    """Probabilities (..., K) of logits (..., K), in double precision."""
    if not isinstance(logits, np.ndarray):
        return logits.double().softmax(-1)
    powers = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    return cast("Floats", powers / powers.sum(-1, keepdims=True))


def counted_generator(name: str, number: int = 0) -> np.random.Generator:
    """Philox keyed by the SHA-256 of `name`, its counter at `number`: order and retries cannot matter."""
    words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype="<u8")
    return np.random.Generator(np.random.Philox(key=words, counter=[0, 0, 0, number]))
