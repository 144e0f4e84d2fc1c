"""One reporter per paradigm, imported on first use. Installed packages may offer more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stimuli.registry import Table

if TYPE_CHECKING:
    from analysis.reports.report import Reporter

OURS = {
    "meta_predictor": "analysis.reports.meta_predictor.report:report",
    "reverse_turing": "analysis.reports.reverse_turing.report:report",
    "blind_review": "analysis.reports.blind_review.report:report",
    "rating": "analysis.reports.rating.report:report",
    "assisted_decision": "analysis.reports.assisted_decision.report:report",
}
REPORTERS: Table[Reporter] = Table("reporter", OURS, group="legible.reporters")
READ = (
    "participant",
    "session",
    "condition",
    "block",
    "phase",
    "kind",
    "check",
    "trial_index",
    "scored_index",
    "item",
    "explained",
    "response",
    "model_label",
    "truth",
    "matches_model",
    "matches_truth",
    "check_passed",
    "rt_ms",
    "shown_ms",
    "received_at",
    "timing",
    "reservoir_ms",
    "reloads",
)
"""What our reporters read of the columns of `trials`, besides those of the kinds of trial: no others are held
in memory for a report. A reporter that needs another one names it here."""


def held_for(name: str) -> tuple[str, ...]:
    """Columns of `trials` that are held for the reporter of that full name; empty: all, as one from elsewhere
    may read any."""
    return READ if name in OURS else ()


def get_reporter(paradigm: str) -> Reporter:
    """The reporter of a paradigm. Raises UnknownName; the data can be exported all the same."""
    return REPORTERS.load(paradigm)
