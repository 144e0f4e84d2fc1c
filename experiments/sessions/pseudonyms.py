"""Keyed names of people and sessions.

A name is an HMAC under a key that is made of IDENTITY_KEY, the study and the release. The same release names
the same person alike; two releases cannot be joined without the key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.conf import settings

from experiments.models import Study


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Keyed names for people and sessions; the key never leaves the server."""

    key: bytes

    @classmethod
    def of(cls, study: Study, release: str) -> Pseudonyms:
        text = f"analysis release\x1f{study.slug}\x1f{release}"
        return cls(hmac.digest(settings.IDENTITY_KEY.encode(), text.encode(), hashlib.sha256))

    def __call__(self, prefix: str, identity: object) -> str:
        """64 bits, so that a million people collide with probability of 3 in a hundred million."""
        digest = hmac.digest(self.key, f"{prefix}\x1f{identity}".encode(), hashlib.sha256)
        return f"{prefix}-{digest[:8].hex()}"

    @property
    def fingerprint(self) -> str:
        """Shows whether two exports used the same key, without revealing the key."""
        return hashlib.sha256(b"fingerprint" + self.key).hexdigest()[:16]


def namer(study: Study) -> Callable[[object], str]:
    """Pseudonym of a participant -> their one name: on the pages, in the terminal, in logs, and in an export
    without a release."""
    return partial(Pseudonyms.of(study, ""), "p")


def is_called(name: str, pseudonym: UUID, word: str) -> bool:
    """Whether a part of the name was given, in lower case, or the beginning of the stored pseudonym, as logs
    of before 2026-12 have it."""
    stored = word.replace("-", "")
    return word in name or (len(stored) >= 6 and pseudonym.hex.startswith(stored))
