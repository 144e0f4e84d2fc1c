"""The one form that every image predictor has, from every source of weights."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import isqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch, first_line
from stimuli.predictors.concepts.head_interface import Bottleneck
from stimuli.predictors.files.packing import pack
from stimuli.predictors.framing import Channels, Framing, PictureSettings
from stimuli.predictors.gradient_faults import gradient_fault
from stimuli.predictors.network_forms import check_labels, is_single, logits_of, two_logits
from stimuli.predictors.network_proof import network_errors, prove
from stimuli.spec import JsonValue, content_key
from stimuli.types import Box, Layout, Modality, Pixels

PROBE_ROWS = 3
"""Two numbers for two pictures could be two logits of one."""
REMEDY = (
    "check input_px; a network takes float32 on the CPU, "
    "in batches of any size: export it with a dynamic batch dimension"
)
OTHER_PRECISION = re.compile(r"\b(Half|BFloat16|Double|Float8\w*|dtype)\b")
OTHER_CHANNELS = (1, 2, 4)


class NormalisedNetwork(nn.Module):
    """A network with its normalisation inside, so that all other code works on 0-1 pixels.

    Takes float32 (N, 3, H, W) in 0-1, returns the network's own output for (x - mean) / std. That of a binary
    network, one logit z per picture, becomes the two logits (-z/2, z/2): their softmax is the sigmoid of z,
    and each of the two answers has a gradient of its own.
    """

    def __init__(self, network: nn.Module, mean: Channels, std: Channels) -> None:
        super().__init__()
        self.network = network
        self.is_binary = False
        self.mean: Tensor
        self.std: Tensor
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1), persistent=False)

    def forward(self, inputs: Tensor) -> Tensor:
        output = self.raw(inputs)
        return two_logits(output) if self.is_binary else output

    def raw(self, inputs: Tensor) -> Tensor:
        """The network's own output for pictures in 0-1."""
        return logits_of(self.network((inputs - self.mean) / self.std))


@dataclass(frozen=True)
class TorchPredictor:
    """A network that names one of `labels` (in logit order) for a square RGB picture of `input_px` pixels.

    `module` is in eval mode, without gradients on its weights, and takes float32 (N, 3, input_px, input_px)
    in 0-1; it returns logits (N, K). `layouts` are the module paths whose output can be read as maps, in the
    order of the pass, and how; `layer` is the one that layer methods read unless told otherwise ("" if there
    is none). `architecture` and `payload` are what `dump` writes, `provenance` what is worth telling about
    its origin. `framing` says how a picture becomes the square. `bottleneck` and `concept_layer` are there if
    it decides by named concepts. `no_gradient` says why no gradient leads from the logits to the picture, ""
    if one does.
    """

    module: NormalisedNetwork
    labels: tuple[str, ...]
    input_px: int
    layer: str
    layouts: Mapping[str, Layout]
    mean: Channels
    std: Channels
    architecture: Mapping[str, JsonValue]
    payload: bytes
    provenance: Mapping[str, JsonValue]
    bottleneck: Bottleneck | None = None
    concept_layer: str = ""
    framing: Framing = Framing()
    no_gradient: str = ""

    modality: Modality = "image"

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers that can be read as maps."""
        return tuple(self.layouts)

    @property
    def key(self) -> str:
        """Content key of weights, architecture, labels, input size, framing and normalisation; 64 hexadecimal
        digits.
        """
        return content_key({**self._identity(), "weights": hashlib.sha256(self.payload).hexdigest()})

    def view(self, pixels: Pixels) -> Pixels:
        """Exactly what the network sees, uint8 (input_px, input_px, 3); bars have the colour of the mean."""
        return self.framing.view(pixels, self.input_px, self.mean)

    def box(self, shape: tuple[int, ...]) -> Box:
        """Which part of a picture of `shape` (H, W, 3) the view shows: see `Framing.box`."""
        return self.framing.box(shape[0], shape[1], self.input_px)

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
        device = self.module.mean.device  # the planner may have moved the module
        with torch.inference_mode():
            for start in range(0, len(views), batch):
                inputs = self.inputs(views[start : start + batch]).to(device)
                with network_errors(_batch_of(inputs), REMEDY):
                    parts.append(self.module(inputs).cpu().numpy())
        return np.concatenate(parts)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Logits (N, K) of float32 (N, 3, input_px, input_px) in 0-1, differentiable in the inputs."""
        output: Tensor = self.module(inputs)
        return output

    def layer_module(self, name: str = "") -> nn.Module:
        """The module behind a layer name ("" = the default layer). Raises NotApplicable, naming what there
        is.
        """
        if not self.layouts:
            raise NotApplicable("this predictor has no layer whose output can be read as maps")
        layer = check_layer(name or self.layer, self.layouts, NotApplicable)
        return self.module.network.get_submodule(layer)

    def concept_module(self) -> nn.Module:
        """The module that puts out the concept values (N, concepts). Raises NotApplicable if none does."""
        if self.bottleneck is None:
            raise NotApplicable("this predictor has no concepts: use a concept predictor")
        return self.module.network.get_submodule(self.concept_layer)

    def dump(self) -> bytes:
        """An archive for `restore`: a JSON header and the weights; nothing in it is ever unpickled."""
        provenance = dict(self.provenance)
        header = {**self._identity(), "layer": self.layer, "provenance": provenance, "key": self.key}
        return pack(header, self.payload)

    def _identity(self) -> dict[str, JsonValue]:
        framing = self.framing.as_json()
        return {
            "architecture": dict(self.architecture),
            "labels": list(self.labels),
            "input_px": self.input_px,
            "mean": list(self.mean),
            "std": list(self.std),
            **({"framing": framing} if framing else {}),
        }


