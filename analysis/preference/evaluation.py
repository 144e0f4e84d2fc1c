"""How well a scorer predicts people, beside what it must be better than and what cannot be surpassed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from analysis.preference.rated_explanations import RatedExplanations
from analysis.preference.splits import Split
from analysis.stats.intervals_and_checks import Floats, Interval, ends_of, row_of
from stimuli.preference.prediction_agreement import (
    OverRuns,
    Target,
    kappa,
    mse,
    scores_of,
    spearman,
    summed_up,
    target_of,
)

Rows = NDArray[np.int64]
METRICS: Mapping[str, Callable[[Floats, Floats], float | None]] = {
    "MSE": mse,
    "QWK": kappa,
    "Spearman": spearman,
}
"""Spearman's correlation is that of predictions that are not rounded; the rounded one stands among the single
runs."""
DRAWS = 300
LEVEL = 0.95
DEFINED_MIN = 0.9
SCORER, PLAIN, MEAN = "scorer", "properties alone", "mean of training"
SCORER_OTHERS, HUMAN_OTHERS = "scorer, by others", "person, by others"
HUMAN_PUBLISHED = "person, by all"
HALVES, PLANTED = "raters, halves", "planted"
SOURCES = {
    SCORER: "the scorer of the embedding",
    PLAIN: "a scorer of area, fragments, centre and overlap of the map alone",
    MEAN: "the mean of the training, for every explanation",
    HUMAN_OTHERS: "one drawn rater against the mode of the other raters",
    SCORER_OTHERS: "the scorer against the very same modes",
    HUMAN_PUBLISHED: "one drawn rater against the mode of all, that rater too, as PASTA prints it",
    HALVES: "the mode of half of the raters against that of the other half: what raters cannot exceed",
    PLANTED: "the ratings of the twin without noise: the ceiling",
}
"""What each row says."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Values of one question in one run, predicted and wanted (m,), with the image and the method of each."""

    predicted: Floats
    wanted: Floats
    images: Rows
    methods: Rows

    def take(self, rows: Rows) -> Pairs:
        return Pairs(self.predicted[rows], self.wanted[rows], self.images[rows], self.methods[rows])


@dataclass(frozen=True, slots=True)
class Cell:
    """A metric of one source for one question: over runs, and an interval by drawing images and methods
    together; None if it is not defined."""

    metric: str
    source: str
    question: str
    over: OverRuns
    interval: Interval | None

    def table(self) -> dict[str, object]:
        about = row_of(self, "metric", "source", "question") | row_of(self.over, "mean", "sd")
        return {
            **about,
            **ends_of(self.interval),
            "runs": self.over.defined,
            "undefined": self.over.undefined,
        }


@dataclass(slots=True)
class Evaluation:
    """`cells` in the order of metrics, sources and questions; `runs`, the scorer's scores of each run, one
    row per question."""

    cells: list[Cell] = field(default_factory=list)
    runs: list[dict[str, object]] = field(default_factory=list)

    def of(self, metric: str, source: str) -> dict[str, Cell]:
        """The cells by question."""
        return {c.question: c for c in self.cells if (c.metric, c.source) == (metric, source)}

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.source for cell in self.cells))


