"""What tests leave out of a report because they do not look at it, by `pytest.mark.usefixtures`."""

from __future__ import annotations

import pytest

from analysis.reports import (
    accuracy,
    base,
    model_raters,
    rating_agreement,
    rating_scores,
    review_acceptance,
)

EMPTY = b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages show an empty picture for a figure, which would take most of their time. For tests that read the
    words of a page; each report's figures are drawn by its tests of a whole study and of thin data."""
    monkeypatch.setattr(base.Figure, "svg", EMPTY)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals from few draws. For tests that ask no more of an interval than that it is there or is not."""
    monkeypatch.setattr(accuracy, "DRAWS", 200)
    monkeypatch.setattr(rating_agreement, "DRAWS", 20)
    monkeypatch.setattr(model_raters, "DRAWS", 20)
    monkeypatch.setattr(review_acceptance, "MAIN_DRAWS", 200)


@pytest.fixture
def without_odds(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinal model without profile intervals, for each of which it is fitted about twenty times anew."""
    monkeypatch.setattr(rating_scores, "CHEAP_CONDITIONS", 0)
