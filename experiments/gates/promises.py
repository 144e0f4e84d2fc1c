"""What a study's texts say of the page that shows them, held against what that page has.

A short list of phrases for each language, not a reading of the text: it finds "press the button below", and
overlooks what is said in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from experiments.definition.study import StudyDefinition
from experiments.wording.sentence_tables import table_for

SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
LINK = re.compile(r"\]\(|<https?:|<mailto:")
LACKS: Mapping[str, str] = {
    "below": "nothing that a person can use stands below it",
    "button": "its page has no button of its own; the ways back at the end depend on the platform",
    "link": "it holds no link",
    "leave": '"Leave the study" stands on every page after the consent, not on this one',
    "code": "whether there is a code depends on the platform, and the page shows it by itself",
}
"""What a phrase of `[promises]` needs, and what to say if the page lacks it."""
REMEDY = "say what the page has, or ask people to write to {contact}"
HELD: Mapping[str, frozenset[str]] = {
    "consent": frozenset({"below", "button"}),
    # Instructions speak of the pages that follow: their buttons stand below the picture.
    "instructions": frozenset({"below", "button", "leave"}),
    "instructions_explained": frozenset({"below", "button", "leave"}),
    "instructions_baseline": frozenset({"below", "button", "leave"}),
    "instructions_known": frozenset({"below", "button", "leave"}),
    "instructions_masked": frozenset({"below", "button", "leave"}),
    # It ends every kind of session: after leaving, in a preview, on a platform without a way back.
    "debrief": frozenset(),
}
"""What the page of each text has in every session. Other texts are not judged."""


def find_promises(text: str, phrases: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """(control, sentence) for every control of the page that a text speaks of, by the `[promises]` of its
    language."""
    for sentence in filter(None, map(str.strip, SENTENCE.split(text))):
        for control, patterns in phrases.items():
            if any(re.search(pattern, sentence, re.IGNORECASE) for pattern in patterns):
                yield control, sentence


def unkept(definition: StudyDefinition) -> list[str]:
    """A warning for every sentence that promises what its page lacks."""
    phrases = table_for(definition)["promises"]
    return [
        f'texts.{name} says "{sentence}", but {LACKS[control]}: {REMEDY}'
        for name, held in HELD.items()
        for control, sentence in find_promises(definition.texts.get(name, ""), phrases)
        if control not in held and not (control == "link" and LINK.search(sentence))
    ]
