"""Needs your hand: the same list in the terminal and on the page, one line for each thing, empty at the end;
and four sums that are the platform's books."""

from __future__ import annotations

import csv
import html
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from crowd import tasks
from crowd.ground import platform_accounts
from crowd.models import Payout, PayoutBatch, Posting, StatementLine, Submission
from crowd.money.ledger import PayoutRefused
from crowd.money.manual_decisions import accept
from crowd.money.needs_hand import hands_of
from crowd.money.run import look
from crowd.money.totals import books_of
from crowd.people.decisions import decide
from crowd.platforms.prolific.submissions_and_messages import Submissions
from crowd.recruiting.places import outstanding
from experiments.sessions.pseudonyms import namer
from tests.crowd import paid

pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/"
WHY = "The platform said that this is what they got."


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time passes between two tries of a call."""
    waits = SimpleNamespace(sleep=lambda seconds: None, monotonic=time.monotonic)
    monkeypatch.setattr("crowd.ground.platform_accounts.time", waits)
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (waits.sleep,))


def kinds(posting: Posting) -> list[str]:
    return [hand.kind for hand in hands_of(Posting.objects.get(pk=posting.pk))]


def text_of(desk: Client, path: str) -> str:
    reply = desk.get(f"{ROOT}{path}", follow=True)
    assert reply.status_code == 200, path
    return html.unescape(str(reply.content.decode()))


def stray(stage: paid.Stage) -> Submission:
    """A person who entered the right code on the platform and never came here."""
    taken = stage.sim.control.take()
    stage.sim.control.complete(taken["submission"], stage.posting.codes["complete"])
    stage.sim.clock.advance(10)
    look(stage.posting)
    return Submission.objects.get(session=None)


def shows_a_cent_more(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Submissions.detail

    def more(*words: Any) -> Any:
        data = told(*words)
        return {**data, "bonus_payments": [cents + 1 for cents in data["bonus_payments"]]}

    monkeypatch.setattr(Submissions, "detail", more)


def after_the_delay() -> None:
    Payout.objects.exclude(called_at=None).update(called_at=timezone.now() - timedelta(days=1))


def test_it_is_empty_at_the_end(desk: Client, capsys: pytest.CaptureFixture[str]) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        assert paid.settle(stage.study) == ""
        assert kinds(stage.posting) == []
    assert "Nothing is left to do" in capsys.readouterr().out
    assert "Nothing" in text_of(desk, "hand/")


def test_terminal_and_page_say_the_same_of_every_line(
    desk: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another amount, a person who never came, a payment that cannot be sent: each with one thing to do."""
    shows_a_cent_more(monkeypatch)
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        stage.person(outcome="")
        stray(stage)
        paid.settle(stage.study)
        after_the_delay()
        capsys.readouterr()
        sentence = paid.settle(stage.study)
        printed = " ".join(capsys.readouterr().out.split())
        hands = hands_of(Posting.objects.get(pk=stage.posting.pk))
        page = " ".join(text_of(desk, "hand/").split())
    assert {hand.kind for hand in hands} >= {"other_amount", "never_here"}
    for hand in hands:
        assert hand.who in printed  # The page has the dashboard's own names.
        for words in (hand.why, hand.remedy):
            assert words in printed and words in page, (hand.kind, words)
        assert (str(hand) in sentence) == hand.is_trouble, hand.kind


def test_paying_on_the_page_leaves_every_trouble_of_the_run_there(
    desk: Client, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows_a_cent_more(monkeypatch)
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        tasks.pay_batch(stage.posting.pk, "grace", 160)
        early = text_of(desk, "hand/")
        after_the_delay()
        tasks.pay_batch(stage.posting.pk, "grace", 0)
        troubles = [str(hand) for hand in hands_of(stage.posting) if hand.is_trouble]
        page = text_of(desk, "hand/")
        log = text_of(desk, "log/")
        assert troubles and paid.settle(stage.study) == " ".join(troubles)
    assert "does not show yet what it sent" in early
    assert "shows another amount than the ledger sent" in page
    assert "shows another amount than the ledger sent" in log


def test_a_named_person_accepts_what_the_platform_shows(
    monkeypatch: pytest.MonkeyPatch, researcher: User
) -> None:
    """Once the delay is over. Afterwards the ledger is the statement, to the cent, and they get no more."""
    shows_a_cent_more(monkeypatch)
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        assert "may be the same payment with another amount" in paid.settle(stage.study)
        assert kinds(stage.posting) == ["too_early"]
        with pytest.raises(PayoutRefused, match="may still appear on the list"):
            accept(row, "grace", WHY)
        after_the_delay()
        look(stage.posting)
        assert kinds(stage.posting) == ["other_amount"]
        name = namer(stage.study)(row.session.participant.pseudonym)  # type: ignore[union-attr]
        assert "--accept needs --by" in _refused(stage, accept=[name])
        assert paid.settle(stage.study, accept=[name], reason=WHY) == ""
        assert stage.paid(row) == (140, [20])
        shown = StatementLine.objects.filter(submission=row)
        assert sum(line.cents * line.count for line in shown if line.kind == "bonus") == 21
        sent = sum(Payout.objects.filter(submission=row, state="sent").values_list("cents", flat=True))
        assert sent + sum(line.cents * line.accepted for line in shown) == 140 + 21
        for _ in range(2):
            assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [20])


