"""Paying on the simulators: every person once, also if calls fail, proved by the platform's own record."""

import io
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from crowd.ground import platform_accounts
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.ground.process_locks import exclusive
from crowd.models import Payout, PayoutBatch, Posting, Submission
from crowd.money.expense_cap import change_cap
from crowd.money.ledger import grant, withhold
from crowd.money.manual_decisions import accept, send_again
from crowd.money.needs_hand import hands_of
from crowd.money.plan import plan_of
from crowd.money.sending import settle
from crowd.platforms.base import Payment
from crowd.rehearsal.faults import KINDS, Fault
from tests.crowd import paid

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]
PLATFORMS = ("prolific", "mturk")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """No time passes between two tries, and an unknown payout may be settled at once."""
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (lambda seconds: None,))
    settings.PAYOUT_GRACE_S = 0


def settle_until_done(stage: paid.Stage, most: int = 5) -> None:
    """With a researcher who asks the platform about a bonus missing from its list, and releases it."""
    sentences = []
    for _ in range(most):
        sentences.append(paid.settle(stage.study))
        if not sentences[-1]:
            return
        for hand in hands_of(Posting.objects.get(pk=stage.posting.pk)):
            if hand.kind == "missing" and hand.submission:
                send_again(Submission.objects.get(pk=hand.submission), "grace", "it was never paid")
    raise AssertionError(sentences)


def calls_of(stage: paid.Stage, word: str) -> int:
    return sum(word in f"{call.operation} {call.path}" for call in stage.sim.log)


def test_it_pays_everybody_who_is_due_on_prolific() -> None:
    with paid.offered(paid.paying()) as stage:
        passed = stage.person(matches=4)
        excluded = stage.person(verdict="screened", matches=8)
        quiz = stage.person(verdict="screened", condition=None, outcome="screened")
        left = stage.person(verdict="incomplete", outcome="", answers=4)
        assert paid.settle(stage.study) == ""
        assert stage.paid(passed) == (140, [20])
        assert stage.paid(excluded) == (140, [30])
        assert stage.paid(quiz) == (0, [70])
        assert stage.paid(left) == (0, [])
        paid.agree(stage)
        assert set(Payout.objects.values_list("state", flat=True)) == {"sent"}
        assert not Payout.objects.filter(confirmed_at=None).exists()
        assert paid.settle(stage.study) == ""
        paid.agree(stage)


def test_it_pays_everybody_who_is_due_on_mechanical_turk() -> None:
    with paid.offered(paid.paying_on("mturk"), "mturk") as stage:
        passed = stage.person(matches=4)
        quiz = stage.person(verdict="screened", condition=None, outcome="screened")
        withdrew = stage.person(verdict="withdrawn", answers=3, outcome="withdrawn")
        never = stage.person(matches=1, outcome="")
        sentence = paid.settle(stage.study)
        assert sentence == ""
        assert stage.paid(passed) == (35, [125])
        assert stage.paid(quiz) == (35, [35])
        assert stage.paid(withdrew) == (35, [105])
        assert stage.paid(never) == (0, [])
        assert set(stage.ledger(never).values()) == {("due", 35), ("due", 110)}
        paid.agree(stage)


def test_it_sends_nothing_without_yes(capsys: pytest.CaptureFixture[str]) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        waits = stage.person(outcome="")
        assert paid.settle(stage.study, yes=False) == ""
        shown = capsys.readouterr().out
        assert "Nothing was sent. To pay 1.60 GBP: settle wolf-or-husky --yes" in shown
        assert "still at work" in shown
        assert stage.paid(row) == (0, [])
        assert calls_of(stage, "approve") == calls_of(stage, "bonus") == 0
        assert stage.ledger(waits) == {"base": ("due", 140)}
        assert not LogEntry.objects.filter(change_message__startswith="Settled").exists()
        for secret in Submission.objects.exclude(external_id="").values_list("external_id", flat=True):
            assert secret not in shown


def test_it_leaves_one_line_in_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    User.objects.create_user("grace")
    with paid.offered(paid.paying()) as stage:
        stage.person(matches=4)
        stage.person()
        assert paid.settle(stage.study) == ""
        entry = LogEntry.objects.get(change_message__startswith="Settled")
        assert entry.user.get_username() == "grace"
        assert entry.change_message == (
            "Settled prolific (rehearsal): sent 3 of 3 payouts, 3.00 GBP of 3.00 GBP, for 2 people."
        )
        assert "Seen on the platform's list: 3 payouts." in capsys.readouterr().out


