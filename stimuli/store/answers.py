"""What a predictor answered about the items of a dataset, kept so that it is asked once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stimuli.spec import content_key
from stimuli.store import Store
from stimuli.store.files import text_file, view_file
from stimuli.types import Item, Modality

VERSION = 2
"""Changes if a survey stores other things about the same item."""
KEPT = ("key", "image_key", "width_px", "height_px", "logits", "box", "original_px", "is_grey", "levels")
"""What is kept of a predicted item; its class, group and use are the dataset's."""
SEEN = 64
"""So many views are looked for before answers are used: a store may have been cleared in part."""


def answers_file(predictor_key: str, content: str, regions: str, split: str) -> str:
    """Where the answers of that predictor to that dataset (its digest) are stored."""
    return f"surveys/{content_key([VERSION, predictor_key, content, regions, split])}.json"


def keep_answers(store: Store, file: str, predicted: Sequence[object]) -> None:
    """Keeps what was answered about items, each with the attributes KEPT."""
    rows = [{name: getattr(item, name) for name in KEPT} for item in predicted]
    store.put(file, json.dumps(rows).encode())


def read_answers(
    store: Store, file: str, items: Sequence[Item], modality: Modality
) -> list[dict[str, Any]] | None:
    """What was kept about each of the items, in their order; None if that is not known of all of them, or if
    what they are is no longer in the store."""
    if not store.has(file):
        return None
    known = {row.pop("key"): row for row in json.loads(store.get(file))}
    if any(item.key not in known for item in items):
        return None
    rows = [known[item.key] for item in items]
    where = text_file if modality == "text" else view_file
    step = max(1, len(rows) // SEEN)
    if not all(store.has(where(row["image_key"])) for row in rows[::step]):
        return None
    for row in rows:
        row |= {"logits": tuple(row["logits"]), "box": tuple(row["box"])}
        row |= {"original_px": tuple(row["original_px"]), "levels": tuple(row["levels"])}
    return rows
