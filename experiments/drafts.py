"""From a definition to a draft: items chosen, predictions known, stimuli asked for. Nothing here is final."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from experiments.definition import StudyDefinition
from experiments.design.rng import Streams
from experiments.errors import FrozenStudy, StudyError
from experiments.models import Condition, Item, Rendering, Study
from experiments.paradigms.base import PlanCondition, Pool, PoolItem
from stimuli.spec import Component, StimulusSpec
from stimuli.store import Store, open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from stimuli.pipeline import PredictedItem, Source

    Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Material:
    """What a definition comes to once its model has looked at its items."""

    source: Source
    surveyed: tuple[PredictedItem, ...]
    chosen: tuple[PredictedItem, ...]


def gather(definition: StudyDefinition, folder: Path, store: Store, progress: Progress) -> Material:
    """Opens dataset and predictor (training it where the study says so), predicts every item, chooses the
    pool."""
    from stimuli.pipeline import prepare, survey

    stimuli = definition.stimuli
    source = prepare(stimuli.dataset.component(), stimuli.predictor.component(), folder, store, progress)
    refuse_inapplicable(definition, source)
    surveyed = survey(source, store, progress)
    named = [stimuli.target] if stimuli.target else list(stimuli.classes or ())
    for name in named:
        if name not in source.predictor.labels:
            known = ", ".join(source.predictor.labels)
            raise StudyError(
                f"stimuli: the predictor has no class {name!r}; it has {known}. Name one of these."
            )
    chosen = choose_items(definition, _two_classes(definition, surveyed, source.predictor.labels))
    return Material(source, tuple(surveyed), tuple(chosen))


def refuse_inapplicable(definition: StudyDefinition, source: Source) -> None:
    """Every condition whose method cannot explain the predictor, with the reason, in one refusal: before
    anything is rendered, and long before a participant could meet a missing picture."""
    from stimuli.pipeline import inapplicable

    if source.predictor.modality != "image":
        raise StudyError(
            f"stimuli: the pages of {definition.paradigm} show pictures, but the predictor "
            f"{definition.stimuli.predictor.name!r} takes texts. Choose a dataset and predictor of pictures."
        )
    reasons = [
        f"condition {condition.name!r}: {reason}"
        for condition in definition.conditions
        if condition.explainer is not None
        and (reason := inapplicable(source, condition.explainer.component())) is not None
    ]
    if reasons:
        raise StudyError("stimuli: " + "; ".join(reasons) + ".")


def _two_classes(
    definition: StudyDefinition, surveyed: Sequence[PredictedItem], labels: tuple[str, ...]
) -> list[PredictedItem]:
    """The items as the two-class question sees them; predictions outside the pair are dropped or restricted
    to it."""
    from dataclasses import replace

    stimuli = definition.stimuli
    if stimuli.target is not None:
        target = stimuli.target

        def side(name: str) -> str:
            return "target" if name == target else "other"

        return [replace(item, truth=side(item.truth), predicted=side(item.predicted)) for item in surveyed]
    pair = stimuli.classes or ()
    kept = []
    for item in surveyed:
        if item.truth not in pair:
            continue
        if item.predicted not in pair:
            if stimuli.outside == "drop":
                continue
            best = max(pair, key=lambda name: item.logits[labels.index(name)])
            item = replace(item, predicted=best, index=labels.index(best))
        kept.append(item)
    if stimuli.label_names == "neutral":
        names = {name: value for name, (value, _) in zip(pair, definition.choices, strict=True)}
        return [replace(i, truth=names[i.truth], predicted=names[i.predicted]) for i in kept]
    return kept


def choose_items(definition: StudyDefinition, items: Sequence[PredictedItem]) -> list[PredictedItem]:
    """At most `[stimuli] items`, as equally as possible over predicted label x correct, by the study's
    seed."""
    wanted = definition.stimuli.items
    if len(items) <= wanted:
        return sorted(items, key=lambda item: item.key)
    streams = Streams(definition.seed)
    cells: dict[tuple[str, bool], list[PredictedItem]] = {}
    for item in sorted(items, key=lambda item: item.key):
        cells.setdefault((item.predicted, item.truth == item.predicted), []).append(item)
    for name, members in sorted(cells.items()):
        order = streams("pool", name[0], int(name[1])).permutation(len(members))
        cells[name] = [members[i] for i in order]
    chosen: list[PredictedItem] = []
    # One from each cell in turn: a small cell gives all it has, the others make up for it.
    while len(chosen) < wanted:
        for _, members in sorted(cells.items()):
            if members and len(chosen) < wanted:
                chosen.append(members.pop())
    return sorted(chosen, key=lambda item: item.key)


def pool_of(definition: StudyDefinition, items: Sequence[PredictedItem]) -> Pool:
    """The planner's view of the chosen items."""
    return Pool(
        items=tuple(PoolItem(i.key, i.truth, i.predicted, i.confidence, i.group) for i in items),
        conditions=tuple(PlanCondition(c.name, c.role, c.slots) for c in definition.conditions),
        choices=definition.choices,
        balance=definition.stimuli.balance,
        check_instructed=definition.checks.instructed,
        check_repeat=definition.checks.repeat,
    )


