"""How well a trial was timed, and how large its picture was to the eye: from what the page counted and what
the screen gate measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

Timing = Literal["ok", "dropped", "short", "hidden", "unknown"]
FRAMES_MIN = 3
"""Fewer frames than this are no exposure to rely on: each is a third of it or more."""


def timing_of(context: Mapping[str, Any]) -> Timing:
    """The worst that is known of a trial's exposure, by the page's counts in `context`; "unknown" if the
    page counted no frames or could not tell how long one is."""
    frames, refresh_ms = context.get("frames"), context.get("refresh_ms")
    if context.get("hidden_count"):
        return "hidden"
    if frames is None or not refresh_ms:
        return "unknown"
    if frames < FRAMES_MIN:
        return "short"
    return "dropped" if context.get("dropped_frames") else "ok"


def degrees_of(
    image_px: float | None, pixel_ratio: float | None, px_per_mm: float | None, distance_mm: float | None
) -> float | None:
    """Visual angle of a picture in degrees: `image_px` CSS pixels wide, `pixel_ratio` device pixels each, on
    a screen of `px_per_mm` device pixels per millimetre, seen straight from `distance_mm`. None if one of
    them is not known, or is 0."""
    if not (image_px and pixel_ratio and px_per_mm and distance_mm):
        return None
    return math.degrees(2 * math.atan(image_px * pixel_ratio / px_per_mm / 2 / distance_mm))
