"""The words on the two buttons of a study that asks about one class against all others."""

from __future__ import annotations

from experiments.definition.study import StudyDefinition
from experiments.drafting.decoding import opened_studies
from experiments.errors import InvalidStudy, Problem


def check_target_words(definition: StudyDefinition) -> None:
    """InvalidStudy if people would read "Target" and "Other", which no text explains; with the tables that
    name both. A study that is open or closed keeps what its people read, and so does what extends it."""
    target = definition.stimuli.target
    if target is None or definition.answers or definition.extends or opened_studies({definition.slug}):
        return
    limit = 'would be asked about by the buttons "Target" and "Other", which none of the texts explains'
    raise InvalidStudy(
        definition.slug, [Problem("stimuli.target", repr(target), limit, f"Name both:\n{named(target)}")]
    )


def named(target: str) -> str:
    """The tables of study.toml that name the class and all others, in English."""
    word = target.replace("_", " ")
    texts = {"target": word.capitalize(), "other": f"Not {word}"}
    return "\n".join(f'[[answers]]\nvalue = "{value}"\ntext = "{text}"' for value, text in texts.items())
