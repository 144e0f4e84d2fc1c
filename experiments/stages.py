"""Stages: a study whose answers are frozen, and a later study of the same protocol that starts from them."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from experiments.definition import StudyDefinition
from experiments.errors import StudyError
from experiments.kinds import get_kind
from experiments.models import Response, Session, Solution, Study
from experiments.paradigms import design_of
from experiments.paradigms.base import Solved
from stimuli.spec import content_key


def source_of(definition: StudyDefinition) -> str:
    """Slug of the study whose solutions this one starts from; empty if it starts from none."""
    return str(getattr(design_of(definition), "solutions_from", ""))


def freeze(study: Study) -> str:
    """Turns the kept answers of a closed study into solutions; returns their digest. Repeating it changes
    nothing.

    Only answers to trials in which something can be right become solutions. Raises StudyError for a study
    that still collects, and for one without such answers.
    """
    if study.frozen_digest:
        return study.frozen_digest
    if study.state != Study.State.CLOSED:
        raise StudyError(f"{study.slug!r} is {study.state}. Close it before its solutions are frozen.")
    rows = _solutions(study)
    if not rows:
        raise StudyError(f"{study.slug!r} has no kept answers that could be solutions.")
    digest = content_key([[r.key, r.item.key, r.source, r.choice, r.region] for r in rows])
    with transaction.atomic():
        frozen = Study.objects.filter(id=study.pk, frozen_digest="")
        if frozen.update(frozen_digest=digest, frozen_at=timezone.now()) == 1:
            Solution.objects.bulk_create(rows, batch_size=500)
    study.refresh_from_db()
    return study.frozen_digest


def _solutions(study: Study) -> list[Solution]:
    kept = Response.objects.filter(
        session__study=study,
        session__verdict="passed",
        session__slot__kept=True,
        session__excluded={},
        trial__check_kind="",
        trial__right__isnull=False,
        trial__item__isnull=False,
    ).exclude(session__origin=Session.Origin.PREVIEW)
    solutions = []
    for row in kept.select_related("trial__item", "trial__condition").order_by(
        "session__slot__ordinal", "position"
    ):
        choice = get_kind(row.trial.kind).choice(row.value)
        if choice is None or row.trial.item is None:
            continue
        # The key names the response without revealing the person.
        key = content_key([study.slug, row.trial.slot_id, row.trial.position])[:24]
        source = row.trial.condition.name if row.trial.condition else ""
        region = row.value.get("region")
        solutions.append(
            Solution(study=study, key=key, item=row.trial.item, source=source, choice=choice, region=region)
        )
    return solutions


def frozen_source(definition: StudyDefinition) -> Study | None:
    """The study whose frozen solutions this one starts from. Raises StudyError if they are not frozen yet."""
    slug = source_of(definition)
    if not slug:
        return None
    study = Study.objects.filter(slug=slug).first()
    if study is None:
        raise StudyError(f"design.solutions_from names {slug!r}, and there is no such study. Run it first.")
    if not study.frozen_digest:
        raise StudyError(f"The solutions of {slug!r} are not frozen yet. Run freeze {slug} first.")
    return study


def solutions_of(study: Study, definition: StudyDefinition) -> tuple[Solved, ...]:
    """Every solution that a study starts from, in a fixed order.

    Raises StudyError if the earlier stage was frozen anew since this study was drafted.
    """
    source = frozen_source(definition)
    if source is None:
        return ()
    if study.solutions_digest != source.frozen_digest:
        raise StudyError(
            f"{study.slug!r} was drafted from other solutions than {source.slug!r} holds now. Build it again."
        )
    rows = Solution.objects.filter(study=source).order_by("key")
    return tuple(Solved(*row) for row in rows.values_list("key", "item__key", "source", "choice"))
