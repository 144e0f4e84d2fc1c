"""A researcher's look at one slot: previews only."""

from __future__ import annotations

from django.utils import timezone

from experiments.gates.plan import gate_plan
from experiments.kinds import get_kind
from experiments.models import Gate, Response, Session
from experiments.selectors import arm_of, cards_of
from experiments.sessions.responses import FILLED


def skip_to(session: Session, position: int) -> None:
    """Lets a preview begin with one trial: every page and answer before it is filled in."""
    assert session.origin == Session.Origin.PREVIEW and session.slot is not None
    arm = arm_of(session.slot, session.study)
    stops = [stop for stop in gate_plan(session.study, arm) if stop.place != "end"]
    Gate.objects.bulk_create(
        Gate(session=session, kind=stop.kind, attempt=0, value={}, passed=True) for stop in stops
    )
    cards = cards_of(session.slot, session.study)
    Response.objects.bulk_create(
        Response(
            session=session,
            trial_id=card.id,
            position=card.view.position,
            remaining=len(cards) - card.view.position - 1,
            value=dict(get_kind(card.view.kind).preview(card.view)),
            rt_ms=0,
            shown_ms=0,
            context=dict(FILLED),
            late=False,
            received_at=timezone.now(),
        )
        for card in cards[:position]
    )
