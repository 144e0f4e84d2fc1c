"""Predictors as bytes: a magic word, a JSON header, the weights. Nothing is pickled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.spec import canonical_json

if TYPE_CHECKING:
    from stimuli.predictors.base import TorchPredictor

MAGIC = b"LEGIBLE1"
LENGTH_BYTES = 8
MAX_HEADER_BYTES = 1 << 20


def pack(predictor: TorchPredictor) -> bytes:
    """The archive of a predictor; the same predictor always gives the same bytes."""
    header = {
        "architecture": dict(predictor.architecture),
        "labels": list(predictor.labels),
        "input_px": predictor.input_px,
        "layer": predictor.layer,
        "mean": list(predictor.mean),
        "std": list(predictor.std),
        "provenance": dict(predictor.provenance),
        "key": predictor.key,
    }
    text = canonical_json(header).encode()
    return MAGIC + len(text).to_bytes(LENGTH_BYTES, "little") + text + predictor.payload
