"""Which page comes last."""

from __future__ import annotations

from experiments.gates.consent import NAME as CONSENT
from experiments.models import Session


def last_page_of(session: Session) -> str:
    """Which last page a closed session gets. Every person who agreed to take part and was not turned away
    before the trials gets the debrief."""
    if session.state == Session.State.DECLINED:
        return "declined"
    if session.state == Session.State.TURNED_AWAY:
        return "turned_away"
    if session.state == Session.State.FINISHED and session.slot_id is None:
        return "screened"
    if session.state == Session.State.WITHDRAWN and not _has_consented(session):
        return "withdrawn"
    return "debrief"


def _has_consented(session: Session) -> bool:
    return session.gates.filter(kind=CONSENT, passed=True).exists()
