"""Rendering as messages. A message is a hint: the database says what is missing and which worker holds it."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from celery import shared_task
from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from stimuli.build import send
from stimuli.models import Measurement, Stimulus
from stimuli.worker_claims import free, of_one_stimulus, render_claimed

SWEEP_MAX = 2000


@shared_task(bind=True, acks_late=True, reject_on_worker_lost=True, ignore_result=True)  # type: ignore[untyped-decorator]
def render_stimuli(self: Any, keys: list[str]) -> int:
    """Render those of the picture keys that are free; how many were finished.

    The message's id is the claim's token: the same message, delivered again after its worker was killed, goes
    on at once instead of waiting for the lease.
    """
    return render_claimed(keys, self.request.id or uuid.uuid4().hex)


@shared_task(ignore_result=True)  # type: ignore[untyped-decorator]
def sweep_stimuli() -> int:
    """Send again all stimuli that are free or not measured and were not sent within a lease; how many those
    are."""
    if not settings.CELERY_BROKER_URL:
        return 0
    lease_s = settings.STIMULUS_LEASE_S
    unsent = Q(sent_at=None) | Q(sent_at__lte=timezone.now() - timedelta(seconds=lease_s))
    open_ = of_one_stimulus(Measurement.objects.filter(measured_at__isnull=True))
    unmeasured = Q(state=Stimulus.State.DONE, pk__in=open_.values("stimulus_id"))
    rows = Stimulus.objects.filter(free(lease_s) | unmeasured, unsent).order_by("pk")
    keys = list(rows.values_list("key", flat=True)[:SWEEP_MAX])
    send(keys)
    return len(keys)
