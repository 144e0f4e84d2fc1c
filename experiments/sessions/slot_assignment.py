"""Who holds which slot, and from which lane a person gets one."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.utils import timezone

from experiments.drafting.plates import vision_of
from experiments.errors import SessionFinished, StudyError, StudyFull
from experiments.gates.consent import NAME as CONSENT
from experiments.models import Gate, Hold, Session, Slot, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Route
from experiments.selectors import definition_of, free_slots
from experiments.sessions import unverified_places
from experiments.sessions.verdicts import tries_of

GATES_MINUTES = 15
"""How long a place is reserved for a person on the way through the gates, if a platform vouches for them."""
AWAITED_S = 24 * 3600
"""How long a slot waits, after a person has passed, for the platform to list them: platforms are also asked
by hand, once a day."""


def places_left(study: Study, pilot: bool = False) -> int:
    """Free slots minus the people who are on their way to one: in the gates, with consent given. The pilot
    has slots and people of its own. Opening the first page reserves nothing, so closed tabs cannot block a
    study; the claim is what enforces the limit. Lanes are counted together, because the lane of a person is
    known only at the claim.

    For a person whom a platform vouches for a place is reserved for GATES_MINUTES. For any other it is
    reserved while pages are passed, for consent alone costs nothing; who reads for longer goes on as before,
    and counts again with the next page.
    """
    now = timezone.now()
    unsure = Q(arrival__in=unverified_places.UNSURE)
    steps = Gate.objects.filter(session=OuterRef("pk"))
    is_alive = Exists(steps.filter(created_at__gte=now - timedelta(seconds=unverified_places.REST_S)))
    is_released = Exists(Hold.objects.filter(session=OuterRef("pk"), released=True))
    on_the_way = Session.objects.filter(
        (unsure & is_alive & ~is_released)
        | (~unsure & Q(started_at__gte=now - timedelta(minutes=GATES_MINUTES))),
        Exists(steps.filter(kind=CONSENT, passed=True)),
        study=study,
        state=Session.State.GATES,
    )
    if pilot:
        on_the_way = on_the_way.filter(origin=Session.Origin.PILOT)
    else:
        on_the_way = on_the_way.exclude(origin__in=[*Session.UNPLACED, Session.Origin.PILOT])
    return free_slots(study, pilot=pilot).count() - on_the_way.count()


def route(session: Session, full: Collection[str] = ()) -> str | None:
    """The lane from which this session gets its slot, by the paradigm's own rule; None: from none. Lanes that
    turned out to be `full` are left out."""
    earlier = (
        Session.objects.filter(participant=session.participant_id, slot__isnull=False)
        .exclude(pk=session.pk)
        .order_by("-started_at")
        .values_list("lane", flat=True)
        .first()
    )
    free = free_slots(session.study, pilot=session.origin == Session.Origin.PILOT)
    # No person gets the same slot twice, because its stimuli would no longer be new to them.
    free = free.exclude(sessions__participant=session.participant_id)
    lanes = free.exclude(lane__in=full).values_list("lane")
    counts = dict(lanes.annotate(n=Count("id")).order_by())
    tries = tuple(tries_of(session))
    facts = Route(tries, earlier or "", counts, vision_of(session.study, tries))
    return get_paradigm(session.study.paradigm).lane(facts)


def claim_slot(session: Session) -> Slot:
    """Gives the session the next free slot by ordinal: a freed slot comes before an unused one, because slots
    are first claimed in that order. Raises StudyFull. One conditional update; on PostgreSQL concurrent claims
    skip each other's rows instead of waiting. Raises TooMany if the person's address has no place left.
    """
    now = timezone.now()
    lease_ends_at = now + lease_of(session)
    with transaction.atomic():
        # Locks the session's row first: otherwise two requests of one session could claim two slots.
        waiting = Session.objects.filter(id=session.pk, state=Session.State.GATES, slot__isnull=True)
        if waiting.update(claimed_at=now, lease_ends_at=lease_ends_at) == 1:
            unverified_places.renew(session, lease_ends_at)
            lane, slot_id = _claim_routed(session, now, lease_ends_at)
            Session.objects.filter(id=session.pk).update(
                slot_id=slot_id, lane=lane, state=Session.State.ASSIGNED
            )
    session.refresh_from_db()
    if session.slot is None:
        raise SessionFinished("This session has ended.")
    return session.slot


def lease_of(session: Session) -> timedelta:
    """How long the session holds a slot: as it was told on arrival, else as the study says."""
    if session.lease_s is not None:
        return timedelta(seconds=session.lease_s)
    return timedelta(minutes=definition_of(session.study).lease_minutes)


def _claim_routed(session: Session, now: datetime, lease_ends_at: datetime) -> tuple[str, int]:
    """A slot and its lane. A lane whose last slot went to a rival is asked no more. Raises StudyFull."""
    full: list[str] = []
    while (lane := route(session, full)) is not None and lane not in full:
        slot_id = _claim(session, lane, now, lease_ends_at)
        if slot_id is not None:
            return lane, slot_id
        full.append(lane)
    raise StudyFull("All places of this study are taken.")


def _claim(session: Session, lane: str, now: datetime, lease_ends_at: datetime) -> int | None:
    skip_locked = (
        "FOR UPDATE OF s SKIP LOCKED" if connection.features.has_select_for_update_skip_locked else ""
    )
    adapt = connection.ops.adapt_datetimefield_value
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE experiments_slot
            SET holder_id = %s, lease_ends_at = %s, claimed_count = claimed_count + 1
            WHERE id = (
                SELECT s.id FROM experiments_slot s
                WHERE s.study_id = %s AND s.lane = %s AND s.pilot = %s AND NOT s.kept
                  AND (s.holder_id IS NULL OR s.lease_ends_at < %s)
                  AND NOT EXISTS (SELECT 1 FROM experiments_session e
                                  WHERE e.slot_id = s.id AND e.participant_id = %s)
                ORDER BY s.ordinal
                LIMIT 1 {skip_locked}
            )
            RETURNING id
            """,
            [
                session.pk if connection.vendor == "postgresql" else session.pk.hex,
                adapt(lease_ends_at),
                session.study_id,
                lane,
                session.origin == Session.Origin.PILOT,
                adapt(now),
                session.participant_id,
            ],
        )
        row = cursor.fetchone()
    return None if row is None else int(row[0])


