"""What a new study has to say: what can be marked of texts whose words do not stand between spaces, and the
words on the buttons that ask about one class against all others. Studies that were opened before, and their
extensions, keep what they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.definition.study import StudyDefinition
from experiments.drafting.decoding import opened_studies
from experiments.errors import InvalidStudy, Problem, StudyError
from stimuli.errors import first_of
from stimuli.predictors.text.units import lacks_spaces

if TYPE_CHECKING:
    from experiments.drafting.model_answers import ModelPredictions


def check_units(definition: StudyDefinition, asked: ModelPredictions) -> None:
    """StudyError, with the count and the choice, if the study declares no units and texts have no spaces."""
    if definition.stimuli.units is not None or _is_kept(definition):
        return
    for source, opened in asked.opened.items():
        dataset: Any = opened.dataset
        items = dataset.items("people") if opened.predictor.modality == "text" else ()
        lacking = [item.key for item in items if lacks_spaces(dataset.text(item.key))]
        if lacking:
            name = f" of {source[0]}" if source[0] else ""
            raise StudyError(
                f"{definition.slug}: {len(lacking):,} of {len(items):,} texts{name} have no spaces between "
                f"words ({first_of(lacking)}), so that methods would take a whole sentence for a word: set "
                '[stimuli] units = "words" (cut by the dictionaries of ICU), "characters" or "tokens" (of '
                'the model), with the predictor trained_text its pieces = "letters" too; or units = "legacy" '
                "to mark what stands between spaces all the same."
            )


def check_target_words(definition: StudyDefinition) -> None:
    """InvalidStudy if people would read "Target" and "Other", which no text explains; with the tables that
    name both."""
    target = definition.stimuli.target
    if target is None or definition.answers or _is_kept(definition):
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


def _is_kept(definition: StudyDefinition) -> bool:
    opened = opened_studies({definition.slug})
    return bool(definition.extends) or any(study.digest == definition.digest for study in opened)
