"""What the models of a study say of every item of its datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    from stimuli.spec_derivation import survey

    opened = open_models(definition, folder, store, progress)
    said = {source: survey(made, store, progress) for source, made in opened.items()}
    return predictions_of(definition, opened, said)


def open_models(
    definition: StudyDefinition, folder: Path, store: Store, progress: Progress
) -> dict[Source, Opened]:
    """The datasets and predictors of all conditions; one is trained if the study says so."""
    from stimuli.spec_derivation import prepare

    decoding = decoding_of(definition)
    opened: dict[Source, Opened] = {}
    used = {condition.source for condition in definition.conditions}
    for source, (dataset, predictor) in definition.stimuli.sources.items():
        if source not in used:
            continue
        units = definition.stimuli.units or "legacy"
        opened[source] = prepare(
            dataset.component(), predictor.component(), folder, store, progress, decoding, units
        )
    return opened


def predictions_of(
    definition: StudyDefinition,
    opened: Mapping[Source, Opened],
    said: Mapping[Source, Sequence[PredictedItem]],
) -> ModelPredictions:
    """What was `said` of items, by the keys that the study gives them."""
    surveys: dict[Source, Survey] = {}
    views: dict[Source, dict[str, PredictedItem]] = {}
    for source, made in opened.items():
        prefix = item_prefix(definition, source)
        views[source] = {prefix + item.key: item for item in said[source]}
        items = tuple(_survey_item(key, item) for key, item in views[source].items())
        surveys[source] = Survey(made.predictor.labels, items)
    return ModelPredictions(opened, surveys, views, decoding=decoding_of(definition))


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
