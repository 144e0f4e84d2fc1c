"""What changes while a sync reads the platform: an older reading never undoes a newer decision."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from crowd.ground.platform_accounts import posted_of, service_of
from crowd.ground.process_locks import Busy, exclusive
from crowd.models import Identity, Payout, Posting, Submission
from crowd.money.run import look
from crowd.people.privacy import forget
from crowd.platforms.base import PlatformError
from crowd.recruiting import places
from crowd.recruiting.places import remember
from crowd.recruiting.publishing import add_places, close, pause, publish_posting, resume
from experiments.errors import StudyError
from experiments.models import Session, Slot, Study
from tests.crowd import paid
from tests.crowd.offered_studies import PLATFORMS, held, offers, public, simulated, study_of

__all__ = ["public"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases("locks")]
LISTS = ("ListAssignmentsForHIT", "/submissions/")
"""Each platform's call that lists the participants."""


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def publish(study: Study, platform: str, sim: Any, **more: Any) -> Posting:
    return publish_posting(study, platform, "rehearsal", site=sim.url, **more)


def at_the_list(sim: Any, act: Callable[[], object]) -> None:
    """Does something once, after the platform was asked for its list and before the answer arrives."""
    done: list[bool] = []

    def hook(call: Any) -> None:
        if not done and any(word in f"{call.operation} {call.path}" for word in LISTS):
            done.append(True)
            act()

    sim.before_reply.append(hook)


