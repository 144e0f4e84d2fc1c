"""The method inside a control: named with its parameters as JSON text, kept with every one written out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar

from stimuli.errors import BadSpec
from stimuli.explainers import CONTROLS, kind_of, open_explainer, packages_of, stored_form, version_of
from stimuli.explainers.base import Explainer, Kind, refuse_operator, sign_of
from stimuli.planner.values import Operator
from stimuli.registry import parameters
from stimuli.spec import Component, StimulusSpec, canonical_json

_WORDS = {
    "image": ("draws maps, such as 'saliency'", '{"layer": "4"}'),
    "text": ("marks words, such as 'lime_text'", '{"top": 5}'),
}


@parameters
class OfMethod:
    """A control that is made of the explanation of method `of`. `parameters` are that method's, as JSON text;
    those that are not named have their defaults.

    `control` is the control's own name, `verb` what it does with the explanation.
    """

    kind: ClassVar[Kind] = "image"
    control: ClassVar[str] = ""
    verb: ClassVar[str] = ""
    of: str = "saliency"
    parameters: str = "{}"

    def __post_init__(self) -> None:
        of, whole = written_out(self.control, self.verb, self.kind, self.of, self.parameters)
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "parameters", whole)

    @property
    def method(self) -> Explainer:
        """The method, set as it is."""
        return open_explainer(Component(self.of, json.loads(self.parameters)))

    def plain(self, spec: StimulusSpec) -> StimulusSpec:
        """The spec of the method for the item of the control's `spec`."""
        method = Component(self.of, json.loads(self.parameters))
        return replace(spec, explainer=method, version=version_of(method), packages=packages_of(method))

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable if the method is not applicable."""
        self.method.require(predictor, layer)

    def has_sign(self) -> bool | None:
        """As that method; None if it does not say."""
        return sign_of(self.method)

    def follow(self, operator: Operator) -> None:
        """NotApplicable if the method cannot explain that number."""
        refuse_operator(self.method, self.of, operator)


def written_out(control: str, verb: str, kind: Kind, of: str, parameters: str) -> tuple[str, str]:
    """The full name of method `of`, which `control` permutes or scatters (the `verb`), and its `parameters`
    as canonical JSON with every one of them: so one setting has one content key, and no default is hidden.

    BadSpec unless `of` explains with `kind` and is no control itself, and `parameters` are a JSON object of
    its parameters.
    """
    does, example = _WORDS[kind]
    try:
        named = json.loads(parameters)
    except (ValueError, RecursionError):
        named = None
    if not isinstance(named, dict):
        raise BadSpec(
            f"explainer {control!r}: parameters = {parameters[:200]!r} is no JSON object; give the "
            f"parameters of {of!r} as in '{example}', or '{{}}' for its defaults"
        )
    try:
        whole = None if of in CONTROLS else stored_form(Component(of, named))
    except BadSpec as error:
        raise BadSpec(f"explainer {control!r}, the method that it {verb}s: {error}") from None
    if whole is None or kind_of(whole) != kind:
        raise BadSpec(f"explainer {control!r} cannot {verb} {of!r}: set 'of' to a method that {does}")
    return whole.name, canonical_json(dict(whole.params))
