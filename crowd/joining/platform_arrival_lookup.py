"""Asking the platform about one arrival, while a person waits: for two seconds at most, and never twice in
vain. What is not answered now is read by the next sync."""

from __future__ import annotations

import base64
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from celery import current_app
from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from crowd.ground.platform_accounts import open_service, posted_of, site_of
from crowd.joining.rate_limits import may_ask, note_answered, was_answered
from crowd.models import Posting, Submission
from crowd.platforms.base import ListedSubmission, PlatformError, PlatformPosting, Site, Unread
from crowd.recruiting import arrival_confirmation
from experiments.errors import StudyError
from experiments.tokens import keyed_hash

log = logging.getLogger(__name__)
DEADLINE_S = 2.0
PAUSE_S = 30.0
"""How long a platform that took its time and did not answer is left alone."""
QUICK_S = 0.5
ASKED_PER_MINUTE = 120
"""Of one posting, so that a flood of invented ids does not become a flood of calls."""
ONE_TRY = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "socket_connect_timeout": 2}
TASK = "crowd.tasks.confirm_arrival"
_pool = ThreadPoolExecutor(4, thread_name_prefix="arrivals")
_senders = ThreadPoolExecutor(1, thread_name_prefix="arrivals-sent")
_silent_until: dict[tuple[str, Site], float] = {}


@dataclass(frozen=True, slots=True)
class PlatformAnswer:
    """What a platform said of a submission. `listed` is None if it has none of that id in this posting."""

    has_answered: bool
    listed: ListedSubmission | None = None


SILENCE = PlatformAnswer(False)


def impatient(seconds: float) -> None:
    """In place of a pause between two tries: a person is waiting."""
    raise PlatformError("The platform does not answer at once.")


def ask_soon(posting: Posting, submission: str) -> Submission | None:
    """Asks about an arrival: a worker, if there is one, else here. The row of a submission that is listed, if
    that is known at once."""
    if was_answered(posting, submission) or not may_ask(posting, "joins", ASKED_PER_MINUTE):
        return None
    if settings.CELERY_BROKER_URL:
        _senders.submit(_send, settings.CELERY_BROKER_URL, posting.pk, submission)
        return None
    return ask_platform(posting, submission).row


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer, and the row that it is stored in."""

    has_answered: bool
    row: Submission | None = None


def ask_platform(posting: Posting, submission: str) -> StoredAnswer:
    """Asks the platform itself, within the deadline, and stores what it says."""
    answer = _ask_in_time(posting, submission)
    if answer.has_answered:
        note_answered(posting, submission)
        arrival_confirmation.note_answer(posting, has_answered=True)
    row = arrival_confirmation.note(posting, answer.listed) if answer.listed is not None else None
    return StoredAnswer(answer.has_answered, row)


def _ask_in_time(posting: Posting, submission: str) -> PlatformAnswer:
    platform, site = posting.platform, site_of(posting)
    if not posting.external_id or time.monotonic() < _silent_until.get((platform, site), 0.0):
        return SILENCE
    # The adapter's own time-outs are longer than a person waits, so the deadline is kept here.
    began = time.monotonic()
    coming = _pool.submit(_ask, platform, site, posted_of(posting), submission)
    try:
        return coming.result(DEADLINE_S)
    except Exception as error:  # An answer that no adapter foresaw must not keep a person out either.
        coming.cancel()
        if time.monotonic() - began > QUICK_S:
            _silent_until[platform, site] = time.monotonic() + PAUSE_S
        elif isinstance(error, PlatformError) and not error.permanent and not error.is_busy:
            # Many arrivals can make a platform slow, or have it refuse more calls, but not take it away.
            arrival_confirmation.note_answer(posting, has_answered=False)
        log.warning("An arrival could not be confirmed at once: %s %s", type(error).__name__, error)
        return SILENCE


def _ask(platform: str, site: Site, posted: PlatformPosting, submission: str) -> PlatformAnswer:
    """Runs beside the request; without the database."""
    listed = open_service(platform, site, impatient).submission(posted, submission)
    return SILENCE if isinstance(listed, Unread) else PlatformAnswer(True, listed)


def _send(broker_url: str, posting_id: int, submission: str) -> None:
    """A broker that is down must not hold up the page: the sync will list the person."""
    try:
        with current_app.connection_for_write(broker_url) as connection:
            connection.transport_options = ONE_TRY
            members = [posting_id, encrypt_id(submission)]
            current_app.send_task(TASK, members, connection=connection, retry=False, ignore_result=True)
    except Exception as error:  # Each transport has errors of its own.
        log.warning("A worker could not be asked to confirm an arrival: %s", type(error).__name__)


def _fernet() -> Fernet:
    key = bytes.fromhex(keyed_hash("arrivals in messages"))
    return Fernet(base64.urlsafe_b64encode(key))


def encrypt_id(submission: str) -> str:
    """An outside id for a message: before consent it is stored nowhere in the clear, not even by a broker."""
    return _fernet().encrypt(submission.encode()).decode()


def decrypt_id(text: str) -> str:
    """Raises StudyError if the message was not made here."""
    try:
        return _fernet().decrypt(text.encode()).decode()
    except InvalidToken as error:
        raise StudyError("A message about an arrival was sealed with another IDENTITY_KEY.") from error
