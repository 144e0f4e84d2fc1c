"""Syncing with a platform: identities, what a state means for a slot, and the rows after an outage."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.utils import timezone

from crowd import tasks
from crowd.ground.identity_hashes import person_hash, submission_hash
from crowd.ground.process_locks import exclusive
from crowd.models import Identity, Message, Payout, Posting, StatementLine, Submission
from crowd.money.run import look
from crowd.people.privacy import forget
from crowd.recruiting.publishing import publish_posting
from crowd.recruiting.sync import SyncResult, is_due
from crowd.rehearsal.faults import Faults
from experiments.models import Session, Slot, Study
from tests.crowd.offered_studies import (
    PLATFORMS,
    POLICY,
    arrive,
    changed,
    hand_in,
    held,
    known_there,
    public,
    simulated,
    study_of,
)

__all__ = ["public"]
pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("constraints")]


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def publish(study: Study, platform: str, sim: Any, **more: Any) -> Posting:
    return publish_posting(study, platform, "rehearsal", site=sim.url, **more)


def synced(posting: Posting, **more: Any) -> SyncResult:
    result = look(posting, **more)
    assert not result.error, result.error
    return result


def everything_outside_crowd() -> str:
    """Every value of every table that is not crowd's, as text."""
    models = [model for model in apps.get_models() if model._meta.app_label != "crowd"]
    return "\n".join(repr(row) for model in models for row in model._default_manager.values())


def test_it_follows_a_whole_life_and_learns_a_name_after_consent(small: Study, platform: str) -> None:
    study = changed(small, policy=POLICY)
    with simulated(platform) as sim:
        posting = publish(study, platform, sim)
        ada = arrive(posting, sim)
        assert ada.join().status_code == 201
        ada.arrive(until="consent")
        synced(posting)
        row = Submission.objects.get()
        assert row.external_id == "" and Identity.objects.get().external_id == ""
        ada.arrive()
        ada.answer()
        exit = ada.end().json()["exit"]
        code = posting.codes["complete"]
        assert code in exit["url"] or code in exit["fields"].values()
        hand_in(sim, ada, code)
        result = synced(posting)
        row.refresh_from_db()
        assert result.counts == {"awaiting": 1} and row.state == "awaiting" and row.code == code
        assert row.session == ada.session() and row.seen_at and row.completed_at
        assert row.external_id == ada.submission and Identity.objects.get().external_id == ada.simulated
        assert ada.simulated not in everything_outside_crowd()
        assert ada.submission not in everything_outside_crowd()
        assert not any("awaiting" in change for change in synced(posting).changes)


def test_it_does_not_learn_again_who_was_forgotten(platform: str) -> None:
    with simulated(platform) as sim:
        posting = publish(study_of(), platform, sim, places=4)
        row = held(posting, sim)
        synced(posting)
        identity = Identity.objects.get()
        assert identity.external_id
        forget(identity, responses=False, reason="asked")
        # What is due was stored first, and is paid before the ids may be deleted.
        assert Payout.objects.update(state="sent")
        forget(identity, responses=False, reason="asked")
        synced(posting)
        row.refresh_from_db()
        identity.refresh_from_db()
        assert row.external_id == "" and identity.external_id == ""


def test_it_keeps_work_of_people_who_never_came(platform: str) -> None:
    with simulated(platform) as sim:
        posting = publish(study_of(), platform, sim, places=4)
        taken = sim.control("take")
        sim.control("complete", submission=taken["submission"], code="GUESSED")
        sim.control("advance", seconds=60)
        synced(posting)
        row = Submission.objects.get()
        assert (row.session, row.identity, row.external_id, row.code) == (None, None, "", "GUESSED")
        assert row.submission_hash == submission_hash(posting, taken["submission"])
        assert row.person_hash == person_hash(posting, taken["person"])
        assert synced(posting).counts == {"awaiting": 1} and Submission.objects.count() == 1


