"""LIME, SHAP and RISE on the vector of concept values: the head is asked about changed vectors, never the
network about changed pictures.
"""

from __future__ import annotations

from math import comb
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stimuli.explainers.base import OfOutput
from stimuli.explainers.concepts.head_methods import ConceptMethod, concept_attribution, concept_values
from stimuli.explainers.perturbation.surrogate import fit_share, ridge
from stimuli.planner.asks import Steps
from stimuli.planner.values import ExplainedNumber, Floats, Subject, counted_generator, softmax
from stimuli.predictors.concepts.head_interface import Bottleneck, ConceptHead
from stimuli.registry import parameters

EXACT_CONCEPTS = 12
QUARTILES = (25, 50, 75)
LLOYD_STEPS = 100
_CELLS_AT_ONCE = 1 << 18


def surrogate_outputs(head: ConceptHead, vectors: Floats, wanted: ExplainedNumber, output: str) -> Floats:
    """The explained number, or the target's probability, of concept vectors (n, concepts); float64 (n,)."""
    rows = max(1, _CELLS_AT_ONCE // vectors.shape[1])
    logits = np.concatenate([head.logits(vectors[at : at + rows]) for at in range(0, len(vectors), rows)])
    return wanted.explained(logits) if output == "logit" else softmax(logits)[:, wanted.target]


@parameters
class LimeCbm(OfOutput, ConceptMethod):
    """Weights of a ridge regression of the head's answers to vectors drawn around those of training. Signed.

    With `discretised`, as the reference library does by default, each concept is cut at the quartiles of
    the training values; a vector's concepts are drawn by the shares of the four ranges, the regression sees
    which of them lie in the range of the explained picture. The weight of a concept is then what it adds to
    be in that range. Without, values are drawn from normal distributions with the training's means and
    deviations, and weights are per standard deviation. Vectors count by sqrt(exp(-(distance / width)^2)),
    `kernel_width` 0 standing for 0.75 sqrt(concepts); `alpha` is the ridge penalty. All concepts get a
    weight. `output` is the explained number. The check `fit` is the share of weighted variance that the
    regression explains. [Ribeiro, Singh and Guestrin 2016]
    """

    version: ClassVar[int] = 1
    samples: Annotated[int, Field(ge=50, le=50000)] = 5000
    discretised: bool = True
    kernel_width: Annotated[float, Field(ge=0.0, le=1000.0)] = 0.0
    alpha: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.0
    output: Literal["probability", "logit"] = "probability"

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        bottleneck: Bottleneck = predictor.bottleneck
        values = yield from concept_values(subject)
        rng = subject.draws("lime_cbm")
        drawn = _by_quartiles if self.discretised else _by_normals
        vectors, design, distances = drawn(values, bottleneck.samples, self.samples, rng)
        answers = surrogate_outputs(bottleneck.head, vectors, subject, self.output)
        width = self.kernel_width or 0.75 * np.sqrt(len(values))
        weights = np.sqrt(np.exp(-((distances / width) ** 2)))
        coefficients = ridge(design, answers, weights, self.alpha)
        return concept_attribution(
            bottleneck, coefficients, checks={"fit": fit_share(design, answers, weights, coefficients)}
        )


@parameters
class ShapCbm(OfOutput, ConceptMethod):
    """What each concept adds to the answer, shared fairly: Shapley values against `centres` typical vectors.
    Signed.

    Hidden concepts take the values of k-means centres of the training values, weighted by their sizes. Up to
    12 concepts all subsets are asked about, and the values are exact; beyond, `subsets` of them (0 stands for
    2 x concepts + 2048) by KernelSHAP: the largest and smallest first, the rest drawn in pairs. The sum is
    the answer less its mean over the centres; the check `efficiency_gap` is the difference from it. `output`
    is the explained number. [Lundberg and Lee 2017]
    """

    version: ClassVar[int] = 1
    centres: Annotated[int, Field(ge=1, le=100)] = 5
    subsets: Annotated[int, Field(ge=0, le=100000)] = 0
    output: Literal["logit", "probability"] = "logit"

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        bottleneck: Bottleneck = predictor.bottleneck
        values = yield from concept_values(subject)
        centres, shares = k_means(bottleneck.samples, self.centres)

        def worth(kept: NDArray[np.bool_]) -> Floats:
            mixed = np.where(kept[:, None], values, centres[None]).reshape(-1, len(values))
            answers = surrogate_outputs(bottleneck.head, mixed, subject, self.output)
            return np.asarray(answers.reshape(len(kept), len(centres)) @ shares, np.float64)

        count = len(values)
        ends = worth(np.array([np.zeros(count, bool), np.ones(count, bool)]))
        whole = float(ends[1] - ends[0])
        if count <= EXACT_CONCEPTS:
            contributions = shapley(worth(all_subsets(count)), count)
        else:
            budget = max(self.subsets or 2 * count + 2048, 2 * count)
            kept, weights = kernel_subsets(count, budget, subject.draws("shap_cbm"))
            contributions = kernel_values(kept, worth(kept) - ends[0], weights, whole)
        gap = abs(float(contributions.sum()) - whole)
        return concept_attribution(bottleneck, contributions, checks={"efficiency_gap": gap})


@parameters
class RiseCbm(OfOutput, ConceptMethod):
    """Mean answer over random subsets of concepts that keep a concept.

    Each of `masks` subsets keeps every concept with probability `keep`; the others take their mean over
    training pictures. The subsets depend on the seed and the parameters alone: all pictures of a study see
    the same. With `centred` the mean answer with the concept hidden is subtracted, so that the sign says in
    which direction it acts. `output` is the explained number. [Petsiuk, Das and Saenko 2018]
    """

    version: ClassVar[int] = 1
    masks: Annotated[int, Field(ge=16, le=100000)] = 4000
    keep: Annotated[float, Field(ge=0.05, le=0.95)] = 0.5
    centred: bool = False
    output: Literal["probability", "logit"] = "probability"

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        bottleneck: Bottleneck = predictor.bottleneck
        values = yield from concept_values(subject)
        name = f"rise_cbm\x1f{subject.seed}\x1f{len(values)}\x1f{self.keep}"
        kept = counted_generator(name).random((self.masks, len(values))) < self.keep
        vectors = np.where(kept, values, bottleneck.samples.mean(axis=0))
        answers = surrogate_outputs(bottleneck.head, vectors, subject, self.output)
        means = _mean_where(kept, answers)
        if self.centred:
            means = means - _mean_where(~kept, answers)
        return concept_attribution(bottleneck, means)


def _mean_where(kept: NDArray[np.bool_], answers: Floats) -> Floats:
    """Mean answer over the rows that keep each concept; over all rows if none does."""
    counts = kept.sum(axis=0)
    sums = answers @ kept
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), answers.mean()), np.float64)


