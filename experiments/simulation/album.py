"""Pictures that were looked at in this process: each is decoded and read once, however many people see it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b
from threading import Lock
from typing import TypeVar

from experiments.simulation.sight import Floats, Percept, attention_of, patch_features, read_heat
from stimuli.render.png import decode
from stimuli.store.padding import unpadded

V = TypeVar("V")
KEPT = 20_000
"""Percepts kept: about a hundred megabytes at most."""


class Album:
    """Percepts by the content of the files, least recently used out first. Safe to share between threads.

    It saves work and knows nothing else: the same files give the same percept with and without it.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._lock = Lock()
        self._features: OrderedDict[bytes, Floats] = OrderedDict()
        self._attention: OrderedDict[bytes, Floats | None] = OrderedDict()

    def percept(self, original: bytes, overlay: bytes | None = None) -> Percept:
        """What is seen in a PNG file, and in the file of its overlay. Raises ShapeMismatch if one cannot be
        read."""
        name = _name(original)
        features = self._once(self._features, name, lambda: patch_features(decode(original)))
        if overlay is None:
            return Percept(features)

        def attended() -> Floats | None:
            below, above = decode(original), decode(overlay)
            # Bars, sentences and other pictures stand beside the item and lead no eye over it.
            heat = read_heat(below, above) if below.shape == above.shape else None
            return None if heat is None else attention_of(heat)

        return Percept(features, self._once(self._attention, name + _name(overlay), attended))

    def _once(self, shelf: OrderedDict[bytes, V], name: bytes, make: Callable[[], V]) -> V:
        with self._lock:
            if name in shelf:
                shelf.move_to_end(name)
                return shelf[name]
        # Made outside the lock: two threads may make the same value, which is cheaper than waiting.
        value = make()
        with self._lock:
            shelf[name] = value
            while len(shelf) > self._kept:
                shelf.popitem(last=False)
        return value


def _name(content: bytes) -> bytes:
    """Equal for one picture from different addresses, whose padding differs."""
    return blake2b(unpadded(content), digest_size=16).digest()
