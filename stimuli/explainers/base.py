"""The interface of every explainer, and what it may know of a predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, cast

from stimuli.errors import NotApplicable

if TYPE_CHECKING:
    from stimuli.planner.asks import Steps
    from stimuli.planner.values import Operator, Subject
    from stimuli.predictors.interface import ImagePredictor

Kind = Literal["image", "text", "concept", "pictures", "sentence", "region"]


class Explainer(Protocol):
    """A method with its parameters: a class under `registry.parameters`, whose fields they are.

    The explained number is what the subject's `operator` makes of the logits: as a rule the logit of its
    target. A method that explains another says so. All parameters live in 0-1 pixels. A result depends on the
    item, target, operator, key, seed and the parameters alone: not on other items, their order, or how often
    it was tried. `version` is raised whenever results change; `kind` says what is explained with.
    """

    version: ClassVar[int]
    kind: ClassVar[Kind]

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable, with the reason and the remedy, if this method cannot explain `predictor`."""
        ...

    def follow(self, operator: Operator) -> None:
        """NotApplicable, with the reason and the remedy, if the study explains a number that this method
        cannot explain. Never asked about "logit", which every method takes for its own number.
        """
        ...

    # A method of maps also has has_sign() -> bool: whether negative values are evidence against what is
    # explained. It depends on the parameters alone. What a package does not say is not known: see `sign_of`.

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        """Ask for passes; return an attribution of the method's kind."""
        ...


class ByGradient:
    """A method that reads gradients with respect to the picture."""

    __slots__ = ()
    kind: ClassVar[Kind] = "image"

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable if the network lets no gradient through."""
        require_gradient(predictor, type(self).__name__)

    def follow(self, operator: Operator) -> None:
        """Accept every number."""


def require_gradient(predictor: ImagePredictor, method: str) -> None:
    """NotApplicable for `method` if no gradient leads from the logits to the picture."""
    if predictor.no_gradient:
        raise NotApplicable(
            f"{method} reads the gradient of this network, which has none: {predictor.no_gradient}. Export "
            "it without that step, or use a method that only changes the picture, such as 'occlusion', "
            "'rise', 'lime_image' or 'shap_partition'"
        )


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
    """A method that explains every image predictor, or needs no network at all."""

    __slots__ = ()
    kind: ClassVar[Kind] = "image"

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """Accept every image predictor."""

    def follow(self, operator: Operator) -> None:
        """Accept every number: what the planner answers is that of the subject."""


class OfOutput:
    """Of methods whose parameter `output` says which number they explain: that must be the study's."""

    __slots__ = ()

    def follow(self, operator: Operator) -> None:
        """Raises NotApplicable for another number."""
        follow_output(type(self).__name__, own_output(cast("Explainer", self)), operator)


def refuse_operator(method: Explainer, name: str, operator: Operator) -> None:
    """NotApplicable if the method `name` cannot explain what `operator` makes of the logits."""
    if operator == "logit":
        return
    if not hasattr(method, "follow"):
        raise NotApplicable(
            f"{name} does not say whether it can explain a {operator}: explain the logit, or ask its package "
            "for a method follow(operator)"
        )
    method.follow(operator)


def own_output(method: Explainer) -> str:
    """What `method` itself makes of the logits where the study asks for the logit, such as "probability" or
    "log_odds"; empty if it explains what it is given, or does not say.
    """
    inner = getattr(method, "method", method)
    return str(getattr(inner, "output", ""))


def sign_of(method: Explainer) -> bool | None:
    """Whether the maps of `method` have evidence against what is explained too; None if it draws no maps, or
    does not say.
    """
    says = getattr(method, "has_sign", None)
    return says() if says is not None and method.kind == "image" else None


def follow_output(method: str, output: str, operator: Operator, unbounded: str = "logit") -> None:
    """`follow` of methods whose parameter `output` names what is watched: it must be the study's number.
    `unbounded` is what they call all but the probability.
    """
    if (output == "probability") != (operator == "probability"):
        other = "probability" if operator == "probability" else unbounded
        raise NotApplicable(
            f"the study explains a {operator}, and {method} with output = {output!r} does not: set output = "
            f"{other!r}, which then stands for the {operator}"
        )


def refuse_probability(operator: Operator, reason: str, instead: str) -> None:
    """`follow` of methods that are defined for sums of logits alone, for this `reason`."""
    if operator == "probability":
        raise NotApplicable(f"{reason}: explain the logit or the margin, or use {instead}")
