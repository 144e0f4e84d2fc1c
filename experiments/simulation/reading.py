"""Reading as a person would: which key does the page ask for?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from experiments.kinds.base import Choice

_QUOTED = re.compile(r"[\"'“”„‘’‚«»`*\[(]+\s*([^\"'“”„‘’‚«»`*\])]{1,40}?)\s*[\"'“”„‘’‚«»`*\])]+")
_ORDERED = re.compile(
    r"\b(?:key|press|button|choose|select|pick|click|taste|drücken sie|drücke|wählen sie|wähle|knopf)\b"
    r"\s*:?\s*(?:the\s+|on\s+|die\s+|auf\s+|key\s+|taste\s+|button\s+)*([\w-]+)",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w-]+")


def asked_choice(prompt: str, choices: Sequence[Choice]) -> Choice | None:
    """The choice that a prompt asks for, by its key or its text; None if the prompt names none or several.

    What stands in quotation marks or after "press", "key", "choose" … counts before the other words, since
    "a" and "I" are words as well as keys.
    """
    spans = [m.group(1) for m in _QUOTED.finditer(prompt)]
    ordered = [m.group(1) for m in _ORDERED.finditer(prompt)]
    for words in (spans, ordered, _WORD.findall(prompt)):
        named = _match_choices(words, choices)
        if len(named) == 1:
            return named[0]
    by_text = [c for c in choices if c.text and re.search(rf"\b{re.escape(c.text)}\b", prompt, re.IGNORECASE)]
    return by_text[0] if len(by_text) == 1 else None


def _match_choices(words: Sequence[str], choices: Sequence[Choice]) -> list[Choice]:
    said = {word.strip().casefold() for word in words}
    by_key = [c for c in choices if c.key and c.key.casefold() in said]
    return by_key or [c for c in choices if c.text and c.text.casefold() in said]


def choice_for(label: str, choices: Sequence[Choice]) -> Choice | None:
    """The choice that stands for a label as it was shown: by its text, else by its value."""
    for choice in choices:
        if choice.text == label:
            return choice
    return next((c for c in choices if c.value == label), None)