class Rival:
    """A second actor at the same moment; for the database it is another process."""

    def __init__(self, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
        self.act = act
        self.errors: list[BaseException] = []
        self.moved = threading.Event()
        """Set once it is done, or waits."""
        self.may_go_on = threading.Event()
        self.thread = threading.Thread(target=self._run)
        monkeypatch.setattr(places, "rest", self._rest)

    def _rest(self, seconds: float) -> None:
        self.moved.set()
        self.may_go_on.wait(20)

    def _run(self) -> None:
        try:
            self.act()
        except BaseException as error:
            self.errors.append(error)
        finally:
            self.moved.set()
            connection.close()

    def go(self) -> None:
        self.thread.start()
        assert self.moved.wait(20)

    def end(self) -> None:
        self.may_go_on.set()
        self.thread.join(20)
        assert not self.thread.is_alive() and not self.errors, self.errors


def during_a_sync(
    posting: Posting, sim: Any, act: Callable[[Posting], object], monkeypatch: pytest.MonkeyPatch
) -> Posting:
    """Syncs while another actor acts; the row after both."""
    rival = Rival(lambda: act(Posting.objects.get(pk=posting.pk)), monkeypatch)
    at_the_list(sim, rival.go)
    synced = look(posting)
    assert not synced.error, synced.error
    rival.end()
    posting.refresh_from_db()
    return posting


def stopped_there(platform: str, sim: Any) -> bool:
    """Whether the platform itself refuses every further person."""
    with pytest.raises(Exception, match="(?i)place|open|assignable"):
        sim.control("take")
    return True


@pytest.mark.parametrize("verb", [close, pause])
def test_it_revives_nothing_that_is_stopped_during_a_sync(
    verb: Any, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simulated(platform) as sim:
        posting = publish(study_of(12), platform, sim, places=4, cap_cents=10**6)
        # Two are to be replaced, which would open the posting again.
        for verdict in ("screened", "screened"):
            held(posting, sim, verdict)
        state = "closed" if verb is close else "paused"
        row = during_a_sync(posting, sim, verb, monkeypatch)
        assert row.state == state and stopped_there(platform, sim)
        assert not look(row).error
        row.refresh_from_db()
        assert row.state == state and stopped_there(platform, sim) and not row.sync_error


def test_it_loses_no_place_that_is_added_during_a_sync(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simulated(platform) as sim:
        posting = publish(study_of(12), platform, sim, places=9)
        held(posting, sim)
        row = during_a_sync(posting, sim, lambda posting: add_places(posting, 9), monkeypatch)
        assert row.places == row.wanted == 18
        assert sum(spec["places"] for spec in offers(platform, sim)) == 18
        if platform == "mturk":
            assert sorted(row.facts["hits"]) == sorted(sim.control("state")["postings"])
        # People in the new places are in the list.
        for _ in range(12):
            held(row, sim)
        synced = look(row)
        assert sum(synced.counts.values()) == 13 and not Submission.objects.filter(state="unknown").exists()


def test_it_says_so_when_a_sync_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(places, "rest", waited.append)
    with simulated("prolific") as sim:
        posting = publish(study_of(12), "prolific", sim, places=4)
        calls = sim.calls_count
        with exclusive(f"sync-{posting.pk}"):
            for act in (close, pause, resume, lambda posting: add_places(posting, 1)):
                with pytest.raises(Busy, match="at this moment, so nothing was done. Try again in a minute"):
                    act(posting)
        assert sim.calls_count == calls and sum(waited) == pytest.approx(4 * places.BUSY_S)
        assert Posting.objects.get().state == "open" and Posting.objects.get().places == 4


def test_it_keeps_what_was_changed_after_the_look() -> None:
    with simulated("mturk") as sim:
        posting = publish(study_of(12), "mturk", sim, places=9)
        seen = Posting.objects.get()
        looked = service_of(seen).look(posted_of(seen))
        add_places(posting, 2)
        close(posting)
        row = remember(seen, looked)
        assert row.state == "closed" and row.closed_at and row.facts["stopped"] == "closed"
        assert len(row.facts["hits"]) == 2 and row.places == 11 and row.wanted == 11
        assert sorted(row.facts["places"].values()) == [2, 9] and not row.sync_error


@pytest.mark.parametrize("verb", [pause, resume, lambda posting: add_places(posting, 1)])
def test_it_resumes_nothing_that_another_actor_has_closed(verb: Any) -> None:
    with simulated("prolific") as sim:
        mine = publish(study_of(12), "prolific", sim, places=4)
        close(Posting.objects.get())
        with pytest.raises(StudyError, match="is closed.*Publish a new one"):
            verb(mine)
        assert Posting.objects.get().state == "closed" and stopped_there("prolific", sim)


def test_it_revives_nothing_that_ends_on_the_platforms_page_during_a_sync() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(12), "prolific", sim, places=4, cap_cents=10**6)
        held(posting, sim, "screened")

        def end() -> None:
            sim.world.studies[posting.external_id].status = "COMPLETED"

        at_the_list(sim, end)
        assert not look(posting).error
        assert [spec["places"] for spec in offers("prolific", sim)] == [4]
        assert not look(posting).error and Posting.objects.get().state == "closed"


def cut_off_while_it_adds(posting: Posting, sim: Any, count: int) -> None:
    """The platform makes the HIT, but its answer never arrives."""

    def hook(call: Any) -> None:
        if call.operation == "CreateHITWithHITType":
            sim.faults.down = True

    sim.before_reply.append(hook)
    with pytest.raises(PlatformError):
        add_places(posting, count)
    sim.before_reply.remove(hook)
    sim.faults.down = False
    assert len(sim.control("state")["postings"]) == 2 and len(Posting.objects.get().facts["hits"]) == 1


def test_it_makes_no_hit_twice_days_after_a_call_was_cut_off() -> None:
    with simulated("mturk") as sim:
        posting = publish(study_of(12), "mturk", sim, places=9)
        cut_off_while_it_adds(posting, sim, 5)
        sim.control("advance", seconds=3 * 86400)
        synced = look(posting)
        assert "An addition of places that was cut off is finished." in synced.changes, synced
        row = Posting.objects.get()
        assert sorted(row.facts["hits"]) == sorted(sim.control("state")["postings"])
        assert row.places == 14 and sorted(spec["places"] for spec in offers("mturk", sim)) == [5, 9]


def test_it_closes_a_hit_that_it_never_heard_of() -> None:
    with simulated("mturk") as sim:
        posting = publish(study_of(12), "mturk", sim, places=9)
        cut_off_while_it_adds(posting, sim, 5)
        sim.control("advance", seconds=3 * 86400)
        assert close(posting).state == "closed" and stopped_there("mturk", sim)
        assert len(Posting.objects.get().facts["hits"]) == 2


# People forgotten meanwhile ----------------------------------------------------------------------------


@contextmanager
def once_consents_are_read(act: Callable[[], object]) -> Iterator[None]:
    """Does something right after a sync has read which of our people consented."""
    done: list[bool] = []

    def wrapper(execute: Any, sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if not done and sql.startswith("SELECT") and '"experiments_gate"' in sql:
            done.append(True)
            act()
        return result

    with connection.execute_wrapper(wrapper):
        yield
    assert done


def test_it_learns_no_person_who_is_forgotten_during_a_sync(platform: str) -> None:
    with simulated(platform) as sim:
        posting = publish(study_of(), platform, sim, places=4)
        row = held(posting, sim, "incomplete")
        Session.objects.update(state="finished", verdict="incomplete")
        close(posting)
        identity = Identity.objects.get()
        with once_consents_are_read(lambda: forget(identity, responses=False, reason="asked")):
            assert not look(posting).error
        row.refresh_from_db()
        identity.refresh_from_db()
        assert not Payout.objects.exists() and identity.forgotten_at
        assert (row.external_id, row.person_hash, identity.external_id) == ("", "", "")
        assert identity.person_hash.startswith("forgotten-") and row.seen_at


def test_it_learns_the_ids_of_a_forgotten_person_who_may_still_earn_pay(platform: str) -> None:
    study = paid.paying_on(platform)
    with paid.offered(study, platform) as stage:
        row = stage.person(matches=4)
        session, identity = row.session, row.identity
        assert session is not None and identity is not None
        paid.unfinished(session, state="running", verdict="", finished_at=None)
        forget(identity, responses=False, reason="asked")
        assert not look(stage.posting).error
        row.refresh_from_db()
        assert row.external_id
        paid.unfinished(session, state="finished", verdict="passed", finished_at=timezone.now())
        assert not look(stage.posting).error
        assert paid.settle(stage.study) == ""
        base, bonuses = stage.paid(row)
        assert base + sum(bonuses) == 160
        # Everything is paid: data forgotten now stay forgotten.
        forget(identity, responses=False, reason="asked")
        assert not look(stage.posting).error
        row.refresh_from_db()
        identity.refresh_from_db()
        assert row.external_id == "" and identity.external_id == ""


def test_it_pays_a_person_forgotten_before_the_list_was_ever_read(platform: str) -> None:
    study = paid.paying_on(platform)
    with paid.offered(study, platform) as stage:
        row = stage.person(matches=4)
        assert row.identity is not None
        forget(row.identity, responses=False, reason="asked")
        assert paid.settle(stage.study) == ""
        base, bonuses = stage.paid(row)
        assert base + sum(bonuses) == 160


# Rehearsals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["rehearsal", "sandbox"])
def test_it_rehearses_no_pilot_for_its_people_would_take_the_studys_places(mode: Any) -> None:
    study = study_of()
    with simulated("mturk") as sim:
        with pytest.raises(StudyError, match=f"simulated ones come to a {mode}.*publish the pilot --live"):
            publish_posting(study, "mturk", mode, pilot=True, places=2, site=sim.url)
        assert not sim.calls_count and not Posting.objects.exists()
        assert not Slot.objects.filter(pilot=True).exists()


def test_it_settles_past_a_rehearsal_whose_simulator_is_gone(capsys: pytest.CaptureFixture[str]) -> None:
    study = paid.paying()
    with paid.offered(study) as old:
        old.person()
        close(old.posting)
        assert paid.settle(study) == ""  # closed, and still there
    for mode in (None, "rehearsal"):
        assert "only been rehearsed, and the simulator is gone" in paid.settle(study, mode=mode)
    with paid.offered(study, seed=1) as stage:
        row = stage.person()
        capsys.readouterr()
        assert paid.settle(study) == ""
        assert stage.paid(row)[0] == 140 and capsys.readouterr().out.count("(rehearsal)") == 1


def test_it_says_whose_live_posting_it_cannot_read() -> None:
    study = paid.paying()
    with paid.offered(study) as stage:
        stage.sim.faults.down = True
        with pytest.raises(CommandError) as caught:
            call_command("settle", study.slug)
        assert str(caught.value).count("prolific could not") == 1 and "prolific: prolific" not in str(
            caught.value
        )
        Posting.objects.update(synced_at=timezone.now() - timedelta(days=1))
        with exclusive(f"sync-{stage.posting.pk}"):
            assert paid.settle(study).startswith("prolific is being asked about this posting")
