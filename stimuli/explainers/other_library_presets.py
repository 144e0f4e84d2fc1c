"""The variants of other libraries, which people in published studies saw: names for parameters of ours.

A method that names a preset gets the parameters that stand here; those that it gives itself hold. What is
stored are the parameters, never the preset's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stimuli.errors import BadSpec
from stimuli.spec import Component

NONE: Mapping[str, Any] = {}
"""The defaults are the library's."""


@dataclass(frozen=True, slots=True)
class MethodPreset:
    """Parameters by method, and the source that they were read off."""

    methods: Mapping[str, Mapping[str, Any]]
    source: str


GRAD_CAM: Mapping[str, Mapping[str, Any]] = {
    "grad_cam": NONE,
    "hires_cam": NONE,
    "grad_cam_elementwise": NONE,
    "grad_cam_plus_plus": {"epsilon": 1e-6},
    "xgrad_cam": NONE,
    "layer_cam": NONE,
    "score_cam": {"masks": "grad-cam"},
    "eigen_cam": {"sign": "grad-cam"},
    "eigen_grad_cam": {"sign": "grad-cam"},
}
PRESETS: Mapping[str, MethodPreset] = {
    "grad-cam": MethodPreset(GRAD_CAM, "pytorch-grad-cam 1.5.7, run beside ours"),
    "pasta": MethodPreset(
        {**GRAD_CAM, "lime_image": {"shown": 5, "levels": "three"}, "shap_partition": NONE},
        "the code of Kazmierczak et al. (2025), by pytorch-grad-cam, lime and shap",
    ),
    "xplique": MethodPreset(
        {
            "saliency": NONE,
            "gradient_x_input": NONE,
            "integrated_gradients": NONE,
            "smooth_grad": NONE,
            "occlusion": {
                "patch_px": 3,
                "stride_px": 3,
                "baseline": 0.5,
                "overlaps": "sum",
                "border": "leave",
            },
        },
        "the source of Xplique 1.3, which was read and not run",
    ),
}


def apply_preset(name: str, component: Component) -> Component:
    """`component`, of the full `name`, with the parameters of the preset that it names, if it names one.

    BadSpec lists the known presets, or the methods that the preset has.
    """
    if "preset" not in component.params or ":" in name:
        return component
    rest = {key: value for key, value in component.params.items() if key != "preset"}
    preset = component.params["preset"]
    if not isinstance(preset, str) or preset not in PRESETS:
        raise BadSpec(f"explainer {name!r} has no preset {preset!r}: known are {', '.join(PRESETS)}")
    methods = PRESETS[preset].methods
    if name not in methods:
        raise BadSpec(f"preset {preset!r} does not set explainer {name!r}: it sets {', '.join(methods)}")
    return Component(component.name, {**methods[name], **rest})
