"""From a definition to a draft: items chosen, predictions known, stimuli requested. A draft may still
change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from experiments.canvases import canvases_of
from experiments.copies import copies_json, copies_of, copy_specs, pool_with_copies, store_copies
from experiments.definition import StudyDefinition
from experiments.design.rng import Streams
from experiments.dropping import LOOK_ALIKE, Dropped, dropped_sentence, look
from experiments.errors import FrozenStudy, StudyError
from experiments.gates.practice import NAME as PRACTICE
from experiments.gathered import Gathered
from experiments.looks import Asked, looks_of, notes_of, stored_look
from experiments.models import Condition, Item, Prediction, Rendering, Study
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import BadDesign, Material, PlanError, Source, Survey, Surveyed
from experiments.parents import parent_of
from experiments.plates import store_plates
from experiments.pruning import note_installation
from experiments.reviewed import (
    Variant,
    only_solved,
    solution_specs,
    store_own_solutions,
    with_solutions,
)
from experiments.stages import frozen_source, source_of
from experiments.training import store_training
from stimuli.errors import BadSpec, StimulusError
from stimuli.explainers import is_recorded, kind_of
from stimuli.render.field import drawn_field
from stimuli.spec import Component, StimulusSpec
from stimuli.store import Store, open_store
from stimuli.types import PixelAttribution

if TYPE_CHECKING:
    from collections.abc import Callable

    from stimuli.survey import PredictedItem
    from stimuli.survey import Source as Opened

    Progress = Callable[[str, int, int], None]

MODALITY_WORDS = {"image": "pictures", "text": "texts"}


def gather(
    definition: StudyDefinition, folder: Path, store: Store, progress: Progress, *, recorded: bool = True
) -> Gathered:
    """Asks the models, lets the paradigm choose what is rendered, and reads what was explained elsewhere
    unless `recorded` is False."""
    asked = ask(definition, folder, store, progress)
    return choose(definition, asked, folder, store, progress, recorded=recorded)


def ask(definition: StudyDefinition, folder: Path, store: Store, progress: Progress) -> Asked:
    """Opens datasets and predictors (training one if the study says so), and predicts every item."""
    from stimuli.survey import prepare, survey

    opened: dict[Source, Opened] = {}
    surveys: dict[Source, Survey] = {}
    views: dict[Source, dict[str, PredictedItem]] = {}
    used = {condition.source for condition in definition.conditions}
    for source, (dataset, predictor) in definition.stimuli.sources.items():
        if source not in used:
            continue
        made = prepare(dataset.component(), predictor.component(), folder, store, progress)
        prefix = _prefix(definition, source)
        said = {prefix + item.key: item for item in survey(made, store, progress)}
        opened[source], views[source] = made, said
        surveys[source] = Survey(made.predictor.labels, tuple(_surveyed(k, item) for k, item in said.items()))
    return Asked(opened, surveys, views)


def choose(
    definition: StudyDefinition,
    asked: Asked,
    folder: Path,
    store: Store,
    progress: Progress,
    *,
    recorded: bool = True,
) -> Gathered:
    """What the paradigm chooses of it, and what was explained elsewhere unless `recorded` is False. Here, and
    not before the models are asked, methods that cannot explain them are refused."""
    for source, opened in asked.opened.items():
        refuse_inapplicable(definition, source, opened)
    asked = only_solved(definition, asked)

    def pick(surveys: Mapping[Source, Survey]) -> Gathered:
        try:
            material = get_paradigm(definition.paradigm).material(definition, surveys)
        except BadDesign as error:
            raise StudyError(str(error)) from error
        gathered = with_solutions(definition, Gathered(asked.opened, surveys, asked.views, material))
        if recorded:
            return replace(gathered, recorded=_recorded(definition, gathered, folder, store, progress))
        return gathered

    gathered = pick(asked.surveys)
    if definition.stimuli.drop_flagged and recorded:
        gathered = _without_flagged(definition, gathered, pick, store, progress)
    return replace(gathered, canvases=canvases_of(definition, gathered, store, progress))


def _without_flagged(
    definition: StudyDefinition,
    gathered: Gathered,
    pick: Callable[[Mapping[Source, Survey]], Gathered],
    store: Store,
    progress: Progress,
) -> Gathered:
    """Items chosen again until the study's rules flag none: only those that take the place of dropped ones
    are new. StudyError if those that are left are too few for the design."""
    dropped = Dropped(definition.stimuli.drop_flagged)
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


def _refuse_shortage(definition: StudyDefinition, material: Material, dropped: Dropped) -> None:
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


def with_copies(
    definition: StudyDefinition, gathered: Gathered, store: Store, progress: Progress
) -> Gathered:
    """With the changed copies that the study's questions compare with, and a pool that knows them."""
    made = replace(gathered, copies=copies_of(definition, gathered, store, progress))
    if not made.copies:
        return made
    return replace(made, material=replace(made.material, pool=pool_with_copies(definition, made)))