def specs_of(definition: StudyDefinition, material: Material) -> dict[tuple[str, str], StimulusSpec]:
    """(item, condition) -> what is to be made, for the whole study."""
    from stimuli.pipeline import spec_for

    recipe = definition.render.spec()
    return {
        (item.key, condition.name): spec_for(
            item,
            material.source,
            condition.explainer.component() if condition.explainer else None,
            recipe,
            definition.seed,
            definition.stimuli.precision,
        )
        for condition in definition.conditions
        for item in material.chosen
    }


def build_draft(definition: StudyDefinition, folder: Path, progress: Progress) -> Study:
    """Makes or replaces the draft of a study: items, conditions, and a row for every stimulus that it
    needs."""
    from stimuli.requests import ensure_stimuli

    existing = Study.objects.filter(slug=definition.slug).first()
    if existing is not None and existing.state != Study.State.DRAFT:
        if existing.digest == definition.digest:
            return existing
        raise FrozenStudy(
            f"{definition.slug!r} is {existing.state} under another definition (digest "
            f"{existing.digest[:12]}, "
            f"this file is {definition.digest[:12]}): choose a new slug, or extend the study."
        )
    if existing is not None and existing.digest == definition.digest and _is_buildable(existing):
        return existing
    store = open_store(settings.STORAGE_URL)
    material = gather(definition, folder, store, progress)
    specs = specs_of(definition, material)
    rows = ensure_stimuli(list(specs.values()))
    practice = store_practice(definition, store)
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
            predictor={
                "key": material.source.predictor_key,
                "labels": list(material.source.predictor.labels),
                "layer": getattr(material.source.predictor, "layer", ""),
                "provenance": dict(material.source.predictor.provenance),
            },
        )
        conditions = {
            c.name: Condition.objects.create(
                study=study,
                name=c.name,
                role=c.role,
                ordinal=ordinal,
                slots=c.slots,
                explainer=c.explainer.component().as_json() if c.explainer else None,
            )
            for ordinal, c in enumerate(definition.conditions)
        }
        items = Item.objects.bulk_create(_item_row(study, item) for item in material.chosen)
        by_key = {item.key: item for item in items}
        Rendering.objects.bulk_create(
            Rendering(item=by_key[key], condition=conditions[name], stimulus_id=rows[spec.picture_key])
            for (key, name), spec in specs.items()
        )
    return study


def _is_buildable(study: Study) -> bool:
    """Whether this draft can be finished: it has items, and what is missing was asked for from the methods'
    versions of today."""
    from stimuli.explainers import version_of

    open_specs = Rendering.objects.filter(item__study=study).exclude(stimulus__state="done")
    for spec in open_specs.values_list("stimulus__spec", flat=True).iterator():
        explainer = spec["explainer"]
        if explainer and version_of(Component.from_json(explainer)) != spec["version"]:
            return False
    return study.items.exists()


def _item_row(study: Study, item: PredictedItem) -> Item:
    return Item(
        study=study,
        key=item.key,
        truth=item.truth,
        predicted=item.predicted,
        confidence=item.confidence,
        group=item.group,
        logits=list(item.logits),
        image_key=item.image_key,
        width_px=item.width_px,
        height_px=item.height_px,
    )


def store_practice(definition: StudyDefinition, store: Store) -> list[dict[str, object]]:
    """Draws the neutral practice pictures and stores them; returns what the practice page needs."""
    from stimuli.datasets.practice import practice_pictures
    from stimuli.files import view_file
    from stimuli.render import png

    rows: list[dict[str, object]] = []
    for name, pixels, answer in practice_pictures(definition.seed):
        file = view_file(png.pixel_key(pixels))
        store.put(file, png.encode(pixels))
        height, width = pixels.shape[:2]
        example = name.startswith("example")
        rows.append(
            {
                "id": name,
                "file": file,
                "answer": answer,
                "example": example,
                "width_px": width,
                "height_px": height,
            }
        )
    return rows


def picture_keys(study: Study) -> list[str]:
    """The stimuli that a study needs, one condition after the other."""
    rows = Rendering.objects.filter(item__study=study).order_by("condition__ordinal", "item__key")
    return list(dict.fromkeys(rows.values_list("stimulus__key", flat=True)))
