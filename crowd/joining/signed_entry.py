"""Signed entry: the platform vouches for an arrival, once, in one browser; a reload needs our own address."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.core import signing
from django.utils import timezone

from crowd.ground.platform_accounts import open_service, site_of
from crowd.joining.admission import Visitor, say
from crowd.joining.platform_arrival_lookup import impatient
from crowd.models import Posting, Submission
from crowd.platforms import signature_of
from crowd.platforms.base import (
    ForgedEntry,
    PlatformError,
    Signature,
    SigningService,
    Site,
    UnsupportedRequest,
)
from experiments.errors import InvalidRequest, NotAdmitted, SessionError, StudyError
from experiments.models import Session
from experiments.tokens import keyed_hash

RESUME_MAX_AGE_S = 24 * 3600
RESUME_SALT = "legible.resume"
KEYS_MAX_AGE_S = 24 * 3600
KEYS_ASK_AGAIN_S = 60
"""How often at most the keys are fetched for an unknown key."""
KEYS_RETRY_S = 5
"""The same if there are no keys at all yet, because the platform did not answer."""


class Unreachable(SessionError):
    """The platform's keys cannot be fetched; the page tries again by itself."""

    status = 503
    code = "unavailable"
    remedy = "Wait a moment; the page tries again by itself."


@dataclass
class KeyRing:
    """The public keys of one platform, kept in this process."""

    fetch: Callable[[], Mapping[str, Any]]
    signature: Signature
    clock: Callable[[], float] = time.monotonic
    _keys: Mapping[str, Any] | None = None
    _fetched_at: float = 0.0
    _asked_at: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def for_token(self, token: str) -> Mapping[str, Any] | None:
        """A key set that may hold the token's key; None if none can be fetched."""
        if not self._serves(token):
            with self._lock:
                # A thread that waited here may find the keys that the previous one fetched.
                if not self._serves(token):
                    self._refresh()
        return self._keys

    def _serves(self, token: str) -> bool:
        if self._keys is None or self.clock() - self._fetched_at > KEYS_MAX_AGE_S:
            return False
        return not self.signature.is_unknown_key(token, self._keys)

    def _refresh(self) -> None:
        now = self.clock()
        pause_s = KEYS_RETRY_S if self._keys is None else KEYS_ASK_AGAIN_S
        if self._asked_at is not None and now - self._asked_at < pause_s:
            return
        self._asked_at = now
        try:
            self._keys = self.fetch()
        except (PlatformError, StudyError, UnsupportedRequest):
            # The older keys stay in use: a platform that is down must not stop arrivals.
            return
        self._fetched_at = now


_rings: dict[tuple[str, Site], KeyRing] = {}


def key_ring(posting: Posting) -> KeyRing:
    """The key ring of a posting's platform, one per process and place."""
    platform, site = posting.platform, site_of(posting)

    def fetch() -> Mapping[str, Any]:
        return cast(SigningService, open_service(platform, site, impatient)).keys()

    return _rings.setdefault((platform, site), KeyRing(fetch, signature_of(platform)))


def is_signed(posting: Posting) -> bool:
    return bool(posting.options.get("signed_entry"))


def ticket_of(visitor: Visitor, fields: Mapping[str, str], attempt: str) -> str:
    """Proves a signed arrival; returns what is kept of it: when it was signed, and its keyed hash together
    with this page load. Raises NotAdmitted, InvalidRequest or Unreachable."""
    posting, arrival = visitor.posting, visitor.arrival
    if not arrival.signature:
        raise NotAdmitted(say(posting.study, "unsigned"))
    if not attempt:
        raise InvalidRequest(
            "attempt must name this page load.", fields={"attempt": "1 to 64 random characters"}
        )
    keys = key_ring(posting).for_token(arrival.signature)
    if keys is None:
        raise Unreachable(say(posting.study, "unreachable"))
    host = urlsplit(settings.BASE_URL).hostname or ""
    try:
        signature = signature_of(posting.platform)
        claims = signature.check(arrival.signature, keys, host, fields, timezone.now())
    except ForgedEntry as error:
        raise NotAdmitted(say(posting.study, "forged")) from error
    if claims.session != arrival.submission:
        raise NotAdmitted(say(posting.study, "forged"))
    signed_at = int(claims.issued_at.timestamp())
    proof = keyed_hash("entry", claims.session, str(signed_at), attempt)
    return f"{signed_at:011d}:{proof[:52]}"


def check_replay(submission: Submission, ticket: str) -> None:
    """Raises NotAdmitted if a signature was used before by another page load, or is older than a used one.
    The same page load may ask again."""
    stored = submission.entry_digest
    if stored and stored != ticket and ticket.split(":")[0] <= stored.split(":")[0]:
        raise NotAdmitted(say(submission.posting.study, "replayed"))


def resume_query(posting: Posting, session: Session) -> str:
    """A query string by which a reload finds its session, after the platform's signature has expired."""
    token = signing.dumps({"session": str(session.pk), "posting": posting.pk}, salt=RESUME_SALT)
    return urlencode({"via": posting.key, "resume": token})


def read_resume_query(posting: Posting, token: str) -> Submission:
    """The submission that such a query string means. Raises NotAdmitted."""
    try:
        fields = signing.loads(token, salt=RESUME_SALT, max_age=RESUME_MAX_AGE_S)
    except signing.BadSignature as error:
        raise NotAdmitted(say(posting.study, "resume_over")) from error
    row = (
        Submission.objects.filter(posting=posting, session=fields["session"])
        .select_related("session", "session__study", "session__slot", "session__slot__condition")
        .first()
    )
    if row is None or fields["posting"] != posting.pk:
        raise NotAdmitted(say(posting.study, "resume_over"))
    return row
