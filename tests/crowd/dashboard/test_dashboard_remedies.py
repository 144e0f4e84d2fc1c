"""What a researcher does for one person: write first, grant, ask to return, approve by hand, also for
a person who never came; the log names the researcher and the reason."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from crowd import tasks
from crowd.ground import platform_accounts
from crowd.ground.copyable_commands import as_typed
from crowd.models import Identity, Message, Payout, Posting, Submission
from crowd.money.platform_statement import name_of
from crowd.money.run import look
from crowd.people.messages import deliver
from experiments.models import Study
from tests.crowd import paid

pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/"
WHY = "Their page failed after the last question."


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (lambda seconds: None,))
    settings.PAYOUT_GRACE_S = 0


@pytest.fixture
def stage(researcher: User) -> Iterator[paid.Stage]:
    with paid.offered(paid.paying()) as offered:
        yield offered


@pytest.fixture
def broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """A broker that only records the tasks."""
    settings.CELERY_BROKER_URL = "redis://nowhere"
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(tasks.carry_out, "delay", lambda *args: asked.append(args))
    monkeypatch.setattr(tasks.send_message, "delay", lambda *args: asked.append(args))
    return asked


def stranger(stage: paid.Stage) -> Submission:
    """A person who submitted on the platform and never came here."""
    taken = stage.sim.control.take()
    stage.sim.control.complete(taken["submission"], stage.posting.codes["complete"])
    stage.sim.clock.advance(10)
    look(stage.posting)
    return Submission.objects.get(session=None)


def here(stage: paid.Stage, **ending: Any) -> Submission:
    row = stage.person(**ending)
    look(stage.posting)
    row.refresh_from_db()
    return row


def post(desk: Client, row: Submission, act: str, **data: str) -> tuple[int, str]:
    reply = desk.post(f"{ROOT}recruitment/submissions/{row.pk}/", {"act": act, **data})
    return reply.status_code, reply.content.decode()


def log() -> list[tuple[str, str]]:
    return list(LogEntry.objects.order_by("pk").values_list("user__username", "change_message"))


def short(row: Submission) -> str:
    return name_of(row)


def run(*args: str, **options: Any) -> str:
    """The output of a command; its error as text."""
    out = StringIO()
    try:
        call_command(*args, stdout=out, **options)
    except CommandError as error:
        return f"error: {error}"
    return out.getvalue()


def test_it_grants_an_amount_once_and_settle_pays_it(stage: paid.Stage, desk: Client) -> None:
    row = here(stage, matches=4)
    assert row.session is not None
    page = desk.get(f"{ROOT}participants/{row.session.pk}/").content.decode()
    assert "Pay an extra amount" in page and f"recruitment/submissions/{row.pk}/" in page
    form = {"kind": "compensation", "amount": "2.50 GBP", "text": WHY}
    assert post(desk, row, "grant", **form)[0] == 302
    assert stage.ledger(row)["compensation"] == ("due", 250)
    user, line = next(entry for entry in log() if "Granted" in entry[1])
    assert user == "grace" and "2.50 GBP" in line and short(row) in line and WHY in line
    status, again = post(desk, row, "grant", **form)
    assert status == 400 and "already" in again
    assert paid.settle(stage.study) == ""
    assert stage.paid(row) == (140, [20, 250])
    paid.agree(stage)


@pytest.mark.parametrize(
    "data,problem",
    [
        ({"kind": "bonus", "amount": "2,5", "text": WHY}, "is no amount"),
        ({"kind": "bonus", "amount": "", "text": WHY}, "is no amount"),
        ({"kind": "bonus", "amount": "-2.00", "text": WHY}, "is no amount"),
        ({"kind": "bonus", "amount": "0.00", "text": WHY}, "at least 0.01"),
        ({"kind": "bonus", "amount": "9999999999.00", "text": WHY}, "at most"),
        ({"kind": "bonus", "amount": "2.00 USD", "text": WHY}, "pays in GBP"),
        ({"kind": "bonus", "amount": "2.00", "text": "because"}, "20 or more"),
        ({"kind": "base", "amount": "2.00", "text": WHY}, "valid choice"),
        ({"amount": "2.00", "text": WHY}, "Choose whether"),
    ],
)
def test_it_grants_no_nonsense(stage: paid.Stage, desk: Client, data: dict[str, str], problem: str) -> None:
    row = here(stage)
    status, page = post(desk, row, "grant", **data)
    assert status == 400 and problem in page
    assert not Payout.objects.exclude(decided_by="policy").exists()


def test_it_refuses_an_unknown_act_and_another_study(stage: paid.Stage, desk: Client) -> None:
    row = here(stage)
    assert post(desk, row, "reject", text=WHY)[0] == 400
    assert post(desk, row, "", text=WHY)[0] == 400
    Study.objects.filter(pk=stage.study.pk).update(slug="elsewhere")
    assert post(desk, row, "note", text=WHY)[0] == 404


def test_the_command_grants_in_the_name_of_a_person(stage: paid.Stage) -> None:
    row, slug = here(stage), stage.study.slug
    name = short(row)
    printed = run("grant", slug, name, "1.50", kind="bonus", by="grace", reason=WHY)
    assert "1.50 GBP are due" in printed
    assert Payout.objects.get(kind="bonus", decided_by="grace").cents == 150
    assert any(user == "grace" and WHY in line for user, line in log())
    for person, amount, problem in (
        ("zz", "1.50", "names nobody"),
        ("00000000", "1.50", "is nobody"),
        (name, "1,5", "is no amount"),
        (name, "1.50 USD", "pays in GBP"),
    ):
        assert problem in run("grant", slug, person, amount, by="grace", reason=WHY), problem
    assert "needs a reason" in run("grant", slug, name, "1.50", by="grace", reason=" ")
    assert "never came" in run(
        "grant", slug, stranger(stage).submission_hash[:8], "1.50", by="grace", reason=WHY
    )


def test_it_writes_to_a_person_first_and_never_twice(stage: paid.Stage, desk: Client) -> None:
    row = here(stage)
    person = Identity.objects.get().external_id
    assert post(desk, row, "write", text="Did your page fail?")[0] == 302
    stored = Message.objects.get()
    assert (stored.state, stored.by, stored.answers) == ("sending", "grace", None)
    assert not any("message" in call.path and call.method == "POST" for call in stage.sim.log)
    status, page = post(desk, row, "write", text="Did your page fail? ")
    assert status == 400 and "exactly this before" in page
    for _ in range(2):
        call_command("send_messages", "wolf-or-husky", stdout=StringIO())
    stored.refresh_from_db()
    assert stored.state == "sent" and deliver(stored.pk) == ""
    assert sum(call.path.endswith("messages/") and call.method == "POST" for call in stage.sim.log) == 1
    assert ("grace", f"Wrote to {short(row)} (message {stored.pk}).") in log()
    shown = desk.get(f"{ROOT}messages/?state=first").content.decode()
    assert "Did your page fail?" in shown and "Answer …" not in shown and person not in shown
    assert post(desk, row, "write", text=" ")[0] == 400
    assert post(desk, row, "write", text="x" * 4001)[0] == 400


def test_it_writes_to_a_person_who_never_came_without_storing_their_id(
    stage: paid.Stage, desk: Client, broker: list[tuple[Any, ...]]
) -> None:
    row = stranger(stage)
    assert post(desk, row, "write", text="Did your page fail?")[0] == 302
    stored = Message.objects.get()
    assert broker == [(stored.pk,)] and stored.identity is None
    tasks.send_message(stored.pk)
    stored.refresh_from_db()
    assert stored.state == "sent"
    truth = stage.truth()[row.submission_hash]
    outside = [str(truth[key]) for key in ("person", "submission") if key in truth]
    assert outside
    for record in (row, stored):
        record.refresh_from_db()
        assert not any(outside_id in str(vars(record)) for outside_id in outside)
    pages = [
        f"{ROOT}messages/",
        f"{ROOT}recruitment/submissions/{row.pk}/",
        f"{ROOT}recruitment/agreement/",
        f"{ROOT}log/",
    ]
    for path in pages:
        text = desk.get(path).content.decode()
        assert not any(outside_id in text for outside_id in outside), path


@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after"])
def test_a_first_message_without_an_answer_is_never_repeated(
    stage: paid.Stage, researcher: User, fault: Any
) -> None:
    row = here(stage)
    stage.sim.faults.forced[:] = [fault]
    printed = run("send_messages", "wolf-or-husky", to=short(row), message="Hello?", by="grace")
    assert "may or may not have arrived" in printed
    stage.sim.faults.forced.clear()
    assert "No message waits" in run("send_messages", "wolf-or-husky")
    assert "exactly this before" in run(
        "send_messages", "wolf-or-husky", to=short(row), message="Hello?", by="grace"
    )
    assert "is nobody here" in run("send_messages", "wolf-or-husky", to=short(row), message="Hi", by="eve")
    assert "Say to whom" in run("send_messages", "wolf-or-husky", message="Hi", by="grace")


def test_it_writes_to_no_forgotten_and_to_no_other_person(stage: paid.Stage, desk: Client) -> None:
    row = here(stage)
    Identity.objects.update(person_hash="f" * 64)
    status, page = post(desk, row, "write", text="Hello?")
    assert status == 400 and "another person" in page
    Identity.objects.update(forgotten_at=row.seen_at)
    status, page = post(desk, row, "write", text="Hello?")
    assert status == 400 and "forgotten" in page
    assert not Message.objects.exists()


@pytest.mark.parametrize("came", [True, False])
def test_it_asks_for_a_return_by_a_worker(
    stage: paid.Stage, desk: Client, broker: list[tuple[Any, ...]], researcher: User, came: bool
) -> None:
    row = here(stage, verdict="withdrawn", answers=3) if came else stranger(stage)
    assert post(desk, row, "request_return", text="short")[0] == 400
    assert post(desk, row, "request_return", text=WHY)[0] == 302
    assert broker == [(researcher.pk, row.pk, "request_return", WHY)]
    tasks.carry_out(*broker[0])
    assert stage.truth()[row.submission_hash]["return_requested"]
    row.refresh_from_db()
    assert row.return_requested and (came or row.external_id == "")
    assert any(user == "grace" and WHY in line and "to return" in line for user, line in log()[1:])
    assert post(desk, row, "request_return", text=WHY)[0] == 400, "asked once"


@pytest.mark.parametrize("came", ["finished", "left", "never"])
def test_it_approves_all_awaiting_work_and_pays_once(
    stage: paid.Stage, desk: Client, broker: list[tuple[Any, ...]], came: str
) -> None:
    row = (
        stranger(stage)
        if came == "never"
        else here(stage, verdict="passed" if came == "finished" else "incomplete")
    )
    page = desk.get(f"{ROOT}recruitment/submissions/{row.pk}/").content.decode()
    assert "Approve for 1.40 GBP, as grace" in page
    assert post(desk, row, "approve", text=WHY)[0] == 302
    for _ in range(2):
        tasks.carry_out(*broker[0])
    assert stage.truth()[row.submission_hash]["reward_paid_count"] == 1
    assert any(user == "grace" and line.startswith("Approve") and WHY in line for user, line in log())
    row.refresh_from_db()
    look(stage.posting)
    if came != "never":
        assert stage.ledger(row)["base"] == ("sent", 140)
        paid.settle(stage.study)
        paid.agree(stage)
    assert post(desk, row, "approve", text=WHY)[0] == 400, "it awaits nothing any more"


def test_it_approves_no_work_above_the_cap_or_denied_before(stage: paid.Stage, researcher: User) -> None:
    row = stranger(stage)
    Posting.objects.update(cap_cents=100)
    printed = run("decide", "wolf-or-husky", "approve", row.submission_hash[:8], by="grace", message=WHY)
    assert "cap of 1.00 GBP would be exceeded" in printed and "at least 2.10 GBP, fees included" in printed
    Posting.objects.update(cap_cents=9000)
    other = here(stage, verdict="incomplete")
    assert other.session is not None
    paid.payout(
        posting=stage.posting, session=other.session, kind="compensation", cents=50, currency="GBP",
        state="withheld", reason="No.",
    )  # fmt: skip
    printed = run("decide", "wolf-or-husky", "approve", short(other), by="grace", message=WHY)
    assert "is withheld" in printed
    Payout.objects.update(state="sent")
    printed = run("decide", "wolf-or-husky", "approve", short(other), by="grace", message=WHY)
    assert "0.50 GBP already" in printed
    assert all(work["reward_paid_count"] == 0 for work in stage.truth().values())


def test_the_command_decides_about_anybody_who_awaits(stage: paid.Stage, researcher: User) -> None:
    here(stage)
    row = stranger(stage)
    name = row.submission_hash[:8]
    assert "Say why" in run("decide", "wolf-or-husky", "approve", name, by="grace")
    assert "nothing to decide" in run("decide", "wolf-or-husky", "reject", name, by="grace", message=WHY)
    assert "1 of 1 done" in run("decide", "wolf-or-husky", "request-return", name, by="grace", message=WHY)
    assert "1 of 1 done" in run("decide", "wolf-or-husky", "approve", name, by="grace", message=WHY)
    assert stage.truth()[row.submission_hash]["reward_paid_count"] == 1
    assert "is nobody" in run("decide", "wolf-or-husky", "approve", "0" * 8, by="grace", message=WHY)


def test_without_a_broker_it_names_the_command(stage: paid.Stage, desk: Client) -> None:
    row = stranger(stage)
    line = f"python manage.py decide wolf-or-husky approve {row.submission_hash[:8]} --by grace --message WHY"
    page = desk.get(f"{ROOT}recruitment/submissions/{row.pk}/").content.decode()
    assert f"<code>{as_typed(line)}</code>" in page
    status, page = post(desk, row, "approve", text="They say it's theirs, really.")
    assert status == 400 and "No message broker" in page and "--message" in page
    assert stage.truth()[row.submission_hash]["reward_paid_count"] == 0


def test_a_failed_decision_stands_in_the_log(
    stage: paid.Stage, desk: Client, broker: list[tuple[Any, ...]]
) -> None:
    row = stranger(stage)
    post(desk, row, "approve", text=WHY)
    stage.sim.faults.down = True
    tasks.carry_out(*broker[0])
    assert any("and that failed" in line for _, line in log())
    tasks.carry_out(10**9, row.pk, "approve", WHY)
    tasks.carry_out(broker[0][0], 10**9, "approve", WHY)


def test_the_agreement_leads_to_what_can_be_done(stage: paid.Stage, desk: Client) -> None:
    row = stranger(stage)
    page = desk.get(f"{ROOT}recruitment/agreement/").content.decode()
    assert re.search(rf'href="{ROOT}recruitment/submissions/{row.pk}/">Write, pay, decide', page)
    assert post(desk, row, "note", text="Wrote to the platform's support.")[0] == 302
    assert log()[-1][0] == "grace" and "Note on submission" in log()[-1][1]


def test_it_raises_the_cap_in_the_name_of_a_person(stage: paid.Stage, desk: Client) -> None:
    path = f"{ROOT}recruitment/{stage.posting.pk}/cap/"
    before = stage.posting.cap_cents
    assert "Change the cap" in desk.get(f"{ROOT}recruitment/").content.decode()
    for amount, reason in (("5,00", WHY), ("500.00", "why"), ("0.01", WHY), ("500.00 USD", WHY), ("", WHY)):
        reply = desk.post(path, {"amount": amount, "reason": reason})
        assert reply.status_code == 400, amount
    assert Posting.objects.get().cap_cents == before
    assert desk.post(path, {"amount": "500.00 GBP", "reason": WHY}).status_code == 302
    assert Posting.objects.get().cap_cents == 50000
    user, line = log()[-1]
    assert user == "grace" and "500.00 GBP" in line and WHY in line
    local = Posting.objects.create(study=stage.study, platform="local", mode="live")
    assert desk.get(f"{ROOT}recruitment/{local.pk}/cap/").status_code == 404
