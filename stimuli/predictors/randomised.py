"""A network with its weights permuted: what a method says of a network that has learnt nothing.

The sanity check of Adebayo et al. 2018 draws weights anew. Here the values of each tensor change places
within it, so that its distribution stays to the last value and only what was learnt is gone. All layers are
permuted, or the last few of the pass: the cascade of that paper. Running means and variances of the
normalisations behind them are taken anew, layer after layer, from pictures of 1/f noise: with those of the
trained network the signals of a deep one vanish or explode, and a map would be flat for that reason alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from stimuli.errors import NotApplicable
from stimuli.planner.values import counted_generator
from stimuli.predictors.base import TorchPredictor

NOISE_PICTURES = 8


def randomise_weights(predictor: TorchPredictor, layers: int, seed: int) -> TorchPredictor:
    """The same predictor, its weights permuted in place: those of the last `layers` layers of the pass that
    have any, of all with 0. A tensor's permutation depends on `seed` and on its name and size alone.

    NotApplicable for a network without weights or with fewer layers.
    """
    module = predictor.module
    places = _places(module, torch.full((2, 3, predictor.input_px, predictor.input_px), 0.5))
    tensors = dict(module.named_parameters())
    owners = sorted({_owner(name) for name in tensors}, key=lambda owner: _place(owner, places))
    if not owners or layers > len(owners):
        raise NotApplicable(
            f"this network has {len(owners)} layers with weights, and {layers or 'all'} were to be permuted: "
            "set layers to fewer, or to 0 for all"
        )
    chosen = owners[len(owners) - layers if layers else 0 :]
    for name, weights in tensors.items():
        if _owner(name) in chosen:
            _permute(name, weights, seed)
    start = _place(chosen[0], places)
    behind = [part for name, part in module.named_modules() if _place(name, places) >= start]
    with torch.no_grad(), _normalising(behind):
        module(noise_pictures(predictor.input_px, seed))
    return predictor


def has_weights(module: nn.Module) -> bool:
    """Whether there is anything to permute."""
    return any(weights.numel() > 1 for weights in module.parameters())


def noise_pictures(side: int, seed: int) -> Tensor:
    """Pictures of 1/f noise about grey, the spectrum of photographs: float32 (n, 3, side, side) in 0-1."""
    draws = counted_generator(f"1/f noise\x1f{seed}")
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side)[None])
    frequency[0, 0] = np.inf
    waves = np.fft.rfft2(draws.standard_normal((NOISE_PICTURES, 3, side, side))) / frequency
    noise = np.fft.irfft2(waves, (side, side))
    return torch.from_numpy(np.clip(0.5 + 0.2 * noise / noise.std(), 0, 1).astype(np.float32))


def _places(module: nn.Module, pictures: Tensor) -> dict[str, int]:
    """The order in which a pass first meets the modules, by name."""
    first: dict[str, int] = {}

    def note(name: str) -> None:
        first.setdefault(name, len(first))

    hooks = [
        part.register_forward_pre_hook(lambda _module, _inputs, name=name: note(name))
        for name, part in module.named_modules()
    ]
    try:
        with torch.no_grad():
            module(pictures)
    finally:
        for hook in hooks:
            hook.remove()
    return first


def _place(name: str, places: dict[str, int]) -> int:
    """The module's place; one that is never called itself (its weights are read by what it is a part of) has
    the place of that.
    """
    while name and name not in places:
        name = _owner(name)
    return places[name]


def _owner(name: str) -> str:
    return name.rpartition(".")[0]


def _permute(name: str, weights: Tensor, seed: int) -> None:
    values = weights.detach().cpu().numpy().ravel()
    drawn = counted_generator(f"weights\x1f{seed}\x1f{name}").permutation(values)
    weights.data.copy_(torch.from_numpy(drawn).view(weights.shape))


@contextmanager
def _normalising(behind: Sequence[nn.Module]) -> Iterator[None]:
    """Within the block, each of the modules that has running statistics takes those of what it is given,
    before it runs: so each sees what the changed layers before it put out.
    """

    def take(part: nn.Module, inputs: tuple[object, ...]) -> None:
        given = inputs[0]
        if isinstance(given, Tensor) and given.ndim > 1:
            over = [0, *range(2, given.ndim)]
            mean, variance = given.mean(over), given.var(over, correction=0)
            running_mean, running_var = part.running_mean, part.running_var
            if isinstance(running_mean, Tensor) and running_mean.shape == mean.shape:
                running_mean.copy_(mean)
            if isinstance(running_var, Tensor) and running_var.shape == variance.shape:
                running_var.copy_(variance)

    parts = [part for part in behind if isinstance(getattr(part, "running_mean", None), Tensor)]
    hooks = [part.register_forward_pre_hook(take) for part in parts]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
