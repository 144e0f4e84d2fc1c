"""Staying in step with a platform: reads its list, and matches people by their keyed hashes.

Nothing is taken from a notification, and nothing is lost if a platform is down: the next sync reads all
again. An outside id is stored in the clear only for a person who consented and was not forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction
from django.utils import timezone

from crowd.ground import platform_clock
from crowd.ground.identity_hashes import is_same_person, person_hash, submission_hash
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.ground.process_locks import Busy
from crowd.models import Identity, Message, Posting, Submission
from crowd.platforms.base import (
    IncomingMessage,
    ListedSubmission,
    PlatformError,
    PlatformPosting,
    Service,
    Unread,
    UnsupportedRequest,
)
from crowd.recruiting.arrival_confirmation import confirm, note_answer
from crowd.recruiting.places import alone_with, finish_places, remember, top_up
from experiments.errors import StudyError
from experiments.gates.consent import NAME as CONSENT
from experiments.models import Gate
from experiments.sessions.lifecycle import ENDED, mark_left
from experiments.sessions.slot_assignment import release_slot

WRITTEN = (
    *("state", "raw_state", "state_at", "code", "started_at", "completed_at", "return_requested", "seen_at"),
    "gone_at",
)
RAW_MAX, CODE_MAX = 40, 64
STUDY = "posting__study"


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync found: submissions by state, what changed as sentences without names, why it failed
    (empty: it did not), and how fresh the rows are at least. `ids` are the platform's ids of submission and
    person by the submission's hash, for this run alone: those of people who never consented are not
    stored."""

    counts: dict[str, int] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    error: str = ""
    read_at: datetime | None = None
    ids: Mapping[str, tuple[str, str]] = field(default_factory=dict)


MayKeepIds = Callable[[Identity], bool]
"""Whether the ids of a forgotten person must stay: they are still to be paid, or may earn pay. It is asked of
the room above, which knows what is owed."""


Read = Callable[[Posting, Service, Sequence[ListedSubmission], datetime], list[str]]
"""What the room above reads from the platform besides the list; it returns what could not be read."""


def sync_posting(
    posting: Posting, may_keep_ids: MayKeepIds, read: Read, *, replace: bool = True
) -> SyncResult:
    """Updates our rows to what the platform says now. Repeatable; under the posting's lock.

    Without `replace` it only reads: no place is offered. A row that cannot be read is set aside and named;
    the others count.

    If the platform fails, its sentence goes to `sync_error` and nothing else changes.
    """
    try:
        with alone_with(Posting.objects.get(id=posting.pk), wait_s=0) as locked:
            return _sync(locked, may_keep_ids, read, replace)
    except Busy as busy:
        return SyncResult(error=str(busy))


def _sync(posting: Posting, may_keep_ids: MayKeepIds, read: Read, replace: bool) -> SyncResult:
    began, is_listed = platform_clock.now(), False
    if not posting.external_id:
        return SyncResult(
            error="The posting is a draft, not known to exist on the platform. Publish it again."
        )
    try:
        service = service_of(posting)
        posted = service.look(posted_of(posting))
        rows = list(service.submissions(posted))
        is_listed = True
        listings = [row for row in rows if not isinstance(row, Unread)]
        before = posting.state
        remember(posting, posted)
        changes = [f"The posting is {posting.state} now." if posting.state != before else ""]
        changes += _apply_all(posting, listings, _unread_submissions(posting, rows), may_keep_ids)
        unread = [row.why for row in rows if isinstance(row, Unread)]
        unread += read(posting, service, listings, began)
    except (PlatformError, UnsupportedRequest, StudyError) as error:
        note_answer(posting, is_listed)
        return _note_failure(posting, error)
    changes += _beside(posting, service, posted, replace)
    done = Posting.objects.filter(id=posting.pk)
    done.update(synced_at=began, silent_at=None, sync_error=posting.sync_error, unread=unread)
    # A notification that comes during the read is handled by the next sync.
    done.filter(sync_asked_at__lte=began).update(sync_asked_at=None)
    counts: dict[str, int] = dict(Counter(str(listed.state) for listed in listings))
    ids = {submission_hash(posting, each.submission): (each.submission, each.person) for each in listings}
    return SyncResult(counts, tuple(change for change in changes if change), read_at=began, ids=ids)


