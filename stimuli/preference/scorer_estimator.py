"""PASTA-score as a scikit-learn estimator: from embeddings of explanations to the ratings people give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from stimuli.errors import BadRatings, BadSpec
from stimuli.preference.ensemble import OUTPUTS, Output, RatedHead, ScorerRecipe, predict_ratings
from stimuli.preference.losses import (
    RELEASED_SCORING,
    RELEASED_TRAINING,
    SIMILARITIES,
    LossWeights,
    Similarity,
)
from stimuli.preference.prediction_agreement import Floats, check_ratings
from stimuli.preference.training import Keeping, TrainingPlace, train

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise BadSpec(
        f"the scorer of preferences needs scikit-learn, which cannot be imported ({error}): "
        "install the extra `server`"
    ) from error

KINDS = (np.float64, np.float32)
PASTA_RELEASED: Mapping[str, Any] = {
    "mse": RELEASED_TRAINING.mse,
    "rank": RELEASED_TRAINING.rank,
    "similarity": RELEASED_TRAINING.similarity,
    "similarity_over": "released",
    "output": "relu",
    "standardise": False,
    "learning_rate": 2e-6,
    "weight_decay": 1e-6,
    "batch": 256,
    "epochs": 600,
    "check_every": 5,
    "patience": None,
}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "pasta_released": PASTA_RELEASED,
    "pasta_released_scoring": {
        **PASTA_RELEASED,
        "mse": RELEASED_SCORING.mse,
        "rank": RELEASED_SCORING.rank,
        "similarity": RELEASED_SCORING.similarity,
    },
}
"""PASTA's training as its code has it, with the weights of its training or of its scoring script. The last
bias starts in the middle of the scale: the source does not keep its outputs from being dead from the start.
"""


class PreferenceScorer(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A network D - 512 - 64 - 1 per head, trained with Adam on named losses; predicts ratings 1..5.

    What it says is what people would *say* of an explanation (ratings), not what they would understand.

    Parameters
    ----------
    seed
        Of the first weights and the order of the batches: one for all heads, or one per column of y.
    hidden
        The widths of the inner layers.
    mse, rank, similarity
        The weights of the losses on ratings as shares of the scale, see losses.py.
    similarity_over
        "batch", or "released": a term without gradient, as PASTA's code has it.
    output
        "linear", cut to 1..5 when it predicts only, so that no head can die and 1 and 5 are reached; or
        "relu" as released.
    standardise
        Whether each column of the embeddings is brought to mean 0 and SD 1, by a head's own rows.
    learning_rate, weight_decay, batch, epochs
        Of Adam: its step, its L2 term, rows per step, passes through the rows.
    check_every, patience
        Validation after so many epochs, which keeps the weights of the best weighted kappa (then of the
        lowest MSE); a head stops after `patience` checks in a row without a better one, None = never.
    device, n_jobs
        A torch device, and threads on the CPU (None: as many as torch takes). The result is the same for
        every number of threads, and repeats on the same machine.

    Attributes
    ----------
    arrays_
        Weights and the course of training, by name; see HeadBlock.trained.
    n_features_in_, n_heads_, is_single_
        Columns of X, heads, and whether y was one column without heads.
    """

    def __init__(
        self,
        *,
        seed: int | Sequence[int] = 0,
        hidden: Sequence[int] = (512, 64),
        mse: float = 10.0,
        rank: float = 0.01,
        similarity: float = 0.01,
        similarity_over: Similarity = "batch",
        output: Output = "linear",
        standardise: bool = True,
        learning_rate: float = 1e-4,
        weight_decay: float = 1e-6,
        batch: int = 256,
        epochs: int = 24,
        check_every: int = 1,
        patience: int | None = 5,
        device: str = "cpu",
        n_jobs: int | None = None,
    ) -> None:
        self.seed = seed
        self.hidden = hidden
        self.mse = mse
        self.rank = rank
        self.similarity = similarity
        self.similarity_over = similarity_over
        self.output = output
        self.standardise = standardise
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch = batch
        self.epochs = epochs
        self.check_every = check_every
        self.patience = patience
        self.device = device
        self.n_jobs = n_jobs

    @classmethod
    def preset(cls, name: str, **others: Any) -> Self:
        """A scorer with the parameters of a named preset, and `others`. BadRatings for an unknown name."""
        if name not in PRESETS:
            raise BadRatings(f"there is no preset {name!r}: known are {', '.join(PRESETS)}")
        return cls(**{**PRESETS[name], **others})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: object = None,
        *,
        validation: tuple[ArrayLike, ArrayLike] | None = None,
        keeping: Keeping | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Self:
        """Train on embeddings X float (n, D) and ratings y (n,) or (n, H), 1..5, NaN for not rated.

        `validation` holds such a pair for early stopping; without it, training lasts all epochs. `groups` are
        accepted and not used: the splits are made before. `keeping` is a folder for the state, from which an
        interrupted fit goes on. `progress` gets epochs done and in all. Raises BadRatings for values that
        cannot be learned from, and BadSpec for a state of another training.
        """
        recipe = self._recipe()
        if y is None:
            raise BadRatings("requires y to be passed, but the target y is None: give the ratings")
        inputs = self._inputs(X, reset=True)
        ratings = _columns(y, len(inputs), "y")
        self.is_single_, self.n_heads_ = np.ndim(y) == 1, ratings.shape[1]
        held, held_ratings = inputs[:0], np.full((0, self.n_heads_), np.nan)
        if validation is not None:
            held = self._inputs(validation[0], reset=False)
            held_ratings = _columns(validation[1], len(held), "y of the validation")
            if held_ratings.shape[1] != self.n_heads_:
                raise BadRatings(
                    f"y of the validation has {held_ratings.shape[1]} columns and y {self.n_heads_}: give "
                    "the same heads in both"
                )
        heads = [
            _head(seed, place, ratings[:, place], held_ratings[:, place], validation is not None)
            for place, seed in enumerate(self._seeds(self.n_heads_))
        ]
        self.arrays_ = train(inputs, held, heads, recipe, self._place(), keeping, progress)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """The ratings that people would give: float64 in 1..5, (n,) or (n, H) as y was.

        Raises BadRatings for other embeddings than float (n, D), NotFittedError before `fit`.
        """
        check_is_fitted(self)
        inputs = torch.from_numpy(self._inputs(X, reset=False))
        count = sum(name.startswith("weights.") for name in self.arrays_)
        weights = [torch.from_numpy(self.arrays_[f"weights.{place}"]) for place in range(count)]
        shift, scale = (torch.from_numpy(self.arrays_[name])[:, None] for name in ("shift", "scale"))
        answers = predict_ratings(weights, (shift, scale), inputs, self.output)
        return answers[0] if self.is_single_ else answers.T

    def _inputs(self, X: ArrayLike, *, reset: bool) -> NDArray[np.float32]:
        """Checked embeddings, writable, as float32 (n, D)."""
        least = 2 if reset else 1
        try:
            # Not by scikit-learn: which value is not finite is said below, and NaN in y means not rated.
            checked = validate_data(
                self, X, reset=reset, dtype=KINDS, ensure_all_finite=False, ensure_min_samples=least
            )
        except ValueError as error:
            raise BadRatings(f"{error} Embeddings are given as (rows, columns), as in training.") from error
        with np.errstate(over="ignore"):
            inputs = np.require(checked, np.float32, ["C", "W"])
        is_wrong = ~np.isfinite(inputs)
        if is_wrong.any():
            row, column = (int(place[0]) for place in np.nonzero(is_wrong))
            raise BadRatings(
                f"X has {int(is_wrong.sum())} values that are NaN, infinity or too large for float32, the "
                f"first in row {row}, column {column} ({checked[row, column]}): embed these rows again or "
                "leave them out"
            )
        return inputs

    def _seeds(self, count: int) -> list[int]:
        is_one = np.ndim(self.seed) == 0
        seeds = [self.seed] * count if is_one else list(self.seed)  # type: ignore[arg-type]
        if len(seeds) != count:
            raise BadRatings(
                f"seed has {len(seeds)} numbers and y {count} columns: give one per column, or one for all"
            )
        return [int(_at_least(0, "seed", seed)) for seed in seeds]

    def _place(self) -> TrainingPlace:
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            reason = str(error).splitlines()[0]
            raise BadRatings(f"device = {self.device!r} cannot be used ({reason}): take 'cpu'") from None
        threads = torch.get_num_threads() if self.n_jobs is None else _at_least(1, "n_jobs", self.n_jobs)
        return TrainingPlace(str(self.device), int(threads))

    def _recipe(self) -> ScorerRecipe:
        """The parameters, checked. Raises BadRatings for one that cannot be."""
        for name, value, known in (
            ("similarity_over", self.similarity_over, SIMILARITIES),
            ("output", self.output, OUTPUTS),
        ):
            if value not in known:
                raise BadRatings(f"{name} = {value!r}: known are {', '.join(known)}")
        if not 0 < self.learning_rate < float("inf"):
            raise BadRatings(f"learning_rate = {self.learning_rate}: give a finite number above 0")
        if not 0 <= self.weight_decay < float("inf"):
            raise BadRatings(f"weight_decay = {self.weight_decay}: give a finite number from 0 on")
        return ScorerRecipe(
            hidden=tuple(_at_least(1, "hidden", width) for width in self.hidden),
            weights=LossWeights(float(self.mse), float(self.rank), float(self.similarity)),
            similarity_over=self.similarity_over,
            output=self.output,
            standardise=bool(self.standardise),
            learning_rate=float(self.learning_rate),
            weight_decay=float(self.weight_decay),
            batch=_at_least(1, "batch", self.batch),
            epochs=_at_least(1, "epochs", self.epochs),
            check_every=_at_least(1, "check_every", self.check_every),
            patience=None if self.patience is None else _at_least(1, "patience", self.patience),
        )


