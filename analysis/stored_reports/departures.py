"""The stored plan of a study beside what holds now, field by field, as plain values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from typing import Any

from django.db.models import Count

from analysis import models
from analysis.facts import StudyFacts
from analysis.tables.response_reader import study_facts
from experiments.drafting.stimulus_warnings import acknowledgements
from experiments.models import Preregistration, Session, Study
from experiments.opening.preregistration import document_now, stored_plan, witness_words
from experiments.opening.preregistration_text import value_words

NONE = "none"
APART = ("format", "code_version", "acknowledged", "previewed")
"""Fields that are no part of what is promised: what changed in them is a note."""
AS_STORED = ("render", "explained")
"""Tables that later versions may add keys to, at defaults that change nothing; keys that are new are left
out."""
Departure = dict[str, str]
"""`field`, `planned` and `now`, in words."""
Look = dict[str, Any]
"""`number`, `people`, `answer`, `at` and `by` of a look that was taken."""


def report_facts(study: Study, origin: str = "human") -> StudyFacts:
    """The facts of a study with its plan: for reports and exports. Pages that show only counts and the seal
    do without, since comparing a plan reads every picture's row."""
    return replace(study_facts(study, origin), preregistration=plan_facts(study, origin))


def plan_facts(study: Study, origin: str) -> dict[str, Any]:
    """What a report says of the stored plan; `stored` False and nothing else if there is none."""
    stored = stored_plan(study)
    if stored is None:
        return {"stored": False}
    document = json.loads(stored.document)
    looks = _looks(study) if origin == Session.Origin.HUMAN else []
    named_at = stored.registry_named_at.isoformat(timespec="seconds") if stored.registry_named_at else ""
    return {
        "stored": True,
        "digest": stored.digest,
        "stored_at": stored.stored_at.isoformat(timespec="seconds"),
        "registry": stored.registry,
        "registry_named_at": named_at,
        "timestamp": stored.timestamp,
        "witness": witness_words(stored),
        "looks": looks,
        "departures": [
            *_document_departures(stored),
            *_departures(study, document),
            *_by_hand(study, origin),
            *_end_departures(study, origin, _stop(looks)),
            *(_look_departures(study, document, looks) if origin == Session.Origin.HUMAN else ()),
        ],
        "notes": [*_notes(study, document), *_after_stop(study, looks), *_viewing_notes(study, origin)],
        "document": document,
    }


def _document_departures(stored: Preregistration) -> Iterator[Departure]:
    digest = sha256(stored.document.encode()).hexdigest()
    if digest != stored.digest:
        yield _departure("the stored document itself", stored.digest, f"another text, SHA-256 {digest}")


def _departures(study: Study, document: Mapping[str, Any]) -> Iterator[Departure]:
    try:
        now = document_now(study)
    except ValueError:
        yield _departure("definition", document["digests"]["definition"], "cannot be read any more")
        return
    before, after = dict(_leaves(document)), dict(_leaves(now))
    for name in dict.fromkeys([*before, *after]):
        top = name.split(".")[0]
        if top in APART or (top in AS_STORED and name not in before):
            continue
        if before.get(name) != after.get(name):
            yield _departure(name, before.get(name), after.get(name))


