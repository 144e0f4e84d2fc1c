"""Forgetting removes a person's identity, keeps what accounting needs, and says which is which."""

from __future__ import annotations

import io
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.utils import timezone

from crowd.ground import platform_accounts
from crowd.models import ExcludedPerson, Identity, Message, Payout, Posting, Submission
from crowd.money.run import look
from crowd.people.privacy import OPEN_MAX_DAYS, forget, forget_due
from crowd.recruiting.publishing import close
from experiments.models import Response, Session, Study
from experiments.tokens import keyed_hash
from tests import world
from tests.crowd import paid

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("time, JSON")]
RAW = "60bf9310e8dec401be6e9615"


@pytest.fixture
def person(tmp_path: Path, store_folder: Path) -> Identity:
    """A person who took part on the local platform, with ids as a sync would have stored them."""
    world.opened_study(world.write_study(tmp_path))
    world.Person("ann").take_part()
    Identity.objects.update(external_id=RAW)
    Submission.objects.update(external_id="sub-1", person_hash="x")
    Message.objects.create(
        posting=Posting.objects.get(), identity=Identity.objects.get(), state="received", body="hello"
    )
    return Identity.objects.get()


def pay(state: str) -> Payout:
    session = Session.objects.get()
    posting = Posting.objects.get()
    return paid.payout(
        posting=posting, session=session, kind="base", cents=100, currency="USD", state=state, reason="r"
    )


def stored_text() -> str:
    """Every value of every row of the tables that may hold an outside id or an answer."""
    tables: list[Any] = [Identity, Submission, Message, Payout, Response, Session]
    return json.dumps([list(table.objects.values()) for table in tables], default=str)


def test_it_removes_ids_messages_and_the_hash_once_nothing_needs_them(person: Identity) -> None:
    pay("sent")
    Posting.objects.update(state="closed")
    done = forget(person, responses=False, reason="asked")
    assert RAW not in stored_text() and "hello" not in stored_text()
    assert keyed_hash("person", "local", "ann") not in stored_text()
    assert Payout.objects.get().cents == 100 and Response.objects.exists()
    assert any("accounting" in sentence for sentence in done.remains)


def test_it_keeps_the_hash_while_the_study_is_offered_so_that_no_person_comes_twice(person: Identity) -> None:
    forget(person, responses=False, reason="asked")
    assert RAW not in stored_text()
    assert world.Person("ann", submission="again").join().json()["error"]["code"] == "taken_part"


def test_it_keeps_the_ids_that_a_payment_needs_and_removes_them_later(person: Identity) -> None:
    payout = pay("unknown")
    done = forget(person, responses=False, reason="asked")
    assert RAW in stored_text() and "run settle" in " ".join(done.remains)
    Payout.objects.filter(id=payout.pk).update(state="sent")
    Posting.objects.update(state="closed")
    forget_due()
    assert RAW not in stored_text() and Identity.objects.get().person_hash.startswith("forgotten-")


def test_it_removes_the_answers_on_request_and_leaves_a_counted_tombstone(person: Identity) -> None:
    count = Response.objects.count()
    assert count > 0
    done = forget(person, responses=True, reason="asked")
    session = Session.objects.get()
    assert done.responses == count == session.erased["responses"] and not Response.objects.exists()
    assert (
        session.state == "finished" and not session.gates.exclude(kind="consent").exclude(value={}).exists()
    )


def test_it_may_be_repeated(person: Identity) -> None:
    Posting.objects.update(state="closed")
    forget(person, responses=True, reason="asked")
    before = stored_text()
    again = forget(Identity.objects.get(), responses=True, reason="asked")
    assert stored_text() == before and (again.ids, again.responses) == (0, 0)


def test_it_waits_for_the_retention_date(person: Identity) -> None:
    study = Study.objects.get()
    definition = study.definition
    definition["ethics"]["retention_days"] = 30
    Posting.objects.update(state="closed")
    closed = timezone.now() - timedelta(days=29)
    # Another digest, because a process keeps parsed definitions by it.
    Study.objects.update(definition=definition, digest="d" * 64, state="closed", closed_at=closed)
    assert forget_due().people == 0 and RAW in stored_text()
    Study.objects.update(closed_at=closed - timedelta(days=2))
    assert forget_due().people == 1 and RAW not in stored_text()


