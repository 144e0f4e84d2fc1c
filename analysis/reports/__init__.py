"""One reporter per paradigm, imported on first use. Installed packages may offer more."""

from __future__ import annotations

from analysis.reports.report import Reporter
from stimuli.registry import Table

REPORTERS: Table[Reporter] = Table(
    "reporter",
    {
        "meta_predictor": "analysis.reports.meta_predictor:report",
        "reverse_turing": "analysis.reports.reverse_turing:report",
        "blind_review": "analysis.reports.blind_review:report",
        "rating": "analysis.reports.rating:report",
        "assisted_decision": "analysis.reports.assisted_decision:report",
    },
    group="legible.reporters",
)


def get_reporter(paradigm: str) -> Reporter:
    """The reporter of a paradigm. Raises UnknownName; the data can be exported all the same."""
    return REPORTERS.load(paradigm)