def running(row: Submission) -> Session:
    """The sitting of a submission, set back to running."""
    assert row.session is not None
    Session.objects.filter(pk=row.session.pk).update(state="running", verdict="", finished_at=None)
    soon = timezone.now() + timedelta(hours=1)
    Slot.objects.filter(holder=row.session).update(kept=False, lease_ends_at=soon)
    return Session.objects.get(pk=row.session.pk)


def test_it_frees_the_slot_of_returned_work() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        row = held(posting, sim, code="")
        session = running(row)
        assert Slot.objects.filter(holder=session).count() == 1
        sim.control("return", submission=known_there(row, sim)["submission"])
        result = synced(posting)
        assert "a place is free again, its person returned the work: 1." in result.changes
        session.refresh_from_db()
        assert (session.state, session.verdict) == ("finished", "incomplete")
        assert not Slot.objects.filter(holder=session).exists()
        assert synced(posting).changes == ()


def test_it_leaves_a_finished_sitting_that_is_returned_afterwards() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        row = held(posting, sim, code="")
        sim.control("return", submission=known_there(row, sim)["submission"])
        synced(posting)
        session = Session.objects.get()
        assert session.verdict == "passed" and Slot.objects.get(holder=session).kept


def test_it_lets_a_person_finish_whose_time_was_over(small: Study) -> None:
    with simulated("prolific") as sim:
        posting = publish(small, "prolific", sim)
        ada = arrive(posting, sim)
        ada.arrive()
        ada.answer(3)
        sim.control("time_out", submission=ada.submission)
        result = synced(posting)
        assert "a place is free again, its time is over: 1." in result.changes
        assert not Slot.objects.filter(holder=ada.session()).exists()
        ada.answer()
        assert ada.end().status_code == 200
        session = ada.session()
        assert session.verdict == "passed" and [r["rule"] for r in session.reasons] == ["surplus"]


def test_it_does_nothing_about_an_unknown_state() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        row = held(posting, sim, code="")
        session = running(row)
        sim.world.submissions[known_there(row, sim)["submission"]].status = "ABDUCTED"
        synced(posting)
        row.refresh_from_db()
        assert (row.state, row.raw_state) == ("unknown", "ABDUCTED")
        assert Slot.objects.filter(holder=session).exists()


def test_it_writes_down_two_names_for_one_work_and_stores_neither() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        row = held(posting, sim, as_person="64b7c0ffee0000000000dead")
        synced(posting)
        row.refresh_from_db()
        assert row.identity is not None and row.person_hash != row.identity.person_hash
        assert row.person_hash == person_hash(posting, known_there(row, sim)["person"])
        assert row.external_id == "" and row.identity.external_id == ""


def test_it_ends_no_sitting_by_another_persons_return() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        row = held(posting, sim, code="", as_person="64b7c0ffee0000000000dead")
        session = running(row)
        sim.control("return", submission=known_there(row, sim)["submission"])
        synced(posting)
        session.refresh_from_db()
        assert session.state == "running"


def test_it_loses_nothing_while_the_platform_is_down(platform: str) -> None:
    with simulated(platform) as sim:
        posting = publish(study_of(), platform, sim, places=4)
        row = held(posting, sim)
        sim.faults.down = True
        for _ in range(3):
            result = look(posting)
            assert f"{platform} could not be read, and nothing was lost" in result.error
        posting.refresh_from_db()
        assert posting.sync_error == result.error and "last answered never" in result.error
        assert posting.state == "open" and Submission.objects.get().state == "unknown"
        held(posting, sim)
        sim.faults.down = False
        synced(posting)
        row.refresh_from_db()
        posting.refresh_from_db()
        assert row.state == "awaiting" and not posting.sync_error and posting.synced_at
        assert Submission.objects.filter(state="awaiting").count() == 2


