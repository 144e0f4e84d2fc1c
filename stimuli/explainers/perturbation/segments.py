"""Pictures cut into segments, numbered from 0. A name carries a version: its segments never change."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.types import Plane

Segments = NDArray[np.int64]
Segmentation = Literal["quickshift-1", "slic-1", "grid-1"]
"""The ways to cut a picture, the usual one first."""


def segment_picture(picture: NDArray[np.float32], way: Segmentation, count: int) -> Segments:
    """The segment of each pixel, int64 (H, W), for a picture float32 (H, W, 3) in 0-1.

    "quickshift-1" follows colour edges, with lime's settings (kernel 4, distance 200, colour weight 0.2), and
    finds the number of segments itself; "slic-1" makes about `count` compact ones; "grid-1" cuts squares,
    about the root of `count` along each side.
    """
    from skimage import segmentation

    height, width = picture.shape[:2]
    if way == "grid-1":
        side = max(1, round(count**0.5))
        rows, columns = (np.arange(length) * min(side, length) // length for length in (height, width))
        numbers: Any = rows[:, None] * (columns.max() + 1) + columns
    elif way == "slic-1":
        cut: Any = segmentation.slic
        numbers = cut(picture, n_segments=count, compactness=10.0, sigma=1.0, start_label=0)
    else:
        cut = segmentation.quickshift
        numbers = cut(picture.astype(np.float64), ratio=0.2, kernel_size=4, max_dist=200, rng=0)
    return np.unique(np.asarray(numbers, np.int64), return_inverse=True)[1].reshape(height, width)


def segment_means(picture: NDArray[np.float32], segments: Segments) -> Plane:
    """The picture with each segment in its mean colour, float32 (3, H, W)."""
    flat, area = segments.ravel(), np.bincount(segments.ravel())
    means = [np.bincount(flat, picture[..., channel].ravel()) / area for channel in range(3)]
    return np.stack([mean[segments] for mean in means]).astype(np.float32)
