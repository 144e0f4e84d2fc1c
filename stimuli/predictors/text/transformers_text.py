"""Text models of the library transformers, from a folder of the study: never from the network, no pickles.

The folder holds what `save_pretrained` writes: config.json, model.safetensors and tokenizer.json.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec, ShapeMismatch, first_line
from stimuli.predictors.files.hub_folder import problem_of
from stimuli.predictors.files.weights import (
    cast_from,
    fit_weights,
    other_precisions,
    read_weights,
    unwrap_names,
)
from stimuli.predictors.parameters import TransformersTextParams
from stimuli.predictors.text.base import STEP, TextPredictor, assemble_text
from stimuli.predictors.text.text_encoders import TextNetwork, Tokens
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.types import Progress, TextDataset

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
FILES = (CONFIG, TOKENIZER)
SAVE_AGAIN = "save config.json and model.safetensors of one model again with save_pretrained"
SPARE_PLACES = 2
"""Some models count places from two."""
PROBES = ("Are these the same numbers, word by word?", "One")
LEAST_PLACES = 8
CLOSE = 1e-4


class Cutter:
    """A tokenizer from the text of its tokenizer.json."""

    def __init__(self, definition: str, limit: int, source: str) -> None:
        library = optional_library("tokenizers")
        try:
            self._tokenizer = library.Tokenizer.from_str(definition)
        except Exception as error:  # the library has no narrower class
            raise BadSpec(
                f"{source}: {TOKENIZER} cannot be read ({error}); save the tokenizer again"
            ) from None
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=limit)
        self.digest = hashlib.sha256(f"{limit}\0{definition}".encode()).hexdigest()

    def __call__(self, text: str) -> Tokens:
        encoding = self._tokenizer.encode(text)
        places = tuple(at for at, is_mark in enumerate(encoding.special_tokens_mask) if not is_mark)
        spans = tuple((int(encoding.offsets[at][0]), int(encoding.offsets[at][1])) for at in places)
        unread = sum(len(part.ids) - sum(part.special_tokens_mask) for part in encoding.overflowing)
        return Tokens(tuple(encoding.ids), places, spans, unread)


class Transformer(nn.Module):
    """A model and its tokenizer. Puts out vectors per token, (N, T, width), or with `classifies` logits."""

    def __init__(
        self, files: Mapping[str, str], *, max_tokens: int, classifies: bool, source: str, state: Any = None
    ) -> None:
        super().__init__()
        config = _config(json.loads(files[CONFIG]), source)
        self.model = _empty_model(config, classifies, source)
        fit_weights(self.model, _fitting(self.model, state, classifies, source), source, SAVE_AGAIN)
        self.model.eval()
        places = int(getattr(config, "max_position_embeddings", 0) or max_tokens + SPARE_PLACES)
        self.limit = min(max_tokens, places - SPARE_PLACES)
        if self.limit < LEAST_PLACES:
            raise BadSpec(
                f"{source}: max_position_embeddings = {places} leaves {self.limit} tokens for a text, and at "
                f"least {LEAST_PLACES} are needed; use a BERT-like model with places of its own"
            )
        self.width = int(getattr(config, "hidden_size", 0) or getattr(config, "dim", 0))
        self.config = config
        self._cut = Cutter(files[TOKENIZER], self.limit, source)
        if not self.tokens("").ids:
            raise BadSpec(
                f"{source}: the tokenizer marks neither start nor end of a text; use a BERT-like model"
            )
        _check_embeddings(self, source)

    def tokenizer_digest(self) -> str:
        return self._cut.digest

    def tokens(self, text: str) -> Tokens:
        return self._cut(text)

    def embeddings(self, texts: Sequence[Tokens], length: int) -> Tensor:
        ids = torch.zeros((len(texts), length), dtype=torch.long)
        mask = torch.zeros((len(texts), length, 1))
        for row, text in enumerate(texts):
            ids[row, : len(text.ids)] = torch.tensor(text.ids)
            mask[row, : len(text.ids)] = 1
        library_model: Any = self.model
        table = library_model.get_input_embeddings()
        device = table.weight.device
        vectors: Tensor = table(ids.to(device)) * mask.to(device)
        return vectors

    def forward(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        output = self.model(inputs_embeds=embeddings, attention_mask=mask.long())
        result: Tensor = output.logits if hasattr(output, "logits") else output.last_hidden_state
        return result


def open_transformers_text(
    component: Component, folder: Path, dataset: TextDataset, progress: Progress
) -> TextPredictor:
    """Load a sequence classifier. Raises BadSpec for files that are missing or refused, ShapeMismatch for
    weights that do not fit.
    """
    params = read_params(component, TransformersTextParams, "predictor")
    progress("loading the model", 0, 1)
    place = (folder / params.path).resolve()
    files, state = read_folder(place)
    source = f'"{place.name}"'
    transformer = Transformer(
        files, max_tokens=params.max_tokens, classifies=True, source=source, state=state
    )
    config = json.loads(files[CONFIG])
    predictor = assemble_text(
        TextNetwork(transformer),
        labels=params.labels or _own_labels(config, dataset),
        architecture={"kind": "transformers_text", "max_tokens": params.max_tokens},
        payload=pack_transformer(transformer, files),
        provenance={
            "origin": place.name,
            **cast_from(other_precisions(state.values())),
            **problem_of(config, source),
        },
    )
    progress("loading the model", 1, 1)
    return predictor


def read_folder(place: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The texts of config and tokenizer, and the weights. Raises BadSpec that names the missing file."""
    for name in (*FILES, WEIGHTS):
        if not (place / name).is_file():
            raise BadSpec(
                f'there is no file "{name}" in "{place}"; save model and tokenizer there with '
                "save_pretrained (safetensors, fast tokenizer)"
            )
    try:
        files = {name: (place / name).read_text(encoding="utf-8") for name in FILES}
        json.loads(files[CONFIG])
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadSpec(f'a file of "{place}" is damaged ({error}); save it again') from None
    return files, read_weights((place / WEIGHTS).read_bytes(), f'"{WEIGHTS}"')