@pytest.mark.parametrize(("typed", "total", "is_paid"), [
    ("1.60\n", "", True), ("1.60 GBP\n", "", True), ("160\n", "", False), ("", "", False),
    ("", "1.60", True), ("", "1.6", False),
])  # fmt: skip
def test_it_pays_a_large_batch_only_when_its_total_is_typed(
    typed: str, total: str, is_paid: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SETTLE_CONFIRM_CENTS = 159
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        sentence = paid.settle(stage.study, total=total)
        assert ("The total is 1.60 GBP" in sentence) is not is_paid
        assert stage.paid(row) == ((140, [20]) if is_paid else (0, []))


DONE, NOT_DONE = ("lost_answer", "5xx_after"), ("5xx_before", "429")
TURNS = [DONE, pytest.param(NOT_DONE, marks=pytest.mark.long(stays="test_it_pays_once_if_any_call_fails"))]


@pytest.mark.parametrize("kinds", TURNS)
@pytest.mark.parametrize("platform", ["prolific", "mturk"])
def test_it_pays_once_if_any_call_fails(platform: str, kinds: tuple[Fault, Fault]) -> None:
    """A run with a fault at its first call, its second, … until a run has fewer calls. What is owed then
    depends on whether the call was done; the two kinds of fault of either take turns."""
    assert {*DONE, *NOT_DONE} == set(KINDS)
    one_hit = {"platforms": {"mturk": {"base_share": 0.25, "batch": "one"}}}
    with paid.offered(paid.paying_on(platform, **one_hit), platform) as stage:
        place, faults = 0, 1
        while faults:
            row = stage.person(matches=4)
            kind = kinds[place % 2]
            before = stage.sim.faults.met[kind]
            stage.sim.faults.forced = [*([""] * place), kind]
            settle_until_done(stage)
            stage.sim.faults.forced = []
            faults = stage.sim.faults.met[kind] - before
            assert sum(stage.paid(row)[1]) + stage.paid(row)[0] == 160
            # Else every later run would read their list once more, and no run had few calls.
            Payout.objects.filter(attempts__gt=1).update(attempts=1)
            place += 1
        assert place > 6
        paid.agree(stage)
        assert not PayoutBatch.objects.filter(state__in=["paying", "unknown", "preparing"]).exists()


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_never_repeats_a_lost_payment_before_the_list_was_read_late_enough(
    platform: str, settings: Any
) -> None:
    settings.PAYOUT_GRACE_S = 900
    with paid.offered(paid.paying_on(platform), platform) as stage:
        row = stage.person(matches=4)
        lose_the_payment(stage, "5xx_before")
        sentence = paid.settle(stage.study)
        assert "may or may not have been paid. Run settle again after" in sentence
        assert stage.ledger(row)["bonus"][0] == "unknown"
        stage.sim.faults.forced = []
        assert "may or may not have been paid" in paid.settle(stage.study)
        assert stage.paid(row)[1] == []
        Payout.objects.filter(state="unknown").update(called_at=timezone.now() - timedelta(seconds=901))
        if platform == "prolific":  # It pays every repeat, so a person has to confirm the loss of the first.
            for _ in range(2):
                assert "Needs your hand" in paid.settle(stage.study) and stage.paid(row)[1] == []
            assert Payout.objects.get(kind="bonus").state == "unknown"
            assert send_again(Submission.objects.get(pk=row.pk), "grace", "never paid") == 1
        assert paid.settle(stage.study) == ""
        assert len(stage.paid(row)[1]) == 1
        paid.agree(stage)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_finds_a_lost_payment_on_the_list(platform: str, settings: Any) -> None:
    settings.PAYOUT_GRACE_S = 900
    with paid.offered(paid.paying_on(platform), platform) as stage:
        row = stage.person(matches=4)
        lose_the_payment(stage, "lost_answer")
        paid.settle(stage.study)
        stage.sim.faults.forced = []
        assert paid.settle(stage.study) == ""
        assert stage.ledger(row)["bonus"][0] == "sent"
        assert len(stage.paid(row)[1]) == 1
        paid.agree(stage)


def lose_the_payment(stage: paid.Stage, kind: Any) -> None:
    """Makes the next bonus payment fail with `kind`, set during the last call before it."""
    last = "bonus-payments" if stage.posting.platform == "prolific" else "ApproveAssignment"

    def before(call: Any) -> None:
        if last in f"{call.operation} {call.path}" and call.effect and "pay/" not in call.path:
            stage.sim.faults.forced = [kind]
            stage.sim.before_reply.remove(before)

    stage.sim.before_reply.append(before)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_loses_nothing_while_a_platform_is_down(platform: str) -> None:
    with paid.offered(paid.paying_on(platform), platform) as stage:
        row = stage.person(matches=4)
        stage.sim.faults.down = True
        for _ in range(3):
            sentence = paid.settle(stage.study)
            assert "Nothing is lost; run settle again later." in sentence
            assert sentence.count("\n") == 0
        stage.sim.faults.down = False
        assert paid.settle(stage.study) == ""
        assert sum(stage.paid(row)[1]) + stage.paid(row)[0] == 160
        paid.agree(stage)


def test_it_loses_nothing_when_the_platform_goes_down_between_two_calls() -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(3)]

        def down(call: Any) -> None:
            stage.sim.faults.down = stage.sim.faults.down or "bulk-approve" in call.path

        stage.sim.before_reply.append(down)
        assert "Nothing is lost" in paid.settle(stage.study)
        stage.sim.before_reply.clear()
        stage.sim.faults.down = False
        settle_until_done(stage)
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 3
        paid.agree(stage)


