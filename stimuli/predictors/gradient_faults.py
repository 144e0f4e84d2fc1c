"""What a network must not do if it is to be explained: hold back its gradient, or end in probabilities."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from stimuli.errors import FAULTS, BadSpec, first_line
from stimuli.predictors.network_proof import network_errors

SUM_TOLERANCE = 1e-3
"""Rows of probabilities sum to 1, less what half precision loses."""
SHAPES_ONLY = ("View", "Reshape", "Squeeze", "Unsqueeze", "Clone", "Alias", "Slice", "Select", "ToCopy")


def gradient_fault(module: nn.Module, input_px: int) -> str:
    """Why no gradient leads from the logits back to the picture; "" if one does. Runs a picture of noise
    forwards and backwards, and a grey one if noise gives none.
    """
    noise = torch.rand((1, 3, input_px, input_px), generator=torch.Generator().manual_seed(3))
    for picture in (noise, torch.full_like(noise, 0.5)):
        with torch.enable_grad():
            try:
                logits = module(picture.requires_grad_())
            except FAULTS as error:  # it runs without gradients
                return f"it does not run with gradients ({first_line(error)})"
            if not logits.requires_grad:
                return "it cuts the way back from the logits to the picture (detach, no_grad or an argmax)"
            weighted = (logits * torch.linspace(1, 2, logits.shape[1])).sum()
            try:
                (gradient,) = torch.autograd.grad(weighted, [picture])
            except FAULTS as error:
                return f"PyTorch cannot differentiate it ({first_line(error)})"
        if not bool(torch.isfinite(gradient).all()):
            return "its gradient is not finite"
        if bool(gradient.any()):
            return ""
    return "its gradient is zero for every pixel (it rounds, compares with a threshold, or has died)"


def refuse_probabilities(network: Callable[[Tensor], Tensor], input_px: int) -> None:
    """BadSpec if the network ends in a softmax or a sigmoid: what reads probabilities would apply a second
    softmax; and if it ends in an argmax. Runs a grey picture and three of noise.
    """
    pictures = torch.rand((4, 3, input_px, input_px), generator=torch.Generator().manual_seed(4))
    pictures[0] = 0.5
    with torch.enable_grad(), network_errors("pictures with gradients", "it must run with gradients"):
        raw = network(pictures.requires_grad_())
    if not raw.is_floating_point():
        raise BadSpec(
            f"the model puts out whole numbers ({raw.dtype}), as an argmax does: take the "
            "argmax off its end and export it again"
        )
    off_one = (raw.detach().sum(-1) - 1).abs() if raw.ndim == 2 and raw.shape[1] > 1 else torch.ones(1)
    if bool((off_one < SUM_TOLERANCE).all()) and bool((raw >= 0).all()):
        seen, last = "for a grey and three random pictures its values are at least 0 and sum to 1", "softmax"
    elif last_step(raw).startswith("SigmoidBackward"):
        seen, last = "its last step is a sigmoid", "sigmoid"
    else:
        return
    raise BadSpec(
        f"the model puts out probabilities instead of logits ({seen}), and explanations and metrics would "
        f"apply a softmax to them once more: take the {last} off its end and export it again"
    )


def last_step(output: Tensor) -> str:
    """The last step of the pass that computed something, as autograd names it; "" where it kept none."""
    node = output.grad_fn
    while node is not None and node.name().startswith(SHAPES_ONLY):
        node = node.next_functions[0][0]
    return "" if node is None else node.name()
