"""How numbers are printed: with the digits that are significant, a dash if there is no number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from analysis.stats.intervals_and_checks import Interval

if TYPE_CHECKING:
    from analysis.stats.ratings.ordinal_model import LikelihoodRatio

NONE = "\N{EN DASH}"
ALPHA = 0.05
"""The level of a test if none is declared."""


def number(value: float | None, digits: int = 2) -> str:
    return NONE if value is None else f"{value:z.{digits}f}".replace("-", "\N{MINUS SIGN}")


def percent(value: float | None, digits: int = 1) -> str:
    return NONE if value is None else number(100 * value, digits)


def p_value(p: float | None) -> str:
    """Three decimals; smaller ones as "< .001"."""
    if p is None:
        return NONE
    return "< .001" if p < 0.001 else f"{p:.3f}".removeprefix("0")


def p_sentence(p: float) -> str:
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def ratio_sentence(ratio: LikelihoodRatio) -> str:
    """A test of a mixed model: "likelihood ratio 8.10, F(3, 36) = 2.70, p = .060"."""
    return (
        f"likelihood ratio {number(ratio.statistic)}, F({ratio.df}, {ratio.df_error}) = {number(ratio.f)}, "
        f"{p_sentence(ratio.p)}"
    )


def level(alpha: float) -> str:
    """A level of significance with its own digits: ".05"."""
    return f"{alpha:.4g}".removeprefix("0")


def confidence(held: float) -> str:
    """A level of intervals (0-1) in percent: "95 %", "99.9 %"; of a plan with looks with four digits."""
    return f"{100 * held:.4g} %"


def finding(p: float | None, what: str, between: str = "conditions", alpha: float = ALPHA) -> str:
    """What a test of equal `what` says at the level `alpha`, as a clause of a sentence."""
    if p is None:
        return f"{what} was not compared between {between}"
    if p < alpha:
        return f"{what} differs between {between}"
    return f"no difference in {what} between {between} was detected"


def interval(value: Interval | Sequence[float | None] | None, digits: int = 2, scale: float = 1.0) -> str:
    """[low, high], an open end as infinity."""
    if value is None:
        return NONE
    ends = value.as_json() if isinstance(value, Interval) else list(value)
    low, high = (("\N{INFINITY}" if e is None else number(e * scale, digits)) for e in ends)
    return f"[{low}, {high}]"


def stars(p: float | None, alpha: float = ALPHA) -> str:
    """One star for p < alpha; more stars would say no more than the p beside it."""
    return "*" if p is not None and p < alpha else ""


LABELS = {
    "ablation_cam": "Ablation-CAM",
    "bcos": "B-cos",
    "clip_linear": "CLIP-linear",
    "clip_qda": "CLIP-QDA",
    "eigen_cam": "Eigen-CAM",
    "eigen_grad_cam": "EigenGrad-CAM",
    "full_grad": "FullGrad",
    "gradient_x_input": "Gradient \N{MULTIPLICATION SIGN} Input",
    "grad_cam": "Grad-CAM",
    "grad_cam_elementwise": "Grad-CAM element-wise",
    "grad_cam_plus_plus": "Grad-CAM++",
    "hires_cam": "HiRes-CAM",
    "integrated_gradients": "Integrated Gradients",
    "layer_cam": "Layer-CAM",
    "lime_cbm": "LIME-CBM",
    "lime_image": "LIME",
    "lime_text": "LIME",
    "rise": "RISE",
    "rise_cbm": "RISE-CBM",
    "score_cam": "Score-CAM",
    "shap_cbm": "SHAP-CBM",
    "shap_partition": "SHAP",
    "shap_text": "SHAP",
    "smooth_grad": "SmoothGrad",
    "x_nesyl": "X-NeSyL",
    "xgrad_cam": "XGrad-CAM",
}


def condition_label(name: str) -> str:
    """The label of a condition if its study gives none."""
    return LABELS.get(name) or name.replace("_", " ").replace("-", " ").capitalize()
