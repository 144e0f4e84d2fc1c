"""Stored reports, made again if a session or the seal has changed since."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from datetime import datetime

from django.db.models import Max
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from analysis import models
from analysis.facts import StudyFacts
from analysis.reports import REPORTERS, held_for
from analysis.reports.output.html import page
from analysis.reports.parts.demo_cases import with_beside
from analysis.reports.parts.stimulus_pictures import with_seen
from analysis.reports.report import Report
from analysis.reports.report_assembly import report_of_origin, reporter_of, with_sections
from analysis.stored_reports.demo_case_file import read_beside
from analysis.stored_reports.departures import report_facts
from analysis.stored_reports.extension_families import extension_sections
from analysis.tables.response_reader import read_frames, study_facts
from analysis.tables.stimulus_pictures import stored_pictures
from experiments.models import Preregistration, Session, Study
from stimuli.spec import content_key
from stimuli.types import Progress

REPORTED = ("human", "simulated", "pilot", "model")


def read_with(origin: str) -> tuple[str, ...]:
    """The origins that a report reads: a model's is set beside people."""
    return (origin, "human") if origin == "model" else (origin,)


def make_report(
    study: Study,
    origin: str,
    progress: Progress | None = None,
    reporter_name: str = "",
    release: str = "",
    untold: Collection[str] = (),
) -> Report:
    """The report of one origin, from the rows as they are now, by the paradigm's reporter or the one named.
    `release` names the pseudonyms' key, `untold` questions of which nothing is told. Raises ReportError if
    there are no sessions of the origin, or no reporter for the paradigm.
    """
    name = reporter_of(study.paradigm, reporter_name)
    made_at = f"{timezone.now():%Y-%m-%d %H:%M} UTC"
    frames = read_frames(study, release=release, progress=progress, held=held_for(name))
    facts = without_questions(report_facts(study, origin), untold)
    report = report_of_origin(frames, facts, name, origin, made_at)
    report = with_seen(report, frames.stimuli, stored_pictures(study))
    return with_sections(report, extension_sections(study, origin, frames.only(origin)))


def without_questions(facts: StudyFacts, ids: Collection[str]) -> StudyFacts:
    return replace(facts, questions=tuple(each for each in facts.questions if each.id not in ids))


def newest_session_at(study: Study, origin: str) -> datetime | None:
    """The time of the last change to a session that the report of this origin reads."""
    when = Greatest(
        "started_at",
        Coalesce("claimed_at", "started_at"),
        Coalesce("finished_at", "started_at"),
        Coalesce("verdict_at", "started_at"),
    )
    sessions = Session.objects.filter(study=study, origin__in=read_with(origin))
    newest: datetime | None = sessions.aggregate(newest=Max(when))["newest"]
    return newest


def facts_digest(study: Study, origin: str) -> str:
    """A value that changes when the seal, the state, the kept slots, a decision by hand, the definition,
    the plan's registry or its looks change, or more is viewed."""
    sessions = Session.objects.filter(study=study, origin__in=read_with(origin))
    by_hand = sessions.exclude(excluded={}).order_by("pk")
    decided = [[str(pk), excluded] for pk, excluded in by_hand.values_list("pk", "excluded")]
    registry = Preregistration.objects.filter(study=study).values_list("registry", "timestamp")
    facts = asdict(study_facts(study, origin))
    viewed = models.Viewing.objects.filter(study=study, origin=origin, sealed=True).count()
    looks = models.TakenLook.objects.filter(study=study).values_list("number", "answer")
    return content_key(
        [facts, decided, study.definition, list(map(list, registry)), list(map(list, looks)), viewed]
    )


def store_report(study: Study, origin: str, progress: Progress | None = None) -> Report:
    """Makes the report now and stores it, with what a demo keeps beside it; the dashboard shows it from then
    on. Raises ReportError as `make_report`."""
    # Read before the rows: a change in between then makes the stored report out of date again.
    newest, facts = newest_session_at(study, origin), facts_digest(study, origin)
    report = make_report(study, origin, progress)
    if origin == "simulated":
        report = with_beside(report, read_beside(study.slug, study.digest))
    models.Report.objects.update_or_create(
        study=study,
        origin=origin,
        defaults={
            "newest_session_at": newest,
            "json": report.json(),
            "html": page(report),
            "opening": report.opening,
            "sealed": report.seal.sealed,
            "facts_digest": facts,
            "created_at": timezone.now(),
        },
    )
    return report


def refresh_report(study: Study, origin: str) -> models.Report:
    """The stored report, made again if it is older than its newest session or the facts have changed."""
    stored = models.Report.objects.filter(study=study, origin=origin).first()
    if (
        stored
        and stored.newest_session_at == newest_session_at(study, origin)
        and stored.facts_digest == facts_digest(study, origin)
    ):
        return stored
    store_report(study, origin)
    return models.Report.objects.get(study=study, origin=origin)


def refresh_all() -> int:
    """Makes every report again that is out of date; returns how many were made."""
    made = 0
    studies = Study.objects.exclude(state="draft").filter(paradigm__in=list(REPORTERS))
    for study in studies:
        present = set(Session.objects.filter(study=study).values_list("origin", flat=True).distinct())
        for origin in (origin for origin in REPORTED if origin in present):
            before = (
                models.Report.objects.filter(study=study, origin=origin).values_list("created_at").first()
            )
            after = refresh_report(study, origin).created_at
            made += before is None or before[0] != after
    return made