@dataclass(frozen=True)
class BuiltNetwork:
    """A network with its weights in place, and what cannot be seen by running it.

    `token_prefix` is the number of class and register tokens in front of the cells, if layers put out tokens
    (N, prefix + h * w, C); None if tokens are not to be read as maps.
    """

    network: nn.Module
    token_prefix: int | None = None
    bottleneck: Bottleneck | None = None
    concept_layer: str = ""


def assemble(
    built: BuiltNetwork,
    settings: PictureSettings,
    *,
    labels: Sequence[str] | None,
    layer: str,
    architecture: Mapping[str, JsonValue],
    payload: bytes,
    provenance: Mapping[str, JsonValue],
) -> TorchPredictor:
    """A predictor from a network with its weights in place, after trying it on a grey picture and on noise.

    Two labels are also named by one logit, which speaks for the second; without labels they are numbers.
    Raises ShapeMismatch when the network does not take (N, 3, input_px, input_px) for any N or does not
    return one logit per label, Unrepeatable when the same pictures have other answers in another run or
    batch, BadSpec for an unknown layer, doubled labels or logits that are not finite.
    """
    if labels is not None:
        check_labels(labels)
    if min(settings.std) <= 0:
        raise BadSpec(f"std = {list(settings.std)}: every value must be above 0")
    input_px = settings.input_px
    module = freeze(NormalisedNetwork(built.network, settings.mean, settings.std))
    layouts, output = probe(module, input_px, built.token_prefix)
    labels = numbered_labels(output) if labels is None else tuple(labels)
    module.is_binary = is_single(output, labels)
    _check_logits(two_logits(output) if module.is_binary else output, labels)
    layouts = _with_sight(layouts, module, input_px)
    chosen = check_layer(layer, layouts, BadSpec) if layer else default_layer(layouts, built.network)
    return TorchPredictor(
        module=module,
        labels=labels,
        input_px=input_px,
        layer=chosen,
        layouts=layouts,
        mean=settings.mean,
        std=settings.std,
        architecture=architecture,
        payload=payload,
        provenance=provenance,
        bottleneck=built.bottleneck,
        concept_layer=built.concept_layer,
        framing=settings.framing,
        no_gradient=gradient_fault(module, input_px),
    )


def numbered_labels(output: Tensor) -> tuple[str, ...]:
    """Labels "0", "1", ... for a network whose classes have no names: one per logit, two for a single one."""
    count = output.shape[1] if output.ndim == 2 else 1
    return tuple(str(place) for place in range(max(2, count)))


def freeze(module: NormalisedNetwork) -> NormalisedNetwork:
    """Evaluation mode without gradients on the weights; explainers differentiate the inputs only."""
    for part in module.modules():
        part.training = False  # an unflattened program refuses eval(), and eval() would change nothing in it
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