def _recorded(
    definition: StudyDefinition, gathered: Gathered, folder: Path, store: Store, progress: Progress
) -> dict[str, dict[str, Component]]:
    """Explanations made elsewhere, read and stored; all that is wrong with them in one refusal."""
    from stimuli.survey import recorded

    made: dict[str, dict[str, Component]] = {}
    reasons = []
    for condition in definition.conditions:
        if condition.explainer is None or not is_recorded(condition.explainer.component()):
            continue
        source = condition.source
        views = gathered.views[source]
        items = {item.key: views[item.key] for item in gathered.material.chosen[source]}
        learnt = gathered.opened[source].dataset.items("model")
        known = {*views, *(_prefix(definition, source) + item.key for item in learnt)}
        component = condition.explainer.component()
        try:
            named = recorded(component, folder, items, known, store, progress)
            _check_shown(definition, gathered.opened[source], next(iter(named.values())), store)
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


def _prefix(definition: StudyDefinition, source: Source) -> str:
    """What stands before the keys of a dataset's items, if the study has several."""
    return f"{source[0]}/" if len(definition.stimuli.datasets) > 1 else ""


def _surveyed(key: str, item: PredictedItem) -> Surveyed:
    return Surveyed(
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


def refuse_inapplicable(definition: StudyDefinition, source: Source, opened: Opened) -> None:
    """Every condition whose method cannot explain its predictor, with the reason, in one refusal: before
    anything is rendered, and long before a participant could meet a missing picture."""
    from stimuli.survey import inapplicable

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


def specs_of(definition: StudyDefinition, gathered: Gathered) -> dict[tuple[str, str], StimulusSpec]:
    """(item, condition) -> what is to be made, for the whole study."""
    from stimuli.survey import spec_for

    recipe, seed = definition.render.spec(), definition.seed
    specs: dict[tuple[str, str], StimulusSpec] = {}
    for condition in definition.conditions:
        source = condition.source
        # A blank item shows nothing that could be explained.
        chosen = [i for i in gathered.material.chosen[source] if not condition.explainer or i.use != "blank"]
        views = [gathered.view(source, item) for item in chosen]
        for item, view, explainer in zip(
            chosen, views, gathered.explainers(condition, views, seed), strict=True
        ):
            specs[item.key, condition.name] = spec_for(
                view,
                gathered.opened[source],
                explainer,
                recipe,
                seed,
                definition.stimuli.precision,
                definition.target_of(condition),
                gathered.canvases.get(source, {}).get(item.key),
            )
    return specs


def _every_spec(definition: StudyDefinition, gathered: Gathered, store: Store) -> dict[Variant, StimulusSpec]:
    """What is to be made for all stimuli of a study."""
    if gathered.material.pool.solutions:
        return solution_specs(definition, gathered, store)
    specs = specs_of(definition, gathered) | copy_specs(definition, gathered)
    return {(*place, ""): spec for place, spec in specs.items()}


def build_draft(definition: StudyDefinition, folder: Path, progress: Progress) -> Study:
    """Makes or replaces the draft of a study: items, conditions, and a row for every stimulus that it
    needs."""
    from stimuli.build import ensure_stimuli

    existing = _existing(definition)
    if existing is not None and existing.state != Study.State.DRAFT:
        return existing
    parent_of(definition)
    earlier = frozen_source(definition)
    solutions_digest = earlier.frozen_digest if earlier else ""
    if (
        existing is not None
        and not any(c.explainer and is_recorded(c.explainer.component()) for c in definition.conditions)
        and (existing.digest, existing.solutions_digest) == (definition.digest, solutions_digest)
        and _is_buildable(existing)
    ):
        return existing
    store = open_store(settings.STORAGE_URL)
    note_installation(store)
    gathered = gather(definition, folder, store, progress)
    gathered = with_copies(definition, gathered, store, progress)
    specs = _every_spec(definition, gathered, store)
    rows = ensure_stimuli(list(specs.values()))
    gates = get_paradigm(definition.paradigm).gates
    practice = store_practice(definition, store) if PRACTICE in gates else store_training(definition, store)
    with transaction.atomic():
        Study.objects.filter(slug=definition.slug, state=Study.State.DRAFT).delete()
        study = Study.objects.create(
            slug=definition.slug,
            title=definition.title,
            paradigm=definition.paradigm,
            definition=definition.model_dump(mode="json"),
            digest=definition.digest,
            seed=definition.seed,
            practice=practice,
            plates=store_plates(definition, store),
            predictor=_predictor_json(definition, gathered),
            solutions_digest=solutions_digest,
            dropped=gathered.dropped.as_json() if gathered.dropped else {},
            copies=copies_json(gathered.copies),
        )
        conditions = _store_conditions(study, definition)
        by_key = _store_items(study, gathered)
        Rendering.objects.bulk_create(
            Rendering(
                item=by_key[key],
                condition=conditions[name],
                variant=variant,
                stimulus_id=rows[spec.picture_key],
            )
            for (key, name, variant), spec in specs.items()
        )
        store_own_solutions(study, definition, gathered, by_key)
    return study


def _store_conditions(study: Study, definition: StudyDefinition) -> dict[str, Condition]:
    return {
        c.name: Condition.objects.create(
            study=study,
            name=c.name,
            role=c.role,
            ordinal=ordinal,
            slots=c.slots,
            explainer=c.explainer.component().as_json() if c.explainer else None,
            dataset=c.dataset,
            predictor=c.predictor,
        )
        for ordinal, c in enumerate(definition.conditions)
    }


def _existing(definition: StudyDefinition) -> Study | None:
    """The study of that slug. FrozenStudy if it is open or closed under another definition."""
    existing = Study.objects.filter(slug=definition.slug).first()
    if existing is None or existing.state == Study.State.DRAFT or existing.digest == definition.digest:
        return existing
    raise FrozenStudy(
        f"{definition.slug!r} is {existing.state} under another definition (digest "
        f"{existing.digest[:12]}, this file is {definition.digest[:12]}): choose a new slug, or extend it."
    )


def _is_buildable(study: Study) -> bool:
    """Whether this draft can be finished: it has items, it was noted whether its models know them, and what
    is missing was asked for from the methods' versions of today."""
    from stimuli.explainers import packages_of, version_of

    if any("answers" not in noted for noted in notes_of(study)):
        return False
    open_specs = Rendering.objects.filter(item__study=study).exclude(stimulus__state="done")
    for spec in open_specs.values_list("stimulus__spec", flat=True).iterator():
        if spec["explainer"]:
            explainer = Component.from_json(spec["explainer"])
            if version_of(explainer) != spec["version"]:
                return False
            if packages_of(explainer) != tuple(spec.get("packages", ())):
                return False
    return study.items.exists()


def _predictor_json(definition: StudyDefinition, gathered: Gathered) -> dict[str, object]:
    """What the study's page says of its model; every model by name if there are several."""
    looks = looks_of(definition, gathered)
    several = {
        "/".join(filter(None, source)): {
            "key": opened.predictor_key,
            "labels": list(opened.predictor.labels),
            "layer": getattr(opened.predictor, "layer", ""),
            "provenance": dict(opened.predictor.provenance),
            "answers": stored_look(looks[source]),
            **({"packages": list(opened.packages)} if opened.packages else {}),
            **({"regions": opened.regions} if opened.regions else {}),
        }
        for source, opened in gathered.opened.items()
    }
    first = dict(next(iter(several.values())))
    return first if len(several) == 1 else {**first, "several": several}


def predictor_keys(gathered: Gathered) -> dict[str, str]:
    """The key of each model's weights and architecture, by the name of its source; "" if there is one."""
    keys = {"/".join(filter(None, s)): opened.predictor_key for s, opened in gathered.opened.items()}
    return keys if len(keys) > 1 else {"": next(iter(keys.values()))}


def _store_items(study: Study, gathered: Gathered) -> dict[str, Item]:
    """Every chosen item once, as the first model that has it says, and what the other models say of it."""
    rows: dict[str, Item] = {}
    further: list[tuple[str, str, Surveyed]] = []
    for source, items in gathered.material.chosen.items():
        for item in items:
            if item.key in rows:
                further.append((item.key, source[1], item))
            else:
                rows[item.key] = _item_row(study, item, gathered.views[source][item.key])
    by_key = {item.key: item for item in Item.objects.bulk_create(rows.values())}
    Prediction.objects.bulk_create(
        Prediction(
            item=by_key[key],
            predictor=predictor,
            predicted=item.predicted,
            confidence=item.confidence,
            logits=list(item.logits),
        )
        for key, predictor, item in further
    )
    return by_key | store_copies(study, gathered, by_key)


def _item_row(study: Study, item: Surveyed, view: PredictedItem) -> Item:
    return Item(
        study=study,
        key=item.key,
        truth=item.truth,
        predicted=item.predicted,
        confidence=item.confidence,
        group=item.group,
        use=item.use,
        logits=list(item.logits),
        image_key=view.image_key,
        width_px=view.width_px,
        height_px=view.height_px,
    )


def store_practice(definition: StudyDefinition, store: Store) -> list[dict[str, object]]:
    """What the practice page needs: neutral pictures, drawn and stored, or sentences if the paradigm's pages
    show texts alone."""
    from stimuli.datasets.practice import practice_pictures, practice_sentences
    from stimuli.render import png
    from stimuli.store.files import view_file

    if get_paradigm(definition.paradigm).modalities == ("text",):
        return [
            {"id": name, "text": text, "answer": answer, "example": name.startswith("example")}
            for name, text, answer in practice_sentences(definition.seed, definition.language)
        ]
    rows: list[dict[str, object]] = []
    for name, pixels, answer in practice_pictures(definition.seed):
        file = view_file(png.pixel_key(pixels))
        store.put(file, png.encode(pixels))
        height, width = pixels.shape[:2]
        shown = {"file": file, "width_px": width, "height_px": height}
        rows.append({"id": name, "answer": answer, "example": name.startswith("example"), **shown})
    return rows


def picture_keys(study: Study) -> list[str]:
    """The stimuli that a study needs, one condition after the other."""
    rows = Rendering.objects.filter(item__study=study).order_by("condition__ordinal", "item__key")
    return list(dict.fromkeys(rows.values_list("stimulus__key", flat=True)))
