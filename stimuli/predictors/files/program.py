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
from torch import nn

from stimuli.errors import ShapeMismatch
from stimuli.predictors.files.program_check import clean_program

_LOADING = threading.Lock()


def read_program(data: bytes, source: str) -> nn.Module:
    """The network of an exported program, its layers named by module path.

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
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ShapeMismatch(
            f"{source} cannot be loaded: its weights do not fit its graph, or it was written by "
            "another version of "
            f"PyTorch than {torch.__version__} ({first[:200]}); export it again on the CPU"
        ) from error


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