def test_it_reads_the_same_through_failing_calls(platform: str) -> None:
    with simulated(platform, faults=Faults(3, 0.0)) as sim:
        posting = publish(study_of(8), platform, sim, places=24)
        rows = [held(posting, sim) for _ in range(8)]
        sim.faults.share = 0.2
        for _ in range(12):
            if not look(posting).error:
                break
        assert {Submission.objects.get(pk=row.pk).state for row in rows} == {"awaiting"}
        sim.faults.share = 0.0
        synced(posting)
        assert Posting.objects.get().places == 24 and Posting.objects.get().taken == 8


def test_it_keeps_letters_of_our_people_once() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        row = held(posting, sim)
        person = known_there(row, sim)["person"]
        stranger = sim.control("people", count=1)["people"][0]["person"]
        sim.control("message", person=person, body="Where is my bonus?", posting=posting.external_id)
        sim.control("message", person=person, body="It is me again.")
        sim.control("message", person=stranger, body="About another study.")
        assert "2 new messages." in synced(posting).changes
        assert not any("messages" in change for change in synced(posting).changes)
        messages = Message.objects.order_by("pk")
        assert [message.body for message in messages] == ["Where is my bonus?", "It is me again."]
        assert {message.identity for message in messages} == {row.identity} and {
            message.state for message in messages
        } == {"received"}


def test_it_reads_bonuses_that_were_paid_on_the_platforms_page() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        row = held(posting, sim)
        synced(posting)
        sim.world.submissions[known_there(row, sim)["submission"]].bonuses.extend([50, 20])
        synced(posting)
        assert not StatementLine.objects.exists()
        for _ in range(2):  # Reading again replaces what was read, and never adds.
            synced(posting, everything=True)
            lines = StatementLine.objects.values_list("submission", "kind", "cents", "count")
            assert sorted(lines) == [(row.pk, "bonus", 20, 1), (row.pk, "bonus", 50, 1)]
        sim.world.submissions[known_there(row, sim)["submission"]].bonuses.remove(50)
        synced(posting, everything=True)
        assert StatementLine.objects.get(cents=50).count == 0


def test_it_takes_over_what_was_changed_on_the_platforms_page() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        held(posting, sim)
        held(posting, sim)
        sim.world.studies[posting.external_id].status = "PAUSED"
        assert "The posting is paused now." in synced(posting).changes
        assert Posting.objects.get().state == "paused"
        sim.world.studies[posting.external_id].status = "COMPLETED"
        synced(posting)
        posting.refresh_from_db()
        assert posting.state == "closed" and posting.closed_at and is_due(posting)
        sim.world.studies[posting.external_id].status = "ACTIVE"
        synced(posting)
        posting.refresh_from_db()
        assert posting.state == "closed" and "somebody opened it there" in posting.sync_error


def test_it_reads_one_posting_once_at_a_time() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        calls = sim.calls_count
        with exclusive(f"sync-{posting.pk}"):
            assert "at this moment" in look(posting).error
        assert sim.calls_count == calls


def test_it_asks_every_posting_although_one_fails() -> None:
    study = study_of()
    with simulated("prolific") as sim, simulated("mturk") as other:
        first = publish_posting(study, "prolific", "live", places=4, site=sim.url)
        second = publish_posting(study, "mturk", "live", places=4, site=other.url)
        Posting.objects.filter(pk=first.pk).update(facts="broken")
        assert tasks.sync_postings() == 1
        first.refresh_from_db()
        second.refresh_from_db()
        assert "The sync failed with" in first.sync_error and second.synced_at


def test_it_answers_a_notification_once_and_forgets_no_later_one() -> None:
    with simulated("prolific") as sim:
        posting = publish(study_of(), "prolific", sim, places=4)
        Posting.objects.update(sync_asked_at=timezone.now())
        assert tasks.sync_posting(posting.pk) is True
        calls = sim.calls_count
        assert tasks.sync_posting(posting.pk) is False and sim.calls_count == calls

        Posting.objects.update(sync_asked_at=timezone.now() + timedelta(seconds=60))
        assert tasks.sync_posting(posting.pk) is True
        assert Posting.objects.get().sync_asked_at is not None
