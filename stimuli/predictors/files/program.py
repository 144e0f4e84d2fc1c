"""Exported programs (.pt2) as networks, without running anything that came with the file.

`torch.export.load` unpickles tensors of unusual types, custom objects and, as a fallback, sample inputs; it
evaluates shape expressions with sympify; and the names in the graph become generated source. So the archive
is never given to it. It is read with zipfile, every entry and every string of the graph is checked against
what a plain network needs, and a new archive is written from the checked parts, with raw tensors only.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Graph
from torch.fx.node import map_aggregate

from stimuli.errors import ShapeMismatch, first_line
from stimuli.predictors.files.program_check import clean_program
from stimuli.predictors.files.weights import other_precisions

_LOADING = threading.Lock()


def read_program(data: bytes, source: str) -> nn.Module:
    """The network of an exported program, its layers named by module path, its weights as they are stored.

    Raises BadSpec for an archive that carries more than raw tensors and a plain graph, for one that is
    damaged, and for one without a dynamic batch dimension; ShapeMismatch when the weights do not fit the
    graph.
    """
    clean = clean_program(data, source)
    try:
        with _LOADING, _weights_only(), warnings.catch_warnings():
            # Copying its own graph, torch warns of a name of its own, which cannot be corrected here.
            warnings.simplefilter("ignore", FutureWarning)
            program = torch.export.load(io.BytesIO(clean))
            return torch.export.unflatten(program)
    except (RuntimeError, ValueError, KeyError, AssertionError, TypeError, IndexError) as error:
        raise ShapeMismatch(
            f"{source} cannot be loaded: its weights do not fit its graph, or it was written by "
            "another version of "
            f"PyTorch than {torch.__version__} ({first_line(error)}); export it again on the CPU"
        ) from error


def cast_program(network: nn.Module) -> list[str]:
    """Bring weights, constants and steps of a program to float32, in place, if its weights are of another
    type; returns which types there were.
    """
    constants = [
        (part, name, value)
        for part in network.modules()
        for name, value in vars(part).items()
        if isinstance(value, Tensor)
    ]
    held = [*network.parameters(), *network.buffers(), *(value for _, _, value in constants)]
    precisions = other_precisions(held)
    if not precisions:
        return []
    network.float()
    for part, name, value in constants:
        if value.is_floating_point():
            setattr(part, name, value.float())
    kinds = {getattr(torch, name) for name in precisions}

    def cast(argument: Any) -> Any:
        return torch.float32 if isinstance(argument, torch.dtype) and argument in kinds else argument

    for part in network.modules():
        graph = getattr(part, "graph", None)
        for node in list(graph.nodes) if isinstance(graph, Graph) else ():
            if node.target is torch.ops.aten._assert_tensor_metadata.default:
                node.graph.erase_node(node)  # it would insist on the type that was
            else:
                node.args, node.kwargs = map_aggregate(node.args, cast), map_aggregate(node.kwargs, cast)
    return precisions


@contextmanager
def _weights_only() -> Iterator[None]:
    """While a program is loaded, every torch.load refuses pickled code, even if its caller allows it.

    Nothing in a cleaned archive should come that far: this is a second protection.
    """
    plain = torch.load

    def strict(*args: Any, **settings: Any) -> Any:
        return plain(*args, **{**settings, "weights_only": True, "pickle_module": None})

    torch.load = strict
    try:
        yield
    finally:
        torch.load = plain
