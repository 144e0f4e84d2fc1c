"""Predictors whose concept values are plain pixels, with heads written down by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.explainers import open_explainer
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors.concepts.head_interface import Bottleneck, ConceptKind, LinearHead, QdaHead
from stimuli.predictors.concepts.head_layers import head_layer, set_head
from stimuli.spec import Component
from stimuli.types import ConceptAttribution
from tests.stimuli.tiny import Tiny

SIDE = 8
Floats = NDArray[np.float64]


class FirstPixels(nn.Module):
    """The first `count` red values of the first rows are the concept values."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, pictures: Tensor) -> Tensor:
        return pictures[:, 0].flatten(1)[:, : self.count]


@dataclass(frozen=True)
class Written(Tiny):
    """Its first module puts out the concept values, its last the logits."""

    concepts: nn.Module = field(default_factory=nn.Identity)

    def concept_module(self) -> nn.Module:
        return self.concepts


def written(head: LinearHead | QdaHead, samples: Floats, kind: ConceptKind = "clip") -> Written:
    """A predictor that decides by `head`; concepts are named c0, c1, ..., labels 0, 1, ..."""
    count = samples.shape[1]
    labels = len(head.bias if isinstance(head, LinearHead) else head.offsets)
    layer = head_layer("qda" if isinstance(head, QdaHead) else "linear", labels, count)
    set_head(layer, head)
    concepts = FirstPixels(count)
    module = nn.Sequential(concepts, layer).eval().requires_grad_(False)
    bottleneck = Bottleneck(tuple(f"c{j}" for j in range(count)), head, kind, samples, "by hand")
    return Written(
        module,
        tuple(str(k) for k in range(labels)),
        input_px=SIDE,
        bottleneck=bottleneck,
        concepts=concepts,
    )


def picture_of(values: Floats) -> Tensor:
    """A picture that shows these concept values."""
    picture = torch.zeros(3, SIDE, SIDE)
    picture[0].view(-1)[: len(values)] = torch.from_numpy(values).float()
    return picture


def explained(
    net: Tiny, values: Floats, name: str, target: int = 0, key: str = "a", seed: int = 7, **params: object
) -> ConceptAttribution:
    """The attribution of one method for a picture of these values; its error is raised."""
    subject = Subject(target, key, seed, image=picture_of(values))
    method = open_explainer(Component(name, params))
    method.require(net, "")
    (done,) = drive([Job(name, subject, lambda: method.explain(net, subject))], Network(net, rows=4))
    if done.error is not None:
        raise done.error
    assert isinstance(done.result, ConceptAttribution)
    return done.result


def random_linear(seed: int, labels: int, count: int) -> LinearHead:
    rng = np.random.default_rng(seed)
    return LinearHead(rng.normal(0, 2, (labels, count)), rng.normal(0, 1, labels))


def random_qda(seed: int, labels: int, count: int) -> QdaHead:
    rng = np.random.default_rng(seed)
    roots = np.linalg.qr(rng.normal(0, 1, (labels, count, count)))[0] * rng.uniform(1, 4, (labels, 1, count))
    return QdaHead(rng.uniform(0, 1, (labels, count)), roots, rng.normal(0, 1, labels))