def folder_digest(place: Path) -> str:
    """SHA-256 over the files that `read_folder` reads; "" for those that are missing."""
    total = hashlib.sha256()
    for name in (*FILES, WEIGHTS):
        path = place / name
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        total.update(f"{name}\0{content}\n".encode())
    return total.hexdigest()


def pack_transformer(
    transformer: Transformer, files: Mapping[str, str], more: Mapping[str, Tensor] | None = None
) -> bytes:
    """Weights, config and tokenizer (and the tensors `more`) as safetensors bytes."""
    tensors = {f"model:{name}": value for name, value in transformer.model.state_dict().items()}
    tensors |= {
        f"file:{name}": torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)
        for name, text in files.items()
    }
    tensors |= dict(more or {})
    return bytes(
        safetensors.torch.save(
            {name: tensors[name].detach().cpu().contiguous().clone() for name in sorted(tensors)}
        )
    )


def unpack_transformer(payload: bytes) -> tuple[dict[str, str], dict[str, Tensor], dict[str, Tensor]]:
    """The files, the model's weights and the other tensors that `pack_transformer` wrote."""
    tensors = read_weights(payload, "the archive")
    files = {
        name.removeprefix("file:"): value.numpy().tobytes().decode()
        for name, value in tensors.items()
        if name.startswith("file:")
    }
    state = {n.removeprefix("model:"): value for n, value in tensors.items() if n.startswith("model:")}
    return files, state, {n: value for n, value in tensors.items() if not n.startswith(("file:", "model:"))}


def restore_transformers_text(architecture: Mapping[str, JsonValue], payload: bytes) -> TextNetwork:
    """The network of an archive."""
    files, state, _ = unpack_transformer(payload)
    return TextNetwork(
        Transformer(
            files,
            max_tokens=int(architecture["max_tokens"]),
            classifies=True,
            source="the archive",
            state=state,
        )
    )