def release_slot(session: Session) -> bool:
    """Frees the session's slot unless it was kept or another session has claimed it since."""
    return Slot.objects.filter(holder=session, kept=False).update(holder=None, lease_ends_at=None) == 1


def free_rehearsed_slots(study: Study) -> int:
    """Frees every slot that a simulated person holds or has filled: from now on the slots are for people."""
    simulated = Slot.objects.filter(study=study, holder__origin=Session.Origin.SIMULATED)
    return simulated.update(holder=None, lease_ends_at=None, kept=False)


def keep_slot(session: Session) -> bool:
    """Marks the session's slot as filled by it. False if another session has claimed the slot since
    (surplus)."""
    held = Slot.objects.filter(holder=session)
    return held.filter(kept=False).update(kept=True) == 1 or held.filter(kept=True).exists()


def await_listing(session: Session) -> bool:
    """Holds the slot of a person who has passed and whom the platform does not list yet: for AWAITED_S, or
    once more for a short lease if the session has one. False if another session has claimed the slot since.
    """
    told, usual_s = session.lease_s, 60 * definition_of(session.study).lease_minutes
    wait = timedelta(seconds=told if told is not None and told < usual_s else AWAITED_S)
    held = Slot.objects.filter(holder=session, kept=False)
    return held.update(lease_ends_at=timezone.now() + wait) == 1


def regain_slot(session: Session, lease_ends_at: datetime) -> bool:
    """The slot of a person whom the platform has listed, for the ordinary lease: it is still theirs, or was
    taken back and is free."""
    if session.slot is None:
        return False
    theirs = Q(holder=session) | Q(holder__isnull=True)
    slots = Slot.objects.filter(theirs, pk=session.slot.pk, kept=False)
    return slots.update(holder=session, lease_ends_at=lease_ends_at) == 1


def peek_slot(study: Study, ordinal: int) -> Slot:
    """A slot for a preview or a model: shown, never claimed."""
    slot = Slot.objects.filter(study=study, ordinal=ordinal, pilot=False).order_by(F("id")).first()
    if slot is None:
        raise StudyError(f"{study.slug!r} has no slot {ordinal}. Open the study, or choose a smaller number.")
    return slot
