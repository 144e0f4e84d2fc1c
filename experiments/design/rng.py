"""Named random streams: adding one draw somewhere never changes another draw elsewhere."""

from __future__ import annotations

import hashlib

import numpy as np


class Streams:
    """Independent generators by name.

    `Streams(seed)("order", 3)` is a fresh numpy Generator (PCG64) that depends on the seed and the names
    alone: calling it twice gives the same numbers twice, in any order, in any process.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, *names: str | int) -> np.random.Generator:
        text = "\x1f".join(f"{type(name).__name__}:{name}" for name in (self.seed, *names))
        words = np.frombuffer(hashlib.sha256(text.encode()).digest(), dtype=np.uint32)
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([int(word) for word in words])))
