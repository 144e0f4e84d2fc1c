"""The money tab: sums against a count by hand, the batch and its typed total, decisions about people."""

import re
import time
from collections.abc import Iterator
from datetime import timedelta
from statistics import median
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from crowd import tasks
from crowd.dashboard.rows.ledger import hourly_of, spending_of
from crowd.dashboard.rows.pay_due import money_of
from crowd.ground.copyable_commands import as_typed
from crowd.models import Payout, Posting, Submission
from experiments.models import Session, Slot, Study
from experiments.sessions.pseudonyms import namer
from tests.analysis import stored
from tests.crowd import paid

pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/money/"
MESSAGE = "You did not press the key that the page named on two pages, which the instructions explain. " * 2
MONEY = re.compile(r"(\d+\.\d\d) GBP")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """No time passes between two tries, and an unknown payout may be settled at once."""
    monkeypatch.setattr(
        "crowd.ground.platform_accounts.time",
        SimpleNamespace(sleep=lambda seconds: None, monotonic=time.monotonic),
    )
    settings.PAYOUT_GRACE_S = 0


@pytest.fixture
def sent(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[Any, ...]]]:
    """A broker that only records the tasks."""
    settings.CELERY_BROKER_URL = "redis://nowhere"
    asked: list[tuple[Any, ...]] = []
    for task in (tasks.pay_batch, tasks.decide_people):
        monkeypatch.setattr(task, "delay", lambda *args: asked.append(args))
    yield asked


def text_of(client: Client, path: str = ROOT) -> str:
    reply = client.get(path, follow=True)
    assert reply.status_code == 200, path
    return str(reply.content.decode())


def post(client: Client, path: str, **data: Any) -> str:
    return str(client.post(path, data, follow=True).content.decode())


def live(study: Study, **changes: Any) -> Posting:
    row = {
        **{"platform": "prolific", "mode": "live", "state": "open", "places": 20, "taken": 5},
        **{"reward_cents": 140, "currency": "GBP", "cap_cents": 9000, "external_id": "64SECRETSTUDY"},
    }
    return Posting.objects.create(study=study, **{**row, **changes})


def payout(posting: Posting, session: Session, kind: str, cents: int, state: str, **more: Any) -> Payout:
    fields: dict[str, Any] = {"currency": "GBP", "reason": f"Because of {kind}.", **more}
    return paid.payout(posting, session, kind=kind, cents=cents, state=state, **fields)


def test_it_adds_up_what_was_sent_is_due_and_lies_ahead(desk: Client) -> None:
    study = paid.paying()
    posting = live(study)
    people = [stored.sitting(study, f"p{n}", condition="control", minutes=n) for n in range(4)]
    for number, session in enumerate(people):
        Session.objects.filter(pk=session.pk).update(
            finished_at=session.started_at + timedelta(minutes=5 + number)
        )
    for session, state in zip(people, ("sent", "unknown", "due", "failed"), strict=True):
        payout(posting, session, "base", 140, state, called_at=timezone.now())
    payout(posting, people[0], "bonus", 25, "sent")
    payout(posting, people[1], "bonus", 30, "withheld")
    busy = stored.sitting(study, "now", condition="baseline", verdict="", answers=3)
    Submission.objects.create(posting=posting, submission_hash="a" * 64, session=busy, state="active")
    tried = live(study, mode="sandbox", platform="mturk", external_id="H", cap_cents=500)
    payout(tried, stored.sitting(study, "s", condition="grad_cam"), "base", 999, "sent")
    spending = spending_of(study, "live")
    most = 140 + 30
    books = spending.books
    # Unknown counts as spent; the rates are not known, so fees count as a half, rounded up.
    assert (books.spent, books.fees) == (140 + 25 + 140, 153)
    assert books.due == 140 and books.cap == 9000
    assert books.aside == (1 + 15) * most * 3 // 2  # One person at it, and the open places.
    assert books.total == 305 + 153 + 140 + 4080
    assert spending.awaited == 1 and spending.unknown_until is not None
    # By hand: for people who finished, all amounts due together, over the minutes of the sitting.
    hourly = [(140 + 25) * 60 / 5, 140 * 60 / 6, 140 * 60 / 7]
    pay = hourly_of(study, "live")
    assert pay.median_cents == round(median(hourly)) and pay.people == 3
    page = text_of(desk)
    assert "3.05 GBP" in page and "46.78 GBP" in page and "90.00 GBP" in page and "14.00 GBP per hour" in page
    assert "1 payout may or may not have been paid" in page and "SECRET" not in page
    assert "9.99" in text_of(desk, f"{ROOT}?mode=sandbox")
    assert "No real money" in text_of(desk, f"{ROOT}?mode=sandbox")


