"""Whether two kinds of explanation can be told apart by their looks alone, the picture held constant.

Looks are numbers of a drawn field that know nothing of the picture: how bright, how spread, how rough, how
large as a file. A decoder learns from some pictures which of two maps is of which kind, and is asked about
pictures that it has not seen. Used for the target leak (a picture explained for both answers) and for
placebos (the real map beside its placebo).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stimuli.errors import ShapeMismatch
from stimuli.metrics.complexity import jpeg
from stimuli.planner.values import counted_generator
from stimuli.types import Plane

Floats = NDArray[np.float64]

LOOKS = (
    "mean",
    "maximum",
    "spread",
    "above_half",
    "below_zero",
    "edges",
    "entropy",
    "bytes",
    "slope",
    "corner_peak",
    "corner_mean",
)
"""The numbers of `looks_of`, in their order."""
PAIRS_MIN = 6
"""Fewer pictures cannot reach a p below 1 in 32."""
RIDGE = 0.1
RESAMPLES = 500
CORNER_SHARE = 1 / 16
LEVELS = 64
QUALITY = 75


@dataclass(frozen=True, slots=True)
class Decodability:
    """How well a decoder tells two kinds of map apart, on pictures that it has not learnt from.

    `auc` is the share of `pictures`, 0-1, whose two maps it puts the right way round: the area under the ROC
    curve within a picture, .5 by chance. `low` and `high` are the 95 % percentile interval over bootstraps
    of whole pictures, the decoder fitted again in each; `p` is the share of exchanges of the two kinds within
    pictures that do as well (one-sided).
    """

    auc: float
    low: float
    high: float
    p: float
    pictures: int


def looks_of(field: Plane) -> Floats:
    """The `LOOKS` of a drawn field, float32 (H, W) in 0-1 or -1-1; float64 (11,).

    Strength is the magnitude. `mean`, `maximum` and `spread` (standard deviation) are of the strength;
    `above_half` and `below_zero` are shares of the places; `edges` is the mean magnitude of the step to the
    next place, right and down; `entropy` that of 64 levels of strength, in nats; `bytes` the length as a grey
    JPEG file; `slope` that of log power against log frequency. `corner_peak` and `corner_mean` say how
    far a corner stands out: its largest and its mean strength, in a square of a sixteenth of the shorter side
    (at least 2 places), above those of the strip of that width around it; of the corner that stands out most.
    So a mark in a corner is seen, and a map that is brighter towards one side is not taken for it: no number
    says where in the picture anything is.
    """
    exact = np.asarray(field, np.float64)
    if exact.ndim != 2 or min(exact.shape) < 4:
        raise ShapeMismatch(f"a field of shape {exact.shape} has no looks: (H, W) of 4 or more is needed")
    strength = np.abs(exact)
    counts, _ = np.histogram(strength, LEVELS, (0.0, 1.0))
    shares = counts[counts > 0] / counts.sum()
    grey = np.asarray(np.rint(255 * np.clip(strength, 0, 1)), np.uint8)
    return np.array(
        [
            strength.mean(),
            strength.max(),
            strength.std(),
            (strength > 0.5).mean(),
            (exact < 0).mean(),
            (np.abs(np.diff(exact, axis=0)).mean() + np.abs(np.diff(exact, axis=1)).mean()) / 2,
            -(shares * np.log(shares)).sum(),
            len(jpeg(grey, QUALITY)),
            _spectral_slope(exact),
            *_corners(strength),
        ]
    )


def _corners(strength: Floats) -> tuple[float, float]:
    """How far the corner that stands out most does so, by its largest and by its mean strength."""
    side = max(2, round(CORNER_SHARE * min(strength.shape)))
    around = np.ones((2 * side, 2 * side), bool)
    around[:side, :side] = False
    peaks, means = [], []
    for turned in (strength, strength[::-1], strength[:, ::-1], strength[::-1, ::-1]):
        corner, strip = turned[:side, :side], turned[: 2 * side, : 2 * side][around]
        peaks.append(float(corner.max() - strip.max()))
        means.append(float(corner.mean() - strip.mean()))
    return max(peaks), max(means)


def _spectral_slope(field: Floats) -> float:
    """Slope of the logarithm of the radial mean power against that of the spatial frequency, from one cycle
    per field to half a cycle per place; 0 for a field without structure. Steeper is smoother: 0 for white
    noise.
    """
    height, width = field.shape
    power = np.square(np.abs(np.fft.fft2(field - field.mean())))
    if power.sum() <= 1e-12 * field.size**2:
        return 0.0
    radius, counts = _radii(height, width)
    sums = np.bincount(radius, power.ravel())
    rings = np.arange(1, min(height, width) // 2 + 1)
    mean = sums[rings] / counts[rings]
    places, heights = np.log(rings), np.log(np.maximum(mean, 1e-12 * power.max()))
    places = places - places.mean()
    return float(places @ heights / (places @ places))


@lru_cache(maxsize=4)
def _radii(height: int, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ring of each spatial frequency of a field, row by row, and how many frequencies a ring has."""
    down, across = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None]
    radius = np.rint(np.hypot(down, across) * min(height, width)).astype(np.int64).ravel()
    return radius, np.bincount(radius)


