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

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch
from stimuli.predictors.concepts.bottleneck import Bottleneck
from stimuli.predictors.files.packing import pack
from stimuli.predictors.framing import Framing
from stimuli.predictors.gradients import gradient_fault
from stimuli.spec import JsonValue, content_key
from stimuli.types import Box, Layout, Modality, Pixels

Channels = tuple[float, float, float]
PROBE_BATCHES = (2, 3)
OTHER_PRECISION = re.compile(r"\b(Half|BFloat16|Double|Float8\w*|dtype)\b")
OTHER_CHANNELS = (1, 2, 4)
BINARY_BATCH = 3  # two numbers for two pictures could be two logits of one


class Normalised(nn.Module):
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
        if self.is_binary:
            half = output.reshape(-1, 1) / 2
            return torch.cat([-half, half], 1)
        return output

    def raw(self, inputs: Tensor) -> Tensor:
        """The network's own output for pictures in 0-1."""
        output: Tensor = self.network((inputs - self.mean) / self.std)
        return output


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

    module: Normalised
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
        return content_key(
            {
                "architecture": dict(self.architecture),
                "weights": hashlib.sha256(self.payload).hexdigest(),
                "labels": list(self.labels),
                "input_px": self.input_px,
                "mean": list(self.mean),
                "std": list(self.std),
                **self._framed(),
            }
        )

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
        header = {
            "architecture": dict(self.architecture),
            "labels": list(self.labels),
            "input_px": self.input_px,
            "layer": self.layer,
            "mean": list(self.mean),
            "std": list(self.std),
            **self._framed(),
            "provenance": dict(self.provenance),
            "key": self.key,
        }
        return pack(header, self.payload)

    def _framed(self) -> dict[str, JsonValue]:
        framing = self.framing.as_json()
        return {"framing": framing} if framing else {}


@dataclass(frozen=True)
class Built:
    """A network with its weights in place, and what cannot be seen by running it.

    `token_prefix` is the number of class and register tokens in front of the cells, if layers put out tokens
    (N, prefix + h * w, C); None if tokens are not to be read as maps.
    """

    network: nn.Module
    token_prefix: int | None = None
    bottleneck: Bottleneck | None = None
    concept_layer: str = ""


def assemble(
    built: Built,
    *,
    labels: Sequence[str],
    input_px: int,
    layer: str,
    mean: Channels,
    std: Channels,
    architecture: Mapping[str, JsonValue],
    payload: bytes,
    provenance: Mapping[str, JsonValue],
    framing: Framing = Framing(),  # noqa: B008
) -> TorchPredictor:
    """A predictor from a network with its weights in place, after trying it on blank pictures.

    Two labels are also named by one logit, which speaks for the second. Raises ShapeMismatch when the network
    does not take (N, 3, input_px, input_px) for any N or does not return one logit per label, BadSpec for an
    unknown layer, doubled labels or logits that are not finite.
    """
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise BadSpec(f"labels = {list(labels)}: at least two different labels are needed, in logit order")
    if min(std) <= 0:
        raise BadSpec(f"std = {list(std)}: every value must be above 0")
    module = freeze(Normalised(built.network, mean, std))
    module.is_binary = len(labels) == 2 and _is_single(_run_blank(module, BINARY_BATCH, input_px))
    layouts = probe(module, tuple(labels), input_px, built.token_prefix)
    chosen = check_layer(layer, layouts, BadSpec) if layer else default_layer(layouts, built.network)
    return TorchPredictor(
        module=module,
        labels=tuple(labels),
        input_px=input_px,
        layer=chosen,
        layouts=layouts,
        mean=mean,
        std=std,
        architecture=architecture,
        payload=payload,
        provenance=provenance,
        bottleneck=built.bottleneck,
        concept_layer=built.concept_layer,
        framing=framing,
        no_gradient=gradient_fault(module, input_px),
    )


def numbered(network: nn.Module, input_px: int) -> tuple[str, ...]:
    """Labels "0", "1", ... for a network whose classes have no names: one per logit, two for a single one.
    Errors as `assemble`.
    """
    module = freeze(Normalised(network, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))
    output = _run_blank(module, BINARY_BATCH, input_px)
    count = output.shape[1] if isinstance(output, Tensor) and output.ndim == 2 else 1
    return tuple(str(place) for place in range(max(2, count)))


def freeze(module: Normalised) -> Normalised:
    """Evaluation mode without gradients on the weights; explainers differentiate the inputs only."""
    for part in module.modules():
        part.training = False  # an unflattened program refuses eval(), and eval() would change nothing in it
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    return module