def _at_least(least: int, name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise BadRatings(f"{name} = {value!r}: give a whole number from {least} on")
    return int(value)


def _columns(y: ArrayLike, rows: int, name: str) -> Floats:
    """Ratings as float64 (n, H)."""
    try:
        ratings = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise BadRatings(f"{name} holds something that is no number ({error}): give ratings 1..5") from None
    if ratings.ndim not in (1, 2) or len(ratings) != rows or not ratings.size:
        raise BadRatings(
            f"{name} has the shape {ratings.shape} beside {rows} rows of X: give (rows,) or (rows, heads) "
            "for the same rows"
        )
    if np.isinf(ratings).any():
        raise BadRatings(f"{name} has a rating that is infinity: give ratings 1..5, and NaN for not rated")
    check_ratings(ratings)
    return ratings.reshape(rows, -1)


def _head(seed: int, place: int, ratings: Floats, held: Floats, is_held: bool) -> RatedHead:
    """A head with enough to learn from. Raises BadRatings otherwise, with the number of its column."""
    for values, what in ((ratings, "to learn from"), *([(held, "in the validation")] if is_held else [])):
        given = values[~np.isnan(values)]
        if len(given) < 2:
            raise BadRatings(
                f"column {place} of y has {len(given)} rated rows {what}, at least 2 are needed: have more "
                "rows rated, or leave the column out"
            )
        if np.ptp(given) == 0:
            raise BadRatings(
                f"column {place} of y has the rating {given[0]:g} only {what}, and at least 2 different ones "
                "are needed: a constant teaches nothing, and its kappa is 0 throughout; leave the column out"
            )
    rows, held_rows = (np.flatnonzero(~np.isnan(values)) for values in (ratings, held))
    return RatedHead(seed, rows, ratings[rows], held_rows, held[held_rows])
