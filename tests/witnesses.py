"""Other libraries that our numbers are compared with. Development only; never imported by the product.

Some of them need torchvision, whose compiled part needs a CUDA build of torch. Without one, the two operators
that torchvision misses are declared, not implemented: enough to import it. These libraries lie in a folder of
their own beside the environment's packages: no other process finds a torchvision that does not work.
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


def _found() -> None:
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))


@cache
def torchvision() -> Any:
    """The module torchvision, importable also if torch has no CUDA build."""
    _found()
    if torch.version.cuda is None:
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        for name in ("nms", "qnms"):
            operator = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            library.define(operator)  # type: ignore[no-untyped-call]
        _declared.append(library)
    return import_module("torchvision")


def timm() -> Any:
    """The package timm."""
    torchvision()
    return import_module("timm")


def grad_cam() -> Any:
    """The package pytorch_grad_cam."""
    torchvision()
    return import_module("pytorch_grad_cam")


def lpips() -> Any:
    """The package lpips."""
    torchvision()
    return import_module("lpips")


def zennit() -> Any:
    """The package zennit."""
    _found()
    return import_module("zennit")
