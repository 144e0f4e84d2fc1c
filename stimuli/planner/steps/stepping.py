"""A pass of the network, step by step: attention taken apart, and steps that relevance goes back through.

What a network calls of PyTorch is seen while it runs, whether its code, a library's or an exported program's
calls it; its modules need no hooks and its code no change. Attention that a kernel computes in one step is
run as its definition: products, softmax, product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from stimuli.errors import NotApplicable


class Stepping(TorchFunctionMode):
    """Within the block, every step of a pass goes through `step`; attention in its parts."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name, given = name_of(func), dict(kwargs or {})
        if name in FUSED:
            with self:
                return FUSED[name](*args, **given)
        return self.step(name, func, args, given)

    def step(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one step; what is called in here goes by unseen."""
        return func(*args, **kwargs)


class Attending(Stepping):
    """Keeps the weights of every attention of a pass, (N, heads, T, T), rows summing to 1, in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[Tensor] = []

    def step(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        output = func(*args, **kwargs)
        if name == "softmax" and output.ndim == 4:
            self.weights.append(output)
        return output


def name_of(func: Any) -> str:
    """One name for a step however it is called: function, method, operator, in place, or of a program."""
    return str(getattr(getattr(func, "overloadpacket", func), "__name__", func)).strip("_")


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`scaled_dot_product_attention` by its definition."""
    if is_causal or enable_gqa:
        raise NotApplicable("its attention is causal or shares keys between heads, as in networks of texts")
    return _mix_values(query, key, value, attn_mask, scale)[0]


def _mix_values(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Queries, keys and values (N, heads, T, D): what is mixed, (N, heads, T, D), and its weights."""
    scores = (query * (query.shape[-1] ** -0.5 if scale is None else scale)) @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    weights = scores.softmax(-1)
    return weights @ value, weights


def _multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    **other: Any,
) -> tuple[Tensor, Tensor | None]:
    """`multi_head_attention_forward` of tokens (T, N, C) by its definition."""
    odd = [name for name in ("key_padding_mask", "static_k", "static_v") if other.get(name) is not None]
    if in_proj_weight is None or bias_k is not None or add_zero_attn or attn_mask is not None or odd:
        raise NotApplicable("its nn.MultiheadAttention has masks, or keys and values of other widths")
    biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    parts = []
    for tokens, weight, bias in zip((query, key, value), in_proj_weight.chunk(3), biases, strict=True):
        joined = functional.linear(tokens, weight, bias)
        parts.append(joined.reshape(*joined.shape[:2], num_heads, -1).permute(1, 2, 0, 3))
    mixed, weights = _mix_values(parts[0], parts[1], parts[2], None)
    output = functional.linear(mixed.permute(2, 0, 1, 3).flatten(2), out_proj_weight, out_proj_bias)
    if not need_weights:
        return output, None
    return output, weights.mean(1) if average_attn_weights else weights


FUSED: dict[str, Callable[..., Any]] = {
    "scaled_dot_product_attention": _attention,
    "multi_head_attention_forward": _multi_head_attention,
}
"""Steps that are run in their parts."""
