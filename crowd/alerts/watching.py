"""Looks again and again for trouble, tells each once, and forgets it when it is mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error as AnyDatabaseError
from django.db import connection
from django.db.models import Q

from crowd.alerts.current_troubles import Trouble, of_service, of_study, to_watch
from crowd.alerts.sending import Letter, Unsent, channels
from crowd.models import Alert, Failure, LastTime

WATCHED = "watch"
KEPT = timedelta(days=30)
"""How long failures, and alerts whose trouble is over, are kept."""
SETTLED = timedelta(minutes=10)
"""How long a trouble is away until its return is news. A disk about its limit comes and goes each minute."""


def trouble_now(now: datetime) -> tuple[list[Trouble], bool]:
    """What is wrong with the installation and its studies, and whether there are rows to look at."""
    troubles = of_service()
    if any(trouble.key == "service:database" for trouble in troubles):
        connection.close()
        return troubles, False
    try:
        return troubles + [trouble for study in to_watch() for trouble in of_study(study, now)], True
    except AnyDatabaseError:
        connection.close()
        return troubles, False


@dataclass(slots=True)
class Watcher:
    """The memory of one process: what the last look saw, and what was told of it, for while there is no
    database.

    A trouble is told when two looks running see it, so that a slow answer alone tells nothing; one that comes
    back within ten minutes was not over, and is not told again. The rows remember what was told, also over a
    restart. A process that dies between a message and its row sends that message again.
    """

    seen: set[str] = field(default_factory=set)
    told: dict[str, list[str]] = field(default_factory=dict)

    def look(self, now: datetime) -> list[Trouble]:
        """One look; all that is wrong now."""
        troubles, has_rows = trouble_now(now)
        if has_rows:
            try:
                self._with_rows(troubles, now)
            except AnyDatabaseError:  # It went away in between: the next look tells.
                connection.close()
        else:
            self._without_rows(troubles)
        self.seen = {trouble.key for trouble in troubles}
        return troubles

    def _with_rows(self, troubles: Sequence[Trouble], now: datetime) -> None:
        recent = Alert.objects.filter(Q(ended_at=None) | Q(ended_at__gt=now - SETTLED))
        standing = {row.key: row for row in recent.order_by("began_at", "pk")}
        told = {}
        for trouble in troubles:
            row = standing.pop(trouble.key, None)
            if row is None:
                row = Alert(key=trouble.key, study=trouble.study, began_at=now)
            # A row may be older than what was told while it could not be written.
            row.told = list(dict.fromkeys([*row.told, *self.told.get(trouble.key, [])]))
            row.said, row.remedy, row.page = trouble.said, trouble.remedy, trouble.page
            row.ended_at = None
            if trouble.key in self.seen:
                row.error = _tell(trouble, row.told)
            row.save()
            told[trouble.key] = row.told
        over = [row.pk for row in standing.values() if row.ended_at is None]
        Alert.objects.filter(pk__in=over).update(ended_at=now)
        self.told = told
        LastTime.objects.update_or_create(name=WATCHED, defaults={"at": now})
        Alert.objects.filter(ended_at__lt=now - KEPT).delete()
        Failure.objects.filter(at__lt=now - KEPT).delete()

    def _without_rows(self, troubles: Sequence[Trouble]) -> None:
        for trouble in troubles:
            if trouble.key in self.seen:
                _tell(trouble, self.told.setdefault(trouble.key, []))


def _tell(trouble: Trouble, told: list[str]) -> str:
    """Sends by each channel that has not carried it yet, and adds those that have to `told`. Returns why one
    did not, or nothing."""
    address = f"{settings.BASE_URL}{trouble.page}"
    letter = Letter(trouble.kind, trouble.about, trouble.said, trouble.remedy, address)
    problems = []
    for name, send in channels().items():
        if name in told:
            continue
        try:
            send(letter)
        except Unsent as problem:
            problems.append(str(problem))
        else:
            told.append(name)
    return " ".join(problems)
