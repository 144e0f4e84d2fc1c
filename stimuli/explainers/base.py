"""The interface of every explainer, and what it may know of a predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from stimuli.planner.asks import Steps
    from stimuli.planner.values import Subject
    from stimuli.predictors.interface import ImagePredictor

Kind = Literal["image", "text", "concept"]


class Explainer(Protocol):
    """A method with its parameters: a class under `registry.parameters`, whose fields they are.

    The explained number is the logit of the subject's target (before softmax) unless the method's docstring
    says otherwise. All parameters live in 0-1 pixels. A result depends on the item, target, key, seed and the
    parameters alone: not on other items, their order, or how often it was tried. `version` is raised whenever
    results change; `kind` says what is explained with.
    """

    version: ClassVar[int]
    kind: ClassVar[Kind]

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable, with the reason and the remedy, if this method cannot explain `predictor`."""
        ...

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        """Ask for passes; return a PixelAttribution, TokenAttribution or ConceptAttribution."""
        ...


class StudyItem(Protocol):
    """An item of a study, as far as controls that borrow maps need to know it."""

    @property
    def key(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def image_key(self) -> str: ...
    @property
    def index(self) -> int:
        """The logit of the predicted label."""
        ...

    @property
    def logits(self) -> tuple[float, ...]: ...


class AnyImage:
    """A method that explains every differentiable image predictor, or needs no network at all."""

    __slots__ = ()
    kind: ClassVar[Kind] = "image"

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """Accept every image predictor."""
