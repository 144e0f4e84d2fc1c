"""How often one address may join, counted where all processes see it: in the shared cache, else in the
database.

An address is known only by a keyed hash, under a key that is another one for each day and each study: what is
counted today cannot be joined with tomorrow's, nor with another study's.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.utils import timezone
from redis.exceptions import RedisError

from crowd.models import JoinCount, Posting
from experiments.api.client_address import around
from experiments.errors import TooMany
from experiments.models import Study
from experiments.selectors import definition_of
from experiments.sessions import unverified_places
from experiments.tokens import keyed_hash
from experiments.wording.sentences import entry_words

SHARED = "shared"
"""The cache of all processes, if one is configured."""
KEPT = timedelta(hours=3)
EVERY = 20
"""With a shared cache, only every so many joins of one address are written to the database."""
HASH_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Sender:
    """An address that asks to join. `is_told` is False if it may be that of a proxy, which stands for all."""

    address: str
    is_told: bool = True

    def hashes(self, study: Study | None) -> tuple[str, str]:
        """As the address is counted today, and as it was yesterday."""
        today = timezone.now().date()
        before = today - timedelta(days=1)
        return _address_hash(str(today), study, self.address), _address_hash(str(before), study, self.address)

    def wider(self, study: Study | None) -> tuple[str, str]:
        """The networks of 56 and 48 bits that an address of IPv6 is in, as they are counted today; empty for
        others."""
        today = str(timezone.now().date())
        part, network = (
            _address_hash(today, study, wide) if (wide := around(self.address, bits)) else ""
            for bits in (56, 48)
        )
        return part, network


def _address_hash(day: str, study: Study | None, address: str) -> str:
    return keyed_hash("address", day, str(study.pk) if study is not None else "", address)[:HASH_LENGTH]


@dataclass(frozen=True, slots=True)
class CountedJoin:
    """One join of an address, counted. Without an address (this machine itself) nothing is."""

    study: Study | None
    sender: Sender | None
    minute: datetime
    joins: int = 0

    @property
    def is_over(self) -> bool:
        return self.joins > settings.JOINS_PER_MINUTE

    def refuse(self) -> TooMany:
        """The refusal, counted; the address may come again in the next minute."""
        left_s = max(1, 60 - int((timezone.now() - self.minute).total_seconds()))
        words = entry_words(definition_of(self.study) if self.study is not None else None)
        error = TooMany(words["too_often"].format(seconds=left_s), left_s)
        self.note_refusal()
        return error

    def note_refusal(self) -> None:
        if self.sender is not None:
            _add(self.study, self.sender.hashes(self.study)[0], self.minute, "refused")

    def places_at(self, posting: Posting) -> tuple[tuple[str, str], int] | None:
        """The hashes of the address and how many places it may hold; None: as many as there are."""
        if self.sender is None or not self.sender.is_told:
            return None
        most = posting.options.get("same_address") or settings.ADDRESS_PLACES_MAX
        return self.sender.hashes(self.study), int(most)

    @property
    def wider(self) -> tuple[str, str]:
        """The hashes of the networks around the address."""
        return self.sender.wider(self.study) if self.sender is not None else ("", "")


def count(study: Study | None, sender: Sender | None) -> CountedJoin:
    """Counts one join, in one statement, so that all processes see one number."""
    minute = timezone.now().replace(second=0, microsecond=0)
    if sender is None:
        return CountedJoin(study, None, minute)
    joins = _add(study, sender.hashes(study)[0], minute, "joins")
    if joins == 1:
        purge()
    return CountedJoin(study, sender, minute, joins)


def may_ask(posting: Posting, moment: Literal["joins", "leaves"], most: int) -> bool:
    """Whether the platform may be asked about one more person of this posting within this minute. Who leaves
    is counted apart from who joins: a flood of arrivals must not keep a person who has finished waiting."""
    minute = timezone.now().replace(second=0, microsecond=0)
    name = keyed_hash("asked", moment, str(posting.pk))[:HASH_LENGTH]
    return _add(None, name, minute, "joins") <= most


def was_answered(posting: Posting, submission: str) -> bool:
    """Whether the platform answered about this submission within these two minutes: the next sync tells the
    rest."""
    name, since = _asked_about(posting, submission)
    if SHARED in settings.CACHES:
        with suppress(RedisError, OSError):
            return caches[SHARED].get(_key("joins", name, since)) is not None
    return JoinCount.objects.filter(sender=name, minute=since).exists()


def note_answered(posting: Posting, submission: str) -> None:
    """Notes that the platform answered."""
    name, since = _asked_about(posting, submission)
    _add(None, name, since, "joins")


def _asked_about(posting: Posting, submission: str) -> tuple[str, datetime]:
    now = timezone.now()
    since = now.replace(minute=now.minute - now.minute % 2, second=0, microsecond=0)
    return keyed_hash("asked about", str(posting.pk), submission)[:HASH_LENGTH], since


def purge() -> None:
    """Removes old counts, and what is known of addresses whose places are over. Repeatable."""
    now = timezone.now()
    JoinCount.objects.filter(minute__lt=now - KEPT).delete()
    unverified_places.purge(now)


def _add(study: Study | None, sender: str, minute: datetime, column: str) -> int:
    if SHARED in settings.CACHES:
        try:
            number = _add_cached(_key(column, sender, minute))
        except (RedisError, OSError):
            pass  # The database counts instead: a store that fails must not keep people out.
        else:
            if number == 1 or number % EVERY == 0:
                _add_stored(study, sender, minute, column, 1 if number == 1 else EVERY)
            return number
    return _add_stored(study, sender, minute, column, 1)


def _key(column: str, sender: str, minute: datetime) -> str:
    return f"{column}:{sender}:{minute:%d%H%M}"


def _add_cached(key: str) -> int:
    cache = caches[SHARED]
    if cache.add(key, 1, timeout=120):
        return 1
    try:
        return int(cache.incr(key))
    except ValueError:
        return 1  # It was dropped in between.


def _add_stored(study: Study | None, sender: str, minute: datetime, column: str, by: int) -> int:
    joins, refused = (by, 0) if column == "joins" else (0, by)
    adapt = connection.ops.adapt_datetimefield_value
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO crowd_joincount (study_id, sender, minute, joins, refused) VALUES (%s, %s, %s, %s, %s)
            ON CONFLICT (sender, minute) DO UPDATE SET {column} = crowd_joincount.{column} + {by}
            RETURNING {column}
            """,
            [study.pk if study is not None else None, sender, adapt(minute), joins, refused],
        )
        return int(cursor.fetchone()[0])