def _refused(stage: paid.Stage, **options: Any) -> str:
    with pytest.raises(CommandError) as problem:
        call_command("settle", stage.study.slug, yes=True, **options)
    return str(problem.value)


def test_it_names_who_never_came_with_the_day_of_the_platform_and_offers_no_place_for_them(
    researcher: User, desk: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    with paid.offered(paid.paying()) as stage:
        places = stage.posting.places
        row = stray(stage)
        before = outstanding(stage.posting)
        paid.settle(stage.study)
        printed = " ".join(capsys.readouterr().out.split())
        row.refresh_from_db()
        assert row.completed_at is not None
        # Prolific approves undecided submissions after 21 days.
        assert f"approves it by itself on {row.completed_at + timedelta(days=21):%Y-%m-%d}" in printed
        assert Posting.objects.get().places == places and outstanding(stage.posting) == before
        decide(researcher, row, "reject", "There is no answer of theirs. " * 5, category="NO_DATA")
        assert stage.truth()[row.submission_hash]["state"] == "REJECTED"
        assert paid.settle(stage.study) == "" and kinds(stage.posting) == []
        assert stage.paid(row) == (0, [])


def test_no_data_is_no_ground_against_a_person_with_answers(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        look(stage.posting)
        row.refresh_from_db()
        with pytest.raises(Exception, match="give no grounds to reject"):
            decide(researcher, row, "reject", "There is no answer of theirs. " * 5, category="NO_DATA")
        assert stage.truth()[row.submission_hash]["state"] == "AWAITING REVIEW"


def test_its_four_sums_are_the_platform_s_books(tmp_path: Path) -> None:
    """Spent and fees are what left the platform's balance; due and set aside are counted by hand."""
    with paid.offered(paid.paying(slots=8)) as stage:
        had = stage.sim.control.state()["balance"]
        rows = [stage.person(matches=number) for number in range(4)]
        assert paid.settle(stage.study) == ""
        gone = had - stage.sim.control.state()["balance"]
        books = books_of([Posting.objects.get()])
        file = tmp_path / "books.csv"
        call_command("settle", stage.study.slug, csv=str(file))
        people = sum(reward + sum(more) for reward, more in map(stage.paid, rows))
    assert books.spent == people == 4 * 140 + 5 + 10 + 15
    assert books.spent + books.fees == gone
    assert books.due == 0
    assert books.total == books.spent + books.fees + books.due + books.aside
    assert [cents for _, cents in books.lines()][:5] == [
        books.spent, books.fees, books.due, books.aside, books.total,
    ]  # fmt: skip
    with file.open(newline="") as lines:
        table = list(csv.DictReader(lines))
    paid_out = [round(float(line["amount"]) * 100) for line in table if line["what"] not in ("Fee",)]
    assert sum(paid_out) == people
    fees = sum(float(line["amount"]) * 100 for line in table if line["what"] == "Fee")
    told = sum(PayoutBatch.objects.values_list("fees_cents", flat=True))
    assert fees == pytest.approx(float(told), abs=0.01)


def test_it_prints_fees_only_of_what_may_have_been_paid(capsys: pytest.CaptureFixture[str]) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        stage.sim.faults.set(share=1.0, kinds=("429",))
        capsys.readouterr()
        paid.settle(stage.study)
        assert "Fees of the platform for bonuses" not in capsys.readouterr().out
        stage.sim.faults.set(share=0.0)
        assert paid.settle(stage.study) == ""
        assert "Fees of the platform for bonuses" in capsys.readouterr().out


CAPS = [
    # (new cap, reason) -> what both doors answer: "" if they take it
    ("500.00", WHY, ""),
    ("500", WHY, ""),
    ("500.00 GBP", WHY, ""),
    ("500.00 USD", WHY, "USD"),
    ("5,00", WHY, "5,00"),
    ("1.00", WHY, "less than what is paid, committed and set aside"),
    ("500.00", "why", "reason"),
    ("500.00", "", "reason"),
]


@pytest.mark.parametrize("amount,reason,problem", CAPS)
def test_both_doors_have_one_rule_for_the_cap(
    amount: str, reason: str, problem: str, desk: Client, researcher: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        before = stage.posting.cap_cents
        reply = desk.post(f"{ROOT}recruitment/{stage.posting.pk}/cap/", {"amount": amount, "reason": reason})
        by_page = Posting.objects.get().cap_cents
        Posting.objects.update(cap_cents=before)
        said = ""
        try:
            call_command(
                "publish", stage.study.slug, platform="prolific", simulator=stage.sim.url, cap=amount,
                by="grace", reason=reason, total=amount,
            )  # fmt: skip
        except CommandError as error:
            said = str(error)
        by_terminal = Posting.objects.get().cap_cents
    assert by_page == by_terminal == (before if problem else 50000), said
    assert (reply.status_code == 302) == (not problem) == (not said)
    assert problem in said


def test_a_sum_that_is_sealed_stands_on_no_line(desk: Client, settings: Any) -> None:
    """A bonus tells a score; the sentences of the list name no amount, and the amount is its own column."""
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        paid.settle(stage.study)
        Payout.objects.filter(kind="bonus").update(
            state="unknown", confirmed_at=None, called_at=timezone.now() - timedelta(days=9)
        )
        StatementLine.objects.filter(submission=row, kind="bonus").delete()
        hands = hands_of(Posting.objects.get())
    assert [hand.kind for hand in hands] == ["missing"]
    assert "0.20" not in hands[0].why + hands[0].remedy
