"""From a method's values to the field that is drawn: what metrics of the picture score, and people see.

The steps, in their order: Gaussian smoothing of the signed values, the sign, clipping at percentiles,
scaling. Smoothing comes first because it is a sum of evidence over a neighbourhood: evidence for and against
the answer in one place cancels, as it would not after the sign.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch
from stimuli.render.recipe import COLORMAPS, DIVERGING, RenderSpec
from stimuli.types import PixelAttribution, Plane

Floats = NDArray[np.float64]
FLAT = 1e-6
"""A range that is no larger than this share of the values is rounding of single precision."""


def drawn_field(made: PixelAttribution, spec: RenderSpec) -> Plane:
    """The field of a map under a recipe, float32 (H, W): 0 to 1, or -1 to 1 if the recipe is diverging.

    Everywhere 0 if nothing in the map differs. Raises NotApplicable for a method without a sign under a
    diverging recipe that refuses it, ShapeMismatch for values that are not finite, BadSpec for a recipe that
    cannot be drawn.
    """
    check_recipe(spec)
    if spec.sign == "diverging" and not made.signed and spec.unsigned == "refuse":
        raise NotApplicable(
            'this method has no sign, and the recipe is diverging: set [render] unsigned to "for", which '
            'draws its strength on the side of the answer, or choose sign = "positive"'
        )
    return field_of(made.values, spec)


def field_of(values: Plane, spec: RenderSpec) -> Plane:
    """As `drawn_field`, for values (H, W) alone."""
    if not np.isfinite(values).all():
        raise ShapeMismatch("a map with values that are not finite cannot be drawn: render it again")
    exact = smooth_values(np.asarray(values, np.float64), spec.smooth_px)
    if spec.sign == "diverging":
        return _two_sided(exact, spec)
    if spec.sign == "positive":
        exact = np.maximum(exact, 0.0)
    elif spec.sign == "magnitude":
        exact = np.abs(exact)
    return _one_sided(exact, spec)


def strength(field: Plane) -> Plane:
    """How much each place is marked, 0 to 1, on whichever side."""
    return np.abs(field)


def cut_away(values: Plane, spec: RenderSpec) -> float:
    """The share of the map's mass, 0-1, that the recipe's sign does not show; 0 for a map of zeros."""
    exact = smooth_values(np.asarray(values, np.float64), spec.smooth_px)
    mass = float(np.abs(exact).sum())
    hidden = -float(np.minimum(exact, 0.0).sum())
    return hidden / mass if spec.sign == "positive" and mass else 0.0


def smooth_values(values: Floats, sigma_px: float) -> Floats:
    """The values under a Gaussian of standard deviation `sigma_px`, edges mirrored; as they are for 0."""
    if not sigma_px:
        return values
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(values, sigma_px, mode="mirror"), np.float64)


def _one_sided(exact: Floats, spec: RenderSpec) -> Plane:
    low, high = (float(edge) for edge in np.percentile(exact, [spec.clip_low, spec.clip_high]))
    if _is_flat(low, high):
        # A map with a few strong points among zeros has equal percentiles; its whole range then counts.
        low, high = float(exact.min()), float(exact.max())
    if _is_flat(low, high):
        return np.zeros(exact.shape, np.float32)
    return np.asarray(np.clip((exact - low) / (high - low), 0, 1), np.float32)


def _two_sided(exact: Floats, spec: RenderSpec) -> Plane:
    """Zero stays 0 and both sides have one scale: the percentile `clip_high` of the magnitudes becomes 1."""
    sizes = np.abs(exact)
    scale = float(np.percentile(sizes, spec.clip_high))
    if _is_flat(0.0, scale):
        scale = float(sizes.max())
    if not scale or _is_flat(float(exact.min()), float(exact.max())):
        return np.zeros(exact.shape, np.float32)
    return np.asarray(np.clip(exact / scale, -1, 1), np.float32)


def check_recipe(spec: RenderSpec) -> RenderSpec:
    """Return `spec` if it can be drawn; BadSpec names the value and its limits."""
    if spec.colormap not in COLORMAPS:
        raise BadSpec(f"render colormap {spec.colormap!r} is not known: use one of {', '.join(COLORMAPS)}")
    if (spec.sign == "diverging") != (spec.colormap in DIVERGING):
        diverging = ", ".join(DIVERGING)
        raise BadSpec(
            f"render sign {spec.sign!r} and colormap {spec.colormap!r} do not fit: a diverging recipe takes "
            f"{diverging}, and no other recipe does"
        )
    if spec.style in ("mask", "top_share") and spec.sign == "diverging":
        raise BadSpec(
            f'render style {spec.style!r} shows one side only: choose sign = "positive", or style = "heat"'
        )
    if not 0 < spec.alpha <= 1:
        raise BadSpec(f"render alpha is {spec.alpha!r}, but must be above 0 and at most 1")
    if not 0 <= spec.clip_low < spec.clip_high <= 100:
        raise BadSpec(
            f"render clip_low {spec.clip_low!r} and clip_high {spec.clip_high!r} are refused: "
            "percentiles lie between 0 and 100, the low one below the high one"
        )
    if not 0 <= spec.smooth_px <= 64:
        raise BadSpec(f"render smooth_px is {spec.smooth_px!r}, but must lie between 0 and 64")
    if not 0 < spec.top_share < 1:
        raise BadSpec(f"render top_share is {spec.top_share!r}, but must lie between 0 and 1")
    if not 16 <= spec.tile_px <= 512:
        raise BadSpec(f"render tile_px is {spec.tile_px!r}, but must lie between 16 and 512")
    return spec


def _is_flat(low: float, high: float) -> bool:
    """Whether the range is no more than the rounding of single precision."""
    return high - low <= FLAT * max(abs(low), abs(high))