def decode(
    features: ArrayLike, label: ArrayLike, groups: Sequence[str] | NDArray[np.generic], seed: int
) -> Decodability:
    """Tell two kinds of map apart by `features`, (N, F), within each picture.

    `label` bool (N,) is the kind, `groups` (N,) names the picture; of each kind a picture counts by its mean.
    Pictures without both kinds are left out, for nothing holds them constant. Exchanging the two kinds within
    a picture turns the sign of its difference, so that under "no difference" the answer on a left-out picture
    is right with probability one half exactly: no bias of small folds.

    The decoder is a ridge regression without intercept on the differences, each feature softly bounded by
    d / (|d| + mean |d|). Two sets that hold the *same* maps in another order have differences that add up to
    0, and then `auc` lies below .5: nothing can be told. ShapeMismatch if fewer than `PAIRS_MIN` pictures
    have both kinds, or a feature is not finite.
    """
    differences = _differences(
        np.asarray(features, np.float64), np.asarray(label, bool), [str(group) for group in groups]
    )
    count = len(differences)
    draws = counted_generator(f"decode\x1f{seed}")
    copies = draws.multinomial(count, np.full(count, 1 / count), RESAMPLES)
    resampled = np.array([_share_right(differences, row) for row in copies])
    signs = draws.integers(0, 2, (count, RESAMPLES)) * 2.0 - 1.0
    hat = _hat(differences, np.ones(count))
    leverage = np.diag(hat)[:, None]
    exchanged = _right(signs * (hat @ signs) - leverage).mean(0)
    auc = float(_right(hat.sum(1) - leverage[:, 0]).mean())
    low, high = (float(edge) for edge in np.percentile(resampled, [2.5, 97.5]))
    p = (1 + int((exchanged >= auc - 1e-12).sum())) / (1 + RESAMPLES)
    return Decodability(auc, low, high, p, count)


def _differences(features: Floats, label: NDArray[np.bool_], groups: Sequence[str]) -> Floats:
    """Per picture the mean of the one kind minus that of the other, bounded, float64 (pictures, F)."""
    if not np.isfinite(features).all():
        raise ShapeMismatch("a feature is not finite, so that nothing can be learnt from it: draw again")
    names = np.asarray(groups)
    both = [name for name in dict.fromkeys(groups) if len(set(label[names == name])) == 2]
    if len(both) < PAIRS_MIN:
        raise ShapeMismatch(
            f"{len(both)} pictures have maps of both kinds, {PAIRS_MIN} are needed to tell them apart"
        )
    pairs = [(features[(names == n) & label].mean(0), features[(names == n) & ~label].mean(0)) for n in both]
    raw = np.array([first - second for first, second in pairs])
    # Rounding of equal looks must not be taken for a difference.
    raw[np.abs(raw) <= 1e-9 * np.abs(features).max(0, initial=1e-9)] = 0.0
    scale = np.abs(raw).mean(0)
    bounded: Floats = np.divide(raw, np.abs(raw) + scale, out=np.zeros_like(raw), where=scale > 0)
    return bounded


def _hat(differences: Floats, weights: Floats) -> Floats:
    """d_i' A^-1 d_j w_j for A = sum of w d d' + ridge: (pictures, pictures)."""
    weighted = differences * weights[:, None]
    matrix = differences.T @ weighted + RIDGE * weights.sum() * np.eye(differences.shape[1])
    hat: Floats = differences @ np.linalg.solve(matrix, weighted.T)
    return hat


def _share_right(differences: Floats, copies: NDArray[np.int64]) -> float:
    """The share of a resample whose pictures are put right by what was learnt from its other pictures."""
    kept = copies > 0
    weights = copies[kept].astype(np.float64)
    hat = _hat(differences[kept], weights)
    # Leaving all copies of a picture out changes the sign of nothing but hat @ 1 - hat_ii.
    return float(weights @ _right(hat.sum(1) - np.diag(hat)) / weights.sum())


def _right(margin: Floats) -> Floats:
    """Per picture 1 if it is put the right way round, 0 if it is not, one half if nothing is said."""
    return np.where(np.abs(margin) <= 1e-12, 0.5, margin > 0)