def probe(
    module: NormalisedNetwork, input_px: int, token_prefix: int | None
) -> tuple[dict[str, Layout], Tensor]:
    """Prove the network on a grey picture and two of noise, in batches of two sizes: how each layer can be
    read as maps, in the order of the pass, and the network's own output for the three.

    A layer must run once in a pass and put out one row per picture, of the same shape in every batch.
    """
    passes: dict[int, dict[str, list[Layout | None]]] = {}
    names = {name for name, _ in module.network.named_modules() if name}
    draws = torch.Generator().manual_seed(5)
    pictures = torch.rand((PROBE_ROWS, 3, input_px, input_px), generator=draws)
    pictures *= torch.rand((PROBE_ROWS, 3, 1, 1), generator=draws)  # in mean, all noise is alike
    pictures[0] = 0.5

    def ask(rows: slice) -> Tensor:
        seen: dict[str, list[Layout | None]] = {}
        batch = pictures[rows]
        passes[len(batch)] = seen
        with _hook_modules(module, names, partial(_note, seen, len(batch), token_prefix)):
            return _run(module, batch)

    output = prove(ask, PROBE_ROWS, "picture")
    largest, *smaller = passes.values()
    layouts = {
        name: readings[0]
        for name, readings in largest.items()
        if len(readings) == 1
        and readings[0] is not None
        and all(seen.get(name) == readings for seen in smaller)
    }
    return layouts, output


def _note(
    seen: dict[str, list[Layout | None]], count: int, token_prefix: int | None, name: str, output: Tensor
) -> None:
    seen.setdefault(name, []).append(_layout(output, count, token_prefix))


def _layout(output: Tensor, count: int, token_prefix: int | None) -> Layout | None:
    if len(output) != count:  # windows of a picture, or something that no picture has part in
        return None
    if output.ndim == 4:
        channels, height, width = output.shape[1:]
        # Pictures are square: what has equal sides in front has its channels last.
        return None if channels == height != width else Layout("maps", channels, height, width)
    if (
        output.ndim == 3
        and token_prefix is not None
        and output.shape[1] > token_prefix
        and output.shape[2] > 1
    ):
        cells = output.shape[1] - token_prefix
        side = isqrt(cells)
        if side * side == cells:
            return Layout("tokens", output.shape[2], side, side, token_prefix)
    return None


def _with_sight(layouts: Mapping[str, Layout], module: NormalisedNetwork, input_px: int) -> dict[str, Layout]:
    """With what bears on the logits: the cells of a token layer do not if only the class token is read."""
    tokens = {name for name, layout in layouts.items() if layout.kind == "tokens"}
    kept: dict[str, Tensor] = {}
    gradients: dict[str, Tensor | None] = {}
    picture = torch.rand((1, 3, input_px, input_px), generator=torch.Generator().manual_seed(1))

    def keep(name: str, output: Tensor) -> Tensor:
        kept[name] = output
        return output.clone()  # the next step may write into it

    with torch.enable_grad(), _hook_modules(module, tokens, keep):
        if tokens:
            with network_errors(_batch_of(picture), REMEDY):
                logits = module(picture.requires_grad_())
            weights = torch.linspace(1, 2, logits.shape[1])
            moving = {name: output for name, output in kept.items() if output.requires_grad}
            total = (logits * weights).sum()
            derivatives = torch.autograd.grad(total, list(moving.values()), allow_unused=True)
            gradients = dict(zip(moving, derivatives, strict=True))

    def is_seen(name: str, layout: Layout) -> bool:
        got = gradients.get(name)
        return name not in tokens or (got is not None and bool(got[:, layout.prefix :].any()))

    return {name: replace(layout, sees_target=is_seen(name, layout)) for name, layout in layouts.items()}


@contextmanager
def _hook_modules(
    module: NormalisedNetwork, names: set[str], note: Callable[[str, Tensor], Tensor | None]
) -> Iterator[None]:
    """`note` gets the output of each named module; the next step gets what it returns, if anything."""

    def watch(name: str) -> Callable[..., Tensor | None]:
        def hook(_module: nn.Module, _inputs: object, output: object) -> Tensor | None:
            return note(name, output) if isinstance(output, Tensor) else None

        return hook

    hooks = [module.network.get_submodule(name).register_forward_hook(watch(name)) for name in sorted(names)]
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()


