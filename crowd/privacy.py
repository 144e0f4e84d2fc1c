"""Forgetting: who somebody is on a platform, and on request what they answered. What must stay is said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from crowd.models import Identity, Message, Payout, Posting, Submission, new_key
from crowd.payouts import decide_for
from experiments import sessions
from experiments.gates.consent import NAME as CONSENT
from experiments.models import Session, Study
from experiments.selectors import definition_of

UNSETTLED = (Payout.State.DUE, Payout.State.SENDING, Payout.State.UNKNOWN)
OPEN_MAX_DAYS = 30
"""A sitting of somebody who is to be forgotten, begun so long ago and never ended, is over."""
NAMELESS = "forgotten-"
"""Begins what stands in the place of a person's keyed hash."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed, and what must remain and why."""

    people: int = 0
    ids: int = 0
    messages: int = 0
    responses: int = 0
    remains: tuple[str, ...] = ()

    def __add__(self, other: Forgotten) -> Forgotten:
        return Forgotten(
            self.people + other.people,
            self.ids + other.ids,
            self.messages + other.messages,
            self.responses + other.responses,
            tuple(dict.fromkeys((*self.remains, *other.remains))),
        )


def forget(identity: Identity, *, responses: bool, reason: str) -> Forgotten:
    """Removes a person's identity from one study; with `responses` the answers too. Repeatable.

    An id that pay still needs or may need, or that keeps the person from taking part twice in a study that is
    still offered, is removed as soon as it is needed no more (`forget_due`).
    """
    erased = sum(_erase(session, reason) for session in _sittings(identity)) if responses else 0
    with transaction.atomic():
        Identity.objects.select_for_update().get(id=identity.pk)
        Identity.objects.filter(id=identity.pk, forgotten_at=None).update(forgotten_at=timezone.now())
        messages = _remove_messages(identity)
        ids, remains = _remove_ids(identity)
    return Forgotten(1, ids, messages, erased, (*remains, *_letters_of_nobody(identity.study)))


def _sittings(identity: Identity) -> QuerySet[Session]:
    return Session.objects.filter(participant=identity.participant_id).select_related("study", "slot")


def _erase(session: Session, reason: str) -> int:
    """Removes what one sitting answered and leaves the counted tombstone; who was owed stays owed."""
    # A bonus is counted while the answers are there: removing them must not change anybody's pay.
    decide_for(session)
    found = session.responses.count()
    sessions.withdraw(session, reason, erase=True)
    # Who never consented or found no place has no answers to withdraw, but may have filled in a page.
    session.gates.exclude(kind=CONSENT).update(value={})
    Session.objects.filter(id=session.pk).update(device={}, comment="")
    return found


def _remove_messages(identity: Identity) -> int:
    own = Message.objects.filter(identity=identity)
    # A reply that still waits is not to arrive without its words.
    waiting = own.filter(state=Message.State.SENDING)
    waiting.update(state=Message.State.FAILED, error="The person was forgotten before it was sent.")
    return own.exclude(body="").update(body="")


def _letters_of_nobody(study: Study) -> tuple[str, ...]:
    """Letters about the study of people whom it does not know: no row says whose they are."""
    count = Message.objects.filter(posting__study=study, identity=None).exclude(body="").count()
    if not count:
        return ()
    days = definition_of(study).ethics.retention_days
    until = "for good, because the study has no ethics.retention_days" if days is None else (
        f"until {days} days after the study was closed"
    )  # fmt: skip
    return (
        f"{count} messages came from people who are not known here, and one may be theirs: their words stay "
        f"{until}.",
    )


