"""The clock of everything that waits for a platform: graces, statements, deadlines of payments."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone


def now() -> datetime:
    """The time, UTC. A rehearsal or a test moves it forward together with its simulated platform's, by the
    seconds in the file CLOCK_FILE, so that it waits as long as a live study would; `check --deploy` refuses a
    server with such a clock."""
    shift = Path(settings.CLOCK_FILE).read_text().strip() if settings.CLOCK_FILE else ""
    return timezone.now() + timedelta(seconds=float(shift or 0))
