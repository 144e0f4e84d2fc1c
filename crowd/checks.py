"""Dangerous combinations, told by `manage.py check --database default` and on migrating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError


@register("crowd", "database")
def check_live_postings(
    app_configs: Sequence[Any] | None = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """What forbids a live posting: debug pages, an address without https, no secret key."""
    if not databases:
        return []
    from crowd.models import Posting
    from crowd.platforms import PLATFORMS, traits_of

    try:
        live = list(
            Posting.objects.filter(mode=Posting.Mode.LIVE)
            .exclude(state=Posting.State.CLOSED)
            .exclude(platform__in=[name for name in PLATFORMS if traits_of(name).is_ours])
            .select_related("study")
        )
    except DatabaseError:
        return []  # No tables yet: nothing can be live.
    return [*_errors(live), *_warnings(live)]


def _errors(live: Sequence[Any]) -> list[CheckMessage]:
    if not live:
        return []
    where = ", ".join(sorted({f"{posting.study.slug} on {posting.platform}" for posting in live}))
    errors: list[CheckMessage] = []
    if settings.DEBUG:
        errors.append(
            Error(f"DEBUG is on while people take part ({where}).", hint="Set DEBUG=false.", id="crowd.E001")
        )
    if not settings.SECURE:
        errors.append(
            Error(
                f"BASE_URL={settings.BASE_URL!r} is not https while people take part ({where}).",
                hint="Serve the study by https, and set BASE_URL to that address.",
                id="crowd.E002",
            )
        )
    return errors


def _warnings(live: Sequence[Any]) -> list[CheckMessage]:
    from experiments.selectors import definition_of

    warnings: list[CheckMessage] = []
    for posting in live:
        reward = definition_of(posting.study).reward
        floor = settings.HOURLY_FLOOR_CENTS.get(posting.currency)
        hourly = round(posting.reward_cents * 60 / reward.expected_minutes)
        if floor is not None and hourly < floor:
            warnings.append(
                Warning(
                    f"{posting.study.slug} pays {hourly / 100:.2f} {posting.currency} per hour, below the "
                    f"floor of {floor / 100:.2f}.",
                    hint="Raise the reward in a new posting, or pay the difference as a bonus.",
                    id="crowd.W001",
                )
            )
    if live and not settings.CELERY_BROKER_URL:
        warnings.append(
            Warning(
                "No broker is set, so the platforms are not polled while people take part.",
                hint="Set CELERY_BROKER_URL and run celery beat, or run settle from time to time.",
                id="crowd.W002",
            )
        )
    return warnings
