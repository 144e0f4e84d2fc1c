"""What is planned of a study, as a document: made of its definition and plans when it opens, and stored with
its digest. The same maker says what holds now, so that both can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from django.db.models import Count
from django.utils import timezone

from experiments.definition.preregistration_table import PreregistrationTable
from experiments.definition.study import StudyDefinition
from experiments.models import Preregistration, Rendering, Slot, Study
from experiments.opening.preregistration_text import witness
from experiments.opening.previewed_items import previewed_tests
from experiments.opening.timestamps import StampFiles, stamp_words, verify_stamp
from experiments.paradigms import get_paradigm
from experiments.paradigms.screening import read_rules
from stimuli.spec import canonical_json, content_key

FORMAT = 1


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What only the plans and the stimuli tell. `places` counts the slots of each condition, or of each lane
    if slots mix conditions. What is not known yet is None: before opening the digests of the pictures, by
    condition, and that of the plans if it depends on pictures.
    """

    places: Mapping[str, int]
    is_between: bool
    is_matched: bool
    plan_digest: str | None
    predictors: Mapping[str, str]
    pictures: Mapping[str, str] | None


def document_of(definition: StudyDefinition, facts: PlanFacts) -> dict[str, Any]:
    """The plan as JSON values, keys sorted; None stands for what the author did not state or cannot be known
    yet."""
    declared = definition.preregistration or PreregistrationTable()
    effect = declared.smallest_effect
    rules = read_rules(definition.rules).values()
    document = {
        "format": FORMAT,
        "study": {
            "slug": definition.slug,
            "title": definition.title,
            "paradigm": definition.paradigm,
            "seed": definition.seed,
        },
        "extends": definition.extends or None,
        "extension": definition.extension.model_dump(mode="json") if definition.extends else None,
        "hypotheses": list(declared.hypotheses) or None,
        "primary_outcome": declared.primary_outcome or None,
        "smallest_effect": effect.model_dump(exclude_none=True) if effect else None,
        "alpha": declared.alpha,
        "contrasts": declared.contrasts,
        "looks": list(declared.looks) or None,
        "boundary": declared.boundary,
        "planned_analysis": _analysis(definition, declared) or None,
        "conditions": {
            c.name: {"role": c.role, "explainer": c.explainer.component().as_json() if c.explainer else None}
            for c in definition.conditions
        },
        "exclusion_rules": {
            rule.name: {
                "limit": list(rule.limit) if isinstance(rule.limit, tuple) else rule.limit,
                "timing": rule.timing,
            }
            for rule in rules
        },
        "checks": definition.checks.model_dump(),
        "missing": declared.missing or None,
        "stopping_rule": _stopping_rule(facts, declared),
        "sample_size": {"total": sum(facts.places.values()), "places": dict(facts.places)},
        "assignment": _assignment(facts),
        "design": definition.model_dump(mode="json")["design"],
        "explained": definition.explained.model_dump(mode="json"),
        "render": definition.render.spec().as_json(),
        # A warning can be acknowledged only after opening; reports then say by whom, and why.
        "acknowledged": [],
        "digests": {
            "definition": definition.digest,
            "plans": facts.plan_digest,
            "predictors": dict(facts.predictors),
            "pictures": None if facts.pictures is None else dict(facts.pictures),
        },
        "code_version": version("legible"),
    }
    # As it is read from the database again.
    read: dict[str, Any] = json.loads(canonical_json(document))
    return read


def _analysis(definition: StudyDefinition, declared: PreregistrationTable) -> str:
    paradigm = get_paradigm(definition.paradigm)
    if declared.contrasts is not None:
        return paradigm.planned_contrasts[declared.contrasts]
    return paradigm.planned_analysis


def _stopping_rule(facts: PlanFacts, declared: PreregistrationTable) -> str:
    if facts.is_between:
        until = "every condition has its places kept by participants who passed all rules"
    else:
        until = "every planned place is kept by a session that passed all rules"
    if declared.looks:
        until += ", or until a planned look says stop"
    return f"Data are collected until {until}. Results per condition are sealed until then."


