"""Forgetting: who somebody is on a platform, and on request what they answered. What must stay is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from crowd.models import Identity, Message, Payout, Posting, Submission, new_key
from crowd.payouts import decide_for
from experiments import sessions
from experiments.models import Session, Study
from experiments.selectors import definition_of

UNSETTLED = (Payout.State.DUE, Payout.State.SENDING, Payout.State.UNKNOWN)


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

    An id that a payment still needs, or that keeps the person from taking part twice in a study that is still
    offered, is removed as soon as it is needed no more (`forget_due`).
    """
    for session in _sittings(identity):
        # What is owed is counted before anything that tells it goes.
        decide_for(session)
    erased = sum(_erase(session, reason) for session in _sittings(identity)) if responses else 0
    with transaction.atomic():
        Identity.objects.select_for_update().get(id=identity.pk)
        Identity.objects.filter(id=identity.pk, forgotten_at=None).update(forgotten_at=timezone.now())
        messages = Message.objects.filter(identity=identity).exclude(body="").update(body="")
        ids, remains = _remove_ids(identity)
    return Forgotten(1, ids, messages, erased, remains)


def _sittings(identity: Identity) -> Iterable[Session]:
    return Session.objects.filter(participant=identity.participant_id).select_related("study", "slot")


def _erase(session: Session, reason: str) -> int:
    """Removes what one sitting answered and leaves the counted tombstone; who was owed stays owed."""
    found = session.responses.count()
    sessions.withdraw(session, reason, erase=True)
    # Who never consented or found no place has no answers to withdraw, but may have filled in a page.
    session.gates.exclude(kind="consent").update(value={})
    Session.objects.filter(id=session.pk).update(device={}, comment="")
    return found


def _remove_ids(identity: Identity) -> tuple[int, tuple[str, ...]]:
    remains = []
    unsettled = Payout.objects.filter(
        session__participant=identity.participant_id, state__in=UNSETTLED
    ).count()
    offered = Posting.objects.filter(study=identity.study_id).exclude(state=Posting.State.CLOSED).exists()
    ids = 0
    if unsettled:
        remains.append(
            f"{unsettled} payouts are not settled, so the platform's ids stay until they are: run settle."
        )
    else:
        ids += Identity.objects.filter(id=identity.pk).exclude(external_id="").update(external_id="")
        own = Submission.objects.filter(identity=identity).exclude(external_id="")
        ids += own.update(external_id="")
    if offered or unsettled:
        remains.append(
            "The study is still offered or owes money, so a keyed hash stays that keeps the person from "
            "taking part twice; it goes when every posting is closed."
        )
    else:
        # A random value in its place: nobody can come to it from the platform's id any more.
        known = Identity.objects.filter(id=identity.pk).exclude(person_hash__startswith="forgotten-")
        known.update(person_hash=f"forgotten-{new_key()}")
        Submission.objects.filter(identity=identity).update(person_hash="", entry_digest="")
    paid = Payout.objects.filter(session__participant=identity.participant_id).exclude(state__in=UNSETTLED)
    if paid.exists():
        remains.append(
            "Amount, kind and date of each payment stay for accounting, under the pseudonym; the platform "
            "keeps its own record of them, which only the platform can remove."
        )
    remains.append("Exports that were handed out before hold the pseudonym; they cannot be called back.")
    return ids, tuple(remains)


def forget_due() -> Forgotten:
    """What time has come for: studies whose retention date has passed, and ids that were still needed."""
    total = Forgotten()
    now = timezone.now()
    for study in Study.objects.filter(state=Study.State.CLOSED, closed_at__isnull=False):
        days = definition_of(study).ethics.retention_days
        if days is not None and study.closed_at is not None and study.closed_at + timedelta(days=days) <= now:
            for identity in Identity.objects.filter(study=study, forgotten_at=None).iterator(500):
                total += forget(identity, responses=False, reason="retention date")
    waiting = Identity.objects.filter(forgotten_at__isnull=False).exclude(
        person_hash__startswith="forgotten-"
    )
    for identity in waiting.iterator(500):
        with transaction.atomic():
            ids, _ = _remove_ids(identity)
        total += Forgotten(ids=ids)
    return total
