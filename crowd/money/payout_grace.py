"""How long a payout may be missing from the platform's statement before anything is concluded from it."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from crowd.models import Posting
from crowd.platforms import traits_of


def grace(posting: Posting) -> timedelta:
    """How long after a call a payout may be missing from the platform's statement although it was paid. That
    of a real platform is never believed earlier than it says itself, even if PAYOUT_GRACE_S is less."""
    least = traits_of(posting.platform).listed_within_s if posting.live else 0
    return timedelta(seconds=max(settings.PAYOUT_GRACE_S, least))


def minutes_of(posting: Posting) -> int:
    """How long the platform's statement may lag behind, in minutes."""
    return max(1, int(grace(posting).total_seconds()) // 60)
