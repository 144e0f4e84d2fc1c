"""Weights as safetensors: into bytes in one fixed order, and into a network with a clear error if they do not
fit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.spec import JsonValue

MAX_NAMED = 3


def pack_weights(network: nn.Module) -> bytes:
    """The state of a network as safetensors bytes; the same state always gives the same bytes."""
    state = {name: value.detach().cpu().contiguous().clone() for name, value in network.state_dict().items()}
    return bytes(safetensors.torch.save({name: state[name] for name in sorted(state)}))


def read_weights(data: bytes, source: str) -> dict[str, Tensor]:
    """Tensors by name. Raises BadSpec when the bytes are no safetensors file."""
    try:
        return dict(safetensors.torch.load(data))
    except (SafetensorError, ValueError, KeyError, struct.error) as error:
        raise BadSpec(
            f"{source} is no safetensors file ({error}); write it with safetensors.torch.save_file"
        ) from None


def other_precisions(tensors: Iterable[Tensor]) -> list[str]:
    """The types of floating numbers other than float32, such as "float16", sorted."""
    kinds = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    return sorted(str(kind).removeprefix("torch.") for kind in kinds if kind != torch.float32)


def in_float32(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, floating ones as float32."""
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in state.items()}


def cast_from(precisions: Sequence[str]) -> dict[str, JsonValue]:
    """What provenance says of weights that were brought to float32; nothing if none were."""
    return {"cast_from": ", ".join(precisions)} if precisions else {}


def fit_weights(network: nn.Module, state: dict[str, Tensor], source: str) -> None:
    """Put tensors into a network. Raises ShapeMismatch naming the first tensors that are missing, extra or of
    another shape.
    """
    wanted = network.state_dict()
    faults = [f'"{name}" is missing' for name in wanted if name not in state]
    faults += [f'"{name}" is not in the network' for name in state if name not in wanted]
    faults += [
        f'"{name}" has the shape {tuple(state[name].shape)}, the network takes {tuple(wanted[name].shape)}'
        for name in wanted
        if name in state and state[name].shape != wanted[name].shape
    ]
    if faults:
        more = f" and {len(faults) - MAX_NAMED} more" if len(faults) > MAX_NAMED else ""
        raise ShapeMismatch(
            f"{source} does not fit the network: {'; '.join(faults[:MAX_NAMED])}{more}; "
            "use the builder and parameters that the weights were trained with"
        )
    network.load_state_dict(state)
