"""The interface of every automatic metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.types import Pixels, Plane, Weights

if TYPE_CHECKING:
    from stimuli.explainers.base import Kind
    from stimuli.planner.asks import Steps
    from stimuli.planner.values import Subject

Better = Literal["higher", "lower", "neither"]
Scored = Literal["method", "drawn"]
"""What a metric scores: the method's own values with their sign, or the field that people see drawn."""


@dataclass(frozen=True, slots=True)
class MetricValue:
    """One number about one stimulus; `details` are what it was made of (a curve, a count), plain JSON."""

    value: float
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scoring:
    """A metric to be measured: of the method's own values, or of the field that `recipe` draws."""

    metric: Component
    recipe: RenderSpec | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """What a metric said of one stimulus: a value, or why there is none. `recipe` says of which field, and is
    None for the method's own values."""

    metric: Component
    measured: MetricValue | None
    error: str = ""
    recipe: RenderSpec | None = None


class Metric(Protocol):
    """A number about one explanation of one item: a frozen dataclass whose fields are the parameters.

    Like an explainer it asks the planner for passes and never runs the network itself; so its passes share
    batches with all methods, and equal perturbations run once. `version` is raised whenever numbers change.

    A metric whose `scores` is "drawn" gets the drawn field in place of a map's values: 0 to 1, or -1 to 1
    under a diverging recipe. Explanations that are no maps come as they are.
    """

    version: ClassVar[int]
    unit: ClassVar[str]
    better: ClassVar[Better]
    kinds: ClassVar[tuple[Kind, ...]]
    scores: ClassVar[Scored]

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Ask for passes; return a Measured."""
        ...


class PictureMetric:
    """What most metrics are: of maps of pictures, and of the method's own values."""

    __slots__ = ()
    kinds: ClassVar[tuple[Kind, ...]] = ("image",)
    scores: ClassVar[Scored] = "method"


class Entry(Protocol):
    """One stimulus of a study, for the metrics that compare stimuli. `view` is uint8 (H, W, 3), `values` the
    drawn field float32 (H, W); both may be read from a file whenever they are asked for, so that a study need
    not fit into memory.
    """

    @property
    def item(self) -> str: ...
    @property
    def condition(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def view(self) -> Pixels: ...
    @property
    def values(self) -> Plane: ...


class SetMetric(Protocol):
    """A number about each stimulus that needs the others: classes or methods side by side."""

    version: ClassVar[int]
    unit: ClassVar[str]
    better: ClassVar[Better]
    scores: ClassVar[Scored]

    def measure(self, entries: Sequence[Entry]) -> Sequence[MetricValue]:
        """One Measured per entry, in their order. Does not depend on that order."""
        ...
