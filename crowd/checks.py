"""Dangerous combinations, told by `manage.py check --deploy`, `check --database default` and on migrating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.db import DatabaseError, connection

KEY_LENGTH_MIN = 32
"""Characters of SECRET_KEY; the key that a checkout draws for itself has 64."""


@register("crowd", "database")
def check_with_database(
    app_configs: Sequence[Any] | None = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Django runs this only for a command that names the databases to look at, and before it migrates."""
    return _messages() if databases else []


@register("crowd", deploy=True)
def check_deployment(
    app_configs: Sequence[Any] | None = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """The same for `check --deploy`, which names no database: the postings are looked up all the same."""
    return [] if databases else _messages()


def _messages() -> list[CheckMessage]:
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        return [*_errors([]), _database_warning(error)]
    live = _live_postings()
    return [*_errors(live), *_warnings(live)]


def _database_warning(error: DatabaseError) -> CheckMessage:
    said = str(error).strip().partition("\n")[0]
    return Warning(
        f"The database does not answer ({said}), so it is not known whether people take part.",
        hint="Start it, or correct DATABASE_URL, and check again.",
        id="crowd.W003",
    )


def _live_postings() -> list[Any]:
    """The postings by which people may be taking part now."""
    from crowd.models import Posting
    from crowd.platforms import PLATFORMS, traits_of

    try:
        return list(
            Posting.objects.filter(mode=Posting.Mode.LIVE)
            .exclude(state=Posting.State.CLOSED)
            .exclude(platform__in=[name for name in PLATFORMS if traits_of(name).is_ours])
            .select_related("study")
        )
    except DatabaseError:
        return []  # No tables yet: nothing can be live.


def _errors(live: Sequence[Any]) -> list[CheckMessage]:
    """What forbids a live posting: debug pages, an address without https, a key that can be guessed."""
    where = ", ".join(sorted({f"{posting.study.slug} on {posting.platform}" for posting in live}))
    said = [
        (bool(live) and settings.DEBUG, "E001", f"DEBUG is on while people take part ({where}).",
         "Set DEBUG=false."),
        (bool(live) and not settings.SECURE, "E002",
         f"BASE_URL={settings.BASE_URL!r} is not https while people take part ({where}).",
         "Serve the study by https, and set BASE_URL to that address."),
        (bool(settings.CLOCK_FILE), "E004",
         f"CLOCK_FILE={settings.CLOCK_FILE!r} moves the clock of payments.",
         "Unset it: only rehearsals and tests may do that."),
    ]  # fmt: skip
    keys = {settings.SECRET_KEY: "SECRET_KEY"}
    keys.setdefault(settings.IDENTITY_KEY, "IDENTITY_KEY")  # The same key is told of once.
    for key, name in keys.items():
        said.append(
            (
                (bool(live) or settings.SECURE) and len(key) < KEY_LENGTH_MIN,
                "E003",
                f"{name} has {len(key)} characters, fewer than {KEY_LENGTH_MIN}: logins "
                "could be forged and outside identities guessed.",
                "Before the first person takes part, set a key that is drawn at random: "
                "python -c 'import secrets; print(secrets.token_urlsafe(48))'.",
            )
        )
    return [Error(text, hint=hint, id=f"crowd.{name}") for is_so, name, text, hint in said if is_so]


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
