"""A vision-language model from a local folder, and how probable it holds each of a few replies.

A small model rarely writes an answer that can be read, and what it writes hangs on how it is sampled. So
nothing is sampled: of replies that are given, the model says how probable each is as its own.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.predictors.files.hub_folder import (
    HubFolder,
    fill,
    library,
    open_hub_folder,
    plain_config,
    quietly,
    try_call,
)
from stimuli.types import Pixels

MAX_BYTES = 16 << 30
SERVED = "serve it on this machine with a program that speaks chat completions, and name its address"
TEMPLATE = "chat_template.jinja"
SETTINGS = ("processor_config.json", "preprocessor_config.json", "tokenizer_config.json", TEMPLATE)

Turn = tuple[str, Sequence[str | Pixels]]
"""Who speaks (system, user or assistant), and texts and pictures, uint8 (H, W, 3), in their order."""


@dataclass(eq=False)
class VisionLanguage:
    """`digest` names weights, settings and words. One dialogue is read at a time."""

    name: str
    digest: str
    model: nn.Module
    processor: Any
    device: str = "cpu"

    def __post_init__(self) -> None:
        self.model.to(self.device)
        self._reading = Lock()
        takes = inspect.signature(self.model.forward).parameters
        self._last_alone = {"logits_to_keep": 1} if "logits_to_keep" in takes else {}

    def log_likelihoods(self, turns: Sequence[Turn], replies: Sequence[str]) -> list[float]:
        """Natural logarithms of how probable each reply is as the next turn, as far as it differs from the
        others: tokens that all replies still in question share are read, but not counted, and none is counted
        after a reply stands alone. Raises BadSpec for a dialogue that the model cannot take, and for replies
        that its tokenizer does not tell apart.
        """
        split = self.processor.tokenizer
        rows = [[int(t) for t in split(reply, add_special_tokens=False)["input_ids"]] for reply in replies]
        for place, row in enumerate(rows):
            same = [k for k, other in enumerate(rows) if k != place and other[: len(row)] == row]
            if same:
                raise BadSpec(
                    f'the tokenizer of "{self.name}" does not tell {replies[place]!r} from '
                    f"{replies[same[0]]!r}: take another model"
                )
        with self._reading, torch.inference_mode(), quietly():
            given = try_call(
                lambda: self._dialogue_inputs(turns), f'"{self.name}"', f"read {_dialogue_text(turns)}"
            )
            totals = [0.0] * len(rows)
            self._branch(given, rows, list(range(len(rows))), 0, totals)
        return totals

    def _dialogue_inputs(self, turns: Sequence[Turn]) -> dict[str, Tensor]:
        from PIL import Image

        chat = [
            {
                "role": role,
                "content": [
                    {"type": "text", "text": part}
                    if isinstance(part, str)
                    else {"type": "image", "image": Image.fromarray(part)}
                    for part in parts
                ],
            }
            for role, parts in turns
        ]
        made = self.processor.apply_chat_template(
            chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        return {name: value.to(self.device) for name, value in made.items()}

    def _branch(
        self,
        given: Mapping[str, Tensor],
        rows: Sequence[Sequence[int]],
        open_rows: Sequence[int],
        at: int,
        totals: list[float],
    ) -> None:
        """Adds to `totals` what the `open_rows`, which agree up to the token `at`, say from there on."""
        if len(open_rows) < 2:
            return
        first = rows[open_rows[0]]
        while all(rows[k][at] == first[at] for k in open_rows):
            at += 1
        logits = self._next(given, first[:at])
        told = torch.log_softmax(logits.double(), dim=-1)
        groups: dict[int, list[int]] = {}
        for k in open_rows:
            totals[k] += float(told[rows[k][at]])
            groups.setdefault(rows[k][at], []).append(k)
        for group in groups.values():
            self._branch(given, rows, group, at + 1, totals)

    def _next(self, given: Mapping[str, Tensor], begun: Sequence[int]) -> Tensor:
        """The logits of the token that follows the dialogue and the `begun` reply, (vocabulary,)."""
        words = given["input_ids"]
        more = torch.tensor([list(begun)], dtype=words.dtype, device=words.device)
        inputs = dict(given)
        for name, value in given.items():
            if name == "input_ids":
                inputs[name] = torch.cat([value, more], dim=1)
            elif value.shape == words.shape:
                # One number for each token: that it counts, or of which kind it is, which for text is 0.
                fresh = torch.ones_like(more) if name == "attention_mask" else torch.zeros_like(more)
                inputs[name] = torch.cat([value, fresh.to(value.dtype)], dim=1)
        made = try_call(
            lambda: self.model(**inputs, **self._last_alone, use_cache=False), f'"{self.name}"', "answer"
        )
        row: Tensor = made.logits[0, -1]
        return row


def open_vision_language(path: Path, device: str = "cpu") -> VisionLanguage:
    """A model folder as the transformers library saves it, with its processor, opened in float32. Raises
    BadSpec for one that brings code or pickles, has no chat template, or is no such model."""
    path = path.resolve()
    if not path.is_dir():
        raise BadSpec(f'"{path.name}" is no folder: save a model there with save_pretrained(folder)')
    folder = open_hub_folder(path.parent, path.name)
    config = folder.config()
    names = library("transformers.models.auto.modeling_auto").MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES
    kind = names.get(config.get("model_type"))
    if kind is None:
        raise BadSpec(
            f'"{folder.shown}" is a {config.get("model_type")!r}, which is no vision-language model that '
            f"transformers knows; {SERVED}"
        )
    processor = _processor(folder)
    state = folder.weights(MAX_BYTES)
    model = fill(getattr(library(), kind), plain_config(config), state, f'"{folder.shown}"')
    return VisionLanguage(path.name, _digest(folder), model, processor, device)


def _processor(folder: HubFolder) -> Any:
    """What brings dialogues into the model's form. The library gets the folder for it, which by now holds
    nothing that names code or another model."""
    for name in SETTINGS[:-1]:
        if "audio_tokenizer" in (folder.json(name) or {}):
            raise BadSpec(f'"{folder.shown}/{name}" names a model of its own for sounds; {SERVED}')
    with quietly():
        made = try_call(
            lambda: library().AutoProcessor.from_pretrained(
                str(folder.path), local_files_only=True, trust_remote_code=False
            ),
            f'"{folder.shown}"',
            "open its processor",
        )
    if getattr(made, "image_processor", None) is None or getattr(made, "tokenizer", None) is None:
        raise BadSpec(f'the processor of "{folder.shown}" does not take pictures and texts; {SERVED}')
    if not made.chat_template:
        raise BadSpec(
            f'"{folder.shown}" holds no {TEMPLATE}, so how it is spoken to is not known: take a model '
            "that was trained to answer"
        )
    return made


def _digest(folder: HubFolder) -> str:
    total = hashlib.sha256()
    for path in sorted([*folder.path.glob("*.json"), *folder.path.glob("*.jinja"),
                        *folder.path.glob("*.safetensors")]):  # fmt: skip
        with path.open("rb") as file:
            total.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def _dialogue_text(turns: Sequence[Turn]) -> str:
    count = sum(not isinstance(part, str) for _, parts in turns for part in parts)
    return f"{count} picture{'' if count == 1 else 's'} in one dialogue"