def _beside(posting: Posting, service: Service, posted: PlatformPosting, replace: bool) -> list[str]:
    """Messages and places. What fails here is tried again by the next sync; the list was read anyway."""
    changes = []
    # Reading the list takes time; decisions made here meanwhile count.
    posting.refresh_from_db()
    try:
        if replace and finish_places(posting, posted.places):
            changes.append("An addition of places that was cut off is finished.")
        opened = top_up(posting) if replace else 0
        changes.append(f"{opened} replacements opened." if opened else "")
        changes += _read_messages(posting, service)
    except (PlatformError, UnsupportedRequest, StudyError) as error:
        posting.sync_error = (
            f"The list of {posting.platform} was read, but not everything could be done about it: {error} It "
            "is tried again by itself."
        )
    return changes


def _note_failure(posting: Posting, error: Exception) -> SyncResult:
    """The sentence that the researcher reads; it names the platform and what happens next."""
    last = f"{posting.synced_at:%Y-%m-%d %H:%M} UTC" if posting.synced_at else "never"
    sentence = (
        f"{posting.platform} could not be read, and nothing was lost: {error} It is asked again by itself; "
        f"it last answered {last}."
    )
    Posting.objects.filter(id=posting.pk).update(sync_error=sentence)
    return SyncResult(error=sentence)


def _unread_submissions(
    posting: Posting, rows: Iterable[ListedSubmission | Unread]
) -> Collection[str] | None:
    """Submissions of rows that could not be read: they are listed all the same. None: some do not say
    whose they are."""
    unread = [row.submission for row in rows if isinstance(row, Unread)]
    return {submission_hash(posting, each) for each in unread} if all(unread) else None


def _apply_all(
    posting: Posting,
    listings: Iterable[ListedSubmission],
    kept: Collection[str] | None,
    may_keep_ids: MayKeepIds,
) -> list[str]:
    rows = {
        row.submission_hash: row
        for row in Submission.objects.filter(posting=posting).select_related("session", "identity", STUDY)
    }
    consented = set(
        Gate.objects.filter(session__submission__posting=posting, kind=CONSENT, passed=True).values_list(
            "session_id", flat=True
        )
    )
    changes: Counter[str] = Counter()
    left = {key: row for key, row in rows.items() if row.seen_at is not None and row.gone_at is None}
    for listed in listings:
        key = submission_hash(posting, listed.submission)
        left.pop(key, None)
        row = rows.get(key) or _new_row(posting, key)
        changes.update(_apply(posting, row, listed))
        _identify(row, listed, person_hash(posting, listed.person), row.session_id in consented, may_keep_ids)
        changes.update(["an arrival is confirmed"] if confirm(row) else [])
        changes.update(_follow(row))
    left = {} if kept is None else {key: row for key, row in left.items() if key not in kept}
    gone = Submission.objects.filter(id__in=[row.pk for row in left.values()])
    changes.update({"not on the list any more": gone.update(gone_at=platform_clock.now())} if left else {})
    return [f"{sentence}: {count}." for sentence, count in sorted(changes.items())]


def _new_row(posting: Posting, key: str) -> Submission:
    """A submission that the list told us of. Its person may join at the same moment: then the row made on
    arrival is used."""
    row, _ = Submission.objects.select_related("session", "identity", STUDY).get_or_create(
        posting=posting, submission_hash=key
    )
    return row


def _apply(posting: Posting, row: Submission, listed: ListedSubmission) -> list[str]:
    """One line of the list. Writes only what changed; returns what happened, in words."""
    before = {name: getattr(row, name) for name in WRITTEN}
    is_new = row.seen_at is None
    row.state, row.raw_state, row.code = listed.state, listed.raw[:RAW_MAX], listed.code[:CODE_MAX]
    row.started_at, row.completed_at = listed.started_at, listed.completed_at
    row.return_requested = listed.return_requested
    row.seen_at, row.gone_at = row.seen_at or platform_clock.now(), None
    if row.raw_state != before["raw_state"] or row.state_at is None:
        row.state_at = platform_clock.now()
    changed = [name for name in WRITTEN if getattr(row, name) != before[name]]
    if changed:
        Submission.objects.filter(id=row.pk).update(**{name: getattr(row, name) for name in changed})
    happened = [f"new as {listed.state}" if is_new else f"{before['state']} -> {listed.state}"]
    return happened if is_new or before["state"] != row.state else []