def optional_library(name: str) -> Any:
    """An optional library. Raises BadSpec with the remedy if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        raise BadSpec(
            f'the library {name} is not installed: run pip install "legible[transformers]"'
        ) from None


def _config(values: dict[str, JsonValue], source: str) -> Any:
    library = optional_library("transformers")
    if "auto_map" in values:
        raise BadSpec(
            f"{source}: the model brings code of its own, which is never run; use one of the library's"
        )
    kind = values.get("model_type")
    try:
        kept = {
            name: value
            for name, value in values.items()
            if name not in {"model_type", "dtype", "torch_dtype"}
        }
        return library.AutoConfig.for_model(kind, **kept)
    except (ValueError, KeyError, TypeError) as error:
        raise BadSpec(f"{source}: {CONFIG} names no known model ({error})") from None


def _empty_model(config: Any, classifies: bool, source: str) -> nn.Module:
    library = optional_library("transformers")
    maker = library.AutoModelForSequenceClassification if classifies else library.AutoModel
    try:
        with torch.random.fork_rng(devices=[]):
            made: nn.Module = maker.from_config(config, attn_implementation="eager")
    except ValueError as error:
        first = str(error).splitlines()[0]
        raise BadSpec(f"{source}: there is no such text model in the library ({first})") from None
    return made.float()


def _fitting(
    model: nn.Module, state: Mapping[str, Tensor], classifies: bool, source: str
) -> dict[str, Tensor]:
    """The weights under the names that the model has: a classifier's or language model's file names the
    encoder within itself, and has a head that an encoder lacks. Old names of normalisations are renewed.
    ShapeMismatch for an encoder alone in place of a classifier.
    """
    wanted = model.state_dict()
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    state, _ = unwrap_names(state, {*wanted, *(name.removeprefix(prefix) for name in wanted)})
    fitting: dict[str, Tensor] = {}
    for name, value in state.items():
        new = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        for candidate in (new, new.removeprefix(prefix), prefix + new):
            if candidate in wanted:
                fitting[candidate] = value.float() if value.is_floating_point() else value
                break
    # An encoder's file may lack the layer that only a head would read.
    for name, value in wanted.items():
        if name not in fitting and name.startswith("pooler."):
            fitting[name] = torch.zeros_like(value)
    head = [name for name in wanted if not name.startswith(prefix)]
    if classifies and fitting and not any(name in fitting for name in head):
        raise ShapeMismatch(
            f"{source} holds an encoder without a head that names classes ({', '.join(head[:4])}): take a "
            "model that was trained to name them, or train a head on the study's texts with predictor "
            '"trained_text", encoder = "transformers" and encoder_path'
        )
    return fitting


def _check_embeddings(transformer: Transformer, source: str) -> None:
    """BadSpec unless vectors of tokens can stand for the tokens, which gradients need, and what fills a text
    up does not matter: compared with the library's own run on the numbers of the tokens alone.
    """
    for text in PROBES:
        tokens = transformer.tokens(text)
        count = len(tokens.ids)
        length = min((count // STEP + 1) * STEP, transformer.limit)
        alone = torch.ones((1, count), dtype=torch.bool)
        filled = torch.arange(length)[None] < count
        try:
            with torch.inference_mode():
                output = transformer.model(input_ids=torch.tensor([tokens.ids]), attention_mask=alone.long())
                theirs = output.logits if hasattr(output, "logits") else output.last_hidden_state
                ours = transformer(transformer.embeddings([tokens], count), alone)
                padded = transformer(transformer.embeddings([tokens], length), filled)
        except Exception as error:  # models raise errors of any kind
            raise BadSpec(
                f"{source}: the model does not run on the vectors of its tokens ({first_line(error)}); "
                "use a BERT-like model"
            ) from None
        if not torch.allclose(ours, theirs, atol=CLOSE, rtol=CLOSE):
            raise BadSpec(f"{source}: the model changes its embeddings inside; use a BERT-like model")
        if padded.ndim == 3:
            padded = padded[:, :count]
        if not torch.allclose(padded, theirs, atol=CLOSE, rtol=CLOSE):
            raise BadSpec(
                f"{source}: the model reads what fills a text up behind its end, as classifiers do that take "
                "the last place; use a BERT-like model"
            )


def _own_labels(config: Mapping[str, JsonValue], dataset: TextDataset) -> tuple[str, ...]:
    named = {int(index): str(label) for index, label in (config.get("id2label") or {}).items()}
    labels = tuple(named[index] for index in sorted(named))
    if not labels or all(label.startswith("LABEL_") for label in labels):
        return tuple(dataset.labels)
    return labels
