"""Does the score fall by as much as the map says, when random parts of the picture are hidden?"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stimuli.errors import BadSpec, NotApplicable
from stimuli.metrics.base import Better, MetricValue, PictureMetric
from stimuli.metrics.correlation import product, standardise_values
from stimuli.metrics.fidelity.importance_and_fill import baseline_fill, importance
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.values import Floats, Subject, counted_generator
from stimuli.planner.variants import Cells, Fill, OnPath, digest, fill_name, filling
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.types import Attribution

if TYPE_CHECKING:
    from torch import Tensor

Places = NDArray[np.int64]
CHANNELS = 3
DRAWS_MAX = 20_000_000
"""Features that one bank of subsets may hold, 160 MB."""


@parameters
class FaithfulnessCorrelation(PictureMetric):
    """Pearson correlation between what hiding random features does to the score and the sum of the map over
    them; higher is more faithful. [Bhatt et al. 2020]

    `runs` random subsets of `subset` features become the `baseline` ("black" 0, the picture's "mean" colour,
    "grey" 0.5 or its "blur"). Features are "scalars", single colour values, as common libraries have them, or
    whole "pixels". `score` is the target's "logit" or its softmax "probability"; with `absolute` the map's
    magnitudes are summed. With few features the falls are small, and so is the correlation:
    0.06 is usual at 224 of 150,528 [Kazmierczak et al. 2025]. `MuFidelity` hides larger parts.

    The subsets are drawn from the study's seed alone, the same for all items and methods: methods are
    compared on equal terms, and on one item a subset runs once for all of them. NotApplicable if the
    correlation is not defined, because the map gives every subset the same sum or the score never changes.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Better] = "higher"
    runs: Annotated[int, Field(ge=3, le=10_000)] = 100
    subset: Annotated[int, Field(ge=1, le=1_000_000)] = 224
    features: Literal["scalars", "pixels"] = "scalars"
    baseline: Literal["black", "mean", "grey", "blur"] = "black"
    score: Literal["logit", "probability"] = "logit"
    absolute: bool = False

    def __post_init__(self) -> None:
        if self.runs * self.subset > DRAWS_MAX:
            raise BadSpec(
                f"metric 'faithfulness_correlation': runs {self.runs} x subset {self.subset} is more than "
                f"{DRAWS_MAX:,} draws, which would fill the memory: lower one of them"
            )

    def measure(self, predictor: ImagePredictor, subject: Subject, attribution: Attribution) -> Steps:
        """Ask for the score of the picture and of every subset; return the correlation as a Measured."""
        values = importance(attribution, subject, absolute=self.absolute)
        by_scalars = self.features == "scalars"
        count = values.size * (CHANNELS if by_scalars else 1)
        if self.subset >= count:
            raise NotApplicable(
                f"faithfulness_correlation hides {self.subset} features, but the picture has {count} "
                f"{self.features}: set subset below that"
            )
        chosen = random_subsets(subject.seed, count, self.subset, self.runs)
        hidden = FeatureReplacements(chosen, baseline_fill(subject, self.baseline), by_scalars)
        (whole,), scores = yield (Scores(OnPath((1.0,), 0.0), self.score), Scores(hidden, self.score))
        sums = values.ravel()[chosen % values.size].sum(1)
        details = {"subsets": self.runs, "hidden_share": self.subset / count}
        return MetricValue(correlation_of(sums, whole - scores, "pearson"), details)