def _identify(
    row: Submission, listed: ListedSubmission, who: str, has_consented: bool, may_keep_ids: MayKeepIds
) -> None:
    """Stores who the platform says it is. If the arrival named another person, both are kept: no payment is
    made before that is resolved, so no id is stored either."""
    identity = row.identity
    if identity is None:
        if row.person_hash != who or row.external_id:
            nobody = Submission.objects.filter(id=row.pk, identity=None)
            nobody.update(person_hash=who, external_id="")
            row.person_hash, row.external_id = who, ""
        return
    is_known = has_consented and identity.person_hash == who
    submission, person = (listed.submission, listed.person) if is_known else ("", identity.external_id)
    if (row.person_hash, row.external_id, identity.external_id) != (who, submission, person):
        _store_ids(row, identity, who, submission, person, may_keep_ids)


def _store_ids(
    row: Submission, known: Identity, who: str, submission: str, person: str, may_keep_ids: MayKeepIds
) -> None:
    """Stores the person's ids, unless the person was forgotten. That may have happened since the list was
    read, so the row is locked first, as `forget` does."""
    with transaction.atomic():
        identity = Identity.objects.select_for_update().get(id=known.pk)
        if identity.forgotten_at is not None and not (identity.person_hash == who and may_keep_ids(identity)):
            return
        Submission.objects.filter(id=row.pk).update(person_hash=who, external_id=submission)
        if submission:
            Identity.objects.filter(id=identity.pk).update(external_id=person)
            identity.external_id = person
    row.person_hash, row.external_id, row.identity = who, submission, identity


def _follow(row: Submission) -> list[str]:
    """Applies a state to the session and its slot. Safe to repeat."""
    session = row.session
    if session is None or session.state in ENDED or row.state not in {"returned", "timed_out"}:
        return []
    if not is_same_person(row):
        return []
    if row.state == "returned":
        return ["a place is free again, its person returned the work"] if mark_left(session) else []
    # The person may still finish: the session goes on, as surplus, and is paid.
    freed = release_slot(session)
    return ["a place is free again, its time is over"] if freed else []


def _read_messages(posting: Posting, service: Service) -> list[str]:
    """Messages of participants, once each."""
    try:
        messages = list(service.messages(posted_of(posting)))
    except UnsupportedRequest:
        return []
    new = sum(_keep_message(posting, message) for message in messages)
    return [f"{new} new messages."] if new else []


def _keep_message(posting: Posting, message: IncomingMessage) -> bool:
    """Stores a message of one of our people; other messages of the account do not belong to this study."""
    who = person_hash(posting, message.person)
    identity = Identity.objects.filter(study=posting.study_id, person_hash=who).first()
    about_us = message.posting == posting.external_id
    if identity is None and not about_us:
        return False
    if identity is not None and not about_us and not identity.submissions.filter(posting=posting).exists():
        return False
    if identity is not None and identity.forgotten_at is not None:
        return False
    try:
        with transaction.atomic():
            _, created = Message.objects.get_or_create(
                posting=posting,
                external_id=message.external_id,
                defaults={
                    "identity": identity,
                    "state": Message.State.RECEIVED,
                    "body": message.body.replace("\x00", ""),
                    "created_at": message.sent_at or timezone.now(),
                },
            )
    except IntegrityError:
        return False
    return created


def is_due(posting: Posting) -> bool:
    """Whether a posting must still be synced: until it is closed and all its submissions are decided."""
    if not posting.external_id:
        return False
    if posting.state != Posting.State.CLOSED:
        return True
    undecided = ("reserved", "active", "awaiting", "unknown")
    return Submission.objects.filter(posting=posting, state__in=undecided, seen_at__isnull=False).exists()
