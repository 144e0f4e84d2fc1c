"""Tensors with a card in one safetensors file that shows if it was cut or changed. Nothing is unpickled.

The same tensors and card always give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from stimuli.errors import BadSpec
from stimuli.spec import JsonValue, canonical_json

Tensors = Mapping[str, NDArray[np.generic]]
LENGTH_BYTES = 8
CARD, SEAL = "card", "seal"


def seal(tensors: Tensors, card: JsonValue) -> bytes:
    """The bytes of a file. One key of metadata only: safetensors writes several in an order of its own."""
    told = canonical_json({CARD: card, SEAL: _digest(tensors, card)})
    return bytes(safetensors.numpy.save({name: tensors[name] for name in sorted(tensors)}, {CARD: told}))


def unseal(data: bytes, source: str, remedy: str) -> tuple[dict[str, NDArray[np.generic]], JsonValue]:
    """Tensors and card of the bytes of a file. Raises BadSpec, with the remedy, for bytes that are no such
    file, that were cut, or that differ from what was written.
    """
    try:
        tensors = dict(safetensors.numpy.load(data))
        size = int.from_bytes(data[:LENGTH_BYTES], "little")
        header = json.loads(data[LENGTH_BYTES : LENGTH_BYTES + size])
        told = json.loads(header["__metadata__"][CARD])
        card, expected = told[CARD], told[SEAL]
    except (SafetensorError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise BadSpec(
            f"{source} is cut off, or no file of this kind ({len(data)} bytes; {error}): {remedy}"
        ) from None
    if (actual := _digest(tensors, card)) != expected:
        raise BadSpec(
            f"{source} was changed after it was written: its digest is {actual[:12]}…, it claims "
            f"{str(expected)[:12]}…: {remedy}"
        )
    return tensors, card


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file at once, so that a process that is killed leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    private = path.with_name(f"{path.name}.{os.getpid()}.part")
    with private.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(private, path)


def _digest(tensors: Tensors, card: JsonValue) -> str:
    total = hashlib.sha256(canonical_json(card).encode())
    for name in sorted(tensors):
        value = tensors[name]
        total.update(canonical_json([name, str(value.dtype), list(value.shape)]).encode())
        total.update(np.ascontiguousarray(value).data)
    return total.hexdigest()
