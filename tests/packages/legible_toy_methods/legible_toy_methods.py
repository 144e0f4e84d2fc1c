"""What a lab may offer from outside the checkout: explainer, metric, reporter, dataset and predictor."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from analysis.frames import Frames
from analysis.reports import get_reporter
from analysis.reports.base import Section, StudyFacts
from analysis.reports.report import Report
from stimuli.explainers.base import AnyImage
from stimuli.metrics.base import Better, MetricValue
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from stimuli.registry import Params, parameters, read_params
from stimuli.spec import Component
from stimuli.types import Item, PixelAttribution, Pixels, Progress, Split, Weights

# Which processes imported this, for the tests: its kind, one a line.
if log := os.environ.get("TOY_IMPORTS"):
    with Path(log).open("a") as file:
        file.write(f"{' '.join(sys.argv)}\n")


@parameters
class Rings(AnyImage):
    """Rings around the middle of the picture, independent of the network. Unsigned. [Ours]"""

    version: ClassVar[int] = 1
    rings: Annotated[int, Field(ge=1, le=20)] = 3
    middle: Literal["bright", "dark"] = "bright"

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        height, width = subject.pixels.shape[1:]
        rows, columns = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
        waves = np.cos(np.hypot(rows, columns) * np.pi * self.rings)
        values = waves if self.middle == "bright" else -waves
        return PixelAttribution(((values + 1) / 2).astype(np.float32), signed=False)
        yield


@parameters
class Centre:
    """The share of the map's magnitude that lies in the middle quarter of the picture, 0-1. [Ours]"""

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "share"
    better: ClassVar[Better] = "neither"
    kinds: ClassVar[tuple[Literal["image"], ...]] = ("image",)
    side: Annotated[float, Field(gt=0, le=1)] = 0.5

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        size = np.abs(np.asarray(attribution.values, np.float64))
        inside = [slice(round(n * (1 - self.side) / 2), round(n * (1 + self.side) / 2)) for n in size.shape]
        return MetricValue(float(size[tuple(inside)].sum() / size.sum()))
        yield


def tally(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """The core's report, and how many people passed."""
    report = get_reporter("meta_predictor")(frames, definition, made_at=made_at)
    count = int((frames.participants["status"] == "passed").sum())
    section = Section("tally", "Tally", {"passed": count}, (f"{count} people passed.",))
    return replace(report, sections=(*report.sections, section))


class StripesParams(Params):
    """`count` pictures of each class and split, `side_px` pixels a side."""

    count: Annotated[int, Field(ge=2, le=1000)] = 8
    side_px: Annotated[int, Field(ge=8, le=256)] = 32


@dataclass(frozen=True)
class Stripes:
    """Pictures whose left half is brighter (`left`) or whose right half is (`right`)."""

    params: StripesParams
    labels: tuple[str, ...] = ("left", "right")

    def items(self, split: Split) -> Sequence[Item]:
        return [
            Item(f"{split}-{label}-{n}", label, f"{split}-{label}-{n}", split)
            for label in self.labels
            for n in range(self.params.count)
        ]

    def pixels(self, key: str) -> Pixels:
        side = self.params.side_px
        seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big")
        picture = np.random.default_rng(seed).integers(60, 120, (side, side, 3), dtype=np.uint8)
        half = slice(0, side // 2) if "-left-" in key else slice(side // 2, side)
        picture[:, half] += 90
        return picture

    def content_digest(self) -> str:
        return hashlib.sha256(self.params.model_dump_json().encode()).hexdigest()


def open_stripes(component: Component, folder: Path) -> Stripes:
    return Stripes(read_params(component, StripesParams, "dataset"))


def open_halves(component: Component, folder: Path, dataset: Any, progress: Progress) -> Any:
    """The core's toy predictor under a name of its own."""
    from stimuli.predictors.image.toy import open_toy

    return open_toy(Component("toy", component.params), folder, dataset, progress)
