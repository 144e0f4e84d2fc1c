"""How much of what is marked lies in the part of the picture that is known to decide, or was annotated."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.errors import NotApplicable
from stimuli.metrics.base import Better, MetricValue, PictureMetric, Scored
from stimuli.metrics.fidelity.importance_and_fill import importance
from stimuli.planner.asks import Steps
from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import Floats, Subject
from stimuli.registry import parameters
from stimuli.types import Attribution, Mask


@parameters
class Localisation(PictureMetric):
    """The share of what the drawn field marks that lies in the picture's region; higher is better.

    The region is where the planted cue is, or all boxes that parts.csv marks, as the network sees them.
    Strength is the field's magnitude. `share` says of what: of the "mass" (the sum of strengths) [Arras et
    al. 2022; Kohlbrenner et al. 2020]; of the strongest pixels, as many as the region has ("rank") [Arras et
    al. 2022]; of the strongest `top_share` of the pixels ("top") [Theiner et al. 2022]; or whether the
    strongest one lies in it ("point", 0 or 1) [Zhang et al. 2018, the pointing game]. Equal strengths are
    ranked in the one drawn order that all methods share.

    `value` is 0-1. `details`: `region`, the region's share of the picture, which is what chance gives. The
    mass of an empty field has no share: NaN, and `undefined` says why. `regions` names the study's regions
    and is filled in when the metric is asked for. NotApplicable if there is no region.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "share"
    better: ClassVar[Better] = "higher"
    scores: ClassVar[Scored] = "drawn"
    share: Literal["mass", "rank", "top", "point"] = "mass"
    top_share: Annotated[float, Field(gt=0, le=1)] = 0.05
    regions: str = ""

    def measure(self, predictor: Any, subject: Subject, attribution: Attribution) -> Steps:
        """Return the share as a Measured; asks nothing."""
        strength = importance(attribution, subject, absolute=True)
        region = subject.region
        if region is None or not region.any():
            raise NotApplicable(
                "no region is known of this picture: plant one (dataset synthetic), or mark parts.csv boxes"
            )
        details: dict[str, Any] = {"region": float(region.mean())}
        if self.share == "mass":
            value = mass_inside(strength, region)
            if math.isnan(value):
                details["undefined"] = "the field marks nothing, so that no share of it lies anywhere"
            return MetricValue(value, details)
        counts = {"rank": int(region.sum()), "top": max(1, round(self.top_share * region.size)), "point": 1}
        return MetricValue(top_inside(strength, region, counts[self.share]), details)
        yield


def mass_inside(strength: Floats, region: Mask) -> float:
    """The share of the sum of `strength`, (H, W), within `region`, bool (H, W); NaN if the sum is 0."""
    total = float(strength.sum())
    return float(strength[region].sum()) / total if total > 0 else math.nan


def top_inside(strength: Floats, region: Mask, count: int) -> float:
    """The share of the `count` strongest places of (H, W) that lie within `region`."""
    return float(np.mean(region.ravel()[most_important_first(strength)[:count]]))
