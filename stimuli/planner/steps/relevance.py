"""Layer-wise relevance propagation as a changed way back through the network. [Bach et al. 2015]

Relevance R = x g is propagated by its factor g, beside the values x of the pass [Ancona et al. 2018]. Steps
that are linear in what they are given (sums, means, poolings, shapes) then split relevance in proportion to
the values by the ordinary backward pass: LRP-0. The other steps have rules here, and a step without a rule is
refused. Constants (biases, position embeddings, class tokens) take their share of the relevance with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from stimuli.errors import NotApplicable
from stimuli.planner.steps.stepping import Stepping
from stimuli.planner.values import Relevance

Map = Callable[[Tensor], Tensor]


class Propagating(Stepping):
    """Within the block, passes give the network's values, and their gradient is g as `asked` has it."""

    def __init__(self, asked: Relevance) -> None:
        super().__init__()
        self.asked = asked
        self._convolved: tuple[Tensor, Tensor, tuple[Any, ...]] | None = None

    def step(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in PASSED:
            return _pass_activation(func, args, kwargs)
        rule = RULES.get(name)
        if rule is not None:
            return rule(self, func, args, kwargs)
        output = func(*args, **kwargs)
        if name not in PLAIN and any(_depends(part) for part in _parts(output)):
            raise NotApplicable(f"relevance has no rule for its step {name!r}")
        return output

    def linear(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """The epsilon rule."""
        x, rest = args[0], args[1:]
        return self._apply_rule(x, lambda given: func(given, *rest, **kwargs), None)

    def convolution(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        x, weight, bias, rest = _convolution_parts(args, kwargs)
        if not _depends(x):
            return _convolve(func, x, weight, bias, rest)
        output = self._by_composite(func, x, weight, bias, rest)
        self._convolved = output, x, (func, weight, bias, rest)
        return output

    def batch_norm(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Behind a convolution, one with it; elsewhere a linear step."""
        before, self._convolved = self._convolved, None
        if before is None or not args or args[0] is not before[0]:
            output: Tensor = func(*args, **kwargs)
            return output
        _, x, (convolve, weight, bias, rest) = before
        # What the normalisation does to each channel, by its own arithmetic: to 0 and to 1.
        channels = len(weight)
        ends = torch.stack([torch.zeros(channels), torch.ones(channels)]).to(weight)[:, :, None, None]
        start, end = func(ends, *args[1:], **kwargs)[:, :, 0, 0]
        factor = end - start
        shift = start if bias is None else start + bias * factor
        return self._by_composite(convolve, x, weight * factor[:, None, None, None], shift, rest)

    def layer_norm(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """The deviation is a constant; centring and weights are linear."""
        x, shape, weight, bias, epsilon = _layer_norm_parts(args, kwargs)
        over = list(range(-len(shape), 0))
        deviation = (x.detach().var(over, correction=0, keepdim=True) + epsilon).sqrt()
        normed: Tensor = (x - x.mean(over, keepdim=True)) / deviation
        normed = normed if weight is None else normed * weight
        return normed if bias is None else normed + bias

    def product(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """The uniform rule: of two factors that bear on the picture, each takes half."""
        output: Tensor = func(*args, **kwargs)
        factors = sum(_depends(part) for part in _parts((args, kwargs)))
        if factors < 2:
            return output
        return _ScaledGradient.apply(output, output.detach().clone(), torch.full((), 1 / factors).to(output))  # type: ignore[no-any-return, no-untyped-call]

    def quotient(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """What is divided by is a constant."""
        divisor = args[1].detach() if isinstance(args[1], Tensor) else args[1]
        output: Tensor = func(args[0], divisor, *args[2:], **kwargs)
        return output

    def softmax(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """Its Taylor decomposition at the scores, which is its gradient; or a constant."""
        output: Tensor = func(*args, **kwargs)
        return output if self.asked.softmax == "taylor" else output.detach()

    def _by_composite(
        self, func: Any, x: Tensor, weight: Tensor, bias: Tensor | None, rest: dict[str, Any]
    ) -> Tensor:
        def whole(given: Tensor) -> Tensor:
            return _convolve(func, given, weight, bias, rest)

        def positive(given: Tensor) -> Tensor:
            raised = None if bias is None else bias.clamp(min=0)
            above = _convolve(func, given.clamp(min=0), weight.clamp(min=0), raised, rest)
            return above + _convolve(func, given.clamp(max=0), weight.clamp(max=0), None, rest)

        return self._apply_rule(x, whole, positive if self.asked.composite == "epsilon_plus" else None)

    def _apply_rule(self, x: Tensor, whole: Map, share: Map | None) -> Tensor:
        if not _depends(x):
            return whole(x)
        return _SumRule.apply(x, whole, share or whole, self.asked.epsilon)  # type: ignore[no-any-return, no-untyped-call]


class _SumRule(Function):
    """The value of `whole`, whose relevance goes to the inputs as they add up to `share`, with epsilon put on
    every sum away from 0. The sums are taken when relevance comes by, so that none is kept.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, whole: Map, share: Map, epsilon: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.how = whole, share, epsilon
        return whole(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (x,), (whole, share, epsilon) = ctx.saved_tensors, ctx.how
        with torch.enable_grad():
            given = x.detach().requires_grad_()
            sums = share(given)
        values = sums.detach()
        relevance = gradients[0] * (values if share is whole else whole(x.detach()))
        stable = values + epsilon * (1 - 2 * (values < 0).to(values))
        factor = torch.where(stable == 0, 0, relevance / stable)
        return torch.autograd.grad(sums, given, factor)[0], None, None, None


class _ScaledGradient(Function):
    """`value` in place of `through`, whose gradient is multiplied by `factor`."""

    @staticmethod
    def forward(ctx: Any, through: Tensor, value: Tensor, factor: Tensor) -> Tensor:
        ctx.save_for_backward(factor)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients[0] * ctx.saved_tensors[0], None, None


def _pass_activation(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """An activation f hands relevance on as it is: g is multiplied by f(x) / x."""
    x = args[0]
    before = x.detach()
    value: Tensor = func(before.clone(), *args[1:], **kwargs)
    if not _depends(x):
        return value
    factor = torch.where(before == 0, 0, value / before)
    return _ScaledGradient.apply(x, value, factor)  # type: ignore[no-any-return, no-untyped-call]


def _convolution_parts(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor | None, dict[str, Any]]:
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    given = dict(zip(names, args, strict=False)) | kwargs
    return given.pop("input"), given.pop("weight"), given.pop("bias", None), given


def _convolve(func: Any, x: Tensor, weight: Tensor, bias: Tensor | None, rest: dict[str, Any]) -> Tensor:
    output: Tensor = func(x, weight, bias, **rest)
    return output


def _layer_norm_parts(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    given = dict(zip(("input", "normalized_shape", "weight", "bias", "eps"), args, strict=False)) | kwargs
    return (
        given["input"],
        given["normalized_shape"],
        given.get("weight"),
        given.get("bias"),
        given.get("eps", 1e-5),
    )


def _parts(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [part for entry in value for part in _parts(entry)] if isinstance(value, list | tuple) else []


def _depends(part: Tensor | None) -> bool:
    """Whether the picture bears on it: weights ask for no gradient."""
    return part is not None and part.requires_grad


Rule = Callable[[Propagating, Any, tuple[Any, ...], dict[str, Any]], Any]
RULES: dict[str, Rule] = {
    "linear": Propagating.linear,
    "conv1d": Propagating.convolution,
    "conv2d": Propagating.convolution,
    "batch_norm": Propagating.batch_norm,
    "layer_norm": Propagating.layer_norm,
    "softmax": Propagating.softmax,
    **dict.fromkeys(("mul", "rmul", "imul", "multiply"), Propagating.product),
    **dict.fromkeys(("matmul", "rmatmul", "bmm", "einsum"), Propagating.product),
    **dict.fromkeys(("div", "truediv", "itruediv"), Propagating.quotient),
}
PASSED = {
    *("relu", "relu6", "leaky_relu", "prelu", "prelu_kernel", "hardtanh", "threshold"),
    *("elu", "selu", "celu", "gelu", "silu", "mish", "hardswish", "tanh", "softplus"),
}
"""Activations, which hand relevance on as it is."""
PLAIN = {
    *("add", "radd", "iadd", "sub", "isub", "rsub", "neg", "mean", "sum", "dropout"),
    *("avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool1d", "interpolate", "upsample_bilinear2d"),
    *("max_pool2d", "max_pool2d_with_indices", "adaptive_max_pool2d", "amax", "max"),
    *("view", "view_as", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "expand", "expand_as"),
    *(
        "permute",
        "transpose",
        "movedim",
        "swapaxes",
        "t",
        "get",
        "contiguous",
        "clone",
        "alias",
        "to",
        "type",
    ),
    *("cat", "concat", "stack", "chunk", "split", "split_with_sizes", "unbind", "repeat", "roll", "pad"),
    *("getitem", "select", "slice", "narrow", "index_select", "constant_pad_nd", "float", "type_as"),
}
"""Steps whose gradient splits relevance in proportion, or hands it to the largest."""