def probe(
    module: Normalised, labels: tuple[str, ...], input_px: int, token_prefix: int | None
) -> dict[str, Layout]:
    """Run blank batches of two sizes; how each layer can be read as maps, in the order of the pass.

    A layer must run once in a pass and put out one row per picture, of the same shape in every batch.
    """
    passes: list[dict[str, list[Layout | None]]] = []
    names = {name for name, _ in module.network.named_modules() if name}
    for count in PROBE_BATCHES:
        seen: dict[str, list[Layout | None]] = {}
        note = partial(_note, seen, count, token_prefix)
        with _hooked(module, names, note):
            _check_logits(_run_blank(module, count, input_px), count, labels)
        passes.append(seen)
    layouts = {
        name: readings[0]
        for name, readings in passes[0].items()
        if len(readings) == 1 and readings[0] is not None and passes[1].get(name) == readings
    }
    tokens = {name: layout for name, layout in layouts.items() if layout.kind == "tokens"}
    blind = _unseen(module, input_px, tokens)
    return {name: replace(layout, sees_target=name not in blind) for name, layout in layouts.items()}


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


def _unseen(module: Normalised, input_px: int, tokens: Mapping[str, Layout]) -> set[str]:
    """Token layers whose cells do not reach the logits: only the class token is read behind them."""
    if not tokens:
        return set()
    kept: dict[str, Tensor] = {}
    picture = torch.rand((1, 3, input_px, input_px), generator=torch.Generator().manual_seed(1))
    with torch.enable_grad(), _hooked(module, set(tokens), kept.__setitem__):
        logits = module(picture.requires_grad_())
        weights = torch.linspace(1, 2, logits.shape[1])
        moving = {name: output for name, output in kept.items() if output.requires_grad}
        derivatives = torch.autograd.grad((logits * weights).sum(), list(moving.values()), allow_unused=True)
    gradients = dict(zip(moving, derivatives, strict=True))
    return {
        name
        for name, layout in tokens.items()
        if (got := gradients.get(name)) is None or not bool(got[:, layout.prefix :].any())
    }


@contextmanager
def _hooked(module: Normalised, names: set[str], note: Callable[[str, Tensor], None]) -> Iterator[None]:
    """`note` gets the output of each named module; the next step gets a copy, for it may write into it."""

    def watch(name: str) -> Callable[..., Tensor | None]:
        def hook(_module: nn.Module, _inputs: object, output: object) -> Tensor | None:
            if not isinstance(output, Tensor):
                return None
            note(name, output)
            return output.clone()

        return hook

    hooks = [module.network.get_submodule(name).register_forward_hook(watch(name)) for name in sorted(names)]
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()


def _run_blank(module: Normalised, count: int, input_px: int) -> object:
    try:
        with torch.no_grad():
            return module(torch.full((count, 3, input_px, input_px), 0.5))
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if OTHER_PRECISION.search(first):
            raise BadSpec(
                f"the model does not take pictures in float32 ({first}): it changes to another precision "
                "inside; bring the whole of it to float32, and export it again"
            ) from error
        if (channels := _taken_channels(module, count, input_px)) is not None:
            raise ShapeMismatch(
                f"the network takes pictures of {channels} channel{'s' * (channels > 1)}, not of 3, which "
                "people's pictures have (red, green, blue): export it with a first layer that takes three "
                f"channels, or inside a module that makes {channels} of three{_HOW.get(channels, '')}"
            ) from error
        raise ShapeMismatch(
            f"the model does not take a batch of {count} pictures of 3 x {input_px} x {input_px} ({first}); "
            "check input_px, and export with a dynamic batch dimension"
        ) from error


_HOW = {1: ", such as pictures.mean(1, keepdim=True)"}


def _taken_channels(module: Normalised, count: int, input_px: int) -> int | None:
    """How many channels the network takes in place of three, tried on blank pictures; None if it takes none
    of the numbers tried."""
    for channels in OTHER_CHANNELS:
        try:
            with torch.no_grad():
                module.network(torch.full((count, channels, input_px, input_px), 0.5))
        except (RuntimeError, ValueError, TypeError, AssertionError):
            continue
        return channels
    return None


def _is_single(output: object) -> bool:
    """Whether this is one number per picture."""
    return isinstance(output, Tensor) and output.shape in {(BINARY_BATCH,), (BINARY_BATCH, 1)}


def _check_logits(output: object, count: int, labels: tuple[str, ...]) -> None:
    if not isinstance(output, Tensor) or output.ndim != 2 or len(output) != count:
        returned = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ShapeMismatch(
            f"the model returns {returned} for {count} pictures; logits ({count}, labels) are needed"
        )
    if output.shape[1] != len(labels):
        raise ShapeMismatch(
            f"the model returns {output.shape[1]} logits, but {len(labels)} labels are given "
            f"({', '.join(labels)}); name one label per logit, in order"
        )
    if not bool(torch.isfinite(output).all()):
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
