"""What went wrong on people's pages, latest first: pictures and pages that failed in a browser, and requests
that ended in an error of ours; each with the person it hit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from crowd.alerts.current_troubles import PAGE_FAILURES
from crowd.models import Failure
from experiments.models import Event, Study
from experiments.sessions.pseudonyms import namer

SHOWN = 50
WORDS = {"media_failed": "a picture did not load", "cannot_show": "a page could not be shown"}


@dataclass(frozen=True, slots=True)
class PageError:
    at: datetime
    what: str
    where: str
    session: UUID | None = None
    name: str = ""


def broken_of(study: Study) -> list[PageError]:
    """At most the latest 50, in two queries."""
    name = namer(study)
    events = Event.objects.filter(session__study=study, kind__in=PAGE_FAILURES).exclude(
        session__origin="preview"
    )
    rows = [
        PageError(
            event.received_at,
            WORDS[event.kind],
            f"page {event.trial.position + 1}" if event.trial else "",
            event.session_id,
            name(event.session.participant.pseudonym),
        )
        for event in events.select_related("session__participant", "trial").order_by("-received_at")[:SHOWN]
    ]
    failures = Failure.objects.filter(study=study).select_related("session__participant").order_by("-at")
    rows += [
        PageError(
            row.at,
            f"a request failed: {row.error}",
            f"{row.route or 'no address'}, {row.place}",
            row.session_id,
            name(row.session.participant.pseudonym) if row.session else "",
        )
        for row in failures[:SHOWN]
    ]
    return sorted(rows, key=lambda row: row.at, reverse=True)[:SHOWN]
