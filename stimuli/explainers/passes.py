"""The arithmetic of the network methods, through captum with every parameter written out.

One image at a time on purpose: on processors a batch of images gains a tenth or two, but makes the last bits
of a map depend on its neighbours, and so, once in a while, a pixel of a picture. The copies of one image that
a method asks for go through the network `MAX_PASSES` at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

import numpy as np
import torch
from captum import attr
from torch import Tensor, nn

from stimuli.errors import NotApplicable, ShapeMismatch
from stimuli.explainers.base import MAX_PASSES, Batch, Differentiable
from stimuli.types import PixelAttribution

P = ParamSpec("P")


class Shot:
    """One image to be explained: `x` float32 (1, 3, H, W), the index of the explained logit, its key and
    seed.
    """

    __slots__ = ("key", "seed", "target", "x")

    def __init__(self, x: Tensor, target: int, key: str, seed: int) -> None:
        self.x = x
        self.target = target
        self.key = key
        self.seed = seed


def each(
    predictor: Differentiable,
    batch: Batch,
    method: Callable[Concatenate[nn.Module, Shot, P], Tensor],
    signed: bool,
    *args: P.args,
    **kwargs: P.kwargs,
) -> PixelAttribution:
    """Apply `method`, which returns a map (H, W), to every image of the batch."""
    if batch.inputs.ndim != 4 or batch.inputs.shape[1] != 3:
        raise ShapeMismatch(f"explainers take images (N, 3, H, W), but got {tuple(batch.inputs.shape)}")
    module = predictor.module
    maps = []
    with torch.enable_grad():
        for index, (target, key, seed) in enumerate(zip(batch.targets, batch.keys, batch.seeds, strict=True)):
            shot = Shot(_single(batch.inputs, index), int(target), key, seed)
            maps.append(method(module, shot, *args, **kwargs).detach().float().cpu().numpy())
    height, width = batch.inputs.shape[2:]
    values = np.stack(maps) if maps else np.zeros((0, height, width), np.float32)
    if not np.isfinite(values).all():
        raise NotApplicable("the map has values that are not finite: the network overflows on this image")
    return PixelAttribution(values, signed)


def saliency(module: nn.Module, shot: Shot) -> Tensor:
    """Magnitude of the gradient, largest over channels."""
    return _gradient(module, shot.x, shot.target)[0].abs().amax(0)


def gradient_x_input(module: nn.Module, shot: Shot) -> Tensor:
    """Gradient times input, mean over channels."""
    x = shot.x.requires_grad_()
    product: Tensor = attr.InputXGradient(module).attribute(x, target=shot.target)
    return product[0].mean(0)


def integrated_gradients(module: nn.Module, shot: Shot, steps: int, baseline: float) -> Tensor:
    """Integrated gradients from a flat picture, mean over channels."""
    total: Tensor = attr.IntegratedGradients(module, multiply_by_inputs=True).attribute(
        shot.x.requires_grad_(),
        baselines=baseline,
        target=shot.target,
        n_steps=steps,
        method="riemann_trapezoid",
        internal_batch_size=MAX_PASSES,
    )
    # captum's trapezoid weights sum to (steps - 1) / steps; scaled to 1, the map is complete.
    return total[0].mean(0) * (steps / (steps - 1))


def smooth_grad(module: nn.Module, shot: Shot, draws: int, sigma: float) -> Tensor:
    """Mean signed gradient over noisy copies, mean over channels.

    The running sum is kept in double precision, so that it does not depend on how the draws are cut into
    passes.
    """
    total = torch.zeros(shot.x.shape[1:], dtype=torch.float64, device=shot.x.device)
    for start in range(0, draws, MAX_PASSES):
        block = [normal_draw(shot, draw) for draw in range(start, min(start + MAX_PASSES, draws))]
        noise = torch.from_numpy(np.stack(block)).to(shot.x.device)
        total += _gradient(module, shot.x + sigma * noise, shot.target).double().sum(0)
    return (total / draws).mean(0)


def normal_draw(shot: Shot, draw: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Standard normal noise (3, H, W) of one draw: a function of the image's key, the seed and the draw's
    number.
    """
    words = np.frombuffer(hashlib.sha256(f"{shot.key}\x1f{shot.seed}".encode()).digest()[:16], dtype="<u8")
    bits = np.random.Philox(key=words, counter=[0, 0, 0, draw])
    return np.random.Generator(bits).standard_normal(tuple(shot.x.shape[1:]), dtype=np.float32)


def occlusion(module: nn.Module, shot: Shot, patch: int, stride: int, baseline: float) -> Tensor:
    """Mean fall of the logit over the squares that cover a pixel."""
    with torch.no_grad():
        fall: Tensor = attr.Occlusion(module).attribute(
            shot.x,
            sliding_window_shapes=(3, patch, patch),
            strides=(3, stride, stride),
            baselines=baseline,
            target=shot.target,
            perturbations_per_eval=MAX_PASSES,
        )
    return fall[0].mean(0)


def grad_cam(module: nn.Module, shot: Shot, layer: nn.Module) -> Tensor:
    """Grad-CAM at `layer`, negative values cut, brought to the input's size bilinearly."""
    coarse: Tensor = attr.LayerGradCam(module, layer).attribute(
        shot.x.requires_grad_(), target=shot.target, relu_attributions=True
    )
    if coarse.ndim != 4 or min(coarse.shape[2:]) < 2:
        raise NotApplicable(
            "grad_cam needs a layer with a spatial output (N, C, h, w) of at least 2 x 2, but this one gives "
            f"maps of shape {tuple(coarse.shape)}: name an earlier layer"
        )
    fine = nn.functional.interpolate(coarse, size=shot.x.shape[2:], mode="bilinear", align_corners=False)
    return fine[0, 0]


def _single(inputs: Tensor, index: int) -> Tensor:
    """A copy of one image, channels last: the layout in which convolutions run a third faster."""
    one = inputs[index : index + 1].detach().clone()
    return one.contiguous(memory_format=torch.channels_last)


def _gradient(module: nn.Module, x: Tensor, target: int) -> Tensor:
    gradient: Tensor = attr.Saliency(module).attribute(x.detach().requires_grad_(), target=target, abs=False)
    return gradient
