"""From rated explanations to a scorer: embedding, splits, one ensemble of all questions and runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from analysis.preference.evaluation import Evaluation, evaluate
from analysis.preference.rated_explanations import RatedExplanations
from analysis.preference.splits import Split, SplitName, splits_of
from analysis.stats.intervals_and_checks import Floats
from experiments.paradigms.rating import Pair
from stimuli.errors import BadRatings
from stimuli.preference.embedding import embed
from stimuli.preference.encoders import PreferenceEncoder
from stimuli.preference.prediction_agreement import Target, target_of
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.scorer_file import EncoderCard, HeadCard, ScorerCard, scorer_parameters
from stimuli.preference.training import Keeping
from stimuli.types import Progress

Label = Literal["truth", "predicted", "none"]
KEPT_EVERY = 4
PLAIN_EPOCHS = 60


@dataclass(frozen=True, slots=True)
class FitPlan:
    """`runs` splits and seeds, from `seed` on. `pair`: the copy whose picture is embedded beside.
    `options` are parameters of PreferenceScorer."""

    split: SplitName = "strict"
    runs: int = 5
    seed: int = 0
    target: Target = "mode"
    label: Label = "none"
    pair: Pair = ""
    licence: str = ""
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class ScorerFit:
    scorer: PreferenceScorer
    card: ScorerCard
    splits: tuple[Split, ...]
    evaluation: Evaluation


def fit(
    rated: RatedExplanations,
    encoder: PreferenceEncoder,
    plan: FitPlan,
    folder: Path,
    progress: Progress,
    embeddings: Path | None = None,
) -> ScorerFit:
    """Fit and evaluate. `folder` keeps embeddings and the state of the training, from which an interrupted
    fit goes on; `embeddings` names another place for the former. Raises BadRatings for ratings, splits or
    labels that cannot be learned from.
    """
    _check(rated)
    labels = tuple(sorted({subject.label for subject in rated.subjects})) if plan.label != "none" else ()
    vectors = embed(
        rated.subjects, encoder, labels, pairs=bool(plan.pair), folder=embeddings or folder / "embeddings",
        progress=lambda done, total: progress("embedding", done, total),
    )  # fmt: skip
    seeds = list(range(plan.seed, plan.seed + plan.runs))
    splits = splits_of(rated, plan.split, seeds)
    wanted = target_of(rated.ratings, plan.target)
    heads = [(run, question) for run in range(len(splits)) for question in range(len(rated.questions))]
    of_run = [seeds[run] if len(splits) == plan.runs else plan.seed for run in range(len(splits))]
    options = dict(plan.options)
    scorer = PreferenceScorer(seed=[of_run[run] for run, _ in heads], **options)
    learned, stopped = (
        _only(wanted, [getattr(split, part) for split in splits]) for part in ("train", "validation")
    )
    scorer.fit(
        vectors, learned, validation=(vectors, stopped), keeping=Keeping(folder, KEPT_EVERY),
        progress=lambda done, total: progress("training", done, total),
    )  # fmt: skip
    shape = len(splits), len(rated.questions)
    predicted = _by_run(scorer.predict(vectors), *shape)
    plain = None
    if rated.plain is not None:
        beside = PreferenceScorer(**{**options, "seed": scorer.seed, "epochs": PLAIN_EPOCHS})
        beside.fit(rated.plain, learned, validation=(rated.plain, stopped))
        plain = _by_run(beside.predict(rated.plain), *shape)
    made = evaluate(
        rated, splits, predicted, plain, plan.target, seed=plan.seed,
        progress=lambda done, total: progress("scoring", done, total),
    )  # fmt: skip
    card = ScorerCard(
        data=rated.digest,
        split={
            "name": plan.split,
            "seed": plan.seed,
            "of": rated.origin,
            **{what: [split.counts[what] for split in splits] for what in splits[0].counts},
        },
        target=plan.target,
        label=plan.label,
        labels=labels,
        inputs=plan.pair or "single",
        encoder=EncoderCard(name=encoder.name, digest=encoder.digest, size=encoder.size),
        heads=tuple(HeadCard(question=rated.questions[q], seed=of_run[run]) for run, q in heads),
        parameters=scorer_parameters(scorer),
        scores={
            f"{cell.metric} {cell.question}": cell.over.mean for cell in made.cells if cell.source == "scorer"
        },
        licence=plan.licence or "not given",
    )
    return ScorerFit(scorer, card, tuple(splits), made)


def _check(rated: RatedExplanations) -> None:
    """Raises BadRatings for a question that cannot be learned: none, one rater, or one point throughout."""
    for place, question in enumerate(rated.questions):
        given = rated.ratings[:, place][~np.isnan(rated.ratings[:, place])]
        if not given.size:
            raise BadRatings(f"{question} has no ratings: leave it out, or wait for people to answer it")
        if np.ptp(given) == 0:
            raise BadRatings(
                f"every rating of {question} is {given[0]:g}, so there is nothing to learn: leave it out"
            )
    if rated.raters.max() < 2:
        raise BadRatings(
            "every explanation has one rating per question, so nothing says how well people agree, and no "
            "score could be judged: have each rated by at least 2 people, better 5"
        )


def _only(wanted: Floats, rows: Sequence[Any]) -> Floats:
    """Targets (n, runs * Q) with NaN outside each run's rows."""
    parts = []
    for chosen in rows:
        part = np.full(wanted.shape, np.nan)
        part[chosen] = wanted[chosen]
        parts.append(part)
    return np.concatenate(parts, axis=1)


def _by_run(answers: Floats, runs: int, questions: int) -> Floats:
    """(n, runs * Q) as (runs, n, Q)."""
    return answers.reshape(len(answers), runs, questions).transpose(1, 0, 2)
