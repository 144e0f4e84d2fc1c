"""What is wrong with a set of drawn fields, by their numbers alone. Arrays in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stimuli.planner.ranking import most_important_first
from stimuli.quality.look_decodability import looks_of
from stimuli.types import Mask, Pixels, Plane

Floats = NDArray[np.float64]

PERIODS = (2, 4, 8)
"""Periods of lattices, in pixels: those that strides of two, twice and three times leave in a map."""
POOLED = 5
"""What a map or a picture alone is decoded from: its looks, and its means on a 5 x 5 grid."""
RIDGE = 1.0


def is_flat(field: Plane) -> bool:
    """Whether a field marks no place more than another: it is drawn as one even colour."""
    return float(np.ptp(field)) == 0.0


def lattice_energy(field: Plane) -> float:
    """The share of a field's spectral power, 0-1, that lies on the frequencies of a regular grid of period 2,
    4 or 8 pixels (the largest), less the share that white noise has there. Near 0 for smooth fields and for
    noise; .5 and more for a grid of dots. 0 for a flat field.
    """
    exact = np.asarray(field, np.float64)
    power = np.square(np.abs(np.fft.fft2(exact - exact.mean())))
    total = float(power.sum())
    if total <= 1e-12 * exact.size**2:
        return 0.0
    shares = []
    for period in PERIODS:
        on = _on_lines(exact.shape[0], period)[:, None] | _on_lines(exact.shape[1], period)[None]
        on[0, 0] = False
        shares.append(float(power[on].sum() / total - on.sum() / on.size))
    return max(0.0, *shares)


def _on_lines(length: int, period: int) -> NDArray[np.bool_]:
    """The frequencies nearest to multiples of 1 / period, except 0."""
    on = np.zeros(length, bool)
    for multiple in range(1, period):
        on[round(multiple * length / period) % length] = True
    on[0] = False
    return on


def mean_map_correlation(fields: Sequence[Plane]) -> float:
    """How much the fields of one method are one and the same: the mean, over fields, of Pearson's correlation
    with the mean of the others, -1 to 1. NaN for fewer than two fields with any structure.
    """
    structured = [np.asarray(field, np.float64).ravel() for field in fields if not is_flat(field)]
    if len(structured) < 2:
        return float("nan")
    rows = np.stack(structured)
    others = (rows.sum(0) - rows) / (len(rows) - 1)
    centred, rest = (part - part.mean(1, keepdims=True) for part in (rows, others))
    sizes = np.linalg.norm(centred, axis=1) * np.linalg.norm(rest, axis=1)
    known = sizes > 0
    return float(((centred * rest).sum(1)[known] / sizes[known]).mean()) if known.any() else float("nan")


def share_inside(field: Plane, region: Mask, top_share: float = 0.05) -> float:
    """The share of the most marked pixels, `top_share` of all, that lie in the region; 0-1."""
    chosen = most_important_first(np.abs(field))[: max(1, round(top_share * field.size))]
    return float(region.ravel()[chosen].mean())


def map_features(field: Plane) -> Floats:
    """Looks of a field and its means on a grid: what an answer may be guessed from by the map alone."""
    return np.concatenate([looks_of(field), _pool_planes(np.asarray(field, np.float64)[..., None])])


def picture_features(picture: Pixels) -> Floats:
    """Mean colours of a picture on a grid: what an answer may be guessed from by the picture alone."""
    return _pool_planes(picture.astype(np.float64) / 255)


def _pool_planes(planes: Floats) -> Floats:
    rows = [np.array_split(row, POOLED, axis=1) for row in np.array_split(planes, POOLED, axis=0)]
    return np.array([cell.mean((0, 1)) for row in rows for cell in row]).ravel()


def answer_auc(features: Floats, answer: NDArray[np.bool_], groups: Sequence[str]) -> float:
    """How well an answer is guessed from `features` (N, F) of other groups' items: area under the ROC curve,
    0-1, of a ridge regression that leaves each group out in turn. NaN if an answer has fewer than two groups.
    """
    names = np.asarray(groups)
    if min(len(set(names[answer])), len(set(names[~answer]))) < 2:
        return float("nan")
    spread = features.std(0)
    kept = np.asarray(features[:, spread > 1e-12] - features.mean(0)[spread > 1e-12], np.float64)
    kept = kept / (kept.std(0) * np.sqrt(max(1, kept.shape[1])) if kept.size else 1.0)
    said = np.zeros(len(answer))
    for name in dict.fromkeys(names):
        out = names == name
        inside = kept[~out]
        middle, target = inside.mean(0), answer[~out].astype(np.float64)
        centred = inside - middle
        matrix = centred @ centred.T + RIDGE * np.eye(len(inside))
        said[out] = (kept[out] - middle) @ centred.T @ np.linalg.solve(matrix, target - target.mean())
    return _auc(said, answer)


def _auc(said: Floats, answer: NDArray[np.bool_]) -> float:
    above, below = said[answer][:, None], said[~answer][None]
    return float((above > below).mean() + 0.5 * (above == below).mean())
