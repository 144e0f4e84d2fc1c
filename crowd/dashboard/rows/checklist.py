"""What has to be true before people take part: ticked by itself as far as the rows and settings can say."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from crowd.ground.backups import BACKUP
from crowd.models import LastTime, Posting
from crowd.platforms import PLATFORMS, has_service
from experiments.drafting.stimulus_warnings import refusing
from experiments.models import Preregistration, Session, Study
from experiments.selectors import definition_of

# As the shipped studies have it.
EXAMPLE_APPROVAL = "Example protocol"


@dataclass(frozen=True, slots=True)
class Point:
    """One line. `is_met` is None for what only a person can say."""

    what: str
    is_met: bool | None
    remedy: str


def checklist(study: Study) -> list[Point]:
    """The points of README's checklist, in a fixed number of queries."""
    ethics, slug = definition_of(study).ethics, study.slug
    looked = Session.objects.filter(study=study, origin="preview", state="finished")
    finished = Session.objects.filter(study=study, state="finished")
    on_platforms = finished.filter(submission__posting__platform__in=[p for p in PLATFORMS if has_service(p)])
    rehearsed = on_platforms.filter(submission__posting__mode=Posting.Mode.REHEARSAL)
    piloted = on_platforms.filter(submission__posting__pilot=True, origin="pilot")
    publish = f"python manage.py publish {slug} --platform NAME"
    plan = Preregistration.objects.filter(study=study).first()
    return [
        Point(
            "An approval of the ethics board is named",
            bool(ethics.approval) and not ethics.approval.startswith(EXAMPLE_APPROVAL),
            "[ethics] approval: your own, not the example's" if ethics.approval else "[ethics] approval",
        ),
        Point("The texts are yours, and say time and pay as they are", None, "Read every page."),
        Point(
            "No warning about the explanations waits to be acknowledged",
            not refusing(study),
            "Stimuli lists them.",
        ),
        Point(
            "The plan is deposited, and its address is named",
            plan is not None and bool(plan.registry),
            f"python manage.py study_check {slug} --preregistration",
        ),
        Point("You took it yourself to the end", looked.exists(), "Preview: take it as a participant."),
        Point(
            "A rehearsal ran",
            rehearsed.exists(),
            f"{publish} --rehearse",
        ),
        Point(
            "A pilot ran",
            piloted.exists(),
            f"{publish} --live --pilot 8",
        ),
        Point(
            "The address is https, and debug pages are off",
            settings.SECURE and not settings.DEBUG,
            "python manage.py check --deploy",
        ),
        Point("Rows are in PostgreSQL", connection.vendor == "postgresql", "DATABASE_URL"),
        Point(
            "A backup was made",
            LastTime.objects.filter(name=BACKUP).exists(),
            "python manage.py backup FOLDER",
        ),
    ]
