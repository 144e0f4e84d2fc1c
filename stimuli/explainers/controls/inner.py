"""The method inside a control: named with its parameters as JSON text, kept with every one written out."""

from __future__ import annotations

import json
from typing import Literal

from stimuli.errors import BadSpec
from stimuli.explainers import CONTROLS, kind_of, open_explainer, stored_form
from stimuli.explainers.base import Explainer
from stimuli.spec import Component, canonical_json

_WORDS = {
    "image": ("draws maps, such as 'saliency'", '{"layer": "4"}'),
    "text": ("marks words, such as 'lime_text'", '{"top": 5}'),
}


def written_out(
    control: str, verb: str, kind: Literal["image", "text"], of: str, parameters: str
) -> tuple[str, str]:
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


def inner(of: str, parameters: str) -> Explainer:
    """The method, from the name and parameters that `written_out` returned."""
    return open_explainer(Component(of, json.loads(parameters)))
