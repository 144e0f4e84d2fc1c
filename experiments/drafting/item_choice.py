"""Which items a draft shows: chosen by the paradigm, without those that its rules drop, explained by methods
that fit the models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.definition.study import ConditionTable, StudyDefinition
from experiments.design.rng import Streams
from experiments.drafting.dropped_items import LOOK_ALIKE, DroppedItems, dropped_sentence, look
from experiments.drafting.item_pictures import canvases_of
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.model_answers import ModelPredictions
from experiments.drafting.model_survey import item_prefix
from experiments.drafting.solution_stage_items import only_solved, with_solutions
from experiments.drafting.stimulus_specs import specs_of
from experiments.errors import StudyError
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import BadDesign, Material, PlanError, Source, Survey
from experiments.stages.solution_freeze import source_of
from stimuli.errors import BadSpec, StimulusError
from stimuli.explainers import is_recorded, kind_of
from stimuli.render.attribution_field import drawn_field
from stimuli.spec import Component
from stimuli.store import Store
from stimuli.types import PixelAttribution, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from stimuli.spec_derivation import PredictedItem
    from stimuli.spec_derivation import Source as Opened
    from stimuli.types import Progress

MODALITY_WORDS = {"image": "pictures", "text": "texts"}


def choose(
    definition: StudyDefinition,
    asked: ModelPredictions,
    folder: Path,
    store: Store,
    progress: Progress,
    *,
    recorded: bool = True,
    drawn: bool = True,
) -> MaterialSet:
    """What the paradigm chooses of it, and what was explained elsewhere unless `recorded` is False; without
    the pictures that people see unless `drawn`. Here, and not before the models are asked, methods that
    cannot explain them are refused."""
    for source, opened in asked.opened.items():
        refuse_inapplicable(definition, source, opened)
    asked = only_solved(definition, asked)

    def pick(surveys: Mapping[Source, Survey]) -> MaterialSet:
        try:
            material = get_paradigm(definition.paradigm).material(definition, surveys)
        except BadDesign as error:
            raise StudyError(str(error)) from error
        known = MaterialSet(asked.opened, surveys, asked.views, material, decoding=asked.decoding)
        gathered = with_solutions(definition, known)
        if not recorded:
            return gathered
        gathered = _with_joined_units(definition, gathered, folder, store)
        return replace(gathered, recorded=_import_explanations(definition, gathered, folder, store, progress))

    gathered = pick(asked.surveys)
    if definition.stimuli.drop_flagged and recorded:
        gathered = _without_flagged(definition, gathered, pick, store, progress)
    if not drawn:
        return gathered
    return replace(gathered, canvases=canvases_of(definition, gathered, store, progress))


def _without_flagged(
    definition: StudyDefinition,
    gathered: MaterialSet,
    pick: Callable[[Mapping[Source, Survey]], MaterialSet],
    store: Store,
    progress: Progress,
) -> MaterialSet:
    """Items chosen again until the study's rules flag none: only those that take the place of dropped ones
    are new. StudyError if those that are left are too few for the design."""
    dropped = DroppedItems(definition.stimuli.drop_flagged)
    while True:
        seen = gathered
        if LOOK_ALIKE in dropped.rules:
            seen = replace(gathered, canvases=canvases_of(definition, gathered, store, progress))
        specs = specs_of(definition, seen)
        sources = {condition.name: condition.source for condition in definition.conditions}
        says = {
            (source, item.key): item.predicted
            for source, items in gathered.material.chosen.items()
            for item in items
        }
        answers = {(item, name): says[sources[name], item] for item, name in specs}
        now = look(specs, answers, definition.render.spec(), dropped, store, progress)
        if now.keys == dropped.keys:
            break
        dropped = now
        surveys = {
            source: replace(s, items=tuple(replace(i, flagged=i.key in now.keys) for i in s.items))
            for source, s in gathered.surveys.items()
        }
        gathered = pick(surveys)
    if now.keys:
        _refuse_shortage(definition, gathered.material, now)
    return replace(gathered, dropped=now)


def _refuse_shortage(definition: StudyDefinition, material: Material, dropped: DroppedItems) -> None:
    """Plans once, so that a shortage is told before anything is rendered. A stage that starts from solutions
    is planned with them when it is opened, questions about copies when these were looked for."""
    paradigm, design = get_paradigm(definition.paradigm), design_of(definition)
    if source_of(definition) or paradigm.copies(definition):
        return
    try:
        for _ in paradigm.plans(design, material.pool, Streams(definition.seed)):
            pass
    except PlanError as error:
        raise StudyError(
            f"{definition.slug!r} cannot be planned: {error}. {dropped_sentence(dropped.as_json())} Add "
            "items, take another layer or method, or leave out [stimuli] drop_flagged."
        ) from error


def refuse_inapplicable(definition: StudyDefinition, source: Source, opened: Opened) -> None:
    """Every condition whose method cannot explain its predictor, with the reason, in one refusal: before
    anything is rendered, and long before a participant could meet a missing picture."""
    from stimuli.spec_derivation import inapplicable

    modality = opened.predictor.modality
    if modality not in get_paradigm(definition.paradigm).modalities:
        name = definition.stimuli.sources[source][1].name
        shown = " and ".join(MODALITY_WORDS[m] for m in get_paradigm(definition.paradigm).modalities)
        raise StudyError(
            f"stimuli: the pages of {definition.paradigm} show {shown}, but the predictor {name!r} takes "
            f"{MODALITY_WORDS[modality]}. Choose a dataset and predictor of {shown}."
        )
    reasons = []
    for condition in definition.conditions:
        if condition.explainer is None or condition.source != source:
            continue
        target = definition.target_of(condition)
        try:
            target.refuse(opened.predictor.labels, definition.stimuli.classes or opened.dataset.labels)
        except BadSpec as error:
            reasons.append(f"condition {condition.name!r}: {error}")
            continue
        reason = inapplicable(opened, condition.explainer.component(), target.operator)
        if reason is not None:
            reasons.append(f"condition {condition.name!r}: {reason}")
    if reasons:
        raise StudyError("stimuli: " + "; ".join(reasons) + ".")


Recording = tuple[ConditionTable, Component, dict[str, "PredictedItem"], set[str]]
"""A condition, what explains it, the items that it explains, and the keys of all items there are."""


def _recordings(definition: StudyDefinition, gathered: MaterialSet) -> Iterator[Recording]:
    for condition in definition.conditions:
        if condition.explainer is None or not is_recorded(condition.explainer.component()):
            continue
        source = condition.source
        views = gathered.views[source]
        items = {item.key: views[item.key] for item in gathered.material.chosen[source]}
        learnt = gathered.opened[source].dataset.items("model")
        known = {*views, *(item_prefix(definition, source) + item.key for item in learnt)}
        yield condition, condition.explainer.component(), items, known


def _with_joined_units(
    definition: StudyDefinition, gathered: MaterialSet, folder: Path, store: Store
) -> MaterialSet:
    """With those declared units of a text as one, under all conditions alike, that a span covers that was
    made elsewhere."""
    from stimuli.explainers.recorded import recorded_spans
    from stimuli.spec_derivation import join_item_units
    from stimuli.store.files import read_text

    if definition.stimuli.units in (None, "legacy"):
        return gathered
    spans: dict[tuple[str, str], list[Span]] = {}
    for condition, component, items, known in _recordings(definition, gathered):
        # What is wrong with a file is told when its explanations are imported.
        with suppress(StimulusError):
            texts = {key: read_text(store, item.image_key) for key, item in items.items()}
            for key, made in recorded_spans(component, folder, texts, known).items():
                spans.setdefault((condition.dataset, key), []).extend(made)
    views = {source: dict(of_source) for source, of_source in gathered.views.items()}
    for source, of_source in views.items():
        for key in of_source.keys() & {key for dataset, key in spans if dataset == source[0]}:
            covers = spans[source[0], key]
            of_source[key] = join_item_units(of_source[key], gathered.opened[source], covers, store)
    return replace(gathered, views=views)


def _import_explanations(
    definition: StudyDefinition, gathered: MaterialSet, folder: Path, store: Store, progress: Progress
) -> dict[str, dict[str, Component]]:
    """Explanations made elsewhere, read and stored; all that is wrong with them in one refusal."""
    from stimuli.spec_derivation import store_recordings

    made: dict[str, dict[str, Component]] = {}
    reasons = []
    for condition, component, items, known in _recordings(definition, gathered):
        try:
            named = store_recordings(component, folder, items, known, store, progress)
            opened = gathered.opened[condition.source]
            _check_shown(definition, opened, next(iter(named.values())), store)
            made[condition.name] = named
        except StimulusError as error:
            reasons.append(f"condition {condition.name!r}: {error}")
    if reasons:
        raise StudyError("stimuli: " + "; ".join(reasons) + ".")
    return made


def _check_shown(definition: StudyDefinition, opened: Opened, explainer: Component, store: Store) -> None:
    """StimulusError if the recipe cannot draw the explanation, or the page would show it in the place of the
    picture, although it is not drawn on it."""
    from stimuli.store.files import read_recorded

    made = read_recorded(store, str(explainer.params["digest"]))
    if isinstance(made, PixelAttribution):
        drawn_field(made, definition.render.spec())
    display = getattr(design_of(definition), "display", "beside")
    if display == "overlay" and opened.predictor.modality == "image" and kind_of(explainer) != "image":
        raise BadSpec(
            'display = "overlay" would show the explanation in the place of the picture, which people could '
            'not see: set [design] display = "beside"'
        )
