"""How texts become numbers: tokens with their places, a frozen encoder, and the small network behind it.

The embedded encoder needs no file. Its tokens are words and single marks, in lower case; a token's vector is
the sum of signs that a hash gives to the word and to its runs of two to four letters, so that words with the
same ending are alike, known or not. Slow waves of the place in the text are added as further channels, as in
a transformer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.predictors.network_forms import two_logits
from stimuli.predictors.text.units import letter_spans, piece_spans
from stimuli.spec import JsonValue, content_key
from stimuli.types import Span

EMBEDDED_VERSION = 2
WORD_CHANNELS = 128
PLACE_CHANNELS = 16
PLACE_SIZE = 2.0
"""How large the waves of the place are beside the words, whose numbers are near 1."""
HIDDEN = 100
RUNS = (2, 3, 4)
KNOWN_MAX = 50_000
START, END = "\x02", "\x03"
Pooling = Literal["lstm", "mean"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a text, with the marks of its start and end.

    `places` are the places of the tokens that stand for a part of the text. `spans` has one (start, end)
    in characters for each of them. `unread` counts the tokens of the text beyond the encoder's limit.
    """

    ids: tuple[Any, ...]
    places: tuple[int, ...]
    spans: tuple[Span, ...]
    unread: int = 0


class TextEncoder(Protocol):
    """From texts to vectors of `width` numbers per token; never trained."""

    width: int

    def tokenizer_digest(self) -> str:
        """Names the tokenizer: equal exactly if texts are cut alike."""
        ...

    @property
    def limit(self) -> int:
        """The most tokens of a text; what is beyond is not read."""
        ...

    def tokens(self, text: str) -> Tokens: ...

    def embeddings(self, texts: Sequence[Tokens], length: int) -> Tensor:
        """Vectors of the tokens alone, float32 (N, length, E); zero behind the end."""
        ...

    def __call__(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        """Vectors in context, (N, length, width), of embeddings; `mask` bool (N, length) is False behind the
        end, and what stands there must not matter.
        """
        ...


class EmbeddedEncoder(nn.Module):
    """Vectors by hashing, without a vocabulary or a file; `seed` chooses the hash. With `letters` scripts
    that write no spaces between words are cut into letters.
    """

    width = WORD_CHANNELS + PLACE_CHANNELS

    def __init__(self, seed: int, limit: int, *, letters: bool = False) -> None:
        super().__init__()
        self.seed = seed
        self.letters = letters
        self.limit = limit
        # The first row of the table is what stands behind the end of a text.
        self._numbers: dict[str, int] = {"": 0}
        self._table = np.zeros((1, WORD_CHANNELS), np.float32)
        self._waves: Tensor
        self.register_buffer("_waves", torch.from_numpy(place_waves(limit)), persistent=False)

    def tokenizer_digest(self) -> str:
        pieces = {"pieces": "letters"} if self.letters else {}
        return content_key(
            {"tokenizer": "embedded", "version": EMBEDDED_VERSION, "limit": self.limit, **pieces}
        )

    def tokens(self, text: str) -> Tokens:
        pieces = letter_spans(text) if self.letters else piece_spans(text)
        spans = pieces[: self.limit - 2]
        ids = (START, *(text[start:end].lower() for start, end in spans), END)
        return Tokens(ids, tuple(range(1, len(spans) + 1)), tuple(spans), len(pieces) - len(spans))

    def embeddings(self, texts: Sequence[Tokens], length: int) -> Tensor:
        self._learn({token for text in texts for token in text.ids})
        numbers = np.zeros((len(texts), length), np.int64)
        for row, text in zip(numbers, texts, strict=True):
            row[: len(text.ids)] = [self._numbers[token] for token in text.ids]
        return torch.from_numpy(self._table[numbers]).to(self._waves.device)

    def forward(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        waves = self._waves[: embeddings.shape[1]].expand(len(embeddings), -1, -1)
        return torch.cat([embeddings, waves], 2)

    def _learn(self, tokens: set[str]) -> None:
        """Keep the vectors of tokens that were not met before; forget all others when they are too many."""
        if len(self._numbers) > KNOWN_MAX:
            self._numbers, self._table = {"": 0}, self._table[:1]
        new = sorted(tokens - self._numbers.keys())
        if new:
            self._numbers.update({token: len(self._table) + at for at, token in enumerate(new)})
            self._table = np.concatenate([self._table, [word_vector(token, self.seed) for token in new]])


def word_vector(token: str, seed: int) -> NDArray[np.float32]:
    """The vector of a token, float32 (WORD_CHANNELS,), values near 1 in size: the same on every machine."""
    marked = f"<{token}>"
    parts = [marked]
    parts += [marked[at : at + size] for size in RUNS for at in range(len(marked) - size + 1)]
    total = np.zeros(WORD_CHANNELS, np.int64)
    for part in dict.fromkeys(parts):
        digest = hashlib.blake2b(
            f"{seed}\x1f{part}".encode(), digest_size=WORD_CHANNELS // 8, person=b"legible text"
        ).digest()
        total += 2 * np.unpackbits(np.frombuffer(digest, np.uint8)).astype(np.int64) - 1
    return np.asarray(total / np.sqrt(len(dict.fromkeys(parts))), np.float32)


def place_waves(count: int) -> NDArray[np.float32]:
    """Sines and cosines of the place with periods of 8 to 1024 tokens, float32 (count, PLACE_CHANNELS)."""
    periods = 2.0 ** np.arange(3, 3 + PLACE_CHANNELS // 2)
    angles = 2 * np.pi * np.arange(count)[:, None] / periods
    return np.asarray(PLACE_SIZE * np.concatenate([np.sin(angles), np.cos(angles)], 1), np.float32)


class Head(nn.Module):
    """LSTM (its state at the last token) or the mean over the tokens, then one hidden layer of HIDDEN units.

    Takes (N, T, width) and a mask bool (N, T), returns logits (N, classes).
    """

    def __init__(self, width: int, classes: int, pooling: Pooling) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, HIDDEN, batch_first=True) if pooling == "lstm" else None
        self.mlp = nn.Sequential(
            nn.Linear(HIDDEN if pooling == "lstm" else width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, classes)
        )

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        counts = mask.sum(1)
        if self.lstm is not None:
            states, _ = self.lstm(vectors)
            # The LSTM runs from left to right: what stands behind the last token cannot reach its state.
            pooled = states[torch.arange(len(states), device=states.device), counts - 1]
        else:
            pooled = (vectors * mask[:, :, None]).sum(1) / counts[:, None]
        logits: Tensor = self.mlp(pooled)
        return logits


class TextNetwork(nn.Module):
    """From a text to logits, in three steps: tokens, their embeddings, what the network makes of them.

    `encoder` is frozen, and puts out logits itself if there is no `head`; of a binary one, a single logit z
    per text, which becomes (-z/2, z/2). `is_small` networks run on one
    thread of the processor: more would wait for each other, and could add up in another order.
    """

    def __init__(self, encoder: TextEncoder, head: Head | None = None) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.is_binary = False
        self.is_small = isinstance(encoder, EmbeddedEncoder)

    def tokenizer_digest(self) -> str:
        return self.encoder.tokenizer_digest()

    @property
    def limit(self) -> int:
        return self.encoder.limit

    def tokens(self, text: str) -> Tokens:
        return self.encoder.tokens(text)

    def embeddings(self, texts: Sequence[Tokens], length: int) -> Tensor:
        return self.encoder.embeddings(texts, length)

    def forward(self, embeddings: Tensor, mask: Tensor) -> Tensor:
        encoded = self.encoder(embeddings, mask)
        logits: Tensor = encoded if self.head is None else self.head(encoded, mask)
        return two_logits(logits) if self.is_binary else logits


@contextmanager
def threads(network: TextNetwork) -> Iterator[None]:
    """One thread for a small network."""
    before = torch.get_num_threads()
    if network.is_small:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def embedded_encoder(architecture: JsonValue) -> EmbeddedEncoder:
    """The embedded encoder that an architecture names."""
    letters = architecture.get("pieces") == "letters"
    return EmbeddedEncoder(int(architecture["seed"]), int(architecture["max_tokens"]), letters=letters)
