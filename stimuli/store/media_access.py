"""Stored files for workers, and for web processes, which serve them; so it does not import torch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock, Semaphore

from django.conf import settings

from stimuli.errors import StoreSilent
from stimuli.store import LONG, SHORT, Patience, Store, open_store

READERS_MAX = 2
"""Threads of a web process that may wait for the store at the same time: half of them (crowd/gunicorn.py)."""
WAIT_S = 0.3
REST_S = 1.0
_CONTENT_TYPES = {"png": "image/png"}


class Turns:
    """At most so many readers at a time; the others wait `WAIT_S`. After a vain wait no reader waits for
    `REST_S`, so that a silent store leaves the other threads to people's answers."""

    def __init__(self, readers_max: int) -> None:
        self._free = Semaphore(readers_max)
        self._tired_until = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises StoreSilent if none comes."""
        is_tired = time.monotonic() < self._tired_until
        if not self._free.acquire(timeout=0 if is_tired else WAIT_S):
            if not is_tired:
                self._tired_until = time.monotonic() + REST_S
            raise StoreSilent("the store answers too slowly: others are waiting for it already")
        try:
            yield
        finally:
            self._free.release()


_given: Store | None = None
_turns = Turns(READERS_MAX)
_opening = Lock()


def use_store(store: Store) -> None:
    """From now on this process reads and writes there, and not where the settings say."""
    global _given
    _given = store


def current_store() -> Store:
    """The store that the settings name, unless this process uses another."""
    return _given or _shared_store(settings.STORAGE_URL, LONG)


def read_media(file: str) -> tuple[bytes, str]:
    """Content and content type of a stored picture or text, for a person who waits; NotRendered if it is
    missing, StoreSilent if the store does not answer."""
    suffix = file.rpartition(".")[2]
    with _turns.turn():
        # Amazon's library does not make two clients at once.
        with _opening:
            store = _given or _shared_store(settings.STORAGE_URL, SHORT)
        return store.get(file), _CONTENT_TYPES.get(suffix, "application/octet-stream")


def has_media(file: str) -> bool:
    """Whether the store has the file, asked with little patience; StoreSilent as `read_media`."""
    with _turns.turn():
        with _opening:
            store = _given or _shared_store(settings.STORAGE_URL, SHORT)
        return store.has(file)


@lru_cache(maxsize=4)
def _shared_store(url: str, patience: Patience) -> Store:
    return open_store(url, patience)