def _remove_ids(identity: Identity) -> tuple[int, tuple[str, ...]]:
    """Removes what nothing needs any more; returns how many ids, and sentences about what stays."""
    needed = _needs(identity)
    offered = Posting.objects.filter(study=identity.study_id).exclude(state=Posting.State.CLOSED).exists()
    remains, ids = list(needed), 0
    if not needed:
        ids += Identity.objects.filter(id=identity.pk).exclude(external_id="").update(external_id="")
        own = Submission.objects.filter(identity=identity).exclude(external_id="")
        ids += own.update(external_id="")
    if offered or needed:
        remains.append(
            "The study is still offered or may owe the person money, so a keyed hash stays that keeps them "
            "from taking part twice; it goes when every posting is closed and everything is paid."
        )
    else:
        # A random value in its place: nobody can come to it from the platform's id any more.
        known = Identity.objects.filter(id=identity.pk).exclude(person_hash__startswith=NAMELESS)
        known.update(person_hash=f"{NAMELESS}{new_key()}")
        Submission.objects.filter(identity=identity).update(person_hash="", entry_digest="")
    paid = Payout.objects.filter(session__participant=identity.participant_id).exclude(state__in=UNSETTLED)
    if paid.exists():
        remains.append(
            "Amount, kind and date of each payment stay for accounting, under the pseudonym; the platform "
            "keeps its own record of them, which only the platform can remove."
        )
    remains.append("Exports that were handed out before hold the pseudonym; they cannot be called back.")
    return ids, tuple(remains)


def _needs(identity: Identity) -> tuple[str, ...]:
    """Why the platform's ids must stay for now, as sentences; none: they may go.

    Open sittings are looked for before the payouts are decided: one that ends in between counts as open.
    """
    running = _sittings(identity).exclude(state__in=sessions.ENDED).count()
    for session in _sittings(identity):
        decide_for(session)
    unsettled = Payout.objects.filter(
        session__participant=identity.participant_id, state__in=UNSETTLED
    ).count()
    found = []
    if running:
        found.append(
            f"{running} of their sittings {'have' if running > 1 else 'has'} not ended and may still earn "
            "pay, so the platform's ids stay until it has ended and is paid, or "
            f"{OPEN_MAX_DAYS} days after it began; they go by themselves then."
        )
    if unsettled:
        found.append(
            f"{unsettled} payouts are not settled, so the platform's ids stay until they are: run settle. "
            "They go by themselves then."
        )
    return tuple(found)


def forget_due() -> Forgotten:
    """What time has come for: studies whose retention date has passed, and ids that were still needed."""
    total = Forgotten()
    for study in _past_retention():
        for identity in Identity.objects.filter(study=study, forgotten_at=None).iterator(500):
            total += forget(identity, responses=False, reason="retention date")
        # Of people whom the study does not know; nobody else's words are left by now.
        total += Forgotten(messages=_emptied(Message.objects.filter(posting__study=study)))
    for identity in _half_forgotten().iterator(500):
        _end_abandoned(identity)
        with transaction.atomic():
            Identity.objects.select_for_update().get(id=identity.pk)
            ids, _ = _remove_ids(identity)
        total += Forgotten(ids=ids)
    # A letter may have been stored while its writer was being forgotten.
    late = Message.objects.filter(identity__forgotten_at__isnull=False).exclude(state=Message.State.SENDING)
    return total + Forgotten(messages=_emptied(late))


def _past_retention() -> Iterator[Study]:
    now = timezone.now()
    for study in Study.objects.filter(state=Study.State.CLOSED, closed_at__isnull=False):
        days = definition_of(study).ethics.retention_days
        if days is not None and study.closed_at is not None and study.closed_at + timedelta(days=days) <= now:
            yield study


def _emptied(messages: QuerySet[Message]) -> int:
    return messages.exclude(body="").update(body="")


def _half_forgotten() -> QuerySet[Identity]:
    """Forgotten people of whom anything outside is still stored: because it was needed, or because the
    platform's list was being read while they were forgotten."""
    kept = Submission.objects.filter(identity=OuterRef("pk"))
    kept = kept.exclude(external_id="", person_hash="", entry_digest="")
    anything = ~Q(person_hash__startswith=NAMELESS) | ~Q(external_id="") | Q(Exists(kept))
    return Identity.objects.filter(anything, forgotten_at__isnull=False).select_related("study")


def _end_abandoned(identity: Identity) -> None:
    """Ends sittings that nobody will end any more; no answer given is lost, and nothing is owed for them."""
    long_ago = timezone.now() - timedelta(days=OPEN_MAX_DAYS)
    for session in _sittings(identity).exclude(state__in=sessions.ENDED).filter(started_at__lt=long_ago):
        sessions.mark_left(session)
