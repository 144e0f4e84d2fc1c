"""Ending a study for good: first every posting, verified, then the study. No posting recruits for a closed
study."""

from __future__ import annotations

import shlex

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from crowd.ground.audit import record
from crowd.models import Posting
from crowd.people.result_seals import printed_name, seal
from crowd.platforms import has_service
from crowd.platforms.base import PlatformError, UnsupportedRequest
from crowd.recruiting import publishing
from crowd.recruiting.places import places_text
from experiments.errors import StudyError
from experiments.models import Study


def still_offered(study: Study) -> list[Posting]:
    """The postings that are not closed."""
    rows = Posting.objects.filter(study=study).exclude(state=Posting.State.CLOSED)
    return list(rows.select_related("study").order_by("pk"))


def asks_a_platform(postings: list[Posting]) -> bool:
    """Whether closing these needs a call to a platform."""
    return any(has_service(posting.platform) for posting in postings)


def close_whole(study: Study, who: str, reason: str) -> list[str]:
    """Closes every posting and then the study; returns what was closed, as sentences. Repeatable.

    Raises StudyError if a posting could not be closed: the study stays open, and so does that posting.
    """
    _check(study, who, reason)
    done, left = [], []
    for posting in still_offered(study):
        try:
            done.append(_end(posting, who))
        except (StudyError, UnsupportedRequest, PlatformError) as error:
            left.append(f"{places_text(posting)}: {error}")
    if left:
        state = "stays open" if study.state == Study.State.OPEN else "is closed, and still offered"
        raise StudyError(
            f"{study.slug} {state}, for people could still come by {'; '.join(left)} Close it again then."
        )
    if _close(study, who, reason):
        done.append(f"{study.slug} is closed.")
    return done


def _check(study: Study, who: str, reason: str) -> None:
    study.refresh_from_db()
    if study.state == Study.State.DRAFT:
        raise StudyError(f"Only an open study can be closed; {study.slug} is a draft.")
    if not who.strip():
        raise StudyError("Closing a study needs a name.")
    if study.state == Study.State.OPEN and seal(study, "human").sealed and not reason.strip():
        raise StudyError("Closing now opens the results early: say why. Nothing was changed.")


def _end(posting: Posting, who: str) -> str:
    """Closes one posting. A rehearsal without its simulator has no people to turn away: it is over."""
    try:
        publishing.close(posting, who)
    except (StudyError, UnsupportedRequest, PlatformError):
        if posting.mode != Posting.Mode.REHEARSAL:
            raise
        rows = Posting.objects.filter(pk=posting.pk).exclude(state=Posting.State.CLOSED)
        if rows.update(state=Posting.State.CLOSED, closed_at=timezone.now(), sync_error=""):
            record(
                posting.study,
                who,
                f"Marked as closed: {places_text(posting)}; its simulator does not answer.",
            )
    return f"Closed: {places_text(posting)}."


def _close(study: Study, who: str, reason: str) -> bool:
    with transaction.atomic():
        # Publishing takes the same row before it stores a posting.
        Study.objects.select_for_update().get(pk=study.pk)
        new = still_offered(study)
        if new:
            raise StudyError(
                f"{study.slug} stays open: {places_text(new[0])} were offered at this very moment. "
                "Close it again."
            )
        user = User.objects.filter(username=who).first() or User(username=who)
        return close_study(study, user, reason)


def close_study(study: Study, user: User, reason: str) -> bool:
    """Ends recruitment for good; people who have begun may finish. False if it was not open any more.

    Closing opens the results. If it happens before every slot is kept, it breaks the seal: name and reason
    are stored as such and printed in every report.
    """
    changes: dict[str, object] = {"state": Study.State.CLOSED, "closed_at": timezone.now()}
    if seal(study, "human").sealed:
        changes |= {
            "unsealed_at": timezone.now(),
            "unsealed_by": printed_name(user),
            "unsealed_reason": f"closed early: {reason}",
        }
    closed = Study.objects.filter(id=study.pk, state=Study.State.OPEN).update(**changes)
    if closed == 1:
        record(study, user.get_username(), f"Closed the study{': ' + reason if reason else ''}.")
    return closed == 1


def command_of(study: Study, by: str, reason: str) -> str:
    """The same command for the terminal."""
    words = ["python", "manage.py", "study_close", study.slug, "--by", by]
    return shlex.join([*words, "--reason", reason] if reason else words)
