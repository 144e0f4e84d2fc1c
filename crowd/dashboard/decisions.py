"""What a researcher decides here: build, close, unseal. Each is recorded with the person's name."""

from __future__ import annotations

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone

from crowd.dashboard.seals import seal
from experiments.drafts import picture_keys
from experiments.models import Study
from stimuli.models import Stimulus
from stimuli.requests import missing, send


def record(study: Study, user: User, what: str) -> None:
    """One line of the study's log."""
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(Study),
        object_id=str(study.pk),
        object_repr=study.slug,
        action_flag=CHANGE,
        change_message=what,
    )


def recorded(study: Study) -> list[LogEntry]:
    """The study's log, newest first."""
    content_type = ContentType.objects.get_for_model(Study)
    entries = LogEntry.objects.filter(content_type=content_type, object_id=str(study.pk))
    return list(entries.select_related("user").order_by("-action_time", "-pk")[:500])


def close_study(study: Study, user: User, reason: str) -> bool:
    """Ends recruitment for good; who is at it may finish. False where it was not open any more.

    Closing opens the results. Before every place is kept that is breaking the seal, so the name and the
    reason are stored as such and printed in every report.
    """
    changes: dict[str, object] = {"state": Study.State.CLOSED, "closed_at": timezone.now()}
    if seal(study, "human").sealed:
        changes |= {
            "unsealed_at": timezone.now(),
            "unsealed_by": user.get_username(),
            "unsealed_reason": f"closed early: {reason}",
        }
    closed = Study.objects.filter(id=study.pk, state=Study.State.OPEN).update(**changes)
    if closed == 1:
        record(study, user, f"Closed the study{': ' + reason if reason else ''}.")
    return closed == 1


def unseal_study(study: Study, user: User, name: str, reason: str) -> bool:
    """Breaks the seal in somebody's name; it cannot be mended. False where it was broken before."""
    unsealed = Study.objects.filter(id=study.pk, unsealed_at__isnull=True).update(
        unsealed_at=timezone.now(), unsealed_by=name, unsealed_reason=reason
    )
    if unsealed == 1:
        record(study, user, f"Unsealed the results per condition as {name}: {reason}")
    return unsealed == 1


def send_missing(study: Study, user: User) -> int:
    """Asks the workers for every picture that is missing; failed ones are tried again. Returns how many."""
    keys = missing(picture_keys(study))
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        Stimulus.objects.filter(key__in=part, state="failed").update(state="missing")
    send(keys)
    record(study, user, f"Asked the workers for {len(keys)} stimuli.")
    return len(keys)
