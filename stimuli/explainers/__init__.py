"""The explainers by name. A class is imported on first use, and torch only when a map is computed."""

from __future__ import annotations

from stimuli.explainers.base import Explainer, Kind
from stimuli.parameters import named_class, open_named, with_defaults
from stimuli.spec import Component

__all__ = [
    "EXPLAINERS",
    "Explainer",
    "check_explainer",
    "open_explainer",
    "version_of",
]

EXPLAINERS = {
    # by the gradient
    "saliency": "stimuli.explainers.gradient:Saliency",
    "gradient_x_input": "stimuli.explainers.gradient:GradientXInput",
    "integrated_gradients": "stimuli.explainers.gradient:IntegratedGradients",
    "smooth_grad": "stimuli.explainers.gradient:SmoothGrad",
    "guided_backprop": "stimuli.explainers.guided:GuidedBackprop",
    "bcos": "stimuli.explainers.bcos:BCos",
    "captum": "stimuli.explainers.foreign:Captum",
    # by a layer
    "grad_cam": "stimuli.explainers.cam:GradCam",
    "hires_cam": "stimuli.explainers.cam:HiResCam",
    "grad_cam_elementwise": "stimuli.explainers.cam:GradCamElementWise",
    "grad_cam_plus_plus": "stimuli.explainers.cam:GradCamPlusPlus",
    "xgrad_cam": "stimuli.explainers.cam:XGradCam",
    "layer_cam": "stimuli.explainers.cam:LayerCam",
    "ablation_cam": "stimuli.explainers.cam_scores:AblationCam",
    "score_cam": "stimuli.explainers.cam_scores:ScoreCam",
    "eigen_cam": "stimuli.explainers.factors:EigenCam",
    "eigen_grad_cam": "stimuli.explainers.factors:EigenGradCam",
    "deep_feature_factorization": "stimuli.explainers.factors:DeepFeatureFactorization",
    "full_grad": "stimuli.explainers.full_grad:FullGrad",
    # by changing the picture
    "occlusion": "stimuli.explainers.perturbation:Occlusion",
    "rise": "stimuli.explainers.rise:Rise",
    "lime_image": "stimuli.explainers.lime_image:LimeImage",
    "shap_partition": "stimuli.explainers.shap_image:ShapPartition",
    # by named concepts
    "x_nesyl": "stimuli.explainers.concepts:XNesyl",
    "clip_linear": "stimuli.explainers.concepts:ClipLinear",
    "clip_qda": "stimuli.explainers.concepts:ClipQda",
    "lime_cbm": "stimuli.explainers.concept_surrogates:LimeCbm",
    "shap_cbm": "stimuli.explainers.concept_surrogates:ShapCbm",
    "rise_cbm": "stimuli.explainers.concept_surrogates:RiseCbm",
    # of texts
    "lime_text": "stimuli.explainers.text:LimeText",
    "shap_text": "stimuli.explainers.text:ShapText",
    "input_gradient_text": "stimuli.explainers.text:InputGradientText",
    "random_text": "stimuli.explainers.text:RandomText",
    # controls
    "none": "stimuli.explainers.controls:NoMap",
    "random": "stimuli.explainers.controls:Random",
    "permuted": "stimuli.explainers.controls:Permuted",
    "bottom_up_saliency": "stimuli.explainers.controls:BottomUpSaliency",
    "spectral_residual": "stimuli.explainers.spectral:SpectralResidual",
}


def open_explainer(component: Component) -> Explainer:
    """Return the method that `component` names, set as it says.

    BadSpec lists the known names (with the closest match) or the known parameters, and for a value its
    limits.
    """
    made: Explainer = open_named(EXPLAINERS, component, "explainer")
    return made


def check_explainer(component: Component) -> Component:
    """Return `component` with every parameter written out, so that one setting has one content key.

    BadSpec as in `open_explainer`. Does not import torch.
    """
    return with_defaults(EXPLAINERS, component, "explainer")


def version_of(component: Component) -> int:
    """The version of the named method's maps, which is part of every stimulus spec."""
    return int(named_class(EXPLAINERS, component.name, "explainer").version)


def kind_of(component: Component) -> Kind:
    """What the named method explains with."""
    kind: Kind = named_class(EXPLAINERS, component.name, "explainer").kind
    return kind
