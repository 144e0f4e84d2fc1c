"""Text predictors from bytes: the same form as picture predictors, told apart by the header's modality."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stimuli.predictors.text.base import TextPredictor, assemble_text
from stimuli.predictors.text.text_encoders import TextNetwork
from stimuli.registry import Table
from stimuli.spec import JsonValue

Reader = Callable[[Mapping[str, JsonValue], bytes], TextNetwork]
TEXT_READERS: Table[Reader] = Table(
    "architecture of text predictors",
    {
        "trained_text": "stimuli.predictors.text.trained_text:restore_trained_text",
        "transformers_text": "stimuli.predictors.text.transformers_text:restore_transformers_text",
    },
)
"""How the networks of each kind are made again from architecture and payload."""


def assemble_archive(header: Mapping[str, JsonValue], payload: bytes) -> TextPredictor:
    """The predictor of an archive, whose key is still to be checked. Raises KeyError or TypeError for a
    header that is damaged.
    """
    architecture = header["architecture"]
    return assemble_text(
        TEXT_READERS.load(str(architecture["kind"]))(architecture, payload),
        labels=header["labels"],
        architecture=architecture,
        payload=payload,
        provenance=header["provenance"],
    )
