"""Any attribution method of captum, run as it is: for what the planner does not know."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from inspect import isclass, signature
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers.base import Kind, require_gradient
from stimuli.explainers.hook_requirements import (
    explained_module,
    once,
    require_relu_modules,
    require_single_use,
)
from stimuli.explainers.maps import enlarge_map, pixel_map
from stimuli.planner.asks import OwnPasses, Steps
from stimuli.planner.values import Operator, Subject
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.spec import canonical_json

if TYPE_CHECKING:
    from torch import Tensor, nn

    from stimuli.planner.network import Network

OURS = {"self", "model", "forward_func", "inputs", "target", "layer", "kwargs"}
"""Arguments that are filled in here, and those that take any value."""
NOT_FROM_TEXT = {"additional_forward_args", "feature_mask", "layer_mask", "device_ids", "grad_kwargs"}
UNFIT = {
    "NoiseTunnel": "it wraps another method: name that one and set noise_tunnel = true",
    "FeaturePermutation": "it permutes the pictures of a batch, and here each is explained alone",
    "LayerFeaturePermutation": "it permutes the pictures of a batch, and here each is explained alone",
    "DataLoaderAttribution": "it explains whole data sets",
    "LimeBase": "it needs functions of its own: name Lime",
}
BY_PARTS = {"FeatureAblation", "KernelShap", "Lime", "ShapleyValueSampling", "ShapleyValues"}
"""Methods that would take each number of the picture for a feature of its own unless told otherwise."""


@parameters
class Captum:
    """The method of `captum.attr` that `method` names, on the explained number. Signed.

    `arguments` is a JSON object as text, with what the method's constructor and `attribute` take beyond the
    model, picture, target and layer, such as '{"n_steps": 20, "baselines": 0.5}'; lists stand for tuples, a
    single number as `baselines` for a picture of that value. `layer` is for methods that read one (empty: the
    predictor's). `parts` cuts the picture into parts x parts squares that are hidden as a whole, for methods
    that take a `feature_mask`; 0 = each number alone. With `noise_tunnel` the method runs inside captum's
    NoiseTunnel, whose arguments are then known too. `channels` says how colour channels (or a layer's
    channels) become one number; a coarse map is enlarged bilinearly.

    Random numbers are seeded by item and given back; all hooks and attributes are taken away again. Runs
    alone, not planned; the memory that the method needs is not limited.
    """

    version: ClassVar[int] = 1
    kind: ClassVar[Kind] = "image"
    method: str = "InputXGradient"
    arguments: str = "{}"
    layer: str = ""
    parts: Annotated[int, Field(ge=0, le=64)] = 0
    noise_tunnel: bool = False
    channels: Literal["mean", "sum", "max_abs"] = "mean"

    def __post_init__(self) -> None:
        try:
            given = json.loads(self.arguments)
            if not isinstance(given, dict):
                raise ValueError("it is no object")
            object.__setattr__(self, "arguments", canonical_json(given))
        except ValueError as error:
            raise BadSpec(
                f"explainer 'captum', parameter 'arguments' is {self.arguments!r}, which is no JSON object "
                f"({error}): write it like '{{\"n_steps\": 20}}'"
            ) from None

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable for methods, arguments and layers that do not exist, and for methods whose hooks
        would be wrong for this network, or which refuse it. Runs one grey picture for those.
        """
        made = self._class()
        if "neuron_selector" in signature(made.attribute).parameters:
            raise NotApplicable(f"captum's {self.method} explains a neuron, not a logit: name another method")
        unknown = sorted(set(self._given_arguments()) - (self._known_arguments() - NOT_FROM_TEXT))
        if unknown:
            takes = ", ".join(sorted(self._known_arguments() - NOT_FROM_TEXT)) or "none"
            raise NotApplicable(
                f"captum's {self.method} takes no argument {unknown[0]!r} from a text: it takes {takes}"
            )
        if self._needs_layer() and self._layer(predictor, layer) not in predictor.layouts:
            raise NotApplicable(
                f"captum's {self.method} reads layer {self._layer(predictor, layer)!r}, which this predictor "
                f"does not have: name one of {', '.join(predictor.layouts) or 'none'}"
            )
        if self.method in BY_PARTS and not self.parts:
            raise NotApplicable(
                f"captum's {self.method} would take every number of the picture for a feature: set parts, "
                "such as 8"
            )
        if self.method == "ShapleyValues" and self.parts > 2:
            raise NotApplicable(
                f"captum's ShapleyValues tries all orders of {self.parts**2} parts, which never ends: set "
                "parts to 2, or name ShapleyValueSampling"
            )
        if issubclass(made, _by_gradient()):
            require_gradient(predictor, f"captum's {self.method}")
        if "DeepLift" in self.method or "LRP" in self.method:
            require_single_use(predictor, f"captum's {self.method}")
        if self.method in {"Deconvolution", "GuidedBackprop", "GuidedGradCam"}:
            require_relu_modules(predictor, f"captum's {self.method}")
        if issubclass(made, _by_gradient()) and ("LRP" in self.method or self._needs_layer()):
            # What captum takes is known to captum alone: rules for each layer, outputs of layers.
            once(predictor, (self, layer), lambda: self._try(predictor, layer))

    def follow(self, operator: Operator) -> None:
        """NotApplicable for methods with rules of their own for each layer, where these have none."""
        if "LRP" in self.method or ("DeepLift" in self.method and operator == "probability"):
            remedy = "the logit" if "LRP" in self.method else "the logit or the margin"
            raise NotApplicable(
                f"captum's {self.method} has no rule for the step from logits to a {operator}, and would be "
                f"wrong: explain {remedy}, or name another method such as 'IntegratedGradients'"
            )

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        values = yield OwnPasses(self._run)
        return pixel_map(values, signed=self.has_sign())

    def _class(self) -> Any:
        from captum import attr

        names = [
            name
            for name, value in vars(attr).items()
            if isclass(value) and hasattr(value, "attribute") and "LLM" not in name
        ]
        if self.method in UNFIT:
            raise NotApplicable(f"captum's {self.method} cannot be used here: {UNFIT[self.method]}")
        if self.method not in names or self.method.endswith("Attribution"):
            near = get_close_matches(self.method, names, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise NotApplicable(f"captum has no method {self.method!r}{hint}")
        return getattr(attr, self.method)

    def _given_arguments(self) -> dict[str, Any]:
        return {name: _tuples(value) for name, value in json.loads(self.arguments).items()}

    def _known_arguments(self) -> set[str]:
        made = self._class()
        known = {*signature(made.__init__).parameters, *signature(made.attribute).parameters}
        if self.noise_tunnel:
            from captum.attr import NoiseTunnel

            known |= {*signature(NoiseTunnel.attribute).parameters}
        return known - OURS

    def _needs_layer(self) -> bool:
        return "layer" in signature(self._class().__init__).parameters

    def _layer(self, predictor: ImagePredictor, layer: str) -> str:
        return self.layer or layer or predictor.layer

    def _try(self, predictor: ImagePredictor, layer: str) -> None:
        import torch

        tensors = (*predictor.module.parameters(), *predictor.module.buffers())
        device = tensors[0].device if tensors else torch.device("cpu")
        grey = torch.full((3, predictor.input_px, predictor.input_px), 0.5, device=device)
        self._attribution_map(predictor, Subject(0, "grey", 0, layer, grey))

    def _run(self, network: Network, subject: Subject) -> Tensor:
        """The map (H, W) on the device."""
        with _count_forwards(network):
            on_device = replace(subject, image=subject.pixels.to(network.device))
            return self._attribution_map(network.predictor, on_device)

    def _attribution_map(self, predictor: ImagePredictor, subject: Subject) -> Tensor:
        import torch

        made, given = self._class(), self._given_arguments()
        image = subject.pixels[None].detach().clone().requires_grad_()
        for_making = {k: v for k, v in given.items() if k in signature(made.__init__).parameters}
        for_asking = {k: v for k, v in given.items() if k not in for_making}
        self._complete(for_asking, image)
        layer = self._layer(predictor, subject.layer)
        places = [predictor.layer_module(layer)] if self._needs_layer() else []
        seed = int(subject.draws("captum").integers(2**31))
        try:
            with _as_it_was(predictor.module), _repeatable(seed), torch.enable_grad():
                method = made(self._module(predictor.module, subject), *places, **for_making)
                if self.noise_tunnel:
                    from captum.attr import NoiseTunnel

                    method = NoiseTunnel(method)
                if "target" in signature(made.attribute).parameters:
                    for_asking["target"] = subject.target if subject.operator == "logit" else 0
                attributed = method.attribute(image, **for_asking)
        except _FAILURES as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            ours = ", such as 'lrp'" if "LRP" in self.method else ""
            raise NotApplicable(
                f"captum's {self.method} cannot explain this network: {said}. Change its arguments, "
                f"or use another method{ours}"
            ) from error
        return self._plane(attributed, predictor, layer, subject.pixels)

    def _module(self, module: nn.Module, subject: Subject) -> nn.Module:
        return module if subject.operator == "logit" else explained_module(module, subject)

    def _complete(self, asked: dict[str, Any], image: Tensor) -> None:
        import torch

        if self.parts and "feature_mask" in self._known_arguments():
            height, width = image.shape[2:]
            rows, columns = (torch.arange(side) * self.parts // side for side in (height, width))
            asked["feature_mask"] = (rows[:, None] * self.parts + columns).to(image.device)[None, None]
        value = asked.get("baselines", 0.0 if self.method.endswith(("GradientShap", "LiftShap")) else None)
        if isinstance(value, int | float):
            # Some methods take a set of baselines, and refuse a single one.
            count = 2 if "DeepLiftShap" in self.method else 1
            asked["baselines"] = torch.full_like(image.detach(), value).repeat(count, 1, 1, 1)

    def _plane(self, output: Any, predictor: ImagePredictor, layer: str, pixels: Tensor) -> Tensor:
        while isinstance(output, tuple) and output:
            output = output[0]
        from stimuli.planner.layers import spatial

        layout = predictor.layouts.get(layer)
        values: Tensor = output.detach().float()[0] if len(output) else output
        if self._needs_layer() and layout is not None and layout.kind == "tokens":
            # A method that takes tokens for channels returns another shape.
            tokens = layout.prefix + layout.height * layout.width, layout.channels
            values = spatial(values, layout) if values.shape == tokens else values[:0]
        if values.ndim != 3 or not values.numel():
            raise NotApplicable(
                f"captum's {self.method} puts out values of the shape {tuple(output.shape)}, which is no "
                "map: name a layer with a spatial output, or another method"
            )
        if self.channels == "mean":
            plane = values.mean(0)
        else:
            plane = values.sum(0) if self.channels == "sum" else values.abs().amax(0)
        return plane if plane.shape == pixels.shape[1:] else enlarge_map(plane, pixels)


def _by_gradient() -> type:
    """What captum's methods by gradient descend from."""
    from captum.attr._utils.attribution import GradientAttribution

    kind: type = GradientAttribution
    return kind


_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What captum raises for networks and arguments that it does not take."""


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


@contextmanager
def _repeatable(seed: int) -> Iterator[None]:
    """captum draws from the global generators of torch and numpy: seeded here, and given back."""
    import torch

    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else range(0)
    with torch.random.fork_rng(devices=list(devices)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = np.random.get_state()
        np.random.seed(seed)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            np.random.set_state(before)


@contextmanager
def _count_forwards(network: Network) -> Iterator[None]:
    """Pictures that pass the network are put on its bill; backward passes are not seen."""

    def note(_module: nn.Module, inputs: Any) -> None:
        network.bill.forwards += len(inputs[0])

    hook = network.module.register_forward_pre_hook(note)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def _as_it_was(module: nn.Module) -> Iterator[None]:
    """Restore the attributes and hooks of every part of the network, whether or not they were changed."""
    before = [(vars(part), dict(vars(part)), _tables(vars(part))) for part in module.modules()]
    try:
        yield
    finally:
        for attributes, had, tables in before:
            attributes.clear()
            attributes.update(had)
            # The same tables again, not copies: code that registered a hook in a table must find it there.
            for table, content in tables:
                table.clear()
                table.update(content)


def _tables(attributes: Mapping[str, Any]) -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
    return [(value, dict(value)) for value in attributes.values() if isinstance(value, dict)]
