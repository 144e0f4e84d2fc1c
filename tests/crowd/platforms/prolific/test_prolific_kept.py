"""What is stored of Prolific's scheduled and divided studies: real rows, the real server, the simulator."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from crowd.models import Posting
from crowd.money.run import look
from crowd.recruiting.publishing import publish_posting
from tests.crowd import paid
from tests.crowd.offered_studies import arrive, public, simulated, study_of

__all__ = ["public"]
pytestmark = pytest.mark.django_db

HALVES = {"filter_id": "sex", "selected_values": ["0", "1"], "weightings": {"0": 1, "1": 1}}


def published(sim: Any, **options: Any) -> Posting:
    study = study_of(platforms={"prolific": options})
    return publish_posting(study, "prolific", "rehearsal", site=sim.url, places=4)


def test_it_keeps_a_scheduled_study_as_a_draft_until_it_opens() -> None:
    with simulated("prolific") as sim:
        opens_at = (sim.clock.now() + timedelta(hours=2)).isoformat()
        posting = published(sim, publish_at=opens_at)
        assert (posting.state, posting.raw_state, posting.sync_error) == ("draft", "SCHEDULED", "")
        assert not look(posting).error
        posting.refresh_from_db()
        assert posting.state == "draft"
        sim.clock.advance(2 * 3600)
        assert not look(posting).error
        posting.refresh_from_db()
        assert posting.state == "open"


def test_it_lets_people_of_each_part_in_once_the_parts_are_known() -> None:
    """A sync reads the parts from those who are on their way; an unknown one is refused until then."""
    with simulated("prolific") as sim:
        posting = published(sim, filters=[HALVES])
        ada, bo = (arrive(posting, sim, name) for name in ("ada", "bo"))
        assert not look(posting).error
        assert [visitor.join().status_code for visitor in (ada, bo)] == [201, 201]
        posting.refresh_from_db()
        (study,) = sim.world.studies.values()
        assert set(posting.names) == {posting.external_id, *study.parts}


def test_it_books_what_the_platform_approved_by_itself() -> None:
    """Approved at once by its code; the ledger takes it for paid and sends no second reward."""
    study = paid.paying(platforms={"prolific": {"approve": "automatic"}})
    with paid.offered(study) as stage:
        row, failed = stage.person(matches=2), stage.person(outcome="failed_checks")
        assert [stage.paid(each)[0] for each in (row, failed)] == [140, 0]
        assert paid.settle(study) == ""
        assert stage.ledger(row) == {"base": ("sent", 140), "bonus": ("sent", 10)}
        assert stage.paid(row) == (140, [10])
        assert paid.settle(study) == ""
        assert stage.paid(row) == (140, [10])
        assert stage.paid(failed)[0] == 140
        paid.agree(stage)