def _by_normals(
    values: Floats, samples: Floats, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Vectors, the regression's design and distances from the explained one, which comes first."""
    mean, spread = samples.mean(axis=0), samples.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    design = rng.standard_normal((count, len(values)))
    design[0] = (values - mean) / spread
    vectors = design * spread + mean
    return vectors, design, np.sqrt(((design - design[0]) ** 2).sum(axis=1))


def _by_quartiles(
    values: Floats, samples: Floats, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """As `_by_normals`; within a range of training values, values follow a normal distribution cut off at the
    range's ends, with the mean and deviation of the training values in it.
    """
    from scipy.stats import truncnorm

    vectors, design = np.empty((count, len(values))), np.empty((count, len(values)))
    for place, sampled in enumerate(samples.T):
        edges = np.unique(np.percentile(sampled, QUARTILES))
        ranges = np.searchsorted(edges, sampled)
        shares = np.bincount(ranges, minlength=len(edges) + 1) / len(sampled)
        drawn = rng.choice(len(shares), size=count, p=shares)
        uniform = rng.random(count)
        lows, highs = np.concatenate([[sampled.min()], edges]), np.concatenate([edges, [sampled.max()]])
        column = np.empty(count)
        for which in np.flatnonzero(shares):
            inside = sampled[ranges == which]
            mean, spread = inside.mean(), inside.std() + 1e-11
            here = drawn == which
            if lows[which] == highs[which]:
                column[here] = mean
                continue
            ends = (lows[which] - mean) / spread, (highs[which] - mean) / spread
            column[here] = truncnorm.ppf(uniform[here], *ends, loc=mean, scale=spread)
        vectors[:, place] = column
        design[:, place] = drawn == np.searchsorted(edges, values[place])
    vectors[0], design[0] = values, 1.0
    return vectors, design, np.sqrt((1 - design).sum(axis=1))


def k_means(samples: Floats, centres: int) -> tuple[Floats, Floats]:
    """At most `centres` means of clusters of `samples` (m, d), and their shares; the same for all pictures.

    Lloyd's algorithm from starts that lie far apart. [Arthur and Vassilvitskii 2007]
    """
    distinct = np.unique(samples, axis=0)
    rng = counted_generator(f"k_means\x1f{centres}")
    chosen = [distinct[rng.integers(len(distinct))]]
    while len(chosen) < min(centres, len(distinct)):
        nearest = _squares(distinct, np.array(chosen)).min(axis=1)
        chosen.append(distinct[rng.choice(len(distinct), p=nearest / nearest.sum())])
    positions = np.array(chosen)
    owners = np.full(len(samples), -1)
    for _step in range(LLOYD_STEPS):
        nearer = _squares(samples, positions).argmin(axis=1)
        if (nearer == owners).all():
            break
        owners = nearer
        for place in np.unique(owners):
            positions[place] = samples[owners == place].mean(axis=0)
    sizes = np.bincount(owners, minlength=len(positions))
    return positions[sizes > 0], sizes[sizes > 0] / len(samples)


def _squares(points: Floats, centres: Floats) -> Floats:
    return np.asarray(((points[:, None] - centres[None]) ** 2).sum(axis=2), np.float64)


def all_subsets(count: int) -> NDArray[np.bool_]:
    """All subsets of `count` things, bool (2^count, count); thing j is bit j of the row's number."""
    return np.asarray((np.arange(1 << count)[:, None] >> np.arange(count)) & 1, bool)


def shapley(worths: Floats, count: int) -> Floats:
    """Shapley values (count,) from the worths of `all_subsets(count)`, by the definition."""
    numbers = np.arange(1 << count)
    sizes = all_subsets(count).sum(axis=1)
    shares = np.array([1 / (count * comb(count - 1, size)) for size in range(count)])
    values = np.empty(count)
    for place in range(count):
        without = numbers[(numbers >> place) & 1 == 0]
        values[place] = shares[sizes[without]] @ (worths[without | (1 << place)] - worths[without])
    return values


def kernel_subsets(count: int, budget: int, rng: np.random.Generator) -> tuple[NDArray[np.bool_], Floats]:
    """Subsets bool (n, count), neither empty nor whole, and their weights in Shapley's kernel.

    Sizes 1 and count - 1 first, as long as all of a size's subsets fit into what its share of the kernel
    leaves of the budget; then pairs of a subset and its complement at random.
    """
    from itertools import combinations

    pairs = list(range(1, count // 2 + 1))
    masses = np.array([1 / (size * (count - size)) * (2 if 2 * size != count else 1) for size in pairs])
    masses = masses / masses.sum()
    rows: list[NDArray[np.bool_]] = []
    weights: list[float] = []
    left, done = budget, 0
    for place, size in enumerate(pairs):
        number_of = comb(count, size) * (2 if 2 * size != count else 1)
        if number_of > left * masses[place] / masses[place:].sum():
            break
        for some in combinations(range(count), size):
            row = np.isin(np.arange(count), some)
            rows += [row, ~row] if 2 * size != count else [row]
        weights += [masses[place] / number_of] * number_of
        left, done = left - number_of, place + 1
    if done < len(pairs) and left > 1:
        rest = masses[done:]
        draws = rng.choice(pairs[done:], size=left // 2, p=rest / rest.sum())
        for size in draws:
            row = np.isin(np.arange(count), rng.permutation(count)[:size])
            rows += [row, ~row]
        weights += [float(rest.sum()) / (2 * len(draws))] * (2 * len(draws))
    return np.array(rows), np.array(weights)


def kernel_values(kept: NDArray[np.bool_], gains: Floats, weights: Floats, whole: float) -> Floats:
    """The weighted least squares fit of `gains` (n,) by sums over what is kept, whose values add up to
    `whole`; float64 (count,).
    """
    design = kept[:, :-1].astype(np.float64) - kept[:, -1:]
    targets = gains - kept[:, -1] * whole
    root = np.sqrt(weights)
    free = np.linalg.lstsq(design * root[:, None], targets * root, rcond=None)[0]
    return np.asarray(np.append(free, whole - free.sum()), np.float64)
