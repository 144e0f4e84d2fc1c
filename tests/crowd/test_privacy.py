"""Forgetting removes who somebody is, leaves what accounting needs, and says which is which."""

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

from crowd.models import ExcludedPerson, Identity, Message, Payout, Posting, Submission
from crowd.privacy import forget, forget_due
from experiments.models import Response, Session, Study
from experiments.tokens import keyed_hash
from tests import world

pytestmark = pytest.mark.django_db
RAW = "60bf9310e8dec401be6e9615"


@pytest.fixture
def person(tmp_path: Path, store_folder: Path) -> Identity:
    """Somebody who took part by the local platform, with ids as a sync would have stored them."""
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
    return Payout.objects.create(
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


def test_it_keeps_the_hash_while_the_study_is_offered_so_that_nobody_comes_twice(person: Identity) -> None:
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
    assert ids() == set()
    Posting.objects.update(platform="prolific", mode="live", currency="USD", reward_cents=10)
    assert ids() == {"crowd.E001", "crowd.E002", "crowd.W001", "crowd.W002"}
    settings.DEBUG, settings.SECURE, settings.CELERY_BROKER_URL = False, True, "redis://127.0.0.1"
    Posting.objects.update(reward_cents=1000)
    assert ids() == set()
