"""Removes a person's identity on a platform and, on request, their answers; says what must remain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from crowd.models import Identity, Message, Payout, PersonNote, Posting, Submission, new_key
from crowd.money.ledger import UNSETTLED, decide_for
from experiments.drafting.plates import remove_answers
from experiments.gates.consent import NAME as CONSENT
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.sessions import lifecycle

OPEN_MAX_DAYS = 30
"""A session of a person to be forgotten that began this long ago and did not end is over."""
NAMELESS = "forgotten-"
"""Prefix of the value that replaces a person's keyed hash."""


@dataclass(frozen=True, slots=True)
class RemovalSummary:
    """What was removed, and what must remain and why."""

    people: int = 0
    ids: int = 0
    messages: int = 0
    responses: int = 0
    remains: tuple[str, ...] = ()

    def __add__(self, other: RemovalSummary) -> RemovalSummary:
        return RemovalSummary(
            self.people + other.people,
            self.ids + other.ids,
            self.messages + other.messages,
            self.responses + other.responses,
            tuple(dict.fromkeys((*self.remains, *other.remains))),
        )


def forget(identity: Identity, *, responses: bool, reason: str) -> RemovalSummary:
    """Removes a person's identity from one study; with `responses` the answers too, and those of a colour
    check always: they are health data. Repeatable.

    An id that pay still needs or may need, or that keeps the person from taking part twice in a study that is
    still offered, is removed as soon as it is needed no more (`forget_due`).
    """
    erased = sum(_erase(session, reason) for session in _sessions(identity)) if responses else 0
    with transaction.atomic():
        # A sync that lists the person takes the same row, so that it stores no id afterwards.
        Identity.objects.select_for_update().get(id=identity.pk)
        Identity.objects.filter(id=identity.pk, forgotten_at=None).update(forgotten_at=timezone.now())
        remove_answers(_sessions(identity))
        messages = _remove_messages(identity)
        ids, remains = _remove_ids(identity)
    return RemovalSummary(1, ids, messages, erased, (*remains, *_messages_of_strangers(identity.study)))


def _sessions(identity: Identity) -> QuerySet[Session]:
    return Session.objects.filter(participant=identity.participant_id).select_related("study", "slot")


def _erase(session: Session, reason: str) -> int:
    """Removes the answers of one session; the counted row stays, and so does what is owed."""
    # A bonus is counted while the answers are there: removing them must not change the pay.
    decide_for(session)
    response_count = session.responses.count()
    lifecycle.withdraw(session, reason, erase=True)
    # A person who never consented or got no slot has no answers to withdraw, but may have filled in a page.
    session.gates.exclude(kind=CONSENT).update(value={})
    PersonNote.objects.filter(session=session).delete()
    Session.objects.filter(id=session.pk).update(device={}, comment="", measures={})
    return response_count


def _remove_messages(identity: Identity) -> int:
    messages = Message.objects.filter(identity=identity)
    # A reply that still waits must not arrive without its text.
    waiting = messages.filter(state=Message.State.SENDING)
    waiting.update(state=Message.State.FAILED, error="The person was forgotten before it was sent.")
    return messages.exclude(body="").update(body="")


def _messages_of_strangers(study: Study) -> tuple[str, ...]:
    """Messages about the study from people whom it does not know: no row says whose they are."""
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
    """Removes the ids that are no longer needed; returns how many, and sentences about what stays."""
    needed = _needs(identity)
    offered = Posting.objects.filter(study=identity.study_id).exclude(state=Posting.State.CLOSED).exists()
    remains, ids = list(needed), 0
    if not needed:
        ids += Identity.objects.filter(id=identity.pk).exclude(external_id="").update(external_id="")
        submissions = Submission.objects.filter(identity=identity).exclude(external_id="")
        ids += submissions.update(external_id="")
    if offered or needed:
        remains.append(
            "The study is still offered or may owe the person money, so a keyed hash stays that keeps them "
            "from taking part twice; it goes when every posting is closed and everything is paid."
        )
    else:
        # A random value instead: the platform's id no longer leads to it.
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
    """Why the platform's ids must stay for now, as sentences; none: they may be removed.

    Open sessions are read before the payouts are decided: one that ends in between counts as open.
    """
    running = _sessions(identity).exclude(state__in=lifecycle.ENDED).count()
    for session in _sessions(identity):
        decide_for(session)
    unsettled = Payout.objects.filter(
        session__participant=identity.participant_id, state__in=UNSETTLED
    ).count()
    reasons = []
    if running:
        reasons.append(
            f"{running} of their sessions {'have' if running > 1 else 'has'} not ended and may still earn "
            "pay, so the platform's ids stay until it has ended and is paid, or "
            f"{OPEN_MAX_DAYS} days after it began; they go by themselves then."
        )
    if unsettled:
        reasons.append(
            f"{unsettled} payouts are not settled, so the platform's ids stay until they are: run settle. "
            "They go by themselves then."
        )
    return tuple(reasons)


def forget_due() -> RemovalSummary:
    """Removes what is due: studies past their retention date, and ids that were still needed."""
    total = RemovalSummary()
    for study in _past_retention():
        for identity in Identity.objects.filter(study=study, forgotten_at=None).iterator(500):
            total += forget(identity, responses=False, reason="retention date")
        remove_answers(Session.objects.filter(study=study))
        # Of people whom the study does not know; all other texts are removed by now.
        total += RemovalSummary(messages=_empty_messages(Message.objects.filter(posting__study=study)))
    for identity in _half_forgotten().iterator(500):
        _end_abandoned(identity)
        with transaction.atomic():
            Identity.objects.select_for_update().get(id=identity.pk)
            ids, _ = _remove_ids(identity)
        total += RemovalSummary(ids=ids)
    # A message may have been stored while its writer was being forgotten.
    late = Message.objects.filter(identity__forgotten_at__isnull=False).exclude(state=Message.State.SENDING)
    return total + RemovalSummary(messages=_empty_messages(late))


def _past_retention() -> Iterator[Study]:
    now = timezone.now()
    for study in Study.objects.filter(state=Study.State.CLOSED, closed_at__isnull=False):
        days = definition_of(study).ethics.retention_days
        if days is not None and study.closed_at is not None and study.closed_at + timedelta(days=days) <= now:
            yield study


def _empty_messages(messages: QuerySet[Message]) -> int:
    return messages.exclude(body="").update(body="")


def _half_forgotten() -> QuerySet[Identity]:
    """Forgotten people with data of the platform still stored: because it was needed, or because the list
    was being read while they were forgotten."""
    remembered = Submission.objects.filter(identity=OuterRef("pk"))
    remembered = remembered.exclude(external_id="", person_hash="", entry_digest="")
    anything = ~Q(person_hash__startswith=NAMELESS) | ~Q(external_id="") | Q(Exists(remembered))
    return Identity.objects.filter(anything, forgotten_at__isnull=False).select_related("study")


def _end_abandoned(identity: Identity) -> None:
    """Ends abandoned sessions; no answer is lost, and nothing is owed for them."""
    long_ago = timezone.now() - timedelta(days=OPEN_MAX_DAYS)
    for session in _sessions(identity).exclude(state__in=lifecycle.ENDED).filter(started_at__lt=long_ago):
        lifecycle.mark_left(session)
