"""What the report of a blind review makes of the server's clock, for people and for simulated people."""

from __future__ import annotations

import pytest

from analysis.reports.blind_review.report import report
from analysis.reports.output.html import page
from tests.analysis.reviewed import MODEL, PEOPLE, review, review_facts, review_frames

pytestmark = pytest.mark.pure


def test_it_does_not_hold_the_clock_against_simulated_people_and_says_so() -> None:
    """Who answers at once has response times that the server's clock knows nothing about."""
    ahead = [
        review(f"p{lead}", item, source, accepted=True, rt_ms=2000, server_ms=12)
        for lead in range(2)
        for item, source in (("i0", PEOPLE), ("i1", MODEL))
    ]
    drawn = [{**row, "origin": "simulated", "rt_over_server": None} for row in ahead]
    of_people = report(review_frames(ahead), review_facts())
    simulated = report(review_frames(drawn, origin="simulated"), review_facts())
    counts = [
        {name: made.json()["timing"][name] for name in ("ahead", "flagged", "uncompared")}
        for made in (of_people, simulated)
    ]
    assert counts == [
        {"ahead": 4, "flagged": 4, "uncompared": 0},
        {"ahead": 0, "flagged": 0, "uncompared": 4},
    ]
    said = "4 of 4 are not compared: simulated people answer at once"
    assert said in page(simulated) and "are not compared" not in page(of_people)
