"""Which account speaks for a posting: from the environment, or the simulator's in a rehearsal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

from django.conf import settings

from crowd.models import Posting
from crowd.platforms import service_class, traits_of
from crowd.platforms.base import Account, Mode, PlatformPosting, PostingState, Service, Site
from experiments.errors import StudyError

REHEARSAL = "rehearsal"
"""The token and key that the simulators take. No secret: they have nothing to give."""


def site_of(posting: Posting) -> Site:
    """The address and mode of a posting's platform."""
    return Site(cast(Mode, posting.mode), posting.site)


def service_of(posting: Posting) -> Service:
    """The platform's interface for a posting. Raises Unsupported without one, StudyError without account."""
    return open_service(posting.platform, site_of(posting))


def open_service(platform: str, site: Site, wait: Callable[[float], object] = time.sleep) -> Service:
    account = _account(platform, site)
    return service_class(platform)(account, wait, time.monotonic)


def _account(platform: str, site: Site) -> Account:
    if site.url:
        return Account(
            site, **dict.fromkeys(("token", "workspace", "project", "key_id", "secret"), REHEARSAL)
        )
    traits = traits_of(platform)
    if site.mode == "rehearsal":
        raise StudyError(f"A rehearsal on {platform} needs the address of its simulator.")
    if site.mode not in traits.modes:
        raise StudyError(f"{traits.title} has no {site.mode}. Rehearse with --rehearse, then publish --live.")
    if site.mode == "live" and traits.switch and not getattr(settings, traits.switch):
        raise StudyError(f"Set {traits.switch}=true to reach the real {traits.title}, where money is paid.")
    values = {field: str(getattr(settings, name)) for field, name in traits.account.items()}
    needed = {name for name in traits.account.values() if name not in traits.optional}
    missing = [name for name in traits.account.values() if name in needed and not getattr(settings, name)]
    if missing:
        raise StudyError(f"{', '.join(missing)} must be set in the environment to speak with {traits.title}.")
    return Account(site, **values)


def queue_account(platform: str) -> Account | None:
    """The account whose queue of notifications is read; None if there is no queue."""
    queue_url = str(getattr(settings, traits_of(platform).account.get("queue_url", ""), ""))
    return Account(Site(), queue_url=queue_url) if queue_url else None


def posted_of(posting: Posting) -> PlatformPosting:
    """What is stored about the posting on its platform."""
    return PlatformPosting(
        external_id=posting.external_id,
        state=cast(PostingState, posting.state),
        raw=posting.raw_state,
        places=posting.places,
        taken=posting.taken,
        facts=posting.facts,
        address=posting.address,
        names=tuple(posting.names),
    )
