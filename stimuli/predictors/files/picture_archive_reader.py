"""Predictors from bytes (see packing.py for the form). Nothing is unpickled on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from stimuli.errors import FAULTS, BadSpec, StimulusError
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.files.builder_functions import build_network
from stimuli.predictors.files.packing import LENGTH_BYTES, MAGIC, MAX_HEADER_BYTES
from stimuli.predictors.files.program import cast_program, read_program
from stimuli.predictors.files.weights import fit_weights, read_weights
from stimuli.predictors.framing import Framing, PictureSettings
from stimuli.predictors.image.toy import toy_network
from stimuli.predictors.network_proof import Unrepeatable
from stimuli.registry import Table, refuse_other_package
from stimuli.spec import JsonValue
from stimuli.training import small_network

if TYPE_CHECKING:
    from stimuli.predictors.text.base import TextPredictor

Reader = Callable[[dict[str, JsonValue], bytes], BuiltNetwork]
READERS: Table[Reader] = Table(
    "architecture",
    {
        "program": "stimuli.predictors.files.picture_archive_reader:read_program_archive",
        "builder": "stimuli.predictors.files.picture_archive_reader:read_builder",
        "small": "stimuli.predictors.files.picture_archive_reader:read_small",
        "toy": "stimuli.predictors.files.picture_archive_reader:read_toy",
        "bcos": "stimuli.predictors.image.trained_bcos:read_bcos",
        "transformers_image": "stimuli.predictors.image.transformers_image:read_transformers_image",
        "clip_zero_shot": "stimuli.predictors.clip:read_clip_zero_shot",
        "concept_bottleneck": "stimuli.predictors.concepts.concept_bottleneck:read_concept_bottleneck",
        "part_concepts": "stimuli.predictors.concepts.part_detector:read_part_concepts",
        "clip_concepts": "stimuli.predictors.concepts.clip_concepts:read_clip_concepts",
    },
)
"""How the networks of each kind are made again from architecture and payload."""


def restore(data: bytes) -> TorchPredictor | TextPredictor:
    """The predictor of an archive. Raises BadSpec if it is no archive, or if its key does not agree."""
    predictor: TorchPredictor | TextPredictor
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
            from stimuli.predictors.files.text_archive import assemble_archive

            predictor = assemble_archive(header, payload)
        else:
            predictor = _assemble_archive(header, payload)
        expected = header["key"]
    except Unrepeatable as error:
        raise Unrepeatable(
            f"{error}; a study that was built with it keeps the pictures that are stored, but none is drawn "
            "again, for it would be another: open a new study with the network mended"
        ) from None
    except StimulusError:
        raise
    except FAULTS as error:
        raise BadSpec(f"the predictor archive is damaged ({error!r}); build the stimuli again") from error
    if predictor.key != expected:
        raise BadSpec(
            f"the predictor archive was changed: its key is {predictor.key[:12]}…, it claims "
            f"{str(expected)[:12]}…; build the stimuli again"
        )
    return predictor


def _assemble_archive(header: dict[str, JsonValue], payload: bytes) -> TorchPredictor:
    architecture, framing = header["architecture"], Framing.from_json(header.get("framing", {}))
    settings = PictureSettings(header["input_px"], tuple(header["mean"]), tuple(header["std"]), framing)
    return assemble(
        READERS.load(str(architecture["kind"]))(architecture, payload),
        settings,
        labels=header["labels"],
        layer=header["layer"],
        architecture=architecture,
        payload=payload,
        provenance=header["provenance"],
    )


def read_program_archive(architecture: dict[str, JsonValue], payload: bytes) -> BuiltNetwork:
    network = read_program(payload, "the archive")
    cast_program(network)
    return BuiltNetwork(network, architecture.get("token_prefix"))


def read_builder(architecture: dict[str, JsonValue], payload: bytes) -> BuiltNetwork:
    network = build_network(architecture["builder"], architecture["params"], None)
    fit_weights(network, read_weights(payload, "the archive"), "the archive")
    return BuiltNetwork(network, architecture.get("token_prefix"))


def read_small(architecture: dict[str, JsonValue], payload: bytes) -> BuiltNetwork:
    network = small_network(
        architecture["width"], architecture["classes"], architecture.get("downsampling", "stride")
    )
    fit_weights(network, read_weights(payload, "the archive"), "the archive")
    return BuiltNetwork(network)


def read_toy(architecture: dict[str, JsonValue], payload: bytes) -> BuiltNetwork:
    return BuiltNetwork(toy_network(architecture))
