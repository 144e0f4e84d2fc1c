"""Simulated people of a platform that signs each entry, through the production server over real HTTP."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.utils import timezone

from crowd.models import Posting, Submission
from crowd.recruiting.publishing import publish_posting
from crowd.rehearsal import prolific
from crowd.rehearsal.rehearsing import keep_time
from crowd.rehearsal.visitors import Visit, send_crowd
from experiments.models import Session, Study
from experiments.simulation.population import parse_mix, populate
from tests.services import WebServer
from tests.world import opened_study, write_study

if TYPE_CHECKING:
    pass

PLATFORMS = """
[platforms.prolific]
project = "rehearsal"
signed_entry = true
"""
LATE = timedelta(minutes=10)
PLACES = 6


@pytest.fixture
def study(server_env: dict[str, str], tmp_path: Path) -> Study:
    path = write_study(tmp_path / "study", slots=2)
    path.write_text(path.read_text() + PLATFORMS)
    return opened_study(path)


def sent(
    sim: prolific.ProlificSimulator, server: WebServer, seed: int, before_take: Callable[[], None]
) -> list[Visit]:
    people = populate(parse_mix("guesser=1.0"), 3, seed=seed)
    quiz = {"task": "machine"}
    return send_crowd(
        sim.url, server.url, "small", "prolific", people, quiz, concurrency=2, before_take=before_take
    )


def test_it_vouches_for_its_people_as_long_as_its_clock_goes_with_ours(
    study: Study, server: WebServer
) -> None:
    options = prolific.ProlificWorldOptions(currency="USD")
    with prolific.simulator(seed=3, start=timezone.now() - LATE, options=options) as sim:
        posting = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=PLACES, by="test")
        assert Posting.objects.get(id=posting.pk).options["signed_entry"]
        # A clock that stands still signs an old time: no person may enter, and none is stored.
        stale = sent(sim, server, 1, lambda: None)
        messages = {visit.outcome.message for visit in stale if visit.outcome is not None}
        assert len(messages) == 1 and "signature" in messages.pop() and not Session.objects.exists()
        visits = sent(sim, server, 2, lambda: keep_time(sim.clock))
        assert abs(sim.clock.now() - timezone.now()) < LATE / 2
    outcomes = [visit.outcome for visit in visits if visit.outcome is not None]
    assert len(outcomes) == 3 and {outcome.status for outcome in outcomes} <= {"finished", "left"}
    assert any(outcome.status == "finished" for outcome in outcomes)
    rows = Submission.objects.filter(session__isnull=False)
    assert rows.count() == 3 and all(len(row.entry_digest) == 64 for row in rows)
