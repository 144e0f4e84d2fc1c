"""Text predictors from bytes: the same form as picture predictors, told apart by the header's modality."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stimuli.errors import BadSpec
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


def restore_text(header: Mapping[str, JsonValue], payload: bytes) -> TextPredictor:
    """The predictor of an archive. Raises BadSpec when its key does not agree, KeyError or TypeError for a
    header that is damaged.
    """
    architecture = header["architecture"]
    reader = TEXT_READERS.load(str(architecture["kind"]))
    predictor = assemble_text(
        reader(architecture, payload),
        labels=header["labels"],
        architecture=architecture,
        payload=payload,
        provenance=header["provenance"],
    )
    expected = header["key"]
    if predictor.key != expected:
        raise BadSpec(
            f"the predictor archive was changed: its key is {predictor.key[:12]}…, it claims "
            f"{str(expected)[:12]}…; build the stimuli again"
        )
    return predictor