def test_it_says_when_an_unknown_payout_can_be_settled(desk: Client, settings: Any) -> None:
    settings.PAYOUT_GRACE_S = 3600
    study = paid.paying()
    session = stored.sitting(study, "ada", condition="control")
    at = timezone.now() - timedelta(minutes=10)
    payout(live(study), session, "base", 140, "unknown", called_at=at)
    expected = f"{at + timedelta(hours=1):%Y-%m-%d %H:%M} UTC"
    assert f"From {expected}" in text_of(desk)
    Payout.objects.update(called_at=at - timedelta(hours=2))
    assert "can decide now" in text_of(desk)


def test_it_warns_of_pay_below_the_floor(desk: Client) -> None:
    study = paid.paying()
    session = stored.sitting(study, "ada", condition="control")
    Session.objects.update(finished_at=session.started_at + timedelta(minutes=10))
    payout(live(study), session, "base", 140, "sent")
    page = text_of(desk)
    assert "8.40 GBP per hour" in page and "below the floor" in page


def test_it_shows_the_ledger_by_pseudonym_filters_and_pages(desk: Client) -> None:
    study = paid.paying(slots=60)
    posting = live(study)
    for number in range(55):
        session = stored.sitting(study, f"p{number}", condition="control", answers=1)
        payout(posting, session, "base", 140, "sent" if number % 5 else "failed")
    page = text_of(desk)
    assert "55 payouts, latest first" in page and "1–50 of 55" in page
    assert len(set(re.findall(r"<code>(p-[0-9a-f]{16})</code>", page))) == 50
    assert "11 payouts" in text_of(desk, f"{ROOT}?state=failed")
    assert "None fits" in text_of(desk, f"{ROOT}?kind=bonus")
    for nonsense in ("?state=%F0%9F", "?kind=x&page=99", "?mode=live;drop", "?page=-1"):
        text_of(desk, ROOT + nonsense)


def test_it_tells_no_score_by_a_bonus_while_results_are_sealed(desk: Client) -> None:
    study = paid.paying()
    posting = live(study)
    session = stored.sitting(study, "ada", condition="control")
    row = payout(posting, session, "bonus", 23, "due", reason="Matched 4 answers.")
    pages = (ROOT, f"{ROOT}withhold/{row.pk}/", f"/studies/wolf-or-husky/participants/{session.pk}/")
    for path in (*pages, "/studies/wolf-or-husky/participants/"):
        page = text_of(desk, path)
        ledger = page[page.index("Ledger") :] if path == ROOT else page[page.index("<main") :]
        assert "0.23" not in ledger and "Matched 4" not in ledger, path
    Study.objects.filter(pk=study.pk).update(state="closed", closed_at=timezone.now())
    for path in pages:
        assert "0.23 GBP" in text_of(desk, path), path


