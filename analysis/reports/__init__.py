"""One reporter per paradigm: name -> dotted path, imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from analysis.reports.base import ReportError
from analysis.reports.report import Reporter

REPORTERS = {
    "meta_predictor": "analysis.reports.meta_predictor:report",
}


def get_reporter(paradigm: str) -> Reporter:
    """The reporter of a paradigm. Raises ReportError where there is none."""
    try:
        module, name = REPORTERS[paradigm].split(":")
    except KeyError:
        raise ReportError(
            f"Paradigm '{paradigm}' has no reporter; there are {', '.join(REPORTERS)}. Its data can be "
            "exported."
        ) from None
    return cast(Reporter, getattr(import_module(module), name))
