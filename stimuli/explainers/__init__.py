"""The explainers by name. A class is imported on first use, and torch only when a map is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, asdict, fields
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from typing import Any

from stimuli.errors import BadSpec
from stimuli.explainers.base import Batch, Differentiable, Explainer, limits
from stimuli.spec import Component

__all__ = [
    "EXPLAINERS",
    "Batch",
    "Differentiable",
    "Explainer",
    "check_explainer",
    "open_explainer",
    "version_of",
]

EXPLAINERS = {
    "bottom_up_saliency": "stimuli.explainers.controls:BottomUpSaliency",
    "grad_cam": "stimuli.explainers.cam:GradCam",
    "gradient_x_input": "stimuli.explainers.gradient:GradientXInput",
    "integrated_gradients": "stimuli.explainers.gradient:IntegratedGradients",
    "occlusion": "stimuli.explainers.perturbation:Occlusion",
    "random": "stimuli.explainers.controls:Random",
    "saliency": "stimuli.explainers.gradient:Saliency",
    "smooth_grad": "stimuli.explainers.gradient:SmoothGrad",
}


def open_explainer(component: Component) -> Explainer:
    """Return the method that `component` names, set as it says.

    BadSpec lists the known names (with the closest match) or the known parameters, and for a value its
    limits.
    """
    kind = _kind(component.name)
    known: dict[str, Field[Any]] = {parameter.name: parameter for parameter in fields(kind)}
    for name in component.params:
        if name not in known:
            takes = ", ".join(sorted(known)) or "none"
            raise BadSpec(
                f"explainer {component.name!r} has no parameter {name!r}{_closest(name, list(known))}: "
                f"it takes {takes}"
            )
    values = {name: _checked(component.name, known[name], value) for name, value in component.params.items()}
    made: Explainer = kind(**values)
    return made


def check_explainer(component: Component) -> Component:
    """Return `component` with every parameter written out, so that one setting has one content key.

    BadSpec as in `open_explainer`. Does not import torch.
    """
    return Component(component.name, asdict(open_explainer(component)))  # type: ignore[call-overload]


def version_of(component: Component) -> int:
    """The version of the named method's maps, which is part of every stimulus spec."""
    return int(_kind(component.name).version)


@cache
def _kind(name: str) -> Any:
    path = EXPLAINERS.get(name)
    if path is None:
        known = ", ".join(EXPLAINERS)
        raise BadSpec(f"there is no explainer {name!r}{_closest(name, list(EXPLAINERS))}: known are {known}")
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _closest(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _checked(explainer: str, parameter: Field[Any], value: object) -> object:
    """`value` in the type of the default: whole numbers may stand for fractions, never the reverse."""
    kind = type(parameter.default)
    where = f"explainer {explainer!r}, parameter {parameter.name!r}"
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise BadSpec(f"{where} is {value!r}, but must be {_KIND_WORDS[kind]} such as {parameter.default!r}")
    allowed = limits(parameter)
    if allowed and isinstance(value, int | float) and not allowed[0] <= value <= allowed[1]:
        raise BadSpec(f"{where} is {value!r}, but must lie between {allowed[0]} and {allowed[1]}")
    return value


_KIND_WORDS: dict[Callable[..., object], str] = {
    bool: "true or false",
    float: "a number",
    int: "a whole number",
    str: "a text",
}
