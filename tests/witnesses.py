"""Other libraries that our numbers are held against. Development only; never imported by the product.

Some of them want torchvision, whose compiled part needs a CUDA build of torch. Where there is none, the two
operators that it misses are declared, not implemented: enough to import it. Those libraries lie in a folder
of their own beside the environment's packages: no other process finds a torchvision that does not work.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(sys.prefix) / "witnesses"
_declared: list[torch.library.Library] = []


@cache
def torchvision() -> Any:
    """The module torchvision, made importable where torch has no CUDA build."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    if torch.version.cuda is None:
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for name in ("nms", "qnms"):
            operator = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            library.define(operator)  # type: ignore[no-untyped-call]
        _declared.append(library)
    return import_module("torchvision")


def grad_cam() -> Any:
    """The package pytorch_grad_cam."""
    torchvision()
    return import_module("pytorch_grad_cam")


def lpips() -> Any:
    """The package lpips."""
    torchvision()
    return import_module("lpips")
