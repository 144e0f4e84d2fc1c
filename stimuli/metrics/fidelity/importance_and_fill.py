"""What all metrics that change pictures share: the importance of pixels, and what hidden ones become."""

from __future__ import annotations

import numpy as np

from stimuli.errors import NotApplicable, ShapeMismatch
from stimuli.planner.values import Floats, Subject
from stimuli.planner.variants import Fill
from stimuli.types import Attribution, PixelAttribution

BLUR_TAPS, BLUR_SIGMA = 11, 5.0
FLAT = {"black": 0.0, "grey": 0.5}
BASELINES = ("black", "mean", "grey", "blur")
"""The picture's place is taken by: 0; its own mean colour; 0.5; itself, blurred."""


def importance(attribution: Attribution, subject: Subject, *, absolute: bool) -> Floats:
    """The map, float64 (H, W), or its magnitudes. NotApplicable if it is no map, ShapeMismatch if it does not
    lie on the picture's grid.
    """
    if not isinstance(attribution, PixelAttribution):
        raise NotApplicable("this metric changes pixels: it needs a map of the picture, not weights of parts")
    size = tuple(int(side) for side in subject.pixels.shape[1:])
    if attribution.values.shape != size:
        raise ShapeMismatch(
            f"the map has {attribution.values.shape} pixels and the picture {size}: measure on "
            "the network's own view"
        )
    values = np.asarray(attribution.values, np.float64)
    return np.abs(values) if absolute else values


def tied_share(values: Floats) -> float:
    """The share of values, 0-1, that are equal to another one: their order is drawn, not measured."""
    _, counts = np.unique(values, return_counts=True)
    return float(counts[counts > 1].sum() / values.size)


def baseline_fill(subject: Subject, baseline: str) -> Fill:
    """What hidden pixels become: one of `BASELINES`.

    "blur" is a Gaussian of standard deviation 5 pixels, cut to 11 x 11 and normalised; the picture is
    mirrored at its border, so that no dark frame appears.
    """
    if baseline in FLAT:
        return FLAT[baseline]
    picture = subject.pixels.detach().cpu().numpy().astype(np.float64)
    if baseline == "mean":
        means = picture.mean((1, 2), keepdims=True)
        return np.broadcast_to(means, picture.shape).astype(np.float32)
    from scipy.ndimage import correlate1d

    places = np.arange(BLUR_TAPS) - BLUR_TAPS // 2
    weights = np.exp(-0.5 * np.square(places / BLUR_SIGMA))
    weights /= weights.sum()
    for axis in (1, 2):
        picture = correlate1d(picture, weights, axis, mode="mirror")
    return picture.astype(np.float32)