def test_the_command_finds_a_person_by_either_name(
    person: Identity, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("ann\n"))
    call_command("forget", platform="local")
    assert "1 identities" in capsys.readouterr().out and Identity.objects.get().forgotten_at is not None
    call_command("forget", "small", participant=person.participant.pseudonym.hex[:8])
    with pytest.raises(CommandError, match="Nobody of that name"):
        call_command("forget", participant="0" * 12)
    with pytest.raises(CommandError, match="Say who"):
        call_command("forget")


def test_an_exclusion_list_keeps_hashes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{RAW}\n{RAW}\n\nother\n"))
    call_command("exclude", "pilot-2026", platform="prolific")
    rows = set(ExcludedPerson.objects.values_list("person_hash", flat=True))
    assert rows == {keyed_hash("person", "prolific", RAW), keyed_hash("person", "prolific", "other")}
    with pytest.raises(CommandError, match="a list is named"):
        call_command("exclude", "no spaces", platform="prolific")


def test_a_live_posting_is_checked_for_dangerous_settings(person: Identity, settings: Any) -> None:
    def ids() -> set[str | None]:
        return {m.id for m in run_checks(tags=["crowd"], databases=["default"])}

    settings.DEBUG, settings.SECURE, settings.CELERY_BROKER_URL = True, False, ""
    settings.SECRET_KEY = settings.IDENTITY_KEY = "x" * 32
    assert ids() == set()
    Posting.objects.update(platform="prolific", mode="live", currency="USD", reward_cents=10)
    assert ids() == {"crowd.E001", "crowd.E002", "crowd.W001", "crowd.W002"}
    settings.DEBUG, settings.SECURE, settings.CELERY_BROKER_URL = False, True, "redis://127.0.0.1"
    Posting.objects.update(reward_cents=1000)
    assert ids() == set()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between two tries."""
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (lambda seconds: None,))


def identity_of(row: Submission) -> Identity:
    assert row.identity is not None
    return row.identity


def go_on(row: Submission) -> None:
    """Sets the session back to the middle of the trials."""
    paid.unfinished(row.session, state="running", verdict="", finished_at=None, started_at=timezone.now())


def outside_ids(stage: paid.Stage) -> set[str]:
    """The platform's own ids and their hashes that are stored here, in any table."""
    works = stage.sim.control.state()["submissions"]
    text = stored_text()
    hashes = {row.person_hash for row in Identity.objects.all()}
    known = {str(value) for work in works.values() for value in (work["submission"], work["person"])}
    return {value for value in known if value in text} | {h for h in hashes if "forgotten-" not in h}


def assert_nothing_left(stage: paid.Stage) -> None:
    close(stage.posting, "grace")
    forget_due()
    assert outside_ids(stage) == set()
    look(stage.posting)
    forget_due()
    assert outside_ids(stage) == set()


def test_it_can_still_pay_a_person_forgotten_before_the_first_sync(at_once: None) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        done = forget(identity_of(row), responses=False, reason="asked")
        assert "run settle" in " ".join(done.remains)
        assert paid.settle(stage.study) == "" and stage.paid(row) == (140, [20])
        assert_nothing_left(stage)


def test_it_can_still_pay_a_person_forgotten_while_taking_part(at_once: None) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        go_on(row)
        look(stage.posting)
        done = forget(identity_of(row), responses=False, reason="asked")
        assert "1 of their sessions has not ended" in " ".join(done.remains)
        assert done.ids == forget_due().ids == 0
        paid.unfinished(row.session, state="finished", verdict="passed", finished_at=timezone.now())
        # The daily sweep comes before the first settling.
        assert forget_due().ids == 0
        assert paid.settle(stage.study) == "" and stage.paid(row) == (140, [20])
        assert_nothing_left(stage)


