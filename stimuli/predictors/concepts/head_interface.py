"""Predictors that decide by named concepts: picture -> concept values -> logits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
ConceptKind = Literal["annotations", "parts", "clip"]
ANNOTATIONS: ConceptKind = "annotations"
PARTS: ConceptKind = "parts"
CLIP: ConceptKind = "clip"


class ConceptHead(Protocol):
    """From concept values to logits, on the processor, in double precision."""

    def logits(self, values: Floats) -> Floats:
        """Logits (n, labels) of concept values (n, concepts)."""
        ...


@dataclass(frozen=True, eq=False)
class LinearHead:
    """logits = values @ weights.T + bias; `weights` (labels, concepts), `bias` (labels,)."""

    weights: Floats
    bias: Floats

    def logits(self, values: Floats) -> Floats:
        return np.asarray(values @ self.weights.T + self.bias, np.float64)


@dataclass(frozen=True, eq=False)
class QdaHead:
    """One normal distribution per label: logits are the log posterior up to a constant of the picture.

    logit k = offsets[k] - |(values - means[k]) @ roots[k]|^2 / 2; `means` (labels, concepts), `roots`
    (labels, concepts, concepts) with roots @ roots.T the inverse covariance, `offsets` (labels,) the log
    prior plus the log of the root's determinant.
    """

    means: Floats
    roots: Floats
    offsets: Floats

    def logits(self, values: Floats) -> Floats:
        apart = values - self.means[:, None]
        distances = ((apart @ self.roots) ** 2).sum(axis=2)
        return np.asarray(self.offsets - 0.5 * distances.T, np.float64)

    @cached_property
    def precisions(self) -> Floats:
        """The inverse covariances (labels, concepts, concepts)."""
        return np.asarray(self.roots @ self.roots.transpose(0, 2, 1), np.float64)


@dataclass(frozen=True, eq=False)
class Bottleneck:
    """The concepts of a predictor, in the order of its concept layer, and what comes behind them.

    `kind` says where the values come from: trained on annotations, a detector of parts, or the similarity of
    picture and text. `samples` are concept values of training items, float64 (m, concepts), which the methods
    that change concepts take their ranges and centres from. `label` says how the predictor differs from that
    of the paper whose methods explain it. `notes` are figures about it, such as its held-out accuracy.
    """

    concepts: tuple[str, ...]
    head: ConceptHead
    kind: ConceptKind
    samples: Floats
    label: str = ""
    notes: Mapping[str, float] = field(default_factory=dict)
