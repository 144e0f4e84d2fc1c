"""Acceptance by the decision-time budget: 0 at 0, never falling, at any time the acceptance rate."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.reports.blind_review.report import report
from tests.analysis.reviewed import MODEL, PEOPLE, review, review_facts, review_frames

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("seed", range(4))
def test_the_curve_is_the_share_accepted_in_time_at_every_budget(seed: int) -> None:
    """Counted one by one from drawn verdicts and times, of which some are below the first budget and some
    beyond the last."""
    rng = np.random.default_rng(seed)
    drawn = [
        (f"p{lead}", f"{source}-{at}", source, bool(rng.random() < 0.6), int(rng.exponential(6000)))
        for lead in range(4)
        for source in (PEOPLE, MODEL)
        for at in range(12)
    ]
    frames = review_frames([review(*names, accepted=yes, rt_ms=ms) for *names, yes, ms in drawn])
    curves = {row["name"]: row for row in report(frames, review_facts(runs=1)).json()["budget"]["curves"]}
    for source in (PEOPLE, MODEL):
        reviews = [(yes, ms) for _, _, name, yes, ms in drawn if name == source]
        shares = [row["share"] for row in curves[source]["curve"]]
        budgets = [row["budget_ms"] for row in curves[source]["curve"]]
        assert budgets == sorted(budgets) and budgets[0] == 0 and shares[0] == 0
        assert all(earlier <= later for earlier, later in zip(shares, shares[1:], strict=False))
        for budget, share in zip(budgets, shares, strict=True):
            assert share == pytest.approx(sum(yes and 0 < ms <= budget for yes, ms in reviews) / len(reviews))
        assert curves[source]["at_any_time"] == pytest.approx(sum(yes for yes, _ in reviews) / len(reviews))
        assert 0 < shares[-1] < 1 and curves[source]["at_any_time"] >= shares[-1]