def evaluate(
    rated: RatedExplanations,
    splits: Sequence[Split],
    predicted: Floats,
    plain: Floats | None,
    target: Target,
    *,
    seed: int = 0,
    draws: int = DRAWS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """`predicted` and `plain`, float64 (runs, n, Q), are the ratings that the scorers of each run give every
    explanation: of the embeddings, and of the properties alone. Only those of a run's test count.
    """
    wanted = target_of(rated.ratings, target)
    images, methods = (np.unique(names, return_inverse=True)[1] for names in (rated.images, rated.methods))
    sources: dict[str, list[list[Pairs]]] = {}

    def add(source: str, question: int, pairs: Pairs) -> None:
        is_given = ~(np.isnan(pairs.predicted) | np.isnan(pairs.wanted))
        kept = sources.setdefault(source, [[] for _ in rated.questions])
        kept[question].append(pairs.take(np.flatnonzero(is_given)))

    rng = np.random.default_rng([seed, 7])
    for run, split in enumerate(splits):
        test = split.test
        for question in range(len(rated.questions)):
            every = Pairs(predicted[run, test, question], wanted[test, question], images[test], methods[test])
            add(SCORER, question, every)
            if plain is not None:
                add(PLAIN, question, _with(every, plain[run, test, question]))
            mean = np.nanmean(wanted[split.train, question])
            add(MEAN, question, _with(every, np.full(len(test), mean)))
            for source, pairs in _of_people(rated.ratings[test, question], every, rng):
                add(source, question, pairs)
            if rated.planted is not None:
                add(PLANTED, question, _with(every, rated.planted[test, question]))
    counts = _counts(len(set(images)), len(set(methods)), draws, seed)
    made = Evaluation()
    total = len(METRICS) * len(sources) * len(rated.questions)
    for metric, score in METRICS.items():
        for source, questions in sources.items():
            for name, runs in zip(rated.questions, questions, strict=True):
                progress(len(made.cells), total)
                over = summed_up([_score_pairs(score, pairs) for pairs in runs])
                made.cells.append(Cell(metric, source, name, over, _interval(score, runs, counts)))
    for run, split in enumerate(splits):
        scores = scores_of(predicted[run, split.test], wanted[split.test])
        made.runs += [
            {"run": run, "held_out": split.held_out, "question": name, **asdict(each)}
            for name, each in zip(rated.questions, scores, strict=True)
        ]
    progress(total, total)
    return made


def _with(pairs: Pairs, predicted: Floats) -> Pairs:
    return Pairs(np.asarray(predicted, np.float64), pairs.wanted, pairs.images, pairs.methods)


def _score_pairs(score: Callable[[Floats, Floats], float | None], pairs: Pairs) -> float | None:
    return score(pairs.predicted, pairs.wanted) if len(pairs.wanted) else None


def _of_people(ratings: Floats, every: Pairs, rng: np.random.Generator) -> Iterator[tuple[str, Pairs]]:
    """One person and the scorer against the mode of the others, one person as published, and halves.
    `ratings` (m, R); a row with fewer than two ratings, or three for the halves, is left out."""
    order = np.argsort(np.where(np.isnan(ratings), 2, rng.random(ratings.shape)), axis=1)
    shuffled = np.take_along_axis(ratings, order, axis=1)
    counts = (~np.isnan(shuffled)).sum(axis=1)
    first, others = shuffled[:, 0], np.where(counts[:, None] >= 2, shuffled[:, 1:], np.nan)
    usual = target_of(others) if others.shape[1] else np.full(len(ratings), np.nan)
    yield HUMAN_OTHERS, Pairs(np.where(counts >= 2, first, np.nan), usual, every.images, every.methods)
    yield SCORER_OTHERS, Pairs(every.predicted, usual, every.images, every.methods)
    yield HUMAN_PUBLISHED, Pairs(first, target_of(ratings), every.images, every.methods)
    enough = np.where((counts >= 2)[:, None], shuffled, np.nan)
    half = np.arange(shuffled.shape[1])[None] < (counts // 2)[:, None]
    halves = [target_of(np.where(part, enough, np.nan)) for part in (half, ~half)]
    yield HALVES, Pairs(halves[0], halves[1], every.images, every.methods)


def _counts(images: int, methods: int, draws: int, seed: int) -> tuple[Rows, Rows]:
    """How often each image and each method is drawn (draws, ·)."""
    rng = np.random.default_rng([seed, 11])
    return tuple(rng.multinomial(size, np.full(size, 1 / size), draws) for size in (images, methods))  # type: ignore[return-value]


def _interval(
    score: Callable[[Floats, Floats], float | None], runs: Sequence[Pairs], counts: tuple[Rows, Rows]
) -> Interval | None:
    """Percentiles of the mean over runs, each image and each method counting as often as it is drawn, the
    same draws in all runs. None if too few draws have a value."""
    drawn = []
    for of_images, of_methods in zip(*counts, strict=True):
        values = []
        for pairs in runs:
            times = of_images[pairs.images] * of_methods[pairs.methods]
            rows = np.repeat(np.arange(len(times)), times)
            value = score(pairs.predicted[rows], pairs.wanted[rows]) if len(rows) else None
            if value is not None:
                values.append(value)
        if values:
            drawn.append(float(np.mean(values)))
    if len(drawn) < DEFINED_MIN * len(counts[0]):
        return None
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high), LEVEL)
