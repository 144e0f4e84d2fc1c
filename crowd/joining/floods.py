"""Many arrivals from one address: seen while they come, and what they hold given back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from crowd.ground.audit import record
from crowd.models import JoinCount
from experiments.errors import StudyError
from experiments.models import Hold, Session, Study
from experiments.sessions.slot_assignment import release_slot

SEEN = timedelta(hours=1)
SHOWN_MAX = 10


@dataclass(frozen=True, slots=True)
class Flood:
    """One address from which people were refused within the last hour. `sender` is its keyed hash: the
    address itself is stored nowhere. `places` is how many it holds now."""

    sender: str
    joins: int
    refused: int
    places: int


def floods(study: Study) -> list[Flood]:
    """The addresses from which the most people were refused, the worst first."""
    recent = JoinCount.objects.filter(study=study, minute__gte=timezone.now() - SEEN)
    rows = (
        recent.values("sender")
        .annotate(joins=Sum("joins"), turned_off=Sum("refused"))
        .filter(turned_off__gt=0)
        .order_by("-turned_off", "sender")[:SHOWN_MAX]
    )
    counts = {row["sender"]: (row["joins"], row["turned_off"]) for row in rows}
    places = _places(counts)
    return [Flood(sender, *counts[sender], places.get(sender, 0)) for sender in counts]


def _places(senders: Mapping[str, object]) -> dict[str, int]:
    holding = Hold.objects.filter(sender__in=list(senders), number__isnull=False, released=False)
    rows = holding.filter(ends_at__gte=timezone.now()).order_by().values_list("sender")
    return dict(rows.annotate(n=Count("pk")))


def release(study: Study, sender: str, by: str) -> int:
    """Takes back the places of the people of one address for whom no platform vouches; returns how many.

    Their slots are free for others at once. They may go on, as surplus; and until their leases are over the
    address gets no new place in exchange. A slot that was passed and is kept stays kept.
    """
    holds = Hold.objects.filter(session__study=study, sender=sender, number__isnull=False, released=False)
    if not sender or not JoinCount.objects.filter(study=study, sender=sender).exists():
        raise StudyError("This address is not known any more: it is forgotten some hours after it was seen.")
    with transaction.atomic():
        # A listing that arrives now keeps its slot: it is either seen here, or waits.
        sessions = list(
            Session.objects.select_for_update(of=("self",)).filter(
                ~Q(arrival=Session.Arrival.VERIFIED), hold__in=holds
            )
        )
        for session in sessions:
            release_slot(session)
        Hold.objects.filter(session__in=sessions).update(released=True)
    record(study, by, f"Takes back {len(sessions)} places of one address, for which no platform vouches.")
    return len(sessions)
