"""What the predictors with named concepts share: heads as layers of the network, and their archives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.predictors.concepts.head_interface import ConceptHead, Floats, LinearHead, QdaHead
from stimuli.predictors.files.weights import read_weights

SAMPLES = "samples"
NETWORK = "network."
CONCEPTS = "concepts"
"""The name of the module that puts out concept values, in every such network."""


class QdaLayer(nn.Module):
    """`QdaHead` on float32 (N, concepts), differentiable."""

    def __init__(self, labels: int, concepts: int) -> None:
        super().__init__()
        self.means: Tensor
        self.roots: Tensor
        self.offsets: Tensor
        self.register_buffer("means", torch.zeros(labels, concepts))
        self.register_buffer("roots", torch.zeros(labels, concepts, concepts))
        self.register_buffer("offsets", torch.zeros(labels))

    def forward(self, values: Tensor) -> Tensor:
        apart = values[:, None, :] - self.means
        reached = torch.einsum("nkc,kcd->nkd", apart, self.roots)
        logits: Tensor = self.offsets - 0.5 * reached.square().sum(dim=2)
        return logits


def head_layer(head: str, labels: int, concepts: int) -> nn.Module:
    """An empty layer for a "linear" or "qda" head."""
    return QdaLayer(labels, concepts) if head == "qda" else nn.Linear(concepts, labels)


def set_head(layer: nn.Module, head: ConceptHead) -> None:
    """Put a fitted head into its layer, rounded to single precision."""
    if isinstance(head, QdaHead):
        state = {"means": head.means, "roots": head.roots, "offsets": head.offsets}
    else:
        assert isinstance(head, LinearHead)
        state = {"weight": head.weights, "bias": head.bias}
    layer.load_state_dict({name: torch.from_numpy(value).float() for name, value in state.items()})


def head_of(layer: nn.Module) -> ConceptHead:
    """The head that a layer computes, with the very numbers of the layer."""
    state = {name: value.detach().cpu().double().numpy() for name, value in layer.state_dict().items()}
    if isinstance(layer, QdaLayer):
        return QdaHead(state["means"], state["roots"], state["offsets"])
    return LinearHead(state["weight"], state["bias"])


def pack_concepts(network: nn.Module, samples: Floats) -> bytes:
    """Weights and samples as safetensors bytes; the same always give the same bytes."""
    state = {
        f"{NETWORK}{name}": value.detach().cpu().contiguous().clone()
        for name, value in network.state_dict().items()
    }
    state[SAMPLES] = torch.from_numpy(np.ascontiguousarray(samples)).float()
    return bytes(safetensors.torch.save({name: state[name] for name in sorted(state)}))


def read_concepts(payload: bytes, source: str) -> tuple[dict[str, Tensor], Floats]:
    """The weights of the network by name, and the samples float64 (m, concepts). Raises BadSpec for bytes
    that `pack_concepts` did not write.
    """
    state = read_weights(payload, source)
    samples = state.pop(SAMPLES, None)
    if samples is None or samples.ndim != 2:
        raise BadSpec(f"{source} holds no concept values; build the stimuli again")
    weights = {name.removeprefix(NETWORK): value for name, value in state.items()}
    return weights, samples.double().numpy()


def single(values: Floats) -> Floats:
    """Values rounded to single precision, as an archive keeps them."""
    return values.astype(np.float32).astype(np.float64)


def texts_of(architecture: Mapping[str, object], name: str) -> tuple[str, ...]:
    """A list of texts in an architecture. Raises BadSpec if it is another thing."""
    texts = architecture.get(name)
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise BadSpec(f"the predictor archive does not list its {name}; build the stimuli again")
    return tuple(texts)
