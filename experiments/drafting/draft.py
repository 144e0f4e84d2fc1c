"""From a definition to a draft: items chosen, predictions known, stimuli requested. A draft may still
change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from experiments.definition.study import StudyDefinition
from experiments.drafting.declared_units import check_target_words, check_units
from experiments.drafting.decoding import decoding_noted, decoding_of
from experiments.drafting.draft_rows import (
    is_buildable,
    predictor_json,
    store_conditions,
    store_items,
    store_practice,
)
from experiments.drafting.extension_parent import parent_of
from experiments.drafting.item_choice import choose
from experiments.drafting.material_set import MaterialSet
from experiments.drafting.model_survey import ask
from experiments.drafting.perturbed_copies import copies_json, copies_of, pool_with_copies
from experiments.drafting.plates import store_plates
from experiments.drafting.rater_training import store_training
from experiments.drafting.solution_stage_items import Variant, store_own_solutions
from experiments.drafting.stimulus_specs import every_spec
from experiments.drafting.store_cleanup import note_installation
from experiments.errors import FrozenStudy
from experiments.gates.practice import NAME as PRACTICE
from experiments.models import Rendering, Study
from experiments.paradigms import get_paradigm
from experiments.stages.solution_freeze import frozen_source
from stimuli.explainers import is_recorded
from stimuli.store import Store, open_store

if TYPE_CHECKING:
    from stimuli.spec import StimulusSpec
    from stimuli.types import Progress


def gather(
    definition: StudyDefinition, folder: Path, store: Store, progress: Progress, *, recorded: bool = True
) -> MaterialSet:
    """Asks the models, lets the paradigm choose what is rendered, and reads what was explained elsewhere
    unless `recorded` is False."""
    asked = ask(definition, folder, store, progress)
    return choose(definition, asked, folder, store, progress, recorded=recorded)


def with_copies(
    definition: StudyDefinition, gathered: MaterialSet, store: Store, progress: Progress
) -> MaterialSet:
    """With the changed copies that the study's questions compare with, and a pool that knows them."""
    made = replace(gathered, copies=copies_of(definition, gathered, store, progress))
    if not made.copies:
        return made
    return replace(made, material=replace(made.material, pool=pool_with_copies(definition, made)))


def build_draft(definition: StudyDefinition, folder: Path, progress: Progress) -> Study:
    """Makes or replaces the draft of a study: items, conditions, and a row for every stimulus that it needs.

    1. What is there already, an opened study or a draft of the same digests and decoding, is returned as it
       is.
    2. `ask` the models, `choose` the items, look for changed copies: nothing is stored yet but files.
    3. A row for every stimulus, shared with other studies by its key.
    4. The draft itself in one transaction, in the place of the one before.
    """
    existing = _existing(definition)
    if existing is not None and existing.state != Study.State.DRAFT:
        return existing
    check_target_words(definition)
    parent_of(definition)
    earlier = frozen_source(definition)
    solutions_digest = earlier.frozen_digest if earlier else ""
    if (
        existing is not None
        and not any(c.explainer and is_recorded(c.explainer.component()) for c in definition.conditions)
        and (existing.digest, existing.solutions_digest) == (definition.digest, solutions_digest)
        and decoding_noted(existing) == decoding_of(definition)
        and is_buildable(existing)
    ):
        return existing
    store = open_store(settings.STORAGE_URL)
    note_installation(store)
    gathered = gather(definition, folder, store, progress)
    check_units(definition, gathered)
    gathered = with_copies(definition, gathered, store, progress)
    specs = every_spec(definition, gathered, store)
    return store_draft(definition, gathered, specs, store, solutions_digest)


def store_draft(
    definition: StudyDefinition,
    gathered: MaterialSet,
    specs: Mapping[Variant, StimulusSpec],
    store: Store,
    solutions_digest: str = "",
) -> Study:
    """The rows of a draft, in the place of an earlier draft of its name."""
    from stimuli.build import ensure_stimuli

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
            predictor=predictor_json(definition, gathered),
            solutions_digest=solutions_digest,
            dropped=gathered.dropped.as_json() if gathered.dropped else {},
            copies=copies_json(gathered.copies),
        )
        conditions = store_conditions(study, definition)
        by_key = store_items(study, gathered)
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


def _existing(definition: StudyDefinition) -> Study | None:
    """The study of that slug. FrozenStudy if it is open or closed under another definition."""
    existing = Study.objects.filter(slug=definition.slug).first()
    if existing is None or existing.state == Study.State.DRAFT or existing.digest == definition.digest:
        return existing
    raise FrozenStudy(
        f"{definition.slug!r} is {existing.state} under another definition (digest "
        f"{existing.digest[:12]}, this file is {definition.digest[:12]}): choose a new slug, or extend it."
    )