def _run(module: NormalisedNetwork, pictures: Tensor) -> Tensor:
    """What the network says of the pictures, one row each. Errors as `assemble`."""
    try:
        with network_errors(_batch_of(pictures), REMEDY):
            output = module.raw(pictures)
    except ShapeMismatch as error:
        fault = error.__cause__
        if fault is not None and OTHER_PRECISION.search(first_line(fault)):
            raise BadSpec(
                f"the model does not take pictures in float32 ({first_line(fault)}): it changes to another "
                "precision inside; bring the whole of it to float32, and export it again"
            ) from fault
        if fault is not None and (channels := _taken_channels(module, pictures)) is not None:
            raise ShapeMismatch(
                f"the network takes pictures of {channels} channel{'s' * (channels > 1)}, not of 3, which "
                "people's pictures have (red, green, blue): export it with a first layer that takes three "
                f"channels, or inside a module that makes {channels} of three{_HOW.get(channels, '')}"
            ) from fault
        raise
    output = output if output.ndim else output[None]  # squeezed: one logit of one picture
    if len(output) != len(pictures):
        raise ShapeMismatch(
            f"the model returns {tuple(output.shape)} for {len(pictures)} pictures; logits "
            f"({len(pictures)}, labels) are needed, of one picture too (a squeeze() loses that row)"
        )
    return output


_HOW = {1: ", such as pictures.mean(1, keepdim=True)"}


def _batch_of(pictures: Tensor) -> str:
    return f"a batch of {len(pictures)} pictures of {' x '.join(str(size) for size in pictures.shape[1:])}"


def _taken_channels(module: NormalisedNetwork, pictures: Tensor) -> int | None:
    """How many channels the network takes in place of three, tried on grey pictures; None if it takes none
    of the numbers tried."""
    count, _, height, width = pictures.shape
    for channels in OTHER_CHANNELS:
        try:
            with network_errors("", ""):
                module.network(torch.full((count, channels, height, width), 0.5))
        except ShapeMismatch:
            continue
        return channels
    return None


def _check_logits(output: Tensor, labels: tuple[str, ...]) -> None:
    if output.ndim != 2:
        raise ShapeMismatch(
            f"the model returns {tuple(output.shape)} for {len(output)} pictures; logits "
            f"({len(output)}, labels) are needed"
        )
    if output.shape[1] != len(labels):
        raise ShapeMismatch(
            f"the model returns {output.shape[1]} logits, but {len(labels)} labels are given "
            f"({', '.join(labels)}); name one label per logit, in order"
        )
    if not bool(torch.isfinite(output[0]).all()):
        raise BadSpec("the model returns values that are not finite for a grey picture; check its weights")


def check_layer(name: str, layers: Sequence[str] | Mapping[str, object], error: type[Exception]) -> str:
    """The name, if it is a layer that puts out maps, once in a pass; else `error` naming what there is."""
    if name not in layers:
        known = ", ".join(layers) or "none"
        raise error(f'layer "{name}" puts out no maps (N, C, h, w); layers that do: {known}')
    return name


def default_layer(layouts: Mapping[str, Layout], network: nn.Module) -> str:
    """The last layer of the pass whose maps are larger than one cell and bear on the logits, before poolings
    that end the pass, as in Grad-CAM's paper; "" if there is none. Of tokens the last normalisation: what
    follows it inside a block are queries, keys and values.
    """
    spatial = [
        name
        for name, layout in layouts.items()
        if min(layout.height, layout.width) > 1 and layout.sees_target
    ]
    if not spatial or layouts[spatial[-1]].kind == "maps":
        return _before_pooling(spatial, network) if spatial else ""
    tokens = [(name, network.get_submodule(name)) for name in spatial if layouts[name].kind == "tokens"]
    norms = [name for name, module in tokens if _is_norm(module)]
    blocks = [name for name, module in tokens if any(module.children())]
    return (norms or blocks or spatial)[-1]


def _before_pooling(layers: Sequence[str], network: nn.Module) -> str:
    """The last of `layers` that does not end in a pooling; the last of all if there is no other."""
    unpooled = [name for name in layers if not _ends_in_pooling(network.get_submodule(name))]
    return (unpooled or layers)[-1]


def _ends_in_pooling(module: nn.Module) -> bool:
    parts = list(module.children())
    return _ends_in_pooling(parts[-1]) if parts else _kind(module).endswith("Pool2d")


def _is_norm(module: nn.Module) -> bool:
    return _kind(module).endswith("Norm")


def _kind(module: nn.Module) -> str:
    """The name of its class, which modules of an exported program keep from their origin."""
    return str(getattr(module, "_ty", None) or type(module).__name__)
