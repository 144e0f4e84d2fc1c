"""The state of this installation: rows, pictures, messages, workers and disks, each with what to do; and what
trouble was told."""

from __future__ import annotations

from importlib.metadata import version

from django.conf import settings
from django.db.models import F, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from crowd.alerts.sending import channels
from crowd.alerts.watching import WATCHED
from crowd.dashboard.access import researcher, researcher_of
from crowd.ground.backups import BACKUP
from crowd.ground.readiness import disks, required_parts, workers
from crowd.ground.roles import studies_of
from crowd.models import Alert, LastTime

WORDS = {"database": "Database", "store": "Pictures", "broker": "Messages to workers", "workers": "Workers"}
SHOWN = 40


@researcher
@require_safe
def service(request: HttpRequest) -> HttpResponse:
    """Troubles of a study are listed for logins that may look at it."""
    parts = [*required_parts(), workers(), *disks()]
    named = [(WORDS.get(part.name, part.name.capitalize()), part) for part in parts]
    visible = Q(study=None) | Q(study__in=studies_of(researcher_of(request)))
    latest = (F("ended_at").desc(nulls_first=True), "-began_at")
    content = {
        "rows": named,
        "wrong": [word for word, part in named if not part.is_ready],
        "alerts": Alert.objects.filter(visible).select_related("study").order_by(*latest)[:SHOWN],
        "told_by": " and ".join(channels()),
        "backed_up_at": LastTime.objects.filter(name=BACKUP).values_list("at", flat=True).first(),
        "watched_at": LastTime.objects.filter(name=WATCHED).values_list("at", flat=True).first(),
        "version": version("legible"),
        "address": settings.BASE_URL,
        "has_broker": bool(settings.CELERY_BROKER_URL),
        "now": timezone.now(),
    }
    return render(request, "dashboard/service.html", content)
