"""A frozen encoder with a small network behind it, trained on the dataset's model split: the models of the
reverse Turing test.

As there: encoder, LSTM of 100 units or the mean over the tokens, one hidden layer of 100; Adam with a rate of
0.001, 20 epochs, nothing tuned and nothing stopped early. [Gonzalez and Søgaard] The embedded encoder needs
no download; a BERT-like model is read from a local folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from stimuli.errors import BadSpec
from stimuli.predictors.files.weights import (
    cast_from,
    fit_weights,
    other_precisions,
    pack_weights,
    read_weights,
)
from stimuli.predictors.parameters import TrainedTextParams
from stimuli.predictors.text.base import TextPredictor, assemble_text
from stimuli.predictors.text.text_encoders import (
    EmbeddedEncoder,
    Head,
    TextEncoder,
    TextNetwork,
    embedded_encoder,
)
from stimuli.predictors.text.transformers_text import (
    Transformer,
    folder_digest,
    pack_transformer,
    read_folder,
    unpack_transformer,
)
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue, content_key
from stimuli.training import repeatable
from stimuli.types import Item, Progress, TextDataset

TRAINING_VERSION = 1
BATCH = 32
ENCODED_AT_ONCE = 32
HELD_OUT_SHARE = 0.2
MIN_GROUPS = 4


def training_key(component: Component, dataset: Component, content_digest: str, folder: Path) -> str:
    """Names what training would give, without training: for finding a network that is already there."""
    params = read_params(component, TrainedTextParams, "predictor")
    encoder = folder_digest((folder / params.encoder_path).resolve()) if params.encoder_path else ""
    return content_key(
        {
            # What was trained before there were pieces keeps its key.
            "predictor": params.model_dump(mode="json", exclude={"pieces"}) | _pieces(params),
            "encoder": encoder,
            "dataset": dataset.as_json(),
            "content": content_digest,
            "version": TRAINING_VERSION,
        }
    )


def open_trained_text(
    component: Component, folder: Path, dataset: TextDataset, progress: Progress
) -> TextPredictor:
    """Train the small network behind the frozen encoder.

    The same seed and texts give the same weights on one machine. A fifth of the groups is held out; its
    accuracy (0-1) stands in the provenance. Raises BadSpec when the model split is too small or the encoder
    cannot be read.
    """
    params = read_params(component, TrainedTextParams, "predictor")
    items = _choose(dataset, params)
    encoder, pack, precisions = _encoder(params, folder)
    vectors = _encode_texts(encoder, [dataset.text(item.key) for item in items], progress)
    targets = torch.tensor([dataset.labels.index(item.truth) for item in items])
    held_out = _hold_out(items, np.random.default_rng([params.seed, 11]))
    with repeatable(params.seed):
        head = Head(encoder.width, len(dataset.labels), params.pooling)
        shown = _TrainingTexts(vectors, targets, np.flatnonzero(~held_out))
        _fit(head, shown, params, lambda done, total: progress("training the network", done, total))
        accuracy = _accuracy(head, vectors, targets, np.flatnonzero(held_out))
    return assemble_text(
        TextNetwork(encoder, head),
        labels=dataset.labels,
        architecture={
            "kind": "trained_text",
            "encoder": params.encoder,
            "seed": params.seed,
            "max_tokens": params.max_tokens,
            "pooling": params.pooling,
            "classes": len(dataset.labels),
            **_pieces(params),
        },
        payload=pack(head),
        provenance={
            "origin": "trained on the spot",
            "held_out_accuracy": round(accuracy, 4),
            "held_out_count": int(held_out.sum()),
            "trained_count": int((~held_out).sum()),
            "epochs": params.epochs,
            "seed": params.seed,
            **cast_from(precisions),
        },
    )


def _pieces(params: TrainedTextParams) -> dict[str, JsonValue]:
    return {"pieces": params.pieces} if params.pieces != "spaces" else {}


def restore_trained_text(architecture: Mapping[str, JsonValue], payload: bytes) -> TextNetwork:
    """The network of an archive."""
    encoder: TextEncoder
    if architecture["encoder"] == "embedded":
        encoder = embedded_encoder(architecture)
        state = read_weights(payload, "the archive")
    else:
        files, weights, state = unpack_transformer(payload)
        encoder = Transformer(
            files,
            max_tokens=int(architecture["max_tokens"]),
            classifies=False,
            source="the archive",
            state=weights,
        )
    with torch.random.fork_rng(devices=[]):
        head = Head(encoder.width, int(architecture["classes"]), architecture["pooling"])
    fit_weights(head, state, "the archive")
    return TextNetwork(encoder, head)


@dataclass(frozen=True, eq=False)
class _TrainingTexts:
    """What is learnt from: vectors (T, width) and class of each text, and the places of those to be shown."""

    vectors: Sequence[Tensor]
    targets: Tensor
    places: NDArray[np.int64]


def _choose(dataset: TextDataset, params: TrainedTextParams) -> list[Item]:
    """At most `train_items` texts, classes in equal shares, drawn by seed, in the dataset's order."""
    rng = np.random.default_rng([params.seed, 7])
    items = dataset.items("model")
    chosen: set[str] = set()
    for label in dataset.labels:
        members = [item for item in items if item.truth == label]
        if len({item.group for item in members}) < MIN_GROUPS:
            raise BadSpec(
                f'predictor trained_text: class "{label}" has {len(members)} text(s) for training, at least '
                f"{MIN_GROUPS} of different groups are needed; add texts or lower people_share"
            )
        order = rng.permutation(len(members))[: max(MIN_GROUPS, params.train_items // len(dataset.labels))]
        chosen.update(members[int(place)].key for place in order)
    return [item for item in items if item.key in chosen]


def _encoder(
    params: TrainedTextParams, folder: Path
) -> tuple[TextEncoder, Callable[[Head], bytes], list[str]]:
    """The encoder, how a head is packed with what the encoder needs, and from which precisions its weights
    were cast."""
    if params.encoder == "embedded":
        letters = params.pieces == "letters"
        return EmbeddedEncoder(params.seed, params.max_tokens, letters=letters), pack_weights, []
    place = (folder / params.encoder_path).resolve()
    files, state = read_folder(place)
    transformer = Transformer(
        files, max_tokens=params.max_tokens, classifies=False, source=f'"{place.name}"', state=state
    )
    precisions = other_precisions(state.values())
    return transformer, lambda head: pack_transformer(transformer, files, head.state_dict()), precisions


def _encode_texts(encoder: TextEncoder, texts: Sequence[str], progress: Progress) -> list[Tensor]:
    """The encoder's vectors of each text, (T, width), once: the encoder is never trained."""
    tokens = [encoder.tokens(text) for text in texts]
    order = sorted(range(len(tokens)), key=lambda place: len(tokens[place].ids))
    by_place: dict[int, Tensor] = {}
    for start in range(0, len(order), ENCODED_AT_ONCE):
        part = order[start : start + ENCODED_AT_ONCE]
        counts = torch.tensor([len(tokens[place].ids) for place in part])
        length = int(counts.max())
        with torch.inference_mode():
            embeddings = encoder.embeddings([tokens[place] for place in part], length)
            vectors = encoder(embeddings, torch.arange(length) < counts[:, None])
        # Cloned out of inference mode, which would refuse to be learnt from.
        by_place.update(
            {place: row[: int(n)].clone() for place, row, n in zip(part, vectors, counts, strict=True)}
        )
        progress("reading texts for training", start + len(part), len(order))
    return [by_place[place] for place in range(len(texts))]


def _hold_out(items: Sequence[Item], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Per class a fifth of the groups, at least one; a group is held out as a whole."""
    held: set[str] = set()
    for label in sorted({item.truth for item in items}):
        groups = sorted({item.group for item in items if item.truth == label})
        count = max(1, round(HELD_OUT_SHARE * len(groups)))
        held.update(groups[int(place)] for place in rng.permutation(len(groups))[:count])
    return np.array([item.group in held for item in items])


def _fit(
    head: Head, shown: _TrainingTexts, params: TrainedTextParams, progress: Callable[[int, int], None]
) -> None:
    """Optimise in place."""
    rng = np.random.default_rng([params.seed, 13])
    optimiser = torch.optim.Adam(head.parameters(), lr=params.learning_rate)
    per_epoch = -(-len(shown.places) // BATCH)
    step, total = 0, params.epochs * per_epoch
    head.train()
    for _epoch in range(params.epochs):
        for chosen in np.array_split(rng.permutation(shown.places), per_epoch):
            vectors, mask = _pad_vectors([shown.vectors[place] for place in chosen])
            loss = functional.cross_entropy(head(vectors, mask), shown.targets[chosen])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            step += 1
            progress(step, total)


def _pad_vectors(vectors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    counts = torch.tensor([len(text_vectors) for text_vectors in vectors])
    filled = pad_sequence(list(vectors), batch_first=True)
    return filled, torch.arange(filled.shape[1]) < counts[:, None]


def _accuracy(head: Head, vectors: Sequence[Tensor], targets: Tensor, places: NDArray[np.int64]) -> float:
    head.eval()
    right = 0
    with torch.no_grad():
        for start in range(0, len(places), ENCODED_AT_ONCE):
            part = places[start : start + ENCODED_AT_ONCE]
            answers = head(*_pad_vectors([vectors[place] for place in part])).argmax(1)
            right += int((answers == targets[part]).sum())
    return right / len(places)
