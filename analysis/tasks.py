"""Celery jobs of this room."""

from __future__ import annotations

from celery import shared_task

from analysis.stored_reports.refresh import refresh_all


@shared_task(name="analysis.tasks.refresh_reports")  # type: ignore[untyped-decorator]
def refresh_reports() -> int:
    """Makes every report again that is older than its newest session. Two runs at once are safe: the later
    report stays.
    """
    return refresh_all()
