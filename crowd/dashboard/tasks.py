"""What the dashboard asks of a worker: everything that speaks with a platform."""

from __future__ import annotations

from celery import shared_task

from crowd.audit import record
from crowd.models import Posting
from crowd.platforms.base import PlatformError, Unsupported
from experiments.errors import StudyError


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def change_posting(posting_id: int, act: str, by: str, count: int = 0) -> None:
    """Pause, resume, close, add places, sync. A failure is stored for the researcher to see."""
    from crowd import places, recruitment, sync

    posting = Posting.objects.select_related("study").filter(pk=posting_id).first()
    if posting is None:
        return
    try:
        if act == "add":
            if posting.pilot:
                places.ensure_pilot(posting.study, count, lambda what, done, total: None)
            places.add_places(posting, count, by)
        elif act == "sync":
            sync.sync_posting(posting)
        else:
            {"pause": recruitment.pause, "resume": recruitment.resume, "close": recruitment.close}[act](
                posting, by
            )
    except (StudyError, Unsupported, PlatformError) as error:
        note_failure(posting, f"It was asked to {act}, and that failed", error, by)


def note_failure(posting: Posting, what: str, error: Exception, by: str) -> None:
    """Shows the sentence on the posting's card, unless the platform's own is there, and in the log."""
    rows = Posting.objects.filter(pk=posting.pk)
    if not isinstance(error, PlatformError):
        rows.update(sync_error=f"{what}: {error}")
    record(posting.study, by, f"{what} ({posting.platform}): {error}")


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def send_letter(letter_id: int) -> None:
    """Sends one reply, once."""
    from crowd.dashboard.letters import deliver

    deliver(letter_id)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def pay_batch(posting_id: int, by: str, typed_cents: int) -> None:
    """Pays what is due to one posting's people, if the sum is still the typed one."""
    from crowd.dashboard.paying import pay

    pay(posting_id, by, typed_cents)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def decide_people(user_id: int, submissions: list[int], act: str, message: str, category: str) -> None:
    """A named person's decision about submissions; failures are in the log."""
    from django.contrib.auth.models import User

    from crowd.dashboard.decisions import decide_batch
    from crowd.dashboard.proposing import DONE_WORDS
    from crowd.models import Submission

    user = User.objects.filter(pk=user_id, is_active=True).first()
    first = Submission.objects.filter(pk__in=submissions).select_related("posting__study").first()
    if user is None or first is None:
        return
    study, by = first.posting.study, user.get_username()
    try:
        decided = decide_batch(user, submissions, act, message, category)  # type: ignore[arg-type]
    except (StudyError, Unsupported, PlatformError) as error:
        record(study, by, f"Asked to {DONE_WORDS[act]}, and that failed: {error}")
        return
    for problem in decided.problems:
        record(study, by, f"Asked to {DONE_WORDS[act]}: {problem}")


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def carry_out(user_id: int, submission_id: int, act: str, message: str) -> None:
    """A named person's decision about one submission, also if the ledger has no row for it."""
    from django.contrib.auth.models import User

    from crowd.dashboard.remedies import ASKED, called, decide
    from crowd.models import Submission

    user = User.objects.filter(pk=user_id, is_active=True).first()
    rows = Submission.objects.select_related("posting__study", "identity", "session__participant")
    row = rows.filter(pk=submission_id).first()
    if user is None or row is None:
        return
    try:
        decide(user, row, act, message)  # type: ignore[arg-type]
    except (StudyError, Unsupported, PlatformError) as error:
        what = f"Asked to {ASKED[act]} {called(row)}"
        record(row.posting.study, user.get_username(), f"{what}, and that failed: {error}")


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def close_study(study_id: int, by: str, reason: str) -> None:
    """Closes every posting of a study and then the study; if a posting stays open, so does the study."""
    from crowd.dashboard.closing import close_whole
    from experiments.models import Study

    study = Study.objects.filter(pk=study_id).first()
    if study is None:
        return
    try:
        close_whole(study, by, reason)
    except (StudyError, Unsupported, PlatformError) as error:
        record(study, by, f"Asked to close the study, and that failed: {error}")
