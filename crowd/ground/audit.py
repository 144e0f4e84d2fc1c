"""The audit trail: who did what to a study, and when, in Django's own log."""

from __future__ import annotations

import getpass

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType

from experiments.models import Study

SYSTEM = "legible"
"""Stands for a name that is no user here; it cannot be used to log in."""


def at_the_terminal() -> str:
    """The name of the user who is logged in on this machine; a container may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "somebody at the terminal"


def record(study: Study, who: str, what: str) -> None:
    """One line of the study's log. A name that is no user is kept in the line itself."""
    user = User.objects.filter(username=who).first()
    if user is None:
        user, what = system_user(), f"{who}: {what}" if who not in {"", SYSTEM} else what
    LogEntry.objects.create(
        user_id=user.pk,
        content_type=ContentType.objects.get_for_model(Study),
        object_id=str(study.pk),
        object_repr=study.slug,
        action_flag=CHANGE,
        change_message=what,
    )


def study_log(study: Study) -> list[LogEntry]:
    """The study's log, newest first."""
    content_type = ContentType.objects.get_for_model(Study)
    entries = LogEntry.objects.filter(content_type=content_type, object_id=str(study.pk))
    return list(entries.select_related("user").order_by("-action_time", "-pk")[:500])


def system_user() -> User:
    """The inactive user that represents commands and names outside this installation."""
    user, created = User.objects.get_or_create(username=SYSTEM, defaults={"is_active": False})
    if created:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user
