"""The one shape that every image predictor has, whatever its weights came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch
from stimuli.predictors.packing import pack
from stimuli.spec import JsonValue, content_key
from stimuli.types import Pixels

Channels = tuple[float, float, float]
PROBE_BATCHES = (2, 3)


class Normalised(nn.Module):
    """A network with its normalisation inside, so that everybody outside works on 0-1 pixels.

    Takes float32 (N, 3, H, W) in 0-1, returns the network's own output for (x - mean) / std.
    """

    def __init__(self, network: nn.Module, mean: Channels, std: Channels) -> None:
        super().__init__()
        self.network = network
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.network((inputs - self.mean) / self.std)
        return output


def square_view(pixels: Pixels, input_px: int) -> Pixels:
    """Shorter side resized to `input_px`, centre cropped: uint8 (input_px, input_px, 3)."""
    height, width = pixels.shape[:2]
    if height == width == input_px:
        return np.ascontiguousarray(pixels)
    scale = input_px / min(height, width)
    size = max(input_px, round(width * scale)), max(input_px, round(height * scale))
    resized = Image.fromarray(pixels).resize(size, Image.Resampling.BICUBIC)
    left, top = (size[0] - input_px) // 2, (size[1] - input_px) // 2
    cropped = resized.crop((left, top, left + input_px, top + input_px))
    return np.asarray(cropped, dtype=np.uint8).copy()


@dataclass(frozen=True)
class TorchPredictor:
    """A network that names one of `labels` (in logit order) for a square RGB picture of `input_px` pixels.

    `module` is in eval mode, without gradients on its weights, and takes float32 (N, 3, input_px, input_px)
    in 0-1; it returns logits (N, K). `layers` are the module paths whose output is a stack of maps (N, C,
    h, w), in the order of the pass; `layer` is the one that layer methods read unless told otherwise ("" if
    there is none). `architecture` and `payload` are what `dump` writes, `provenance` what is worth telling
    about its origin.
    """

    module: Normalised
    labels: tuple[str, ...]
    input_px: int
    layer: str
    layers: tuple[str, ...]
    mean: Channels
    std: Channels
    architecture: Mapping[str, JsonValue]
    payload: bytes
    provenance: Mapping[str, JsonValue]

    modality = "image"

    @property
    def key(self) -> str:
        """Content key of weights, architecture, labels, input size and normalisation; 64 hexadecimal
        digits.
        """
        return content_key(
            {
                "architecture": dict(self.architecture),
                "weights": hashlib.sha256(self.payload).hexdigest(),
                "labels": list(self.labels),
                "input_px": self.input_px,
                "mean": list(self.mean),
                "std": list(self.std),
            }
        )

    def view(self, pixels: Pixels) -> Pixels:
        """Exactly what the network sees: shorter side resized, centre cropped, uint8 (input_px, input_px,
        3).
        """
        return square_view(pixels, self.input_px)

    def inputs(self, views: Sequence[Pixels] | Pixels) -> Tensor:
        """Views as float32 (N, 3, input_px, input_px) in 0-1. Raises ShapeMismatch for other sizes."""
        stack = (
            np.stack(list(views)) if len(views) else np.zeros((0, self.input_px, self.input_px, 3), np.uint8)
        )
        if stack.shape[1:] != (self.input_px, self.input_px, 3):
            raise ShapeMismatch(
                f"views have the shape {stack.shape[1:]}, the predictor takes ({self.input_px}, "
                f"{self.input_px}, 3); "
                "make them with view()"
            )
        return torch.from_numpy(stack).permute(0, 3, 1, 2).contiguous().float().div_(255)

    def logits(self, views: Sequence[Pixels] | Pixels, batch: int = 64) -> NDArray[np.float32]:
        """Logits of uint8 views, float32 (N, K), computed `batch` pictures at a time."""
        parts = [np.zeros((0, len(self.labels)), np.float32)]
        with torch.inference_mode():
            for start in range(0, len(views), batch):
                parts.append(self.module(self.inputs(views[start : start + batch])).numpy())
        return np.concatenate(parts)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Logits (N, K) of float32 (N, 3, input_px, input_px) in 0-1, differentiable in the inputs."""
        output: Tensor = self.module(inputs)
        return output

    def layer_module(self, name: str = "") -> nn.Module:
        """The module behind a layer name ("" = the default layer). Raises NotApplicable, naming what there
        is.
        """
        if not self.layers:
            raise NotApplicable("this predictor has no layer whose output is a stack of maps")
        return self.module.network.get_submodule(check_layer(name or self.layer, self.layers, NotApplicable))

    def dump(self) -> bytes:
        """An archive for `restore`: a JSON header and the weights; nothing in it is ever unpickled."""
        return pack(self)


