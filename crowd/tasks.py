"""Messages to workers: ask the platforms, take notifications, forget. Beat's polling is sufficient;
everything else only makes it faster."""

from __future__ import annotations

import logging

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from crowd.models import Posting
from crowd.platforms.base import Account, Notified, PlatformError, Site

log = logging.getLogger(__name__)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sync_postings() -> int:
    """Syncs every posting that is not over; returns how many succeeded. A failure stops no other."""
    from crowd.places import MARKETS
    from crowd.sync import is_due

    postings = Posting.objects.filter(platform__in=MARKETS).exclude(external_id="").order_by("id")
    return sum(_synced(posting) for posting in postings if is_due(posting))


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sync_posting(posting_id: int) -> bool:
    """Syncs one posting, unless that was done since the notification: of a burst, only the first does it."""
    posting = Posting.objects.filter(id=posting_id, sync_asked_at__isnull=False).first()
    return posting is not None and _synced(posting)


def _synced(posting: Posting) -> bool:
    from crowd.sync import sync_posting as sync

    now, last = timezone.now(), posting.synced_at
    hourly = last is None or (last.date(), last.hour) != (now.date(), now.hour)
    try:
        return not sync(posting, bonuses=hourly).error
    except Exception as error:  # The next posting must be synced also if this one fails.
        log.exception("Posting %s could not be synced.", posting.pk)
        Posting.objects.filter(id=posting.pk).update(
            sync_error=f"The sync failed with {type(error).__name__}; the log of the worker says where."
        )
        return False


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def pull_notices() -> int:
    """Takes Mechanical Turk's notifications from the queue; returns how many were new."""
    from crowd.notices import keep
    from crowd.platforms.mturk.notices import pull, queue_client

    if not settings.MTURK_QUEUE_URL:
        return 0
    account = Account(Site(), queue_url=settings.MTURK_QUEUE_URL)
    counts: list[int] = []

    def store(events: list[Notified]) -> None:
        stored = keep("mturk", events)
        counts.append(stored.new)
        for posting_id in stored.woken:
            sync_posting.delay(posting_id)

    try:
        pull(settings.MTURK_QUEUE_URL, queue_client(account), store)
    except PlatformError as error:
        log.warning("%s The postings are polled meanwhile.", error)
    return sum(counts)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def forget_due() -> int:
    """Forgets people whose retention has ended; returns how many."""
    from crowd.privacy import forget_due as forget

    return forget().people
