"""A trained scorer as a file: weights as safetensors with a card, of which people read the copy beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, ValidationError

from stimuli.errors import BadRatings, BadSpec
from stimuli.preference.encoders import NamedEncoder
from stimuli.preference.prediction_agreement import Floats, Target
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.tensor_file import seal, unseal, write_whole
from stimuli.registry import STRICT
from stimuli.spec import JsonValue

ENDING = ".safetensors"
REMEDY = "fit the scorer again, or take a copy that is whole"
LIMITS = (
    "Predicts how people would rate an explanation like those it was trained on. A rating says what people "
    "say they understand; only a prediction study tells whether they do. On other pictures, methods, labels "
    "or raters it may be wrong without a sign of it."
)
AT_WORK = ("device", "n_jobs")
"""Parameters of the machine that a scorer was trained on; they are no part of it."""


class EncoderCard(BaseModel):
    """The encoder whose embeddings a scorer takes."""

    model_config = ConfigDict(frozen=True, **STRICT)

    name: str
    digest: str
    size: int


class HeadCard(BaseModel):
    """What a head predicts: the question, and the seed of its training."""

    model_config = ConfigDict(frozen=True, **STRICT)

    question: str
    seed: int


class ScorerCard(BaseModel):
    """What must be known of a trained scorer before it is used.

    `data`: digest of the ratings and of what was rated. `split`: its name, seed and counts. `target`: what
    was made of several raters' answers. `label`: which label stands beside the embedding; `labels`: the names
    of its columns. `inputs`: whether the picture alone was embedded, or with that of its light or strong
    copy. `scores`: by name, None for an undefined one. `parameters` and `heads` are those of the scorer.
    """

    model_config = ConfigDict(frozen=True, **STRICT)

    data: str
    split: dict[str, JsonValue]
    target: Target
    label: Literal["truth", "predicted", "none"]
    labels: tuple[str, ...]
    inputs: Literal["single", "light", "strong"]
    encoder: EncoderCard
    heads: tuple[HeadCard, ...]
    parameters: dict[str, JsonValue]
    scores: dict[str, JsonValue]
    licence: str
    limits: str = LIMITS


@dataclass(frozen=True, slots=True)
class SavedScorer:
    """A trained scorer with its card."""

    scorer: PreferenceScorer
    card: ScorerCard

    def predict(self, vectors: ArrayLike, encoder: NamedEncoder) -> Floats:
        """As PreferenceScorer.predict, of embeddings that `encoder` made.

        Raises BadRatings for an encoder with another digest than the one it was trained with.
        """
        wanted = self.card.encoder
        if encoder.digest != wanted.digest:
            raise BadRatings(
                f"these embeddings are of the encoder {encoder.name!r} (digest {encoder.digest[:12]}…, "
                f"{encoder.size} numbers), and this scorer takes those of {wanted.name!r} (digest "
                f"{wanted.digest[:12]}…, {wanted.size} numbers): embed with that, or fit a scorer on these"
            )
        return self.scorer.predict(vectors)


def scorer_parameters(scorer: PreferenceScorer) -> dict[str, JsonValue]:
    """The parameters of a scorer as its card has them."""
    return {
        name: np.asarray(value).tolist() if name in ("seed", "hidden") else value
        for name, value in scorer.get_params().items()
        if name not in AT_WORK
    }


def save(path: Path, scorer: PreferenceScorer, card: ScorerCard) -> None:
    """Write the scorer to `path`, which ends in .safetensors, and its card beside it as .json.

    The same scorer and card give the same bytes. Raises BadRatings for another ending, a scorer that is not
    fitted, and a card with other heads or parameters than the scorer's.
    """
    if path.suffix != ENDING:
        raise BadRatings(f'a scorer is saved as a file ending in {ENDING}, and "{path.name}" does not')
    if not hasattr(scorer, "arrays_"):
        raise BadRatings("this scorer is not fitted: fit it before it is saved")
    if card.parameters != scorer_parameters(scorer):
        raise BadRatings("the card has other parameters than the scorer: fill it with described(scorer)")
    if len(card.heads) != scorer.n_heads_:
        raise BadRatings(
            f"the card names {len(card.heads)} heads and the scorer has {scorer.n_heads_}: name each once"
        )
    told = {"card": json.loads(card.model_dump_json()), "is_single": scorer.is_single_}
    write_whole(path, seal(scorer.arrays_, told))
    write_whole(path.with_suffix(".json"), card.model_dump_json(indent=2).encode() + b"\n")


def load(path: Path) -> SavedScorer:
    """The scorer of a file. The file's own card counts, not the copy beside it.

    Raises BadSpec for a file that is missing, cut off, changed, or no scorer.
    """
    source = f'the scorer "{path}"'
    if not path.is_file():
        raise BadSpec(f"{source} is not there: give the file that fit_preference wrote")
    arrays, told = unseal(path.read_bytes(), source, REMEDY)
    try:
        card = ScorerCard.model_validate_json(json.dumps(told["card"]))
        scorer = PreferenceScorer(**card.parameters)
        scorer.arrays_ = arrays
        scorer.is_single_, scorer.n_heads_ = bool(told["is_single"]), len(card.heads)
        scorer.n_features_in_ = arrays["shift"].shape[1]
    except (ValidationError, LookupError, TypeError) as error:
        raise BadSpec(f"{source} has a card that cannot be read ({error}): {REMEDY}") from None
    return SavedScorer(scorer, card)
