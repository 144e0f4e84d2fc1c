"""A researcher's look at one slot: previews only."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils import timezone

from experiments.errors import StudyError
from experiments.gates.base import Stop
from experiments.gates.plan import gate_plan
from experiments.kinds import get_kind
from experiments.models import Gate, Response, Session
from experiments.selectors import Card, arm_of, cards_of
from experiments.sessions.responses import FILLED

COMMENT = "comment"
"""The page after the last gate."""


def skip_to(session: Session, position: int) -> None:
    """Lets a preview begin with one trial: every page and answer before it is filled in."""
    stops, cards = _way(session)
    _fill(session, [stop for stop in stops if stop.place != "end"], cards, position)


def skip_to_page(session: Session, kind: str) -> None:
    """Lets a preview begin with the page of that kind, or with the last one, COMMENT: all before it is filled
    in. StudyError if the session meets no such page."""
    stops, cards = _way(session)
    at = next((place for place, stop in enumerate(stops) if stop.kind == kind), len(stops))
    if at == len(stops) and kind != COMMENT:
        raise StudyError(f"This place meets no page {kind!r}.")
    place, block = ("end", None) if at == len(stops) else (stops[at].place, stops[at].block)
    first = next((card.view.position for card in cards if card.view.block == block), 0)
    _fill(session, stops[:at], cards, len(cards) if place == "end" else first)


def _way(session: Session) -> tuple[tuple[Stop, ...], tuple[Card, ...]]:
    assert session.origin == Session.Origin.PREVIEW and session.slot is not None
    arm = arm_of(session.slot, session.study)
    return gate_plan(session.study, arm), cards_of(session.slot, session.study)


def _fill(session: Session, stops: Sequence[Stop], cards: Sequence[Card], position: int) -> None:
    Gate.objects.bulk_create(
        Gate(session=session, kind=stop.kind, attempt=0, value={}, passed=True) for stop in stops
    )
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
