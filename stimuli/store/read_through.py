"""A store that is read and never written, with a scratch store before it that takes what is new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stimuli.store import Store

ANSWERS = ("surveys/", "views/", "texts/", "regions/", "predictors/", "trained/")
"""A trained network, and what models answered about which views."""
TRAINED = ("trained/",)
"""Networks that were trained on the spot, by the digest of their recipe."""


class ReadThrough:
    """Reads from both, writes into the scratch store: what is tried out leaves no explanation behind. Keys
    that begin as one of `kept` are written to the real store: what takes long to make, and any study would
    make again."""

    def __init__(self, real: Store, scratch: Store, kept: Sequence[str] = ANSWERS) -> None:
        self.real, self.scratch, self.kept = real, scratch, tuple(kept)

    def put(self, key: str, data: bytes) -> bool:
        if self.scratch.has(key):
            return False
        return (self.real if key.startswith(self.kept) else self.scratch).put(key, data)

    def get(self, key: str) -> bytes:
        return self.scratch.get(key) if self.scratch.has(key) else self.real.get(key)

    def has(self, key: str) -> bool:
        return self.scratch.has(key) or self.real.has(key)

    def keys(self, prefix: str = "") -> Iterator[str]:
        yield from {*self.real.keys(prefix), *self.scratch.keys(prefix)}
