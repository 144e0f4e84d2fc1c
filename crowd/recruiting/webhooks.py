"""Notifications of platforms: verified, stored once, answered fast. They only trigger a sync; what they claim
is read from the platform again."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from celery import current_app
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from kombu.exceptions import OperationalError

from crowd.ground.platform_accounts import REHEARSAL
from crowd.platforms import PLATFORMS, notice_of, traits_of
from crowd.platforms.base import BadNotice
from crowd.recruiting.notice_intake import REAL, REHEARSED, keep, notifiable_postings

BODY_MAX = 65_536
SYNC = "crowd.tasks.sync_posting"
"""Sent by its name: tasks stand above this module."""
log = logging.getLogger(__name__)


@csrf_exempt
@require_POST
def hook(request: HttpRequest, platform: str) -> HttpResponse:
    """One delivery of a platform. A 2xx is final, so a repeated delivery gets one too."""
    read = notice_of(platform) if platform in PLATFORMS else None
    if read is None:
        return _text_response("No platform of this name notifies over the web.", 404)
    body = request.read(BODY_MAX + 1)
    if len(body) > BODY_MAX:
        return _text_response(f"The notification has more than {BODY_MAX} bytes.", 413)
    why = "No notifications are expected here."
    for secret, modes in _secrets(platform):
        try:
            events = read(request.headers, body, secret, timezone.now())
        except BadNotice as refusal:
            why = str(refusal)
            continue
        _send(keep(platform, events, modes).woken)
        return _text_response("Thank you.", 200)
    log.warning("A notification to %s was refused: %s", request.path, why)
    return _text_response(why, 403)


def _text_response(sentence: str, status: int) -> HttpResponse:
    return HttpResponse(sentence, status=status, content_type="text/plain; charset=utf-8")


def _secrets(platform: str) -> list[tuple[str, tuple[str, ...]]]:
    """Secrets that may have signed, and the modes that they may sync: the account's, and the simulator's
    during a rehearsal. The simulator's secret is public, so it syncs no real posting."""
    secrets: list[tuple[str, tuple[str, ...]]] = []
    if notifiable_postings(platform, REHEARSED).exclude(site="").exists():
        secrets.append((REHEARSAL, REHEARSED))
    real = getattr(settings, traits_of(platform).notice_secret, "")
    if real:
        secrets.append((real, REAL))
    return secrets


def _send(postings: Iterable[int]) -> None:
    """Asks a worker to sync them now. Without a broker, or with one that is down, the next poll does it."""
    if not settings.CELERY_BROKER_URL:
        return
    for posting_id in postings:
        try:
            current_app.send_task(SYNC, args=(posting_id,), retry=False)
        except OperationalError:
            log.warning("The broker does not answer; posting %s is synced by the next poll.", posting_id)
            return
