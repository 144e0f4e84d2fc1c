"""A study file as values: every table of study.toml. Pure."""

from __future__ import annotations

import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    """What stood in `experiments.definition` until it became a folder: for paradigms of other people, for one
    release."""
    from experiments.definition import study

    if name.startswith("_") or not hasattr(study, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = f"experiments.definition.study.{name}"
    warnings.warn(f"Import {place}: the old address goes with the next release.", DeprecationWarning, 2)
    return getattr(study, name)
