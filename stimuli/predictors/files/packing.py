"""Predictors as bytes: a magic word, a JSON header, the weights. Nothing is pickled."""

from __future__ import annotations

from collections.abc import Mapping

from stimuli.spec import JsonValue, canonical_json

MAGIC = b"LEGIBLE1"
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 1 << 20


def pack(header: Mapping[str, JsonValue], payload: bytes) -> bytes:
    """An archive of a predictor; the same header and payload always give the same bytes."""
    text = canonical_json(dict(header)).encode()
    return MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text + payload
