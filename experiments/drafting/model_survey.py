"""What the models of a study say of every item of its datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from experiments.definition.study import StudyDefinition
from experiments.drafting.decoding import decoding_of
from experiments.drafting.model_answers import ModelPredictions
from experiments.paradigms.base import Source, Survey, SurveyItem
from stimuli.store import Store

if TYPE_CHECKING:
    from stimuli.spec_derivation import PredictedItem
    from stimuli.spec_derivation import Source as Opened
    from stimuli.types import Progress


def ask(definition: StudyDefinition, folder: Path, store: Store, progress: Progress) -> ModelPredictions:
    """Opens datasets and predictors (training one if the study says so), and predicts every item."""
    from stimuli.spec_derivation import prepare, survey

    decoding = decoding_of(definition)
    opened: dict[Source, Opened] = {}
    surveys: dict[Source, Survey] = {}
    views: dict[Source, dict[str, PredictedItem]] = {}
    used = {condition.source for condition in definition.conditions}
    for source, (dataset, predictor) in definition.stimuli.sources.items():
        if source not in used:
            continue
        units = definition.stimuli.units or "legacy"
        made = prepare(dataset.component(), predictor.component(), folder, store, progress, decoding, units)
        prefix = item_prefix(definition, source)
        said = {prefix + item.key: item for item in survey(made, store, progress)}
        opened[source], views[source] = made, said
        surveys[source] = Survey(
            made.predictor.labels, tuple(_survey_item(k, item) for k, item in said.items())
        )
    return ModelPredictions(opened, surveys, views, decoding=decoding)


def item_prefix(definition: StudyDefinition, source: Source) -> str:
    """What stands before the keys of a dataset's items, if the study has several."""
    return f"{source[0]}/" if len(definition.stimuli.datasets) > 1 else ""


def _survey_item(key: str, item: PredictedItem) -> SurveyItem:
    return SurveyItem(
        key=key,
        truth=item.truth,
        group=item.group,
        predicted=item.predicted,
        index=item.index,
        confidence=item.confidence,
        logits=item.logits,
        use=item.use,
        annotated=item.annotated,
    )
