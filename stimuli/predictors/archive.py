"""Predictors from bytes (see packing.py for the form). Nothing is unpickled on the way."""

from __future__ import annotations

import json
from collections.abc import Callable

from torch import nn

from stimuli.errors import BadSpec
from stimuli.predictors.base import TorchPredictor, assemble
from stimuli.predictors.builders import build_network
from stimuli.predictors.packing import LENGTH_BYTES, MAGIC, MAX_HEADER_BYTES
from stimuli.predictors.program import read_program
from stimuli.predictors.toy import toy_network
from stimuli.predictors.weights import fit_weights, read_weights
from stimuli.spec import JsonValue
from stimuli.training import small_network


def restore(data: bytes) -> TorchPredictor:
    """The predictor of an archive. Raises BadSpec when it is no archive, or when its key does not agree."""
    start = len(MAGIC) + LENGTH_BYTES
    size = int.from_bytes(data[len(MAGIC) : start], "little")
    if not data.startswith(MAGIC) or size > MAX_HEADER_BYTES or len(data) < start + size:
        raise BadSpec("these bytes are no predictor archive; build the stimuli again")
    try:
        header = json.loads(data[start : start + size])
        payload = data[start + size :]
        predictor = assemble(
            _network(header["architecture"], payload),
            labels=header["labels"],
            input_px=header["input_px"],
            layer=header["layer"],
            mean=tuple(header["mean"]),
            std=tuple(header["std"]),
            architecture=header["architecture"],
            payload=payload,
            provenance=header["provenance"],
        )
        expected = header["key"]
    except (KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadSpec(f"the predictor archive is damaged ({error!r}); build the stimuli again") from error
    if predictor.key != expected:
        raise BadSpec(
            f"the predictor archive was changed: its key is {predictor.key[:12]}…, it claims "
            f"{str(expected)[:12]}…; "
            "build the stimuli again"
        )
    return predictor


def _network(architecture: dict[str, JsonValue], payload: bytes) -> nn.Module:
    readers: dict[str, Callable[[], nn.Module]] = {
        "program": lambda: read_program(payload, "the archive"),
        "builder": lambda: build_network(architecture["builder"], architecture["params"], None),
        "small": lambda: small_network(architecture["width"], architecture["classes"]),
        "toy": lambda: toy_network(architecture),
    }
    kind = architecture["kind"]
    if kind not in readers:
        raise BadSpec(f'the predictor archive has the unknown architecture "{kind}"; build the stimuli again')
    network = readers[kind]()
    if kind in {"builder", "small"}:
        fit_weights(network, read_weights(payload, "the archive"), "the archive")
    return network
