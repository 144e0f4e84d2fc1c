"""The explainers by name. A class is imported on first use, and torch only when a map is computed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from stimuli.explainers.base import Explainer, Kind, StudyItem, sign_of
from stimuli.explainers.other_library_presets import apply_preset
from stimuli.registry import CORE, Table, read_params, written_out
from stimuli.spec import Component, StimulusSpec

__all__ = [
    "EXPLAINERS",
    "RECORDED",
    "Explainer",
    "bind_to_items",
    "tie_to_answer",
    "check_explainer",
    "has_sign",
    "is_colour_mean",
    "is_recorded",
    "is_seeded",
    "needs_all_items",
    "open_explainer",
    "packages_of",
    "version_of",
]

EXPLAINERS: Table[type[Explainer]] = Table(
    "explainer",
    {
        # by the gradient
        "saliency": "stimuli.explainers.gradients.pixel_gradients:Saliency",
        "gradient_x_input": "stimuli.explainers.gradients.pixel_gradients:GradientXInput",
        "integrated_gradients": "stimuli.explainers.gradients.pixel_gradients:IntegratedGradients",
        "smooth_grad": "stimuli.explainers.gradients.pixel_gradients:SmoothGrad",
        "guided_backprop": "stimuli.explainers.gradients.guided:GuidedBackprop",
        "bcos": "stimuli.explainers.gradients.bcos:BCos",
        "lrp": "stimuli.explainers.gradients.lrp:Lrp",
        "captum": "stimuli.explainers.foreign:Captum",
        # by attention
        "attention_rollout": "stimuli.explainers.attention:AttentionRollout",
        "generic_attention": "stimuli.explainers.attention:GenericAttention",
        # by a layer
        "grad_cam": "stimuli.explainers.layers.cam:GradCam",
        "hires_cam": "stimuli.explainers.layers.cam:HiResCam",
        "grad_cam_elementwise": "stimuli.explainers.layers.cam:GradCamElementWise",
        "grad_cam_plus_plus": "stimuli.explainers.layers.cam:GradCamPlusPlus",
        "xgrad_cam": "stimuli.explainers.layers.cam:XGradCam",
        "layer_cam": "stimuli.explainers.layers.cam:LayerCam",
        "ablation_cam": "stimuli.explainers.layers.cam_scores:AblationCam",
        "score_cam": "stimuli.explainers.layers.cam_scores:ScoreCam",
        "eigen_cam": "stimuli.explainers.layers.factors:EigenCam",
        "eigen_grad_cam": "stimuli.explainers.layers.factors:EigenGradCam",
        "deep_feature_factorization": "stimuli.explainers.layers.factors:DeepFeatureFactorization",
        "full_grad": "stimuli.explainers.gradients.full_grad:FullGrad",
        # by changing the picture
        "occlusion": "stimuli.explainers.perturbation.occlusion:Occlusion",
        "rise": "stimuli.explainers.perturbation.rise:Rise",
        "lime_image": "stimuli.explainers.perturbation.lime_image:LimeImage",
        "shap_partition": "stimuli.explainers.perturbation.partition_shap:ShapPartition",
        # by named concepts
        "x_nesyl": "stimuli.explainers.concepts.head_methods:XNesyl",
        "clip_linear": "stimuli.explainers.concepts.head_methods:ClipLinear",
        "clip_qda": "stimuli.explainers.concepts.head_methods:ClipQda",
        "lime_cbm": "stimuli.explainers.concepts.concept_surrogates:LimeCbm",
        "shap_cbm": "stimuli.explainers.concepts.concept_surrogates:ShapCbm",
        "rise_cbm": "stimuli.explainers.concepts.concept_surrogates:RiseCbm",
        # of texts
        "lime_text": "stimuli.explainers.text.methods:LimeText",
        "shap_text": "stimuli.explainers.text.methods:ShapText",
        "input_gradient_text": "stimuli.explainers.text.methods:InputGradientText",
        "random_text": "stimuli.explainers.text.methods:RandomText",
        # made elsewhere
        "recorded": "stimuli.explainers.recorded:RecordedParams",
        # controls
        "none": "stimuli.explainers.controls.methods:NoMap",
        "random": "stimuli.explainers.controls.methods:Random",
        "permuted": "stimuli.explainers.controls.methods:PermutedMap",
        "smooth_random": "stimuli.explainers.controls.smooth:SmoothRandom",
        "other_item": "stimuli.explainers.controls.borrowed:OtherItem",
        "other_class": "stimuli.explainers.controls.borrowed:OtherClass",
        "randomised_network": "stimuli.explainers.controls.borrowed:RandomisedNetwork",
        "bottom_up_saliency": "stimuli.explainers.controls.methods:BottomUpSaliency",
        "spectral_residual": "stimuli.explainers.controls.spectral:SpectralResidual",
    },
    group="legible.explainers",
)
RECORDED = "recorded"
"""Explanations made elsewhere: a study names their files, a stimulus the digest of one of them."""
BORROWED = frozenset({"other_item", "other_class", "randomised_network"})
"""Controls that show another map of the same method."""
CONTROLS = frozenset({"random", "permuted", "smooth_random", "random_text"}) | BORROWED
"""They take the explanation of another method, which their parameter `of` names."""
SEEDED = frozenset(
    {"smooth_grad", "rise", "lime_image", "captum", "random", "permuted", "smooth_random"}
    | {"lime_cbm", "shap_cbm", "rise_cbm", "lime_text", "shap_text", "random_text"}
)
"""Methods that draw by the seed, or may: all others make the same map with any."""

COLOUR_MEANS = frozenset({"gradient_x_input", "integrated_gradients", "smooth_grad", "guided_backprop"})
"""Methods of which a value is the mean over the three colours of a pixel; of others it is the whole."""


def open_explainer(component: Component) -> Explainer:
    """Return the method that `component` names, set as it says.

    BadSpec lists the known names (with the closest match), presets or parameters, and for a value its limits.
    """
    name = EXPLAINERS.stored_name(component.name)
    return read_params(apply_preset(name, component), EXPLAINERS.load(name), "explainer")


def check_explainer(component: Component) -> Component:
    """Return `component` as it is stored: its full name, and every parameter written out, those of a preset
    too, so that one setting has one content key.

    BadSpec as in `open_explainer`, and if a name in it is claimed twice. Does not import torch.
    """
    for name in _names_in(component):
        EXPLAINERS.full_name(name)
    return stored_form(component)


def stored_form(component: Component) -> Component:
    """As `check_explainer`, but a name that a package claims as well stays the core's."""
    name = EXPLAINERS.stored_name(component.name)
    return Component(name, written_out(open_explainer(component)))