def test_it_never_pays_a_forged_person() -> None:
    with paid.offered(paid.paying()) as stage:
        thief = stage.person(matches=8, forged=True)
        honest = stage.person(matches=4)
        assert paid.settle(stage.study) == ""
        assert stage.paid(thief) == (0, [])
        assert stage.paid(honest) == (140, [20])
        assert set(stage.ledger(thief).values()) == {("due", 140), ("due", 30)}


@pytest.mark.parametrize("changed", [{"currency": "USD"}, {"reward_cents": 150}])
def test_it_sends_nothing_where_posting_and_ledger_differ(
    changed: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        Posting.objects.filter(pk=stage.posting.pk).update(**changed)
        assert paid.settle(stage.study) == ""
        assert "nothing is sent" in capsys.readouterr().out.replace("\n", " ")
        assert stage.paid(row) == (0, [])


def test_it_sends_no_row_of_another_currency() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        Payout.objects.filter(kind="bonus").update(currency="USD")
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [])


def test_it_never_pays_more_than_the_cap(capsys: pytest.CaptureFixture[str]) -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(3)]
        # By the simulator's rates a reward of 140 costs 196, and a bonus of 20 costs 28.
        Posting.objects.filter(pk=stage.posting.pk).update(cap_cents=2 * 196 + 29)
        assert paid.settle(stage.study) == ""
        assert "Raise it to at least 6.73 GBP, fees included" in " ".join(capsys.readouterr().out.split())
        assert sum(p.cents for p in Payout.objects.filter(state="sent")) == 300
        change_cap(Posting.objects.get(pk=stage.posting.pk), 673, "grace", "all of them shall be paid")
        assert paid.settle(stage.study) == ""
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 3
        paid.agree(stage)


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases("locks")
def test_it_runs_once_at_a_time() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        sentences: list[str] = []

        def rival(call: Any) -> None:
            if call.effect and not sentences:
                sentences.append("")
                thread = threading.Thread(target=settle_too)
                thread.start()
                thread.join(60)

        def settle_too() -> None:
            try:
                sentences.append(paid.settle(stage.study))
            finally:
                connection.close()

        stage.sim.before_reply.append(rival)
        assert paid.settle(stage.study) == ""
        assert "Another settle of this study is running" in sentences[1]
        assert stage.paid(row) == (140, [20])
        paid.agree(stage)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("word", ["bulk-approve", "submissions/bonus-payments", "/pay/"])
@pytest.mark.both_databases("locks")
def test_it_goes_on_after_a_kill(word: str) -> None:
    """The process dies after the platform has acted and before the answer arrives."""
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(2)]
        processes: list[subprocess.Popen[bytes]] = []

        def kill(call: Any) -> None:
            if word in call.path and processes[0].poll() is None:
                processes[0].send_signal(signal.SIGKILL)
                processes[0].wait()

        stage.sim.before_reply.append(kill)
        processes.append(in_a_process(stage, "--yes"))
        processes[0].wait(120)
        assert processes[0].returncode == -signal.SIGKILL
        stage.sim.before_reply.clear()
        settle_until_done(stage)
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 2
        paid.agree(stage)


def in_a_process(stage: paid.Stage, *options: str) -> "subprocess.Popen[bytes]":
    database = connection.settings_dict
    url = f"sqlite:///{database['NAME']}"
    if connection.vendor == "postgresql":
        place = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
        url = f"postgresql://{database['USER']}:{database['PASSWORD']}@{place}"
    return subprocess.Popen(
        [sys.executable, "manage.py", "settle", stage.study.slug, *options],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("how", ["give_back", "time_out"])
def test_it_compensates_who_finished_but_can_no_longer_be_approved(how: str) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4, outcome="")
        work = next(iter(stage.sim.control.state()["submissions"]))
        getattr(stage.sim.control, how)(work)
        assert paid.settle(stage.study) == ""
        assert stage.ledger(row) == {
            "base": ("failed", 140),
            "compensation": ("sent", 140),
            "bonus": ("sent", 20),
        }
        assert stage.paid(row) == (0, [20, 140])
        paid.agree(stage)


