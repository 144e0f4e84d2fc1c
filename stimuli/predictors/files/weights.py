"""Weights as safetensors: into bytes in one fixed order, and into a network with a clear error if they do not
fit.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Container, Iterable, Mapping, Sequence

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from stimuli.errors import BadSpec, ShapeMismatch, first_of
from stimuli.spec import JsonValue

PREFIXES = ("module.", "model.")
COMPILED = "_orig_mod."
UNREAD = re.compile(r"(^|\.)(num_batches_tracked|total_ops|total_params)$|^n_averaged$")
"""Numbers that no answer depends on: files of torch before 0.4.1 lack the first, counters of operations leave
the next two, averages of weights the last.
"""


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


def fit_weights(
    network: nn.Module,
    state: Mapping[str, Tensor],
    source: str,
    remedy: str = "use the builder and parameters that the weights were trained with",
) -> str:
    """Put tensors into a network by torch's own loader, which knows the names of older versions; returns the
    wrappers' prefix that was taken off the names, "" for none.

    Raises ShapeMismatch with the number and the first names of tensors that are missing, have no place or are
    of another shape.
    """
    wanted = network.state_dict()
    tensors, prefix = unwrap_names(state, wanted)
    missing: Sequence[str] = [name for name in wanted if name not in tensors]
    left: Sequence[str] = [name for name in tensors if name not in wanted]
    shapes = [
        f'"{name}" has the shape {tuple(tensors[name].shape)}, the network takes {tuple(wanted[name].shape)}'
        for name in wanted
        if name in tensors and tensors[name].shape != wanted[name].shape
    ]
    if not shapes:
        try:
            missing, left = network.load_state_dict(tensors, strict=False)
        except RuntimeError:  # older names, of another shape
            shapes = ["tensors have other shapes"]
    if not missing and not left and not shapes:
        return prefix
    faults = [*_told(missing, "missing"), *_told(sorted(left), "not in the network")]
    faults += [first_of(shapes, "; ")] if shapes else []
    first = f"{next(iter(tensors), '').partition('.')[0]}."
    if missing and {name.removeprefix(first) for name in tensors} >= set(missing):
        remedy = f'every name begins with "{first}": save them without it'
    raise ShapeMismatch(f"{source} does not fit the network: {'; '.join(faults)}; {remedy}")


def unwrap_names(state: Mapping[str, Tensor], wanted: Container[str]) -> tuple[dict[str, Tensor], str]:
    """The tensors without what evaluation never reads, named as inside DataParallel, torch.compile or a
    trainer's module if no name is `wanted` with that prefix; and the prefix.
    """
    tensors = {name: value for name, value in state.items() if name in wanted or not UNREAD.search(name)}
    taken = ""
    if any(COMPILED in name and name not in wanted for name in tensors):
        tensors = {name.replace(COMPILED, ""): value for name, value in tensors.items()}
        taken = COMPILED
    while tensors and not any(name in wanted for name in tensors):
        prefix = next((each for each in PREFIXES if all(name.startswith(each) for name in tensors)), "")
        if not prefix:
            break
        tensors = {name.removeprefix(prefix): value for name, value in tensors.items()}
        taken += prefix
    return tensors, taken


def _told(names: Sequence[str], what: str) -> list[str]:
    if not names:
        return []
    first = first_of([f'"{name}"' for name in names])
    return [f"{first} {'is' if len(names) == 1 else 'are'} {what}"]
