"""Whether a person who arrived is one of the platform's: what is said of them on arrival, and what follows
once the platform lists them."""

from __future__ import annotations

from django.db.models.functions import Coalesce
from django.utils import timezone

from crowd.ground.identity_hashes import is_same_person, person_hash, submission_hash
from crowd.models import Posting, Submission
from crowd.platforms import traits_of
from crowd.platforms.base import ListedSubmission
from crowd.study_check.publication_quote import recruiting_of
from experiments.models import Session
from experiments.selectors import definition_of
from experiments.sessions.lifecycle import verify


def is_told_at_join(posting: Posting) -> bool:
    """Whether the platform can say at once who its people are."""
    return traits_of(posting.platform).confirms_arrivals == "at_join"


def note_answer(posting: Posting, has_answered: bool) -> None:
    """Whether the platform was silent when it was asked last: then no new person can be listed."""
    rows = Posting.objects.filter(pk=posting.pk, silent_at__isnull=not has_answered)
    rows.update(silent_at=None if has_answered else timezone.now())


def arrival_of(posting: Posting, is_listed: bool) -> Session.Arrival:
    """What is known of an arrival at this posting."""
    if traits_of(posting.platform).confirms_arrivals == "never":
        return Session.Arrival.UNCONFIRMABLE
    return Session.Arrival.VERIFIED if is_listed else Session.Arrival.UNVERIFIED


def lease_s_of(posting: Posting) -> int | None:
    """How long people of this posting hold a slot: never less than the platform gives them time; None: as
    long as the study says."""
    recruitment, _ = recruiting_of(posting.study)
    told = (recruitment.maximum_minutes, posting.options.get("maximum_allowed_minutes"))
    longest = max(float(minutes or 0) for minutes in told)
    return round(longest * 60) if longest > definition_of(posting.study).lease_minutes else None


def is_listed(posting: Posting, person: str, submission: str) -> bool:
    """Whether the platform's list, as far as it was read, has this submission of this person (hashes)."""
    rows = Submission.objects.filter(posting=posting, submission_hash=submission, seen_at__isnull=False)
    return rows.filter(person_hash=person).exists()


def note(posting: Posting, listed: ListedSubmission) -> Submission:
    """Stores what the platform said about one submission, outside of a sync, and follows it. The next sync
    reads the rest."""
    key = submission_hash(posting, listed.submission)
    row, _ = Submission.objects.get_or_create(posting=posting, submission_hash=key)
    Submission.objects.filter(pk=row.pk).update(
        person_hash=person_hash(posting, listed.person),
        state=listed.state,
        raw_state=listed.raw[:40],
        state_at=timezone.now() if row.raw_state != listed.raw[:40] else row.state_at,
        gone_at=None,
        seen_at=Coalesce("seen_at", timezone.now()),
    )
    row = Submission.objects.select_related("session", "identity", "posting__study").get(pk=row.pk)
    confirm(row)
    return row


def confirm(row: Submission) -> bool:
    """Verifies the arrival of a submission that the platform lists, if it names the same person. Safe to
    repeat; True if it was unverified until now."""
    session = row.session
    if session is None or session.arrival != Session.Arrival.UNVERIFIED or row.seen_at is None:
        return False
    return is_same_person(row) and verify(session, lease_s_of(row.posting))
