"""Legible's stimuli, also as a library: what a model answers, why, and how people would see it.

    from stimuli import explain, measure, draw, sheet

needs no server, queue or database. `import stimuli` alone imports nothing else. See docs/library.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stimuli.library.explanations import (
        ContactSheet,
        Explanations,
        draw,
        explain,
        measure,
        open_model,
        sheet,
    )

__all__ = ["Explanations", "ContactSheet", "draw", "explain", "measure", "open_model", "sheet"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("stimuli.library.explanations"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
