"""What items have in common to a person who understands nothing: pixels of pictures, words of texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from experiments.drafting.material_set import MaterialSet
from stimuli.render import png
from stimuli.store import Store
from stimuli.store.files import read_text, read_units, view_file
from stimuli.types import Span

FEATURE_STEP = 8
"""Every eighth pixel each way: enough to find the nearest picture, small enough for thousands of pairs."""
BUCKETS = 1024
"""Words are counted in so many buckets, so that a large vocabulary needs no more memory."""
WORD = re.compile(r"\w+")
Features = Callable[[str], np.ndarray[Any, Any]]
"""Item key -> the item as numbers; the nearer two items, the more alike."""


def features_of(gathered: MaterialSet, store: Store) -> Features | None:
    """Of a study of pictures or of texts; None if it shows something else or both."""
    modalities = {opened.predictor.modality for opened in gathered.opened.values()}
    views = {key: item.image_key for views in gathered.views.values() for key, item in views.items()}
    if modalities == {"text"}:
        return lambda key: word_counts(read_text(store, views[key]), read_units(store, views[key]))
    if modalities != {"image"}:
        return None
    known: dict[str, np.ndarray[Any, Any]] = {}

    def pixels(key: str) -> np.ndarray[Any, Any]:
        if key not in known:
            whole = png.decode(store.get(view_file(views[key])))
            known[key] = whole[::FEATURE_STEP, ::FEATURE_STEP].astype(np.float32)
        return known[key]

    return pixels


def word_counts(text: str, units: Sequence[Span] | None = None) -> np.ndarray[Any, Any]:
    """How often each word (or unit, if the study declares some) stands in the text, in any case, as a vector
    of length 1: the nearest text is the one with the largest cosine, so with the most words in common for its
    length."""
    words = WORD.findall(text.lower()) if units is None else [text[at:to].lower() for at, to in units]
    counts = np.zeros(BUCKETS, np.float32)
    for word in words:
        counts[crc32(word.encode()) % BUCKETS] += 1
    size = float(np.linalg.norm(counts))
    return counts / size if size else counts
