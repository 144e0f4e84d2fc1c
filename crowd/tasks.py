"""Messages to workers: ask the platforms, take notifications, forget, and what a page asks for. Beat's
polling is sufficient; everything else only makes it faster."""

from __future__ import annotations

import logging

from celery import shared_task

from crowd.ground.audit import record
from crowd.models import Posting
from crowd.platforms.base import Notification, PlatformError, UnsupportedRequest
from experiments.errors import StudyError

log = logging.getLogger(__name__)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sync_postings() -> int:
    """Syncs every posting that is not over; returns how many succeeded. A failure stops no other."""
    from crowd.platforms import platforms_with_service
    from crowd.recruiting.sync import is_due

    postings = (
        Posting.objects.filter(platform__in=platforms_with_service()).exclude(external_id="").order_by("id")
    )
    return sum(_try_sync(posting) for posting in postings if is_due(posting))


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def confirm_arrival(posting_id: int, sealed: str) -> None:
    """Asks a platform about a person who has just come. If it fails, the sync does the same."""
    from crowd.ground.platform_accounts import posted_of, service_of
    from crowd.joining.platform_arrival_lookup import decrypt_id
    from crowd.joining.rate_limits import note_answered
    from crowd.platforms.base import ListedSubmission
    from crowd.recruiting.arrival_confirmation import note, note_answer

    posting = Posting.objects.select_related("study").get(id=posting_id)
    try:
        submission = decrypt_id(sealed)
        listed = service_of(posting).submission(posted_of(posting), submission)
    except (PlatformError, UnsupportedRequest, StudyError) as error:
        log.warning("An arrival could not be confirmed: %s", error)
        return
    note_answered(posting, submission)
    note_answer(posting, has_answered=True)
    if isinstance(listed, ListedSubmission):
        note(posting, listed)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sync_posting(posting_id: int) -> bool:
    """Syncs one posting, unless that was done since the notification: of a burst, only the first does it."""
    posting = Posting.objects.filter(id=posting_id, sync_asked_at__isnull=False).first()
    return posting is not None and _try_sync(posting)


def _try_sync(posting: Posting) -> bool:
    from crowd.money.run import look

    try:
        return not look(posting).error
    except Exception as error:  # The next posting must be synced also if this one fails.
        log.exception("Posting %s could not be synced.", posting.pk)
        Posting.objects.filter(id=posting.pk).update(
            sync_error=f"The sync failed with {type(error).__name__}; the log of the worker says where."
        )
        return False


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def pull_notices() -> int:
    """Takes the notifications of platforms from their queues; returns how many were new."""
    from crowd.ground.platform_accounts import queue_account
    from crowd.platforms import queues
    from crowd.recruiting.notice_intake import keep

    counts: list[int] = []
    for platform, pull in queues():
        account = queue_account(platform)

        def store(events: list[Notification], platform: str = platform) -> None:
            stored = keep(platform, events)
            counts.append(stored.new)
            for posting_id in stored.woken:
                sync_posting.delay(posting_id)

        try:
            if account is not None:
                pull(account, store)
        except PlatformError as error:
            log.warning("%s The postings are polled meanwhile.", error)
    return sum(counts)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def forget_due() -> int:
    """Forgets people whose retention has ended; returns how many."""
    from crowd.joining.rate_limits import purge
    from crowd.people.privacy import forget_due as forget

    purge()
    return forget().people


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def change_posting(posting_id: int, act: str, by: str, count: int = 0) -> None:
    """Pause, resume, close, add places, sync. A failure is stored for the researcher to see."""
    from crowd.money.run import look
    from crowd.recruiting import places, publishing

    posting = Posting.objects.select_related("study").filter(pk=posting_id).first()
    if posting is None:
        return
    try:
        if act == "add":
            if posting.pilot:
                places.ensure_pilot(posting.study, count, lambda what, done, total: None)
            places.add_places(posting, count, by)
        elif act == "sync":
            look(posting)
        else:
            {"pause": publishing.pause, "resume": publishing.resume, "close": publishing.close}[act](
                posting, by
            )
    except (StudyError, UnsupportedRequest, PlatformError) as error:
        note_failure(posting, f"It was asked to {act}, and that failed", error, by)


def note_failure(posting: Posting, what: str, error: Exception, by: str) -> None:
    """Shows the sentence on the posting's card, unless the platform's own is there, and in the log."""
    rows = Posting.objects.filter(pk=posting.pk)
    if not isinstance(error, PlatformError):
        rows.update(sync_error=f"{what}: {error}")
    record(posting.study, by, f"{what} ({posting.platform}): {error}")


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def send_message(message_id: int) -> None:
    """Sends one reply, once."""
    from crowd.people.messages import deliver

    deliver(message_id)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def pay_batch(posting_id: int, by: str, typed_cents: int) -> None:
    """Pays what is due to one posting's people, if the sum is still the typed one."""
    from crowd.money.run import pay

    pay(posting_id, by, typed_cents)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def decide_people(user_id: int, submissions: list[int], act: str, message: str, category: str) -> None:
    """A named person's decision about submissions; failures are in the log."""
    from django.contrib.auth.models import User

    from crowd.models import Submission
    from crowd.people.decisions import DONE_WORDS, decide_batch

    user = User.objects.filter(pk=user_id, is_active=True).first()
    first = Submission.objects.filter(pk__in=submissions).select_related("posting__study").first()
    if user is None or first is None:
        return
    study, by = first.posting.study, user.get_username()
    try:
        decided = decide_batch(user, submissions, act, message, category)  # type: ignore[arg-type]
    except (StudyError, UnsupportedRequest, PlatformError) as error:
        record(study, by, f"Asked to {DONE_WORDS[act]}, and that failed: {error}")
        return
    for problem in decided.problems:
        record(study, by, f"Asked to {DONE_WORDS[act]}: {problem}")


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def carry_out(user_id: int, submission_id: int, act: str, message: str) -> None:
    """A named person's decision about one submission, also if the ledger has no row for it."""
    from django.contrib.auth.models import User

    from crowd.models import Submission
    from crowd.money.platform_statement import name_in_sentence
    from crowd.people.decisions import decide
    from crowd.people.submission_actions import ASKED

    user = User.objects.filter(pk=user_id, is_active=True).first()
    rows = Submission.objects.select_related("posting__study", "identity", "session__participant")
    row = rows.filter(pk=submission_id).first()
    if user is None or row is None:
        return
    try:
        decide(user, row, act, message)  # type: ignore[arg-type]
    except (StudyError, UnsupportedRequest, PlatformError) as error:
        what = f"Asked to {ASKED[act]} {name_in_sentence(row)}"
        record(row.posting.study, user.get_username(), f"{what}, and that failed: {error}")


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def close_study(study_id: int, by: str, reason: str) -> None:
    """Closes every posting of a study and then the study; if a posting stays open, so does the study."""
    from crowd.people.study_closure import close_whole
    from experiments.models import Study

    study = Study.objects.filter(pk=study_id).first()
    if study is None:
        return
    try:
        close_whole(study, by, reason)
    except (StudyError, UnsupportedRequest, PlatformError) as error:
        record(study, by, f"Asked to close the study, and that failed: {error}")