def _assignment(facts: PlanFacts) -> str:
    between = "Between subjects" if facts.is_between else "Places mix conditions"
    matched = "place j of every condition has the same items, order, sides and checks; "
    return (
        f"{between}: all places are planned from the seed before opening; "
        f"{matched if facts.is_matched else ''}each person gets the next free place of the planned order "
        "after device check, consent, instructions and quiz, and a place that becomes free is given out "
        "again, unchanged, before a fresh one."
    )


def facts_of(study: Study) -> PlanFacts:
    """What the rows of an opened study say now."""
    slots = Slot.objects.filter(study=study, pilot=False).order_by()
    named = list(slots.values_list("condition__name", "lane").annotate(n=Count("id")))
    is_between = all(condition for condition, _, _ in named)
    places: dict[str, int] = {}
    for condition, lane, count in sorted(named, key=lambda row: (row[0] or "", row[1])):
        name = condition if is_between else lane
        places[name] = places.get(name, 0) + count
    known = study.predictor.get("several") or ({"": study.predictor} if study.predictor else {})
    return PlanFacts(
        places=places,
        is_between=is_between,
        is_matched=slots.filter(matched__isnull=False).exists(),
        plan_digest=study.plan_digest,
        predictors={name: str(row.get("key", "")) for name, row in known.items()},
        pictures=_pictures(study),
    )


def _pictures(study: Study) -> dict[str, str]:
    """Of each condition a digest over its pictures with the items that they show."""
    listed: dict[str, list[list[str]]] = {}
    rows = Rendering.objects.filter(item__study=study)
    fields = ("condition__name", "item__key", "variant", "stimulus__picture_digest")
    # Sorted here, for databases sort texts by rules of their own.
    for condition, *picture in sorted(rows.values_list(*fields)):
        listed.setdefault(condition, []).append(picture)
    return {condition: content_key(pictures) for condition, pictures in listed.items()}


def document_now(study: Study) -> dict[str, Any]:
    """What holds now, by the stored rows; not by a definition that was read before they were altered."""
    return document_of(StudyDefinition.model_validate(study.definition), facts_of(study))


def store_plan(study: Study, definition: StudyDefinition) -> None:
    """Stores what is planned, as the study opens, and which test items a preview has shown with explanations;
    it is called once, in the transaction that opens it."""
    document = document_of(definition, facts_of(study))
    if seen := previewed_tests(study):
        document["previewed"] = seen
    text = canonical_json(document)
    digest = sha256(text.encode()).hexdigest()
    Preregistration.objects.create(study=study, document=text, digest=digest, stored_at=timezone.now())


def store_stamp(study: Study, files: StampFiles | None) -> None:
    """Verifies a time stamp and stores it, once. Raises StudyError, and nothing is stored, if it does not
    verify."""
    stored = stored_plan(study)
    if files is None or stored is None or stored.timestamp:
        return
    stamp = verify_stamp(files, json.loads(stored.document))
    Preregistration.objects.filter(pk=stored.pk, timestamp={}).update(timestamp=stamp)


def stored_plan(study: Study) -> Preregistration | None:
    """None for a study that was opened before plans were stored."""
    return Preregistration.objects.filter(study=study).first()


def plan_sentence(study: Study) -> str:
    """Which plan is stored, and who else can say when it was there."""
    stored = stored_plan(study)
    if stored is None:
        return "No plan is stored: the study was opened before plans were."
    when = f"{stored.stored_at:%Y-%m-%d %H:%M} UTC"
    return f"Plan {stored.digest}, stored {when}. {witness_words(stored)}"


def witness_words(stored: Preregistration) -> str:
    """Who else can say when the plan was there."""
    named_at = stored.registry_named_at.isoformat() if stored.registry_named_at else ""
    stamp = stamp_words(stored.timestamp, stored.stored_at.isoformat()) if stored.timestamp else ""
    return witness(stored.registry, named_at, stamp)


def name_registry(study: Study, declared: PreregistrationTable | None) -> None:
    """Stores the address of the registration, once; a plan that was registered cannot be moved."""
    if declared is None or not declared.registry:
        return
    rows = Preregistration.objects.filter(study=study, registry="")
    rows.update(registry=declared.registry, registry_named_at=timezone.now())
