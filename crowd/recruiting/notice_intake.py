"""Notifications that were verified: each is stored once, and triggers a sync of the postings that it
concerns. Its content is not stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils import timezone

from crowd.ground.identity_hashes import submission_hash
from crowd.models import Notice, Posting, Submission
from crowd.platforms.base import Notification

EVENT_MAX, KIND_MAX = 140, 60
REAL = (Posting.Mode.LIVE, Posting.Mode.SANDBOX)
REHEARSED = (Posting.Mode.REHEARSAL,)


@dataclass(frozen=True, slots=True)
class NoticeResult:
    """How many notifications were new, and the postings (primary keys) that are to be synced for them."""

    new: int = 0
    woken: tuple[int, ...] = ()


def notifiable_postings(platform: str, modes: tuple[str, ...]) -> QuerySet[Posting]:
    """Postings that notifications of these modes may concern."""
    known = Posting.objects.filter(platform=platform, mode__in=modes).exclude(external_id="")
    return known.exclude(state=Posting.State.CLOSED).order_by("-id")


def keep(platform: str, notices: Iterable[Notification], modes: tuple[str, ...] = REAL) -> NoticeResult:
    """Stores each notification once and asks for a sync of what it concerns, which the next poll does, if no
    worker has done it before."""
    new, woken = 0, set[int]()
    # The ids of a simulator may meet those of the real platform.
    prefix = "" if modes == REAL else "rehearsal:"
    for notice in notices:
        posting = _posting_of(platform, notice, modes)
        _, created = Notice.objects.get_or_create(
            platform=platform,
            event_id=f"{prefix}{notice.event_id}"[:EVENT_MAX],
            defaults={"kind": notice.kind[:KIND_MAX], "posting": posting},
        )
        if created:
            new += 1
            concerned = [posting] if posting is not None else notifiable_postings(platform, modes)
            woken |= {row.pk for row in concerned}
    Posting.objects.filter(id__in=woken).update(sync_asked_at=timezone.now())
    return NoticeResult(new, tuple(sorted(woken)))


def _posting_of(platform: str, notice: Notification, modes: tuple[str, ...]) -> Posting | None:
    """The posting that a notification concerns; None if it names no known one."""
    known = Posting.objects.filter(platform=platform, mode__in=modes).exclude(external_id="")
    if notice.posting:
        newest = known.order_by("-id")
        return next((row for row in newest if notice.posting in (row.external_id, *row.names)), None)
    example = known.first()
    if not notice.submission or example is None:
        return None
    rows = Submission.objects.filter(
        posting__in=known, submission_hash=submission_hash(example, notice.submission)
    )
    row = rows.select_related("posting").first()
    return row.posting if row is not None else None
