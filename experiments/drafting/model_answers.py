"""What the models of a study know of people's items, before anything is planned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from experiments.definition.study import StudyDefinition
from experiments.models import Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Source, Survey, SurveyItem
from experiments.paradigms.blind import asks_for_model
from experiments.paradigms.material import as_asked
from stimuli.quality.model_faults import unknowing
from stimuli.quality.model_knowledge import (
    DIM_RANGE,
    Accuracy,
    ColourCounts,
    ModelLook,
    accuracy_of,
    accuracy_of_counts,
    best_label_exchange,
    confusion,
    probability_range,
)
from stimuli.spec import content_key
from stimuli.store import Store

if TYPE_CHECKING:
    from stimuli.predictors.base import TorchPredictor
    from stimuli.spec_derivation import PredictedItem
    from stimuli.spec_derivation import Source as Opened

RECOLOURED_MAX = 24
"""So many pictures with colour profiles are read the other way too."""


@dataclass(frozen=True, slots=True)
class ModelPredictions:
    """The result of letting the models of a definition predict its items.

    `opened` holds each pair of dataset and predictor, `surveys` what the model said of every item, and
    `views` the stored view of each item as the model saw it, by source and key. `decoding` is the version of
    how files became items.
    """

    opened: Mapping[Source, Opened]
    surveys: Mapping[Source, Survey]
    views: Mapping[Source, Mapping[str, PredictedItem]]
    decoding: int = field(default=1, kw_only=True)

    @property
    def first(self) -> Opened:
        """The only pair of dataset and predictor, or the first of several."""
        return next(iter(self.opened.values()))


def looks_of(
    definition: StudyDefinition, asked: ModelPredictions, store: Store | None = None
) -> dict[Source, ModelLook]:
    """Each model on the items of its dataset. With the store of the views, networks that were trained
    elsewhere are also asked under other normalisations."""
    return {source: _look(definition, asked, source, store) for source in asked.opened}


def _look(
    definition: StudyDefinition, asked: ModelPredictions, source: Source, store: Store | None
) -> ModelLook:
    survey, opened = asked.surveys[source], asked.opened[source]
    views = asked.views[source]
    raw = _of_the_question(definition, survey.items)
    kept = [item for item in as_asked(definition, survey) if item.use == "task"]
    answers = [item.predicted for item in kept]
    commonest = max(sorted(set(answers)), key=answers.count, default="")
    held_out = _held_out(opened)
    look = ModelLook(
        labels=tuple(survey.labels),
        table=confusion([item.truth for item in kept], answers),
        asked=accuracy_of([item.truth for item in kept], answers, [item.group for item in kept]),
        outside=len(raw) - len(kept),
        commonest=commonest,
        commonest_share=answers.count(commonest) / len(answers) if answers else 0.0,
        probability_range=probability_range(np.array([item.logits for item in kept], np.float64)),
        held_out=held_out,
        published=cast("float | None", opened.predictor.provenance.get("published_accuracy")),
        untouched=_is_untouched(opened),
        cropped=_cropped_shares([views[item.key] for item in kept]),
        grey=sum(views[item.key].is_grey for item in kept),
        dim=_dim([views[item.key] for item in kept]),
        colours=None if store is None else _colours(definition, opened, survey, views, store),
        mean=tuple(getattr(opened.predictor, "mean", ())),
        std=tuple(getattr(opened.predictor, "std", ())),
        cast_from=str(opened.predictor.provenance.get("cast_from", "")),
        is_multi_label=opened.predictor.provenance.get("problem_type") == "multi_label_classification",
        name_prefix=str(opened.predictor.provenance.get("name_prefix", "")),
    )
    if held_out is not None:
        return look  # what was trained for the study has its labels and its normalisation by itself
    look = replace(look, relabelled=best_label_exchange(*_columns(raw)))
    if store is None or opened.predictor.modality != "image":
        return look
    return replace(look, better=_better(opened, raw, views, store))


def _of_the_question(definition: StudyDefinition, items: Sequence[SurveyItem]) -> list[SurveyItem]:
    """Tasks of the study's classes, with the model's own labels."""
    stimuli = definition.stimuli
    tasks = [item for item in items if item.use == "task"]
    if stimuli.target is not None or not stimuli.classes:
        return tasks
    return [item for item in tasks if item.truth in stimuli.classes]


def _columns(items: Sequence[SurveyItem]) -> tuple[list[str], list[str], list[str]]:
    return [i.truth for i in items], [i.predicted for i in items], [i.group for i in items]


def _cropped_shares(views: Sequence[PredictedItem]) -> tuple[float, float]:
    shares = [view.cropped_share for view in views]
    return (sum(shares) / len(shares), max(shares)) if shares else (0.0, 0.0)


def _dim(views: Sequence[PredictedItem]) -> tuple[int, int, int]:
    levels = [view.levels for view in views if view.levels[1] - view.levels[0] <= DIM_RANGE]
    if not levels:
        return 0, 0, 0
    return len(levels), min(low for low, _ in levels), max(high for _, high in levels)


def _colours(
    definition: StudyDefinition,
    opened: Opened,
    survey: Survey,
    views: Mapping[str, PredictedItem],
    store: Store,
) -> ColourCounts | None:
    """Pictures with profiles, read the other way too. Asked once; the answers are kept."""
    from stimuli.datasets.parallel_reading import side_by_side
    from stimuli.store.answers import answers_file

    dataset: Any = opened.dataset
    profiled = frozenset(getattr(dataset, "profiled", ()))
    items = [item for item in survey.items if views[item.key].key in profiled]
    items = items[:: -(-len(items) // RECOLOURED_MAX)] if items else []
    if not items:
        return None
    predictor = cast("TorchPredictor", opened.predictor)
    names = [views[item.key].key for item in items]
    file = answers_file(predictor.key, content_key([opened.content, names]), "", "recoloured")
    if not store.has(file):
        pictures = [predictor.view(pixels) for pixels in side_by_side(dataset.pixels_otherwise, names)]
        store.put(file, json.dumps(predictor.logits(pictures).tolist()).encode())
    said = np.array(json.loads(store.get(file)))
    other = [
        replace(item, logits=tuple(row), index=int(row.argmax()), predicted=survey.labels[int(row.argmax())])
        for item, row in zip(items, said, strict=True)
    ]
    shown, shown_other = (
        {item.key: item.predicted for item in as_asked(definition, Survey(survey.labels, tuple(some)))}
        for some in (items, other)
    )
    here = str(dataset.decoding.colour)
    return ColourCounts(
        len(items),
        sum(a.predicted != b.predicted for a, b in zip(items, other, strict=True)),
        sum(shown.get(item.key) != shown_other.get(item.key) for item in items),
        here,
        here if _held_out(opened) else str(predictor.provenance.get("training_colour", "")),
    )


def _held_out(opened: Opened) -> Accuracy | None:
    """The accuracy on what was kept from a training for the study; its classes are in equal shares."""
    notes = opened.predictor.provenance
    share, count = notes.get("held_out_accuracy"), notes.get("held_out_count")
    if not isinstance(share, int | float) or not isinstance(count, int) or count < 1:
        return None
    return accuracy_of_counts(round(share * count), count, 1 / len(opened.predictor.labels))


def _is_untouched(opened: Opened) -> bool:
    from stimuli.quality.normalisation_probe import is_untouched

    module: Any = getattr(opened.predictor, "module", None) or getattr(opened.predictor, "network", None)
    return module is not None and is_untouched(module)


def _better(
    opened: Opened, items: Sequence[SurveyItem], views: Mapping[str, PredictedItem], store: Store
) -> Any:
    """One picture per group, classes in turn, as the network saw them. Asked once; the answer is kept."""
    from stimuli.quality.normalisation_probe import PICTURES_MAX, Probe, better_normalisation
    from stimuli.render import png
    from stimuli.store.answers import answers_file
    from stimuli.store.files import view_file

    by_truth: dict[str, list[SurveyItem]] = {}
    for item in {item.group: item for item in items}.values():
        by_truth.setdefault(item.truth, []).append(item)
    share = -(-PICTURES_MAX // max(1, len(by_truth)))
    chosen = [item for members in by_truth.values() for item in members[:share]][:PICTURES_MAX]
    asked = [(views[item.key].image_key, item.truth) for item in chosen]
    predictor = cast("TorchPredictor", opened.predictor)
    file = answers_file(predictor.key, content_key(asked), "", "normalisation")
    if store.has(file):
        known = json.loads(store.get(file))
        return known and Probe(**{**known, "mean": tuple(known["mean"]), "std": tuple(known["std"])})
    pixels = [png.decode(store.get(view_file(key))) for key, _ in asked]
    better = better_normalisation(predictor, pixels, [truth for _, truth in asked])
    store.put(file, json.dumps(better and asdict(better)).encode())
    return better


def stored_look(look: ModelLook) -> dict[str, object]:
    """What a draft keeps of it: the accuracy, and why the model may not be asked about, if so."""
    return {**asdict(look.asked), "guessing": look.asked.guessing if look.asked.of else None,
            "unknowing": unknowing(look)}  # fmt: skip


def notes_of(study: Study) -> list[dict[str, Any]]:
    """What is noted of each model of a study."""
    return list(study.predictor.get("several", {"": study.predictor}).values())


def reasons_of(study: Study) -> list[str]:
    """Why the models of a draft may not be asked about, if its people are; none for drafts without notes."""
    if not asks_for_model(get_paradigm(study.paradigm)):
        return []
    return [why for noted in notes_of(study) if (why := noted.get("answers", {}).get("unknowing", ""))]
