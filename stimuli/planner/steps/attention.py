"""The attention of a vision transformer: weights, their gradients, and which tokens are read in the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from stimuli.errors import NotApplicable
from stimuli.planner.steps.stepping import Attending

REMEDY = (
    "use a method that does not read attention, such as 'lrp', 'grad_cam' or 'occlusion', or a transformer "
    "whose blocks attend among all tokens"
)


@dataclass(frozen=True, slots=True)
class AttentionPass:
    """One pass of pictures: the logits (N, K), and the weights (N, heads, T, T) of every block, in order."""

    logits: Tensor
    weights: tuple[Tensor, ...]

    def gradients(self, slopes: Tensor) -> list[Tensor]:
        """The gradient of the logits, weighted by `slopes` (N, K), with respect to every block's weights."""
        derived: tuple[Tensor | None, ...] = torch.autograd.grad(
            self.logits, self.weights, slopes, allow_unused=True
        )
        pairs = zip(derived, self.weights, strict=True)
        return [torch.zeros_like(had) if got is None else got for got, had in pairs]


def attend(module: nn.Module, pictures: Tensor) -> AttentionPass:
    """Run `pictures` (N, 3, H, W). NotApplicable unless every attention is one among all tokens."""
    watched, given = Attending(), pictures.detach().requires_grad_()
    with watched:
        logits = module(given)
    shapes = {tuple(weights.shape) for weights in watched.weights}
    tokens = {(shape[0], *shape[2:]) for shape in shapes}
    if not shapes:
        raise NotApplicable(f"this network shows no attention weights when it runs: {REMEDY}")
    ((count, rows, columns), *others) = sorted(tokens, reverse=True)
    if others or count != len(pictures) or rows != columns:
        shown = ", ".join("x".join(map(str, shape)) for shape in sorted(shapes))
        raise NotApplicable(
            f"this network attends within windows, or from some tokens to others (weights of {shown}), so "
            f"its blocks cannot be multiplied: {REMEDY}"
        )
    if not all(weights.requires_grad for weights in watched.weights):
        raise NotApplicable(f"this network cuts its attention off the way from the picture: {REMEDY}")
    return AttentionPass(logits, tuple(watched.weights))


def read_tokens(module: nn.Module, input_px: int, device: torch.device | str = "cpu") -> Tensor:
    """Which of the last block's tokens the logits are read from, bool (T,): the class token, or all that are
    averaged. Found with a picture of noise, as those whose attention has a gradient.
    """
    noise = torch.rand((1, 3, input_px, input_px), generator=torch.Generator().manual_seed(6)).to(device)
    with torch.enable_grad():
        attended = attend(module, noise)
        weights = torch.linspace(1, 2, attended.logits.shape[1], device=device)
        last = attended.gradients(weights[None])[-1]
    read = last[0].abs().amax((0, 2)) > 0
    if not bool(read.any()):
        raise NotApplicable(f"no gradient of the logits reaches the attention of this network: {REMEDY}")
    return read


def fold_heads(weights: Sequence[Tensor], gradients: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Heads averaged, (N, blocks, T, T): the weights, and the positive part of gradient times weights."""
    mean = torch.stack([block.detach().mean(1) for block in weights], 1)
    products = [
        (slope * block.detach()).relu().mean(1) for block, slope in zip(weights, gradients, strict=True)
    ]
    return mean, torch.stack(products, 1)