def assemble(
    network: nn.Module,
    *,
    labels: Sequence[str],
    input_px: int,
    layer: str,
    mean: Channels,
    std: Channels,
    architecture: Mapping[str, JsonValue],
    payload: bytes,
    provenance: Mapping[str, JsonValue],
) -> TorchPredictor:
    """A predictor from a network with its weights in place, after trying it on blank pictures.

    Raises ShapeMismatch when the network does not take (N, 3, input_px, input_px) for any N or does not
    return one logit per label, BadSpec for an unknown layer, doubled labels or logits that are not finite.
    """
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise BadSpec(f"labels = {list(labels)}: at least two different labels are needed, in logit order")
    if min(std) <= 0:
        raise BadSpec(f"std = {list(std)}: every value must be above 0")
    module = freeze(Normalised(network, mean, std))
    layers = probe(module, tuple(labels), input_px)
    chosen = check_layer(layer, layers, BadSpec) if layer else default_layer(layers)
    return TorchPredictor(
        module=module,
        labels=tuple(labels),
        input_px=input_px,
        layer=chosen,
        layers=tuple(layers),
        mean=mean,
        std=std,
        architecture=architecture,
        payload=payload,
        provenance=provenance,
    )


def freeze(module: Normalised) -> Normalised:
    """Evaluation mode without gradients on the weights; explainers differentiate the inputs only."""
    for part in module.modules():
        part.training = False  # an unflattened program refuses eval(), and has nothing that would change
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


def probe(module: Normalised, labels: tuple[str, ...], input_px: int) -> dict[str, tuple[int, ...]]:
    """Run blank batches of two sizes; the names and map sizes of all layers that put out (N, C, h, w)."""
    seen: dict[str, tuple[int, ...]] = {}

    def watch(name: str) -> None:
        def note(_module: nn.Module, _inputs: object, output: object) -> None:
            if isinstance(output, Tensor) and output.ndim == 4:
                seen[name] = tuple(output.shape[2:])

        hooks.append(module.network.get_submodule(name).register_forward_hook(note))

    hooks: list[torch.utils.hooks.RemovableHandle] = []
    for name, _part in module.network.named_modules():
        if name:
            watch(name)
    try:
        for count in PROBE_BATCHES:
            _check_logits(_run_blank(module, count, input_px), count, labels)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _run_blank(module: Normalised, count: int, input_px: int) -> object:
    try:
        with torch.no_grad():
            return module(torch.full((count, 3, input_px, input_px), 0.5))
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ShapeMismatch(
            f"the model does not take a batch of {count} pictures of 3 x {input_px} x {input_px} ({first}); "
            "check input_px, and export with a dynamic batch dimension"
        ) from error


def _check_logits(output: object, count: int, labels: tuple[str, ...]) -> None:
    if not isinstance(output, Tensor) or output.ndim != 2 or len(output) != count:
        found = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ShapeMismatch(
            f"the model returns {found} for {count} pictures; logits ({count}, labels) are needed"
        )
    if output.shape[1] != len(labels):
        raise ShapeMismatch(
            f"the model returns {output.shape[1]} logits, but {len(labels)} labels are given "
            f"({', '.join(labels)}); name one label per logit, in order"
        )
    if not bool(torch.isfinite(output).all()):
        raise BadSpec("the model returns values that are not finite for a grey picture; check its weights")


def check_layer(name: str, layers: Sequence[str] | Mapping[str, object], error: type[Exception]) -> str:
    """The name, if it is a layer that puts out maps; else `error` naming what there is."""
    if name not in layers:
        known = ", ".join(layers) or "none"
        raise error(f'layer "{name}" puts out no maps (N, C, h, w); layers that do: {known}')
    return name


def default_layer(layers: Mapping[str, tuple[int, ...]]) -> str:
    """The last layer of the pass whose maps are larger than one cell, as Grad-CAM is usually read."""
    spatial = [name for name, size in layers.items() if min(size) > 1]
    return spatial[-1] if spatial else ""
