"""Do the regions that a method marks look alike across classes?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from PIL import Image
from pydantic import Field

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch
from stimuli.metrics.base import Better, Entry, MetricValue, Scored
from stimuli.metrics.encoders import Encoder, OrientedBands, Picture, Vector, distance, read_lpips
from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import counted_generator
from stimuli.registry import parameters


@parameters
class DiagnosticSimilarity:
    """How alike the marked regions of one class look to those of the other classes: the mean of 1 - distance
    over pairs of items of different label in the same condition. Regions that look alike cannot tell the
    classes apart. 1 is equal. [Colin et al. 2022; Zhang et al. 2018]

    Region: the `top_share` of pixels that are marked most, on whichever side; ties in the one drawn order.
    `region` = "mask" shows them in their places and `grey` (0-1) elsewhere; "crop" shows the picture inside
    the box around them, resized to `crop_px` a side.

    `encoder` = "lpips_alex" measures LPIPS with the local safetensors file `weights` (`encoders.read_lpips`);
    "oriented_bands" a fixed bank of filters, which needs none and is no LPIPS (`encoders.OrientedBands`).
    `details` name the encoder, with the digest of its weights.

    At most `partners` items, the same in all conditions, stand for the others: drawn by `seed`, labels in
    turn. So every picture passes the encoder once, and memory holds `partners` of them. `details["pairs"]`
    counts what a value averages. If no item of another class can be compared, `value` is NaN and
    `details["undefined"]` says why.
    """

    version: ClassVar[int] = 2
    unit: ClassVar[str] = "1 - distance"
    better: ClassVar[Better] = "lower"
    scores: ClassVar[Scored] = "drawn"
    encoder: Literal["oriented_bands", "lpips_alex"] = "oriented_bands"
    weights: str = ""
    region: Literal["mask", "crop"] = "mask"
    top_share: Annotated[float, Field(ge=0.001, le=1.0)] = 0.1
    grey: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    crop_px: Annotated[int, Field(ge=32, le=512)] = 64
    partners: Annotated[int, Field(ge=2, le=1024)] = 64
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0

    def __post_init__(self) -> None:
        if (self.encoder == "lpips_alex") != bool(self.weights):
            raise BadSpec(
                "metric 'diagnostic_similarity' needs weights, a local safetensors file, for encoder "
                "'lpips_alex' and none for 'oriented_bands': name a file, or change the encoder"
            )

    def measure(self, entries: Sequence[Entry]) -> Sequence[MetricValue]:
        """One Measured per entry, in their order. Reads the weights from the file."""
        encoder: Encoder = read_lpips(self.weights) if self.weights else OrientedBands()
        partners = chosen_partners(
            dict(sorted((entry.item, entry.label) for entry in entries)), self.partners, self.seed
        )
        conditions: dict[str, dict[str, int]] = {}
        for place, entry in enumerate(entries):
            items = conditions.setdefault(entry.condition, {})
            if entry.item in items:
                raise NotApplicable(
                    f"diagnostic_similarity has two maps of condition {entry.condition!r} for item "
                    f"{entry.item!r}: give one per condition and item"
                )
            items[entry.item] = place
        by_place: dict[int, MetricValue] = {}
        for places in conditions.values():
            by_item = {item: entries[place] for item, place in sorted(places.items())}
            for item, measured in self._of_condition(by_item, partners, encoder):
                by_place[places[item]] = measured
        return [by_place[place] for place in range(len(entries))]

    def _of_condition(
        self, entries: Mapping[str, Entry], partners: Sequence[str], encoder: Encoder
    ) -> list[tuple[str, MetricValue]]:
        """A Measured per item. Only the partners' vectors are kept."""
        sizes = set()

        def vector_of(item: str) -> Vector:
            picture = self.shown(entries[item])
            sizes.add(picture.shape[:2])
            if len(sizes) > 1:
                raise ShapeMismatch(f"only views of one size can be compared, not {sorted(sizes)}")
            return encoder.embed(picture)

        bank = {item: vector_of(item) for item in partners if item in entries}
        results = []
        for item, entry in entries.items():
            others = [vector for other, vector in bank.items() if entries[other].label != entry.label]
            vector = bank[item] if item in bank else vector_of(item)
            results.append((item, _mean_similarity(vector, others, encoder.about)))
        return results

    def shown(self, entry: Entry) -> Picture:
        """The marked region of an entry as the encoder sees it, float32 (h, w, 3) in 0-1."""
        pixels, raw = entry.view, entry.values
        if pixels.shape[:2] != raw.shape:
            raise ShapeMismatch(
                f"the map of item {entry.item!r} has {raw.shape} pixels and its view {pixels.shape[:2]}: give"
                " the network's own view"
            )
        values = np.abs(np.asarray(raw, np.float64))
        top = most_important_first(values)[: max(1, round(self.top_share * values.size))]
        marked = np.isin(np.arange(values.size), top).reshape(values.shape)
        if self.region == "mask":
            view = pixels.astype(np.float32) / np.float32(255)
            return np.where(marked[..., None], view, np.float32(self.grey))
        rows, columns = np.flatnonzero(marked.any(1)), np.flatnonzero(marked.any(0))
        box = pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        size = (self.crop_px, self.crop_px)
        resized = Image.fromarray(np.ascontiguousarray(box)).resize(size, Image.Resampling.BILINEAR)
        return np.asarray(resized, np.float32) / np.float32(255)


def chosen_partners(labels: Mapping[str, str], most: int, seed: int) -> list[str]:
    """At most `most` of the items in `labels` (item -> label): labels take turns in the order of their names,
    each giving its items in an order drawn by `seed`.
    """
    queues = []
    for label in sorted(set(labels.values())):
        members = sorted(item for item, its in labels.items() if its == label)
        draws = counted_generator(f"partners\x1f{label}\x1f{seed}")
        queues.append([members[int(place)] for place in draws.permutation(len(members))])
    turns = [
        item
        for turn in range(max(map(len, queues), default=0))
        for item in (q[turn] for q in queues if turn < len(q))
    ]
    return turns[:most]


def _mean_similarity(vector: Vector, others: Sequence[Vector], about: Mapping[str, str]) -> MetricValue:
    if not others:
        return MetricValue(math.nan, {"undefined": "no item of another class to compare with", **about})
    similar = [1 - distance(vector, other) for other in others]
    return MetricValue(float(np.mean(similar)), {**about, "pairs": len(similar)})
