"""Secrets of a session: a bearer token, hashed at rest, and addresses of pictures that say nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from django.conf import settings

MEDIA_ID_LENGTH = 22


def new_token() -> str:
    return secrets.token_urlsafe(32)


def new_media_id() -> str:
    return secrets.token_urlsafe(16)


def hash_token(token: str) -> str:
    """SHA-256 suffices: a token has 256 random bits, so there is nothing to guess."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def keyed_hash(purpose: str, *parts: str) -> str:
    """HMAC-SHA256 under a key of its own for each purpose, hexadecimal."""
    key = hmac.digest(settings.IDENTITY_KEY.encode(), f"legible:{purpose}".encode(), "sha256")
    return hmac.new(key, "\x1f".join(parts).encode(), "sha256").hexdigest()


def media_reference(media_id: str, trial: str, role: str) -> str:
    """The last part of a picture's address: different for each trial and role of each session."""
    mac = bytes.fromhex(keyed_hash("media", media_id, trial, role))[:16]
    return media_id + base64.urlsafe_b64encode(mac).rstrip(b"=").decode()