def _leaves(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Every value with the names that lead to it."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value


def _departure(name: str, planned: object, now: object) -> Departure:
    planned, now = (NONE if value in (None, "") else value_words(value) for value in (planned, now))
    return {"field": name, "planned": planned, "now": now}


def _by_hand(study: Study, origin: str) -> Iterator[Departure]:
    """What people decided while the study ran, which no plan can hold."""
    sessions = Session.objects.filter(study=study, origin=origin).exclude(excluded={})
    made = [row for row in sessions.order_by("started_at", "id").values_list("excluded", flat=True) if row]
    if made:
        reasons = "; ".join(row.get("reason", "") for row in made)
        count = "1 person" if len(made) == 1 else f"{len(made)} people"
        now = f"{count} left out, decided by hand: {reasons}"
        yield _departure("people left out", "by the exclusion rules alone", now)


def _end_departures(study: Study, origin: str, stop: Look | None) -> Iterator[Departure]:
    """What ended the study or opened its results, unless a planned look said stop."""
    if stop:
        return
    if study.unsealed_at:
        now = f"on {study.unsealed_at:%Y-%m-%d}, by {study.unsealed_by}: {study.unsealed_reason}"
        yield _departure("results opened", "when the stopping rule is met", now)
    if origin == Session.Origin.HUMAN and study.state == Study.State.CLOSED:
        slots = study.slots.filter(pilot=False)
        kept, wanted = slots.filter(kept=True, holder__origin=origin).count(), slots.count()
        if kept < wanted:
            yield _departure("stopping", f"{wanted} places kept", f"closed with {kept} of {wanted} kept")


def _looks(study: Study) -> list[Look]:
    """The looks that were taken, as plain values."""
    return [
        {
            "number": row.number,
            "people": row.people,
            "answer": row.answer,
            "at": row.looked_at.isoformat(timespec="seconds"),
            "by": row.looked_by,
        }
        for row in models.TakenLook.objects.filter(study=study)
    ]


def _stop(looks: Sequence[Look]) -> Look | None:
    return next((look for look in looks if look["answer"] == "stop"), None)


def _look_departures(study: Study, document: Mapping[str, Any], looks: Sequence[Look]) -> Iterator[Departure]:
    """What became of the planned looks, once the study is over or all its places are kept."""
    slots = study.slots.filter(pilot=False)
    is_full = not slots.exclude(kept=True, holder__origin=Session.Origin.HUMAN).exists()
    if not is_full and study.state != Study.State.CLOSED:
        return
    if stop := _stop(looks):
        if is_full:
            yield _departure(
                "stopping", f"look {stop['number']} said stop", "all places were filled after it"
            )
        return
    kept = slots.filter(kept=True, holder__origin=Session.Origin.HUMAN).order_by()
    counts = kept.values_list("condition").annotate(n=Count("id")).values_list("n", flat=True)
    least = min(counts, default=0)
    for number, people in enumerate(document.get("looks") or (), start=1):
        if number > len(looks) and people <= least:
            yield _departure(f"look {number}", f"at {people} people kept per condition", "not taken")


def _after_stop(study: Study, looks: Sequence[Look]) -> Iterator[str]:
    if (stop := _stop(looks)) is None:
        return
    later = Session.objects.filter(study=study, origin=Session.Origin.HUMAN, verdict="passed")
    if count := later.filter(finished_at__gt=stop["at"]).count():
        people = "1 person" if count == 1 else f"{count} people"
        yield f"{people} finished after look {stop['number']} had said stop; the results hold them too."


def _notes(study: Study, document: Mapping[str, Any]) -> Iterator[str]:
    """What is worth knowing and no departure."""
    for entry in acknowledgements(study):
        names = ", ".join(f"{w['kind']} ({w['condition'] or 'all conditions'})" for w in entry["warnings"])
        yield f"Acknowledged after opening, by {entry['by']} on {entry['at'][:10]}: {names}."
    if (now := version("legible")) != document["code_version"]:
        yield (
            f"The plan was stored by Legible {document['code_version']} and this report is made by {now}; "
            "the planned test is what the plan says unless it is listed as a departure."
        )


def _viewing_notes(study: Study, origin: str) -> Iterator[str]:
    """What logins looked at while results were sealed: other limits, and single people's records."""
    viewed = models.Viewing.objects.filter(study=study, origin=origin, sealed=True)
    if limits := viewed.filter(kind=models.Viewing.Kind.LIMIT).count():
        tried = (
            "1 other limit of screening was" if limits == 1 else f"{limits} other limits of screening were"
        )
        yield f"While results were sealed, {tried} tried on the Quality page, which changes none."
    records = viewed.filter(kind=models.Viewing.Kind.RECORD)
    if opened := records.values("session").distinct().count():
        left_out = records.exclude(session__excluded={}).values(
            "session", "viewed_at", "session__excluded__at"
        )
        before = {
            row["session"] for row in left_out if row["viewed_at"].isoformat() < row["session__excluded__at"]
        }
        whose = "1 person's record was" if opened == 1 else f"{opened} people's records were"
        later = f"{len(before)} of them were left out by hand afterwards"
        yield f"While results were sealed, {whose} opened, without condition and explanations; {later}."
