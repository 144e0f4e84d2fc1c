"""Notifications of platforms: verified, stored once, answered fast. They only trigger a sync; what they claim
is read from the platform again."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from kombu.exceptions import OperationalError

from crowd.accounts import REHEARSAL
from crowd.notices import REAL, REHEARSED, keep, offered
from crowd.platforms.base import BadNotice
from crowd.platforms.prolific.notices import read_notice
from crowd.tasks import sync_posting

BODY_MAX = 65_536
log = logging.getLogger(__name__)


@csrf_exempt
@require_POST
def prolific_hook(request: HttpRequest) -> HttpResponse:
    """One delivery of Prolific. A 2xx is final, so a repeated delivery gets one too."""
    body = request.read(BODY_MAX + 1)
    if len(body) > BODY_MAX:
        return _said(f"The notification has more than {BODY_MAX} bytes.", 413)
    why = "No notifications are expected here."
    for secret, modes in _secrets():
        try:
            events = read_notice(request.headers, body, secret, timezone.now())
        except BadNotice as refusal:
            why = str(refusal)
            continue
        _send(keep("prolific", events, modes).woken)
        return _said("Thank you.", 200)
    log.warning("A notification to %s was refused: %s", request.path, why)
    return _said(why, 403)


def _said(sentence: str, status: int) -> HttpResponse:
    return HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")


def _secrets() -> list[tuple[str, tuple[str, ...]]]:
    """Secrets that may have signed, and the modes that they may sync: the workspace's, and the simulator's
    during a rehearsal. The simulator's secret is public, so it syncs no real posting."""
    secrets: list[tuple[str, tuple[str, ...]]] = []
    if offered("prolific", REHEARSED).exclude(site="").exists():
        secrets.append((REHEARSAL, REHEARSED))
    if settings.PROLIFIC_WEBHOOK_SECRET:
        secrets.append((settings.PROLIFIC_WEBHOOK_SECRET, REAL))
    return secrets


def _send(postings: Iterable[int]) -> None:
    """Asks a worker to sync them now. Without a broker, or with one that is down, the next poll does it."""
    if not settings.CELERY_BROKER_URL:
        return
    for posting_id in postings:
        try:
            sync_posting.apply_async(args=(posting_id,), retry=False)
        except OperationalError:
            log.warning("The broker does not answer; posting %s is synced by the next poll.", posting_id)
            return