@parameters
class MuFidelity(PictureMetric):
    """Spearman correlation between what hiding random cells of a grid does to the score and the sum of the
    map over them; higher is more faithful. [Bhatt et al. 2020; Fel et al. 2022]

    The picture is cut into `grid` x `grid` cells; in each of `subsets` copies a random `masked_share` of them
    (rounded, at least one) becomes the `baseline`. The other parameters, the seeded bank that items and
    methods share, and NotApplicable are as in `FaithfulnessCorrelation`.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Better] = "higher"
    grid: Annotated[int, Field(ge=2, le=64)] = 9
    masked_share: Annotated[float, Field(ge=0.01, le=0.99)] = 0.2
    subsets: Annotated[int, Field(ge=3, le=10_000)] = 200
    baseline: Literal["black", "mean", "grey", "blur"] = "black"
    score: Literal["logit", "probability"] = "logit"
    absolute: bool = False

    def measure(self, predictor: ImagePredictor, subject: Subject, attribution: Attribution) -> Steps:
        """Ask for the score of the picture and of every subset; return the correlation as a Measured."""
        values = importance(attribution, subject, absolute=self.absolute)
        if self.grid > min(values.shape):
            raise NotApplicable(
                f"mu_fidelity cuts the picture into {self.grid} x {self.grid} cells, but it has "
                f"{values.shape[0]} x {values.shape[1]} pixels: set grid to at most {min(values.shape)}"
            )
        if not np.ptp(values):
            # Cells differ by a pixel in size, so that even such a map has sums that vary.
            raise NotApplicable("the correlation is not defined: the map is the same everywhere")
        cells = grid_cells(values.shape[0], values.shape[1], self.grid)
        count = self.grid**2
        masked = min(count - 1, max(1, round(self.masked_share * count)))
        chosen = random_subsets(subject.seed, count, masked, self.subsets)
        kept = np.ones((self.subsets, count), bool)
        np.put_along_axis(kept, chosen, False, 1)
        hidden = Cells(cells, kept, baseline_fill(subject, self.baseline))
        (whole,), scores = yield (Scores(OnPath((1.0,), 0.0), self.score), Scores(hidden, self.score))
        of_cell = np.bincount(cells.ravel(), values.ravel(), count)
        sums = of_cell[np.sort(chosen, 1)].sum(1)
        details = {"subsets": self.subsets, "hidden_share": masked / count}
        return MetricValue(correlation_of(sums, whole - scores, "spearman"), details)


@dataclass(frozen=True, eq=False)
class FeatureReplacements:
    """Copies in which the features `chosen`, int (n, k), take the value that they have in `fill`.

    Features are flat indices of colour values (3 * H * W) with `by_scalars`, else of pixels (H * W).
    """

    chosen: Places
    fill: Fill = 0.0
    by_scalars: bool = True

    def __len__(self) -> int:
        return len(self.chosen)

    @cached_property
    def _name(self) -> tuple[Hashable, ...]:
        return ("replaced", self.by_scalars, fill_name(self.fill))

    def identity(self, place: int) -> Hashable:
        return (*self._name, digest(np.sort(self.chosen[place])))

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        rows = CHANNELS if not self.by_scalars else 1
        other = filling(self.fill, image).expand(1, *image.shape).reshape(1, rows, -1)
        chosen = torch.from_numpy(self.chosen[list(places)]).to(image.device)[:, None].expand(-1, rows, -1)
        copies = image.reshape(1, rows, -1).repeat(len(places), 1, 1)
        copies.scatter_(2, chosen, other.expand(len(places), -1, -1).gather(2, chosen))
        return copies.view(len(places), *image.shape)


@lru_cache(maxsize=8)
def random_subsets(seed: int, count: int, size: int, number_of: int) -> Places:
    """The study's bank: `number_of` random subsets of `size` of `count` things, int64 (number_of, size).

    Each has a generator of its own, so that a longer bank begins with the shorter one.
    """
    name = f"subsets\x1f{count}\x1f{size}\x1f{seed}"
    rows = [counted_generator(name, row).choice(count, size, replace=False) for row in range(number_of)]
    bank = np.stack(rows).astype(np.int64)
    bank.setflags(write=False)
    return bank


def grid_cells(height: int, width: int, grid: int) -> Places:
    """The cell of each pixel, int64 (height, width), row by row from 0; cells differ by at most a pixel."""
    rows, columns = np.arange(height) * grid // height, np.arange(width) * grid // width
    return np.asarray(rows[:, None] * grid + columns, np.int64)


def correlation_of(sums: Floats, falls: Floats, correlation: str) -> float:
    """The correlation of two rows (n,), -1 to 1; NotApplicable if one of them is constant."""
    standard_sums, standard_falls = (
        standardise_values(sums, correlation),
        standardise_values(falls, correlation),
    )
    if standard_sums is None:
        raise NotApplicable("the correlation is not defined: the map gives every hidden subset the same sum")
    if standard_falls is None:
        raise NotApplicable(
            "the correlation is not defined: the score is the same whatever is hidden; choose another "
            "baseline or hide more"
        )
    return product(standard_sums, standard_falls)