def version_of(component: Component) -> int:
    """The version of the named method's maps, which is part of every stimulus spec."""
    return int(EXPLAINERS.load(component.name).version)


def packages_of(component: Component) -> tuple[str, ...]:
    """The packages whose code makes the maps, "distribution==version" each; they are part of every stimulus
    spec. Empty for methods of the core. Imports nothing.
    """
    origins = [EXPLAINERS.origin(name) for name in _names_in(component)]
    return tuple(sorted({str(origin) for origin in origins if origin is not None}))


def is_seeded(component: Component) -> bool:
    """Whether the named method's maps may differ between seeds. A package's are taken to."""
    name = EXPLAINERS.stored_name(component.name)
    if name in BORROWED:
        return is_seeded(Component(str(stored_form(component).params["of"])))
    return name in SEEDED or EXPLAINERS.origin(name) is not None


def is_colour_mean(component: Component) -> bool:
    """Whether the values of the named method's maps are means over the colours, so that three times their sum
    is the whole."""
    name, params = EXPLAINERS.stored_name(component.name), stored_form(component).params
    if name in CONTROLS:
        return is_colour_mean(Component(str(params["of"]), json.loads(str(params["parameters"]))))
    return name in COLOUR_MEANS or (name == "captum" and params["channels"] == "mean")


def bind_to_items(
    component: Component | None, items: Sequence[StudyItem], seed: int
) -> list[Component | None]:
    """The method as it is set for each of a study's `items`, in their order: controls that show the map of
    another item or class name it. All other methods are set alike for all items.
    """
    opened: Any = None if component is None else open_explainer(component)
    if component is None or not hasattr(opened, "bound"):
        return [component] * len(items)
    return [Component(component.name, written_out(set_)) for set_ in opened.bound(items, seed)]


def needs_all_items(component: Component) -> bool:
    """Whether the explanation of one item depends on which other items the study has."""
    return not is_recorded(component) and getattr(open_explainer(component), "needs_all_items", False)


def kind_of(component: Component) -> Kind:
    """What the named method explains with; of recorded explanations a stimulus says it, a study does not."""
    if is_recorded(component):
        return cast(Kind, component.params.get("kind", RECORDED))
    return EXPLAINERS.load(component.name).kind


def has_sign(component: Component) -> bool | None:
    """Whether the named method's maps have evidence against what is explained too. None if it draws no maps,
    if they were recorded elsewhere, or if its package does not say.
    """
    return None if is_recorded(component) else sign_of(open_explainer(component))


def is_recorded(component: Component) -> bool:
    """Whether the explanation is read from a file instead of computed. Knows no other name, so that a spec of
    a package that is gone is no mistake here."""
    return component.name in (RECORDED, f"{CORE}:{RECORDED}")


def tie_to_answer(spec: StimulusSpec) -> StimulusSpec:
    """The spec of a recorded explanation, tied to its item, model, answer and seed: the explanation cannot be
    made anew, so it must not stand for that of another answer, model or seed.
    """
    assert spec.explainer is not None
    free = {name: value for name, value in spec.explainer.params.items() if name != "of"}
    of = replace(spec, explainer=Component(spec.explainer.name, free)).attribution_key
    return replace(spec, explainer=Component(spec.explainer.name, {**free, "of": of}))


def _names_in(component: Component) -> list[str]:
    inner = [str(component.params["of"])] if component.name in CONTROLS and "of" in component.params else []
    return [component.name, *inner]
