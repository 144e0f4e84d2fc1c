"""The one form that every text predictor has, from every source of weights.

A text's logits depend on the text alone. It is filled up to the next multiple of STEP tokens, which are
masked, and runs in a batch of always the same number of rows: so neither the other texts of a batch, nor how
many they are, can change a single bit.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.planner.values import ExplainedNumber, TextTrace
from stimuli.predictors.files.packing import pack
from stimuli.predictors.network_forms import check_labels, is_single, two_logits
from stimuli.predictors.network_proof import network_errors, prove
from stimuli.predictors.text.text_encoders import TextNetwork, Tokens, threads
from stimuli.predictors.text.units import is_word, piece_spans
from stimuli.spec import JsonValue, content_key
from stimuli.types import Modality, Span

ROWS = 32
REMEDY = "use a BERT-like model, in float32"
STEP = 8
PROBES = ("", "One word.", "A somewhat longer text, of two parts, to see whether lengths matter at all.")


@dataclass(frozen=True)
class TextPredictor:
    """A network that names one of `labels` (in logit order) for a text.

    `network` is in evaluation mode, without gradients on its weights. `architecture` and `payload` are what
    `dump` writes, `provenance` is what is worth telling about its origin.
    """

    network: TextNetwork
    labels: tuple[str, ...]
    architecture: Mapping[str, JsonValue]
    payload: bytes
    provenance: Mapping[str, JsonValue]

    modality: Modality = "text"

    @property
    def key(self) -> str:
        """Content key of weights, architecture and labels; 64 hexadecimal digits."""
        return content_key(
            {
                "modality": self.modality,
                "architecture": dict(self.architecture),
                "weights": hashlib.sha256(self.payload).hexdigest(),
                "labels": list(self.labels),
            }
        )

    def text_key(self, text: str) -> str:
        """Content key of what the network reads: the text in Unicode NFC, and how it is cut into tokens."""
        return content_key(
            {"text": unicodedata.normalize("NFC", text), "tokenizer": self.network.tokenizer_digest()}
        )

    def words(self, text: str) -> tuple[Span, ...]:
        """The spans (start, end) of the words of `text`, as methods mark them: runs of letters, digits and _,
        with the combining marks that belong to them.

        They are not the network's tokens, of which a word may have several.
        """
        return word_spans(text)

    def unread(self, text: str) -> int:
        """How many tokens at the end of `text` the network does not read."""
        return self.network.tokens(text).unread

    def text_logits(self, texts: Sequence[str], rows: int = ROWS) -> NDArray[np.float32]:
        """Logits float32 (N, K). A row depends on its text alone (and, in the last bit, on `rows`)."""
        results = np.zeros((len(texts), len(self.labels)), np.float32)
        for places, logits in self.text_batches(texts, rows):
            results[places] = logits
        return results

    def text_batches(
        self, texts: Sequence[str], rows: int = ROWS
    ) -> Iterator[tuple[list[int], NDArray[np.float32]]]:
        """Run all texts, those of like length together: per batch the places in `texts` and their logits
        (n, K), n at most `rows`.
        """
        tokens = [self.network.tokens(text) for text in texts]
        buckets: dict[int, list[int]] = {}
        for place, text_tokens in enumerate(tokens):
            buckets.setdefault(self._length(text_tokens), []).append(place)
        for length in sorted(buckets):
            places = buckets[length]
            for start in range(0, len(places), rows):
                part = places[start : start + rows]
                yield part, self._run([tokens[place] for place in part], length, rows)

    def text_gradient(self, text: str, explained: ExplainedNumber) -> TextTrace:
        """The gradient of the explained number with respect to the embeddings of the text's own tokens.

        float32 (T, D) each; the tokens that mark start and end are left out.
        """
        tokens = self.network.tokens(text)
        length = self._length(tokens)
        embeddings = self.network.embeddings([tokens], length).detach().requires_grad_()
        # cuDNN differentiates recurrent layers in training mode only.
        no_cudnn = torch.backends.cudnn.flags(enabled=False)
        with torch.enable_grad(), threads(self.network), no_cudnn:
            logits = self.network(embeddings, _mask([tokens], length, embeddings.device))
            slopes = explained.slopes(logits[0].detach().double().cpu().numpy())
            (gradient,) = torch.autograd.grad(logits[0], [embeddings], torch.from_numpy(slopes).to(logits))
        places = list(tokens.places)
        return TextTrace(
            tokens.spans, gradient[0, places].cpu().numpy(), embeddings[0, places].detach().cpu().numpy()
        )

    def dump(self) -> bytes:
        """An archive for `restore`: a JSON header and the weights; nothing in it is ever unpickled."""
        header = {
            "modality": self.modality,
            "architecture": dict(self.architecture),
            "labels": list(self.labels),
            "provenance": dict(self.provenance),
            "key": self.key,
        }
        return pack(header, self.payload)

    def _length(self, tokens: Tokens) -> int:
        """How many places the text is filled up to: a function of its own length."""
        return min(-(-len(tokens.ids) // STEP) * STEP, self.network.limit)

    def _run(self, texts: Sequence[Tokens], length: int, rows: int) -> NDArray[np.float32]:
        filled = [*texts, *([texts[-1]] * (rows - len(texts)))]
        with torch.inference_mode(), threads(self.network), network_errors(f"{rows} texts", REMEDY):
            embeddings = self.network.embeddings(filled, length)
            logits = self.network(embeddings, _mask(filled, length, embeddings.device))
        return np.asarray(logits[: len(texts)].float().cpu().numpy(), np.float32)


def word_spans(text: str) -> tuple[Span, ...]:
    """The spans (start, end) of runs of letters, digits and _ with their combining marks, in order."""
    return tuple((start, end) for start, end in piece_spans(text) if is_word(text[start]))


def assemble_text(
    network: TextNetwork,
    *,
    labels: Sequence[str],
    architecture: Mapping[str, JsonValue],
    payload: bytes,
    provenance: Mapping[str, JsonValue],
) -> TextPredictor:
    """A predictor from a network with its weights in place, after trying it on texts of three lengths.

    Two labels are also named by one logit, which speaks for the second. Raises BadSpec for doubled labels and
    for logits that are not finite, ShapeMismatch when there is not one logit per label, Unrepeatable when the
    same texts have other answers in another run or batch.
    """
    check_labels(labels)
    network.eval()
    for parameter in network.parameters():
        parameter.requires_grad_(False)
    predictor = TextPredictor(network, tuple(labels), architecture, payload, provenance)
    tokens = [network.tokens(text) for text in PROBES]

    def ask(rows: slice) -> Tensor:
        texts = tokens[rows]
        return torch.from_numpy(predictor._run(texts, max(map(predictor._length, texts)), len(texts)))

    logits = prove(ask, len(tokens), "text")
    network.is_binary = is_single(logits, labels)
    logits = two_logits(logits) if network.is_binary else logits
    if logits.shape != (len(tokens), len(labels)):
        raise ShapeMismatch(
            f"the model returns {tuple(logits.shape[1:])} for one text, but {len(labels)} labels are given "
            f"({', '.join(labels)}); name one label per logit, in order"
        )
    if not bool(torch.isfinite(logits).all()):
        raise BadSpec("the model returns values that are not finite; check its weights")
    return predictor


def _mask(texts: Sequence[Tokens], length: int, device: torch.device) -> Tensor:
    counts = torch.tensor([len(text.ids) for text in texts], device=device)
    return torch.arange(length, device=device) < counts[:, None]
