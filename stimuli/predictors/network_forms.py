"""Networks as they come: inside wrappers, with what cannot be copied, with logits among other outputs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec, ShapeMismatch, first_line

WRAPPERS = {
    "OptimizedModule": "_orig_mod",  # of torch.compile
    "DataParallel": "module",
    "DistributedDataParallel": "module",
    "AveragedModel": "module",
}
"""Classes of torch around a network, by name (importing them is slow), and the name of the network there."""


def unwrap(network: nn.Module) -> nn.Module:
    """The network without wrappers, those of its parts taken off in place."""
    network = _without_wrapper(network)
    for part in list(network.modules()):
        for name, child in list(part.named_children()):
            if type(child).__name__ in WRAPPERS:
                setattr(part, name, _without_wrapper(child))
    return network


def _without_wrapper(network: nn.Module) -> nn.Module:
    while type(network).__name__ in WRAPPERS:
        network = network.get_submodule(WRAPPERS[type(network).__name__])
    return network


def copy_network(network: nn.Module) -> nn.Module:
    """A copy without wrappers, on the CPU, in float32, in evaluation mode.

    Tensors that a pass left behind (activations kept for a hand-made Grad-CAM, the weight of an old
    weight_norm) are copied without their history; what cannot be copied, such as a lock, is shared. BadSpec
    if there is no copy.
    """
    network = _without_wrapper(network)
    if isinstance(network, torch.jit.ScriptModule):
        raise BadSpec("TorchScript does not show its layers: give the network that it was made of")
    memo: dict[int, Any] = {}
    attributes = [value for part in network.modules() for value in _leaves(vars(part))]
    for value in attributes:
        if isinstance(value, Tensor) and not value.is_leaf:
            memo[id(value)] = value.detach().clone()
    try:
        for value in attributes:
            if not isinstance(value, Tensor | nn.Module) and not _is_copied(value, memo):
                memo[id(value)] = value
        copied: nn.Module = unwrap(copy.deepcopy(network, memo)).cpu().float()
        if any(nn.parameter.is_lazy(weights) for weights in copied.parameters()):
            raise ValueError("its lazy layers have no weights before it ran")
        if not all(isinstance(value, Tensor) for value in copied.state_dict().values()):
            raise ValueError("its state holds more than tensors, as of quantised layers: give it in float32")
        # Channels last, it would add up in another order than a study does.
        for tensor in (*copied.parameters(), *copied.buffers()):
            tensor.data = tensor.data.contiguous()
    except Exception as error:  # attributes are of any kind, and so are their errors
        raise BadSpec(
            f"{type(network).__qualname__} cannot be copied ({first_line(error)}); give a network that is "
            "newly built, with its weights put in by load_state_dict"
        ) from error
    for part in copied.modules():
        part.training = False  # an exported program refuses eval(), which would change nothing in it
    return copied


def _leaves(value: Any) -> Iterator[Any]:
    """What stands in a container, at any depth."""
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(inner)
    else:
        yield value


def _is_copied(value: object, memo: Mapping[int, Any]) -> bool:
    try:
        copy.deepcopy(value, dict(memo))
    except Exception:  # of any kind
        return False
    return True


def logits_of(output: object) -> Tensor:
    """The logits in what a network returns: a tensor, what is called `logits`, or the only tensor of a tuple
    or mapping. ShapeMismatch, with what there is, for anything else.
    """
    if isinstance(output, Tensor):
        return output
    by_name = dict(output) if isinstance(output, Mapping) else getattr(output, "__dict__", {})
    if isinstance(named := by_name.get("logits", getattr(output, "logits", None)), Tensor):
        return named
    values = output if isinstance(output, tuple | list) else by_name.values()
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) == 1:
        return tensors[0]
    shapes = f" of {', '.join(str(tuple(tensor.shape)) for tensor in tensors)}" if tensors else ""
    raise ShapeMismatch(
        f"the model returns {type(output).__name__}{shapes}; logits (N, labels) are needed: return them "
        'alone, or under the name "logits"'
    )


def two_logits(output: Tensor) -> Tensor:
    """One logit z per row, (N,) or (N, 1), as the two logits (-z/2, z/2)."""
    half = output.reshape(-1, 1) / 2
    return torch.cat([-half, half], 1)


def is_single(output: Tensor, labels: Sequence[str]) -> bool:
    """Whether this is one number per row for two labels."""
    return len(labels) == 2 and output.shape in {(len(output),), (len(output), 1)}


def check_labels(labels: Sequence[str]) -> None:
    """BadSpec for fewer than two, and for doubled ones."""
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise BadSpec(
            f"labels = {list(labels)}: at least two different labels are needed, in logit order; a single "
            "logit speaks for the second of two"
        )
