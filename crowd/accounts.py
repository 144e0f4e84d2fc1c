"""Which account speaks for a posting: from the environment, or the simulator's in a rehearsal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from django.conf import settings

from crowd.models import Posting
from crowd.platforms import market_class
from crowd.platforms.base import Account, Market, Mode, Posted, PostingState, Site
from experiments.errors import StudyError

REHEARSAL = "rehearsal"
"""The token and key that the simulators take. No secret: they have nothing to give."""


def site_of(posting: Posting) -> Site:
    """The address and mode of a posting's platform."""
    return Site(cast(Mode, posting.mode), posting.site)


def market_of(posting: Posting) -> Market:
    """The platform's interface for a posting. Raises Unsupported without one, StudyError without account."""
    return open_market(posting.platform, site_of(posting))


def open_market(platform: str, site: Site, wait: Callable[[float], object] = time.sleep) -> Market:
    account = _account(platform, site)
    return cast(Market, market_class(platform)(account, wait))


def _account(platform: str, site: Site) -> Account:
    if site.url:
        return Account(
            site,
            token=REHEARSAL,
            workspace=REHEARSAL,
            project=REHEARSAL,
            key_id=REHEARSAL,
            secret=REHEARSAL,
        )
    if site.mode == "rehearsal":
        raise StudyError(f"A rehearsal on {platform} needs the address of its simulator.")
    if platform == "prolific":
        if site.mode != "live":
            raise StudyError("Prolific has no sandbox. Rehearse with --rehearse, then publish --live.")
        missing = [n for n in ("PROLIFIC_TOKEN", "PROLIFIC_WORKSPACE", "PROLIFIC_PROJECT")
                   if not getattr(settings, n)]  # fmt: skip
        if missing:
            raise StudyError(f"{', '.join(missing)} must be set in the environment to speak with Prolific.")
        return Account(
            site,
            token=settings.PROLIFIC_TOKEN,
            workspace=settings.PROLIFIC_WORKSPACE,
            project=settings.PROLIFIC_PROJECT,
        )
    if platform == "mturk" and site.mode == "live" and not settings.MTURK_PRODUCTION:
        raise StudyError("Set MTURK_PRODUCTION=true to reach the real Mechanical Turk, where money is paid.")
    return Account(site, queue_url=settings.MTURK_QUEUE_URL)


def posted_of(posting: Posting) -> Posted:
    """What is stored about the posting on its platform."""
    return Posted(
        external_id=posting.external_id,
        state=cast(PostingState, posting.state),
        raw=posting.raw_state,
        places=posting.places,
        taken=posting.taken,
        facts=posting.facts,
    )
