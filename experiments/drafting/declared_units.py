"""Whether a new study says what can be marked of texts whose words do not stand between spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.definition.study import StudyDefinition
from experiments.drafting.decoding import opened_studies
from experiments.errors import StudyError
from stimuli.errors import first_of
from stimuli.predictors.text.units import lacks_spaces

if TYPE_CHECKING:
    from experiments.drafting.model_answers import ModelPredictions


def check_units(definition: StudyDefinition, asked: ModelPredictions) -> None:
    """StudyError, with the count and the choice, if the study declares no units and texts have no spaces.
    Studies that were opened before, and their extensions, keep what they have.
    """
    if definition.stimuli.units is not None or definition.extends:
        return
    if any(study.digest == definition.digest for study in opened_studies({definition.slug})):
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