def test_it_writes_down_what_the_platform_has_approved_by_itself() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        stage.sim.clock.advance(22 * 86_400)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [20])
        assert stage.ledger(row) == {"base": ("sent", 140), "bonus": ("sent", 20)}
        assert calls_of(stage, "bulk-approve") == 0
        paid.agree(stage)


def test_it_does_not_pay_again_whom_the_platform_pays_for_being_screened() -> None:
    study = paid.paying(platforms={"prolific": {"fixed_screen_out": True}})
    with paid.offered(study) as stage:
        row = stage.person(verdict="screened", condition=None, outcome="screened")
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (70, [])
        assert stage.ledger(row) == {"screen_out": ("sent", 70)}
        paid.agree(stage)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_reports_a_bonus_that_it_did_not_send(platform: str) -> None:
    with paid.offered(paid.paying_on(platform), platform) as stage:
        row = stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        row.refresh_from_db()
        assert row.identity is not None
        by_hand = [Payment("by-hand", row.external_id, row.identity.external_id, 7, "by hand")]
        posting = Posting.objects.get(pk=stage.posting.pk)
        service = service_of(posting)
        service.pay(posted_of(posting), service.prepare(posted_of(posting), by_hand), by_hand)
        # Its list and the ledger differ, so a person has to look: the run says so, and is no success.
        assert "(0.07" in paid.settle(stage.study)
        assert sum(stage.paid(row)[1]) + stage.paid(row)[0] == 167
        # Nothing more is sent to this person before a named person has looked.
        assert row.session is not None
        grant(row.session, "compensation", 50, "grace", "the server was slow")
        assert "(0.07" in paid.settle(stage.study)
        assert sum(stage.paid(row)[1]) + stage.paid(row)[0] == 167
        accept(Submission.objects.get(pk=row.pk), "grace", "a thank-you that was sent by hand")
        assert paid.settle(stage.study) == ""
        assert sum(stage.paid(row)[1]) + stage.paid(row)[0] == 217
        paid.agree(stage)


def test_it_tells_bonuses_of_one_amount_apart() -> None:
    """One is sent, one is lost, and the list has the amount once: it is the sent one's."""
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        assert paid.settle(stage.study) == ""
        assert row.session is not None
        grant(row.session, "compensation", 20, "grace", "the same amount")
        lose_the_payment(stage, "5xx_before")
        paid.settle(stage.study)
        settle_until_done(stage)
        assert stage.paid(row) == (140, [20, 20])
        paid.agree(stage)


def test_it_does_not_send_what_was_withheld() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        withhold(Payout.objects.filter(kind="bonus").values_list("pk", flat=True), "grace", "by agreement")
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [])


def test_it_says_when_money_is_short_and_pays_once_there_is_some() -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(3)]
        stage.sim.control.fund(-stage.sim.control.state()["available"])
        # Three bonuses of 0.20, with fees by the rate of the quote, rounded up.
        assert "0.85 GBP are needed for bonuses, fees included: 0.85 GBP are missing" in paid.settle(
            stage.study
        )
        assert [stage.paid(row) for row in rows] == [(140, [])] * 3
        stage.sim.control.fund(10_000)
        assert paid.settle(stage.study) == ""
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 3
        paid.agree(stage)


def test_it_pays_the_others_when_one_is_refused() -> None:
    """A permanent refusal of a whole batch is caused by one person and fails only for them."""
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(5)]
        paid.settle(stage.study, yes=False)
        posting = Posting.objects.get(pk=stage.posting.pk)
        plan = plan_of(posting)
        spoiled = [replace(p, submission="0" * 24) if p.row % 5 == 2 else p for p in plan.payables]
        with exclusive("here") as held:
            outcome = settle(posting, replace(plan, payables=tuple(spoiled)), "grace", held=held)
        bonuses = [p for p in spoiled if p.way == "bonus"]
        bad = [p for p in bonuses if p.submission == "0" * 24]
        assert 0 < len(bad) < len(bonuses)
        assert Payout.objects.filter(kind="bonus", state="sent").count() == len(bonuses) - len(bad)
        assert any("have not taken part" in why for why in outcome.problems)
        assert paid.settle(stage.study) == ""
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 5
        paid.agree(stage)


def test_it_asks_the_platform_seldom() -> None:
    with paid.offered(paid.paying(slots=24)) as stage:
        for _ in range(60):
            stage.person(matches=1)
        del stage.sim.log[:]
        assert paid.settle(stage.study) == ""
        counts = Counter(call.operation for call in stage.sim.log)
        assert calls_of(stage, "bulk-approve") == 1
        assert calls_of(stage, "/pay/") == 1
        # Reading each bonus back is one call per person; everything else does not grow with them.
        assert sum(counts.values()) - 60 < 40
        paid.agree(stage)
