"""A store that is read, with one before it that takes what is tried out."""

from __future__ import annotations

import pytest

from stimuli.store import MemoryStore
from stimuli.store.read_through import TRAINED, ReadThrough

pytestmark = pytest.mark.pure


def test_only_what_is_kept_reaches_the_real_store() -> None:
    real, scratch = MemoryStore(), MemoryStore()
    real.put("views/a.png", b"a")
    scratch.put("trained/shipped.bin", b"s")
    store = ReadThrough(real, scratch, TRAINED)
    assert store.put("maps/b.npz", b"b") and store.put("trained/new.bin", b"n")
    assert not store.put("trained/shipped.bin", b"s")
    assert list(real.keys()) == ["trained/new.bin", "views/a.png"]
    assert store.get("views/a.png") == b"a" and store.get("maps/b.npz") == b"b"
    assert set(store.keys("trained/")) == {"trained/new.bin", "trained/shipped.bin"}
    assert store.has("maps/b.npz") and not store.has("maps/c.npz")