def test_it_pays_pro_rata_if_all_data_are_removed_in_the_middle(at_once: None) -> None:
    with paid.offered(paid.paying(policy={**paid.POLICY, "withdrawn": "pro_rata"})) as stage:
        row = stage.person(answers=10, outcome="")
        go_on(row)
        look(stage.posting)
        total = row.session.slot.trials.count()  # type: ignore[union-attr]
        done = forget(identity_of(row), responses=True, reason="asked")
        assert done.responses == 10 and "run settle" in " ".join(done.remains)
        payout = Payout.objects.get()
        # Ten of `total` trials, halves rounded up.
        assert (payout.kind, payout.cents) == ("compensation", (2 * 140 * 10 + total) // (2 * total))
        row.refresh_from_db()
        stage.sim.control("return", submission=row.external_id)
        assert paid.settle(stage.study) == "" and stage.paid(row) == (0, [payout.cents])
        assert_nothing_left(stage)


def test_it_owes_nothing_more_to_a_leaver_who_has_the_answers_removed(at_once: None) -> None:
    """The platform said that they are gone; a person who has the answers removed has not finished."""
    with paid.offered(paid.paying()) as stage:
        row = stage.person(answers=10, outcome="")
        go_on(row)
        look(stage.posting)
        row.refresh_from_db()
        stage.sim.control("return", submission=row.external_id)
        look(stage.posting)
        assert forget(identity_of(row), responses=True, reason="asked").responses == 10
        assert Session.objects.get().verdict == "incomplete" and not Payout.objects.exists()
        assert_nothing_left(stage)


def test_it_pays_the_whole_bonus_if_the_answers_are_removed_after_finishing(at_once: None) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=3)
        forget(identity_of(row), responses=True, reason="asked")
        assert paid.settle(stage.study) == "" and stage.paid(row) == (140, [15])
        assert_nothing_left(stage)


def test_it_does_not_wait_for_people_who_left_long_ago(at_once: None) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(answers=5, outcome="")
        go_on(row)
        look(stage.posting)
        close(stage.posting, "grace")
        forget(identity_of(row), responses=False, reason="asked")
        day = timedelta(days=1)
        Session.objects.update(started_at=timezone.now() - OPEN_MAX_DAYS * day + day)
        assert forget_due().ids == 0
        Session.objects.update(started_at=timezone.now() - OPEN_MAX_DAYS * day - day)
        assert forget_due().ids == 2
        assert Session.objects.get().verdict == "incomplete" and not Payout.objects.exists()
        assert outside_ids(stage) == set()


def test_it_sweeps_what_a_sync_stored_while_the_person_was_being_forgotten(person: Identity) -> None:
    Posting.objects.update(state="closed")
    forget(person, responses=False, reason="asked")
    Submission.objects.update(external_id="sub-1", person_hash="x")
    Identity.objects.update(external_id=RAW)
    Message.objects.create(
        posting=Posting.objects.get(), identity=person, external_id="late", state="received", body="late"
    )
    done = forget_due()
    assert (done.ids, done.messages) == (2, 1)
    row = Submission.objects.get()
    assert (row.external_id, row.person_hash, Message.objects.exclude(body="").count()) == ("", "", 0)
    assert RAW not in stored_text() and forget_due().ids == 0


def test_it_sends_no_reply_without_its_words(person: Identity) -> None:
    waiting = Message.objects.create(
        posting=Posting.objects.get(), identity=person, external_id="reply", state="sending", body="dear ann"
    )
    assert forget(person, responses=False, reason="asked").messages == 2
    waiting.refresh_from_db()
    assert (waiting.state, waiting.body) == ("failed", "")


def test_it_says_that_letters_of_unknown_people_stay_and_removes_them_in_time(person: Identity) -> None:
    Message.objects.create(
        posting=Posting.objects.get(), identity=None, external_id="m2", state="received", body="who am I"
    )
    done = forget(person, responses=False, reason="asked")
    assert "1 messages came from people who are not known" in " ".join(done.remains)
    assert "no ethics.retention_days" in " ".join(done.remains)
    assert forget_due().messages == 0
    study = Study.objects.get()
    definition = {**study.definition, "ethics": {**study.definition["ethics"], "retention_days": 30}}
    Posting.objects.update(state="closed")
    closed = timezone.now() - timedelta(days=31)
    Study.objects.update(definition=definition, digest="e" * 64, state="closed", closed_at=closed)
    assert forget_due().messages == 1 and "who am I" not in stored_text()