def test_it_asks_the_same_questions_for_few_and_many(
    desk: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    study = paid.paying(slots=20)
    posting = live(study)
    for number in range(30):
        if number in (1, 29):
            text_of(desk)
            with django_assert_max_num_queries(88):
                text_of(desk)
            with django_assert_max_num_queries(20):
                text_of(desk, "/studies/wolf-or-husky/participants/")
        session = stored.sitting(study, f"p{number}", condition=stored.CONDITIONS[number % 3][0], answers=2)
        Submission.objects.create(posting=posting, submission_hash=f"{number:064}", session=session)
        payout(posting, session, "base", 140, ("due", "sent")[number % 2])
        payout(posting, session, "bonus", number, "due")


def test_it_asks_a_worker_to_pay_only_what_was_typed(desk: Client, sent: list[tuple[Any, ...]]) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        assert paid.settle(stage.study, yes=False) == ""
        path = f"{ROOT}settle/{stage.posting.pk}/"
        assert "type the total: 1.60 GBP" in text_of(desk)
        for typed in ("", "1.61", "160", "1.6", "1.60 USD "):
            page = post(desk, path, total=typed)
            if typed.strip() != "1.60 USD":
                assert "Nothing was sent" in page, typed
        sent.clear()
        post(desk, path, total="1.60")
        assert sent == [(stage.posting.pk, "grace", 160)]
        assert not stage.truth() or stage.sim.control.state()["submissions"]
        assert Payout.objects.filter(state="sent").count() == 0
        tasks.pay_batch(*sent[0])
        assert set(Payout.objects.values_list("state", flat=True)) == {"sent"}
        paid.agree(stage)
        tasks.pay_batch(*sent[0])
        paid.agree(stage)
    words = " ".join(LogEntry.objects.values_list("change_message", flat=True))
    assert "Asked a worker to pay 1.60 GBP on prolific" in words
    assert "Nothing was paid: 1.60 GBP was typed" in words


def test_a_worker_pays_nothing_where_the_total_has_changed(researcher: User, desk: Client) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        stage.person(matches=0)
        tasks.pay_batch(stage.posting.pk, "grace", 160)
        assert not Payout.objects.filter(state="sent").exists()
        assert "3.00 GBP is due" in text_of(desk, "/studies/wolf-or-husky/recruitment/")
        paid.agree(stage)


def test_a_worker_that_finds_the_platform_down_says_so(researcher: User, desk: Client) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        stage.sim.faults.down = True
        tasks.pay_batch(stage.posting.pk, "grace", 160)
        stage.sim.faults.down = False
        assert set(Payout.objects.values_list("state", flat=True)) == {"due"}
    assert "Paying failed" in LogEntry.objects.latest("pk").change_message


def test_it_names_the_command_without_a_broker(desk: Client) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        line = as_typed("python manage.py settle wolf-or-husky --platform prolific --mode rehearsal --yes")
        assert f"<code>{line}</code>" in text_of(desk)
        assert line in post(desk, f"{ROOT}settle/{stage.posting.pk}/", total="1.60")
        assert set(Payout.objects.values_list("state", flat=True)) == {"due"}


def test_it_says_what_waits_and_why_by_the_dashboard_s_names(desk: Client) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4, outcome="")
        paid.settle(stage.study, yes=False)
        page = text_of(desk)
        assert row.session is not None
        waits = page[page.index("What waits, and why") :]
        assert re.search(r"<code[^>]*>p-[0-9a-f]{16}</code>", waits[: waits.index("</table>")])


def test_it_withholds_in_a_name_with_a_reason_and_takes_it_back(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="control")
    row = payout(live(study), session, "base", 140, "due")
    path = f"{ROOT}withhold/{row.pk}/"
    assert desk.post(path, {"act": "withhold", "reason": "too short"}).status_code == 400
    reason = "The address was forged, see the agreement page."
    post(desk, path, act="withhold", reason=reason)
    row.refresh_from_db()
    assert (row.state, row.decided_by) == ("withheld", "grace") and reason in row.reason
    post(desk, path, act="release", reason="It was not forged after all.")
    row.refresh_from_db()
    assert row.state == "due"
    assert LogEntry.objects.filter(user__username="grace").count() == 2
    Payout.objects.update(state="sent")
    assert "Nothing was changed" in post(desk, path, act="withhold", reason=reason)
    assert Slot.objects.filter(kept=True).count() == 1 and Session.objects.get().verdict == "passed"


def rejectable(stage: paid.Stage) -> Submission:
    """A person who submitted and failed both instructed checks."""
    row = stage.person(verdict="screened", matches=1)
    assert row.session is not None
    for response in row.session.responses.filter(trial__check_kind="instructed").select_related("trial"):
        wrong = next(c["value"] for c in response.trial.choices if c["value"] != response.trial.expected)
        type(response).objects.filter(pk=response.pk).update(value={"choice": wrong})
    return row


def test_it_proposes_and_decides_nothing_by_itself(desk: Client, sent: list[tuple[Any, ...]]) -> None:
    with paid.offered(paid.paying()) as stage:
        bad, good = rejectable(stage), stage.person(matches=8)
        excluded = stage.person(verdict="screened", matches=1)
        paid.settle(stage.study, yes=False)
        page = text_of(desk, f"{ROOT}proposals/")
        assert f'value="{bad.pk}"' in page and "2 of 2" in page
        assert f'value="{good.pk}"' not in page and f'value="{excluded.pk}"' not in page
        bad.refresh_from_db()
        assert bad.external_id and bad.external_id not in page and sent == []
        assert bad.state == "awaiting"


