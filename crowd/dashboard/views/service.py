"""The state of this installation: rows, pictures, messages and workers, each with what to do."""

from __future__ import annotations

from importlib.metadata import version

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from crowd.dashboard.access import researcher
from crowd.ground.readiness import needed, workers

WORDS = {"database": "Database", "store": "Pictures", "broker": "Messages to workers", "workers": "Workers"}


@researcher
@require_safe
def service(request: HttpRequest) -> HttpResponse:
    parts = [*needed(), workers()]
    content = {
        "rows": [(WORDS[part.name], part) for part in parts],
        "wrong": [WORDS[part.name] for part in parts if not part.is_ready],
        "version": version("legible"),
        "address": settings.BASE_URL,
        "has_broker": bool(settings.CELERY_BROKER_URL),
        "now": timezone.now(),
    }
    return render(request, "dashboard/service.html", content)
