"""Predictors from bytes (see packing.py for the form). Nothing is unpickled on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from stimuli.errors import FAULTS, BadSpec, StimulusError
from stimuli.predictors.base import Built, TorchPredictor, assemble
from stimuli.predictors.files.builders import build_network
from stimuli.predictors.files.packing import LENGTH_BYTES, MAGIC, MAX_HEADER_BYTES
from stimuli.predictors.files.program import cast_program, read_program
from stimuli.predictors.files.weights import fit_weights, read_weights
from stimuli.predictors.framing import Framing
from stimuli.predictors.image.toy import toy_network
from stimuli.registry import Table, refuse_other_package
from stimuli.spec import JsonValue
from stimuli.training import small_network

if TYPE_CHECKING:
    from stimuli.predictors.text.base import TextPredictor

Reader = Callable[[dict[str, JsonValue], bytes], Built]
READERS: Table[Reader] = Table(
    "architecture",
    {
        "program": "stimuli.predictors.files.archive:read_program_archive",
        "builder": "stimuli.predictors.files.archive:read_builder",
        "small": "stimuli.predictors.files.archive:read_small",
        "toy": "stimuli.predictors.files.archive:read_toy",
        "bcos": "stimuli.predictors.image.trained_bcos:read_bcos",
        "transformers_image": "stimuli.predictors.image.transformers_image:read_transformers_image",
        "clip_zero_shot": "stimuli.predictors.clip:read_clip_zero_shot",
        "concept_bottleneck": "stimuli.predictors.concepts.concept_bottleneck:read_concept_bottleneck",
        "part_concepts": "stimuli.predictors.concepts.part_concepts:read_part_concepts",
        "clip_concepts": "stimuli.predictors.concepts.clip_concepts:read_clip_concepts",
    },
)
"""How the networks of each kind are made again from architecture and payload."""


def restore(data: bytes) -> TorchPredictor | TextPredictor:
    """The predictor of an archive. Raises BadSpec if it is no archive, or if its key does not agree."""
    start = len(MAGIC) + LENGTH_BYTES
    size = int.from_bytes(data[len(MAGIC) : start], "little")
    if not data.startswith(MAGIC) or size > MAX_HEADER_BYTES or len(data) < start + size:
        raise BadSpec("these bytes are no predictor archive; build the stimuli again")
    try:
        header = json.loads(data[start : start + size])
        payload = data[start + size :]
        if package := header["architecture"].get("package"):
            refuse_other_package(package, "the predictor")
        if header.get("modality") == "text":
            from stimuli.predictors.files.text_archive import restore_text

            return restore_text(header, payload)
        predictor = assemble(
            _built(header["architecture"], payload),
            labels=header["labels"],
            input_px=header["input_px"],
            layer=header["layer"],
            mean=tuple(header["mean"]),
            std=tuple(header["std"]),
            architecture=header["architecture"],
            payload=payload,
            provenance=header["provenance"],
            framing=Framing.from_json(header.get("framing", {})),
        )
        expected = header["key"]
    except StimulusError:
        raise
    except FAULTS as error:
        raise BadSpec(f"the predictor archive is damaged ({error!r}); build the stimuli again") from error
    if predictor.key != expected:
        raise BadSpec(
            f"the predictor archive was changed: its key is {predictor.key[:12]}…, it claims "
            f"{str(expected)[:12]}…; "
            "build the stimuli again"
        )
    return predictor


def _built(architecture: dict[str, JsonValue], payload: bytes) -> Built:
    return READERS.load(str(architecture["kind"]))(architecture, payload)


def read_program_archive(architecture: dict[str, JsonValue], payload: bytes) -> Built:
    network = read_program(payload, "the archive")
    cast_program(network)
    return Built(network, architecture.get("token_prefix"))


def read_builder(architecture: dict[str, JsonValue], payload: bytes) -> Built:
    network = build_network(architecture["builder"], architecture["params"], None)
    fit_weights(network, read_weights(payload, "the archive"), "the archive")
    return Built(network, architecture.get("token_prefix"))


def read_small(architecture: dict[str, JsonValue], payload: bytes) -> Built:
    network = small_network(
        architecture["width"], architecture["classes"], architecture.get("downsampling", "stride")
    )
    fit_weights(network, read_weights(payload, "the archive"), "the archive")
    return Built(network)


def read_toy(architecture: dict[str, JsonValue], payload: bytes) -> Built:
    return Built(toy_network(architecture))