def test_it_rejects_only_after_asking_once_more(desk: Client, sent: list[tuple[Any, ...]]) -> None:
    with paid.offered(paid.paying()) as stage:
        bad, good = rejectable(stage), stage.person(matches=8)
        paid.settle(stage.study, yes=False)
        form = {"people": [bad.pk], "act": "reject", "category": "FAILED_CHECK", "message": MESSAGE}
        path = f"{ROOT}proposals/"
        mistakes: tuple[dict[str, Any], ...] = (
            {"message": "too short"},
            {"people": []},
            {"people": [good.pk]},
            {"act": "shoot"},
            {"category": "UGLY"},
        )
        for broken in mistakes:
            assert desk.post(path, {**form, **broken, "confirmed": "yes"}).status_code == 400, broken
        asked = post(desk, path, **form)
        assert "Reject the work of 1 person?" in asked and sent == []
        post(desk, path, **form, confirmed="yes")
        ((user, people, act, message, category),) = sent
        assert (people, act, category) == ([bad.pk], "reject", "FAILED_CHECK")
        tasks.decide_people(user, people, act, message, category)
        assert {p.state for p in Payout.objects.filter(session=bad.session)} == {"withheld"}
        assert stage.paid(bad) == (0, [])
        assert paid.settle(stage.study) == ""
        assert stage.paid(good) == (140, [30])
    log = " ".join(LogEntry.objects.filter(user__username="grace").values_list("change_message", flat=True))
    assert "Asked a worker to reject the work of 1 person." in log and "Rejected " in log
    assert bad.external_id == "" or bad.external_id not in log


@pytest.mark.parametrize("act", ["approve", "request_return"])
def test_it_approves_or_asks_to_return(desk: Client, sent: list[tuple[Any, ...]], act: str) -> None:
    with paid.offered(paid.paying()) as stage:
        bad = rejectable(stage)
        paid.settle(stage.study, yes=False)
        post(desk, f"{ROOT}proposals/", people=[bad.pk], act=act, message=MESSAGE)
        tasks.decide_people(*sent[0])
        if act == "approve":
            assert stage.paid(bad)[0] == 140
        else:
            bad.refresh_from_db()
            assert bad.return_requested
        paid.agree(stage)


def test_the_same_decision_can_be_taken_at_the_terminal(researcher: User, desk: Client) -> None:
    with paid.offered(paid.paying()) as stage:
        bad = rejectable(stage)
        paid.settle(stage.study, yes=False)
        form = {"people": [bad.pk], "act": "reject", "category": "FAILED_CHECK", "message": MESSAGE}
        page = post(desk, f"{ROOT}proposals/", **form, confirmed="yes")
        assert bad.session is not None
        name = namer(stage.study)(bad.session.participant.pseudonym)
        assert f"manage.py decide wolf-or-husky reject {name} --by grace" in page
        call = ["decide", "wolf-or-husky", "reject", name, "--message", MESSAGE, "--by"]
        with pytest.raises(CommandError, match="is nobody here"):
            call_command(*call, "mallory")
        with pytest.raises(CommandError, match="nothing to decide"):
            call_command(
                "decide", "wolf-or-husky", "reject", "00000000", "--by", "grace", "--message", MESSAGE
            )
        call_command(*call, "grace")
        assert {p.state for p in Payout.objects.filter(session=bad.session)} == {"withheld"}
        with pytest.raises(CommandError, match="nothing to decide"):
            call_command(*call, "grace")


def test_it_counts_an_undecided_bonus_with_the_most() -> None:
    study = paid.paying()
    stored.sitting(study, "ada", condition="control", right=paid.right_until(2))
    assert money_of(study, 12, 0).owed_cents == 140 + 30


def test_it_leads_to_what_people_wait_for(study: Study, desk: Client) -> None:
    posting = live(study)
    assert "Nothing needs to be done" in text_of(desk, "/studies/wolf-or-husky/")
    row = payout(posting, stored.sitting(study, "ada", condition="control"), "base", 140, "due")
    assert ">Pay 1 payout</a>" in text_of(desk, "/studies/wolf-or-husky/")
    Payout.objects.filter(pk=row.pk).update(state="unknown")
    assert "Settle what is unknown" in text_of(desk, "/studies/wolf-or-husky/")
    Posting.objects.create(study=study, platform="local")
    assert "/join/wolf-or-husky/" not in text_of(desk, "/studies/wolf-or-husky/"), (
        "it would take a paid place"
    )
