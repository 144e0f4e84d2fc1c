"""What tests leave out of a report because they do not look at it, by `pytest.mark.usefixtures`.

Modules are named, not imported: some of them need Django's settings, which are not there yet.
"""

from __future__ import annotations

import pytest

REPORTS = "analysis.reports"
EMPTY = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages show an empty picture for a figure, and its file is empty, either of which would take most of
    their time. For tests that read the words of a page; each report's figures are drawn by its tests of a
    whole study and of thin data."""
    monkeypatch.setattr(f"{REPORTS}.base.Figure.svg", EMPTY)
    monkeypatch.setattr(f"{REPORTS}.output.files.as_pdf", lambda figure: b"%PDF-1.4")


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals from few draws. For tests that ask no more of an interval than that it is there or is not."""
    from analysis.reports.blind_review import acceptance_contrasts

    monkeypatch.setattr(f"{REPORTS}.utility.accuracy_anova.DRAWS", 200)
    monkeypatch.setattr(f"{REPORTS}.parts.rater_agreement.DRAWS", 20)
    monkeypatch.setattr(f"{REPORTS}.parts.model_raters.DRAWS", 20)
    monkeypatch.setattr(f"{REPORTS}.blind_review.acceptance.MAIN_DRAWS", 200)
    for function in (
        acceptance_contrasts.contrast,
        acceptance_contrasts.share,
        acceptance_contrasts.difference,
    ):
        defaults = function.__kwdefaults__
        assert defaults is not None and defaults["draws"] > 200
        monkeypatch.setitem(defaults, "draws", 200)


@pytest.fixture
def few_fit_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of what a fitted scorer reaches from few draws, which would take half of the time of a fit.
    What they hold is tested in test_preference_scores.py."""
    from analysis.preference.evaluation import evaluate

    defaults = evaluate.__kwdefaults__
    assert defaults is not None and defaults["draws"] > 20
    monkeypatch.setitem(defaults, "draws", 20)


@pytest.fixture
def without_odds(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinal model without profile intervals, for each of which it is fitted about twenty times anew."""
    monkeypatch.setattr(f"{REPORTS}.rating.method_means.CHEAP_CONDITIONS", 0)


@pytest.fixture
def without_review_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report of reviews without the mixed model of single reviews, which is fitted four times."""
    from analysis.reports.base import Section

    left_out = Section("single_reviews", "", None)
    monkeypatch.setattr(f"{REPORTS}.blind_review.report.model_section", lambda *given: left_out)
