"""Stored files for web processes, which serve them; so it does not import torch."""

from __future__ import annotations

from functools import lru_cache

from django.conf import settings

from stimuli.store import Store, open_store

_CONTENT_TYPES = {"png": "image/png"}


def current_store() -> Store:
    """The store that the settings name."""
    return _opened(settings.STORAGE_URL)


def read_media(file: str) -> tuple[bytes, str]:
    """Content and content type of a stored picture; NotRendered if it is missing."""
    suffix = file.rpartition(".")[2]
    return current_store().get(file), _CONTENT_TYPES.get(suffix, "application/octet-stream")


@lru_cache(maxsize=4)
def _opened(url: str) -> Store:
    return open_store(url)
