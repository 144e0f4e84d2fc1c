"""Places for people whom a platform could list and does not yet: a declared share of the free ones, and never
one that a listed person could have. Their arrivals may be invented, and a listed person must not wait for
them.

While the platform answers, every place that it still offers is kept for the people that it will list. They
are listed as soon as they come, so honest people wait at most until its list is read again. While it is
silent no person could be listed, and the share is of all free places.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from crowd.joining.admission import say
from crowd.models import Posting, Submission
from crowd.platforms import platforms_with_service, traits_of
from crowd.recruiting.arrival_confirmation import is_told_at_join
from crowd.recruiting.places import AT_WORK
from experiments.errors import TooMany
from experiments.gates.consent import NAME as CONSENT
from experiments.models import Gate, Session, Slot, Study
from experiments.selectors import free_slots
from experiments.sessions import unverified_places
from experiments.sessions.slot_assignment import GATES_MINUTES

RETRY_S = 30
SILENT_S = 600
"""A platform whose list was not read for so long counts as silent; the sync reads it every two minutes."""


def check_room(session: Session) -> None:
    """Lets an unverified session take or keep a place, one after the other, so that many who come at the same
    moment do not take more than there are. A person who has consented and goes on keeps theirs. Raises
    TooMany.

    People for whom no platform can ever vouch (a plain link) are not meant: they take places from no listed
    person.
    """
    row = Submission.objects.filter(session=session).values_list("posting", flat=True).first()
    if session.arrival != Session.Arrival.UNVERIFIED or row is None:
        return
    posting = Posting.objects.select_related("study").get(pk=row)
    if not is_told_at_join(posting):
        return
    # All postings of a study share its places.
    Study.objects.select_for_update(no_key=True).get(pk=posting.study_id)
    held = dict(_sessions_with_place(posting).values_list("pk", "state"))
    if session.pk not in held and _room(posting, held) < 1:
        raise TooMany(say(posting.study, "not_listed_yet"), RETRY_S)


def _room(posting: Posting, held: Mapping[UUID, str]) -> int:
    """How many more people whom the platform does not list may hold a place now, beside those (their states);
    less than 1: none."""
    in_slots = sum(state != Session.State.GATES for state in held.values())
    free = free_slots(posting.study, pilot=posting.pilot).count() + in_slots
    offered = _open_places(posting)
    if free <= offered:
        return 0
    free -= _verified_on_the_way(posting)
    share = max(0, free) * settings.UNVERIFIED_PERCENT // 100
    return min(share, free - offered - _listed_without_place(posting)) - len(held)


def are_there(posting: Posting) -> bool:
    """Whether strangers hold places that listed people would otherwise have."""
    return is_told_at_join(posting) and _sessions_with_place(posting).exists()


def _sessions_with_place(posting: Posting) -> QuerySet[Session]:
    """Sessions of strangers that hold a place: with consent and a sign of life, or with a slot."""
    now = timezone.now()
    steps = Gate.objects.filter(session=OuterRef("pk"))
    slots = Slot.objects.filter(holder=OuterRef("pk"), kept=False, lease_ends_at__gte=now)
    alive = steps.filter(created_at__gte=now - timedelta(seconds=unverified_places.REST_S))
    at_gates = Q(state=Session.State.GATES) & Q(
        Exists(steps.filter(kind=CONSENT, passed=True)), Exists(alive)
    )
    in_slot = Q(state__in=[Session.State.ASSIGNED, Session.State.RUNNING]) & Q(Exists(slots))
    told = [name for name in platforms_with_service() if traits_of(name).confirms_arrivals == "at_join"]
    rows = _of(posting, Session.Arrival.UNVERIFIED).filter(submission__posting__platform__in=told)
    return rows.filter(at_gates | in_slot)


def _verified_on_the_way(posting: Posting) -> int:
    """Listed people between consent and slot."""
    since = timezone.now() - timedelta(minutes=GATES_MINUTES)
    consented = Exists(Gate.objects.filter(session=OuterRef("pk"), kind=CONSENT, passed=True))
    rows = _of(posting, Session.Arrival.VERIFIED).filter(consented)
    return rows.filter(state=Session.State.GATES, started_at__gte=since).count()


def _of(posting: Posting, arrival: Session.Arrival) -> QuerySet[Session]:
    """Sessions of the study, or of its pilot, which has slots of its own."""
    rows = Session.objects.filter(study=posting.study_id, arrival=arrival)
    pilot = Session.Origin.PILOT
    return rows.filter(origin=pilot) if posting.pilot else rows.exclude(origin=pilot)


def _open_places(posting: Posting) -> int:
    """Places that platforms still offer: this one, if it would list at once the person who takes one, and the
    others."""
    rows = Posting.objects.filter(
        study=posting.study_id, pilot=posting.pilot, platform__in=platforms_with_service()
    )
    rows = rows.exclude(state=Posting.State.CLOSED)
    return sum(max(0, row.places - row.taken) for row in rows if row.pk != posting.pk or not _is_silent(row))


def _is_silent(posting: Posting) -> bool:
    """Whether the platform cannot be asked, or was not asked for long."""
    # Without a broker there is no beat: lists are read by hand, if at all.
    heard = posting.synced_at or (posting.created_at if settings.CELERY_BROKER_URL else None)
    is_old = heard is None or heard < timezone.now() - timedelta(seconds=SILENT_S)
    return is_old or posting.silent_at is not None


def _listed_without_place(posting: Posting) -> int:
    """People whom the platforms list as at work and who have not come, or have not consented yet."""
    consented = Exists(Gate.objects.filter(session=OuterRef("session"), kind=CONSENT))
    rows = Submission.objects.filter(posting__study=posting.study_id, posting__pilot=posting.pilot)
    rows = rows.filter(seen_at__isnull=False, state__in=AT_WORK)
    return rows.filter(Q(session=None) | (Q(session__state=Session.State.GATES) & ~consented)).count()
