"""No person is paid twice for one sitting, and a cap holds: proved by the platform's own record."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from crowd.ground import platform_accounts
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.ground.process_locks import exclusive
from crowd.models import Payout, PayoutBatch, Posting, Submission
from crowd.money.expense_cap import posting_expenses, rates_of
from crowd.money.ledger import PayoutRefused, decide_due, grant, release, withhold
from crowd.money.manual_decisions import accept, send_again
from crowd.money.needs_hand import hands_of
from crowd.money.payout_grace import grace
from crowd.money.platform_statement import name_of
from crowd.money.reconciling import Reconciliation
from crowd.money.run import catch_up, look
from crowd.money.submission_comparison import agreement_of
from crowd.platforms.base import Payment
from crowd.platforms.prolific.submissions_and_messages import Submissions
from crowd.rehearsal import prolific
from crowd.rehearsal.prolific import submission_states
from experiments.models import Session
from tests.crowd import paid

pytestmark = pytest.mark.django_db
PLATFORMS = ("prolific", "mturk")
DAY_S = 86_400


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """No time passes between two tries, and an unknown payout may be settled at once."""
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (lambda seconds: None,))
    settings.PAYOUT_GRACE_S = 0


def looked(stage: paid.Stage) -> Reconciliation:
    """What a run learns by reading the platform."""
    posting = Posting.objects.get(pk=stage.posting.pk)
    with exclusive(f"settle-{stage.study.slug}") as _:
        return catch_up(posting, service_of(posting))


def hands(stage: paid.Stage) -> list[str]:
    """What needs a hand after the platform was read."""
    looked(stage)
    return [str(hand) for hand in hands_of(Posting.objects.get(pk=stage.posting.pk)) if hand.is_trouble]


def kinds(stage: paid.Stage) -> dict[str, str]:
    """Kind -> sentence of all that a page tells: what needs a hand, and each disagreement."""
    posting = Posting.objects.get(pk=stage.posting.pk)
    look(posting, everything=True)
    told = {hand.kind: str(hand) for hand in hands_of(posting)}
    return {each.kind: each.sentence for each in agreement_of(stage.study).disagreements} | told


def listed_of(stage: paid.Stage) -> str:
    """The platform's id of the only submission."""
    return str(next(iter(stage.sim.control.state()["submissions"])))


def approve_there(stage: paid.Stage) -> None:
    """The work is approved on the platform's own page."""
    world = stage.sim.world
    submission_states._approve(world, world.submissions[listed_of(stage)])


ASKED: list[dict[str, Any]] = [
    {"verdict": "screened", "condition": None, "outcome": "screened"},
    {"verdict": "withdrawn", "answers": 10, "outcome": "withdrawn"},
]


@pytest.mark.parametrize("person", ASKED)
def test_it_pays_a_person_asked_to_return_once_they_have(
    person: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(**person, returns=False)
        assert paid.settle(stage.study) == ""
        assert "are paid once they have. Write to them" in " ".join(capsys.readouterr().out.split())
        assert stage.paid(row) == (0, [])
        ((_, cents),) = stage.ledger(row).values()
        assert "Asked to give the place back, and has not" in kinds(stage)["return_open"]
        stage.sim.control.give_back(listed_of(stage))
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (0, [cents])
        assert "return_open" not in kinds(stage)
        paid.agree(stage)


@pytest.mark.parametrize("person", ASKED)
def test_it_sends_nothing_on_top_of_what_the_platform_approved(person: dict[str, Any]) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(**person, returns=False)
        assert paid.settle(stage.study) == ""
        (kind,) = stage.ledger(row)
        stage.sim.clock.advance(22 * DAY_S)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [])
        assert stage.ledger(row)["base"] == ("sent", 140)
        failed = Payout.objects.get(kind=kind)
        assert failed.state == "failed" and "paid 1.40 GBP, no less than this amount" in failed.error
        assert paid.settle(stage.study) == ""
        paid.agree(stage)


def test_it_pays_a_grant_on_top_only_of_a_reward_that_was_paid_before(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(verdict="incomplete", answers=4)
        looked(stage)
        approve_there(stage)
        looked(stage)
        assert row.session is not None
        assert grant(row.session, "compensation", 50, "grace", "our server was slow").state == "due"
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [50])
        paid.agree(stage)


def test_it_pays_no_grant_on_top_of_an_approval_that_came_later() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(verdict="incomplete", answers=4)
        looked(stage)
        assert row.session is not None
        grant(row.session, "compensation", 50, "grace", "our server was slow")
        payouts = list(Payout.objects.values_list("pk", flat=True))
        withhold(payouts, "grace", "not yet decided")
        release(payouts, "grace", "decided after all")
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (0, [])
        approve_there(stage)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [])
        paid.agree(stage)


def test_it_pays_no_compensation_while_a_withheld_reward_may_still_be_approved() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person()
        looked(stage)
        withhold(Payout.objects.values_list("pk", flat=True), "grace", "a permitted ground")
        assert row.session is not None
        grant(row.session, "compensation", 50, "grace", "for the time all the same")
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (0, [])
        stage.sim.clock.advance(22 * DAY_S)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [])
        paid.agree(stage)


def test_it_says_who_was_compensated_and_is_approved_later() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(outcome="")
        stage.sim.control.time_out(listed_of(stage))
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (0, [140])
        approve_there(stage)
        (sentence,) = hands(stage)
        assert "(1.40 GBP): Prolific shows a reward that the ledger did not send" in sentence
        assert "Needs your hand" in paid.settle(stage.study)
        # The books have what was really paid, and the line stays until a named person has explained it.
        assert posting_expenses(Posting.objects.get()).cents == 280
        accept(Submission.objects.get(), "grace", "approved by mistake on the platform's page")
        assert hands(stage) == [] and posting_expenses(Posting.objects.get()).cents == 280
        assert paid.settle(stage.study) == ""
        paid.agree(stage)


def test_it_warns_before_a_compensated_person_is_approved() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(outcome="")
        stage.sim.control.time_out(listed_of(stage))
        assert paid.settle(stage.study) == ""
        world = stage.sim.world
        submission_states.become(world, world.submissions[listed_of(stage)], "AWAITING REVIEW")
        for _ in range(2):
            (sentence,) = hands(stage)
            assert "Awaits review on Prolific again, after 1.40 was sent" in sentence
            assert "Do not approve it" in sentence
        assert "Awaits review on Prolific again" in paid.settle(stage.study)
        assert stage.ledger(row)["base"][0] == "failed"
        stage.sim.control.give_back(listed_of(stage))
        assert hands(stage) == []
        assert stage.paid(row) == (0, [140])
        paid.agree(stage)


def test_it_never_forgets_a_bonus_that_was_accepted_and_not_carried_out(settings: Any, desk: Client) -> None:
    settings.PAYOUT_GRACE_S = 900
    with paid.offered(paid.paying(), options=prolific.ProlificWorldOptions(pay_delay_s=10**9)) as stage:
        row = stage.person(matches=4)
        paid.settle(stage.study)
        assert stage.ledger(row)["bonus"] == ("sent", 20)
        assert hands(stage) == [] and "missing" not in kinds(stage)
        bonus = Payout.objects.get(kind="bonus")
        with pytest.raises(PayoutRefused, match="is missing on prolific"):
            send_again(Submission.objects.get(), "grace", "too early to know")
        Payout.objects.update(called_at=timezone.now() - timedelta(seconds=901))
        (sentence,) = hands(stage)
        assert "(0.20 GBP): Prolific accepted it and does not list it 15 minutes later" in sentence
        assert "does not list it" in paid.settle(stage.study)
        assert stage.ledger(row)["bonus"] == ("sent", 20)  # Nothing is sent again by itself.
        page = reverse("dashboard:statement", args=[stage.study.slug, row.pk])
        assert b"Send again what is missing" in desk.get(page).content
        desk.post(page, {"act": "again", "reason": "Prolific's support says that it was never paid."})
        bonus.refresh_from_db()
        assert bonus.state == "due" and bonus.decided_by == "grace" and "Sent again by grace" in bonus.reason
        assert "never arrived: Prolific's support" in LogEntry.objects.latest("pk").change_message
        # The platform has cancelled the first one.
        for batch in stage.sim.world.batches.values():
            batch.in_progress = False
        object.__setattr__(stage.sim.world.options, "pay_delay_s", 0.0)
        paid.settle(stage.study)
        assert stage.paid(row) == (140, [20])
        assert hands(stage) == []
        paid.agree(stage)


def test_it_does_not_send_again_what_appears_on_the_list_after_all(settings: Any) -> None:
    settings.PAYOUT_GRACE_S = 900
    with paid.offered(paid.paying(), options=prolific.ProlificWorldOptions(pay_delay_s=3600)) as stage:
        row = stage.person(matches=4)
        paid.settle(stage.study)
        Payout.objects.update(called_at=timezone.now() - timedelta(seconds=901))
        assert send_again(Submission.objects.get(), "grace", "support says that it is lost") == 1
        stage.sim.clock.advance(3600)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [20])
        paid.agree(stage)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_never_spends_more_than_the_cap_fees_included(platform: str) -> None:
    changes: dict[str, Any] = {"reward": {"bonus_per_match_cents": 0, "bonus_max_cents": 0}}
    if platform == "mturk":
        changes["reward"] |= {"currency": "USD"}
    study = paid.paying_on(platform, slots=1, **changes)
    with paid.offered(study, platform) as stage:
        cap, held = stage.posting.cap_cents, money(stage)
        rows = [stage.person() for _ in range(3)]
        session = rows[0].session
        assert session is not None
        grant(session, "compensation", cap - 3 * 140, "grace", "all that seems to be left")
        paid.settle(stage.study)
        assert 0 < held - money(stage) <= cap
        paid.agree(stage)


def money(stage: paid.Stage) -> int:
    """The balance of the account."""
    return int(stage.sim.control.state()["balance"])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_pays_everybody_within_the_cap_that_publishing_sets(platform: str) -> None:
    changes = {"reward": {"currency": "USD", "bonus_per_match_cents": 5, "bonus_max_cents": 30}}
    study = paid.paying_on(platform, slots=3, **(changes if platform == "mturk" else {}))
    with paid.offered(study, platform) as stage:
        held = money(stage)
        rows = [stage.person(matches=8 - place % 5) for place in range(9)]
        assert paid.settle(stage.study) == ""
        assert set(Payout.objects.values_list("state", flat=True)) == {"sent"} and len(rows) == 9
        assert held - money(stage) <= stage.posting.cap_cents
        posting = Posting.objects.get(pk=stage.posting.pk)
        assert 0 < rates_of(posting).approve < 1 / 2
        paid.agree(stage)


def test_it_counts_a_hand_made_bonus_as_no_proof_where_references_are_kept() -> None:
    with paid.offered(paid.paying_on("mturk"), "mturk") as stage:
        row = stage.person(matches=4)
        assert looked(stage).decided == 2
        lost_and_paid_by_hand(stage, row)
        assert any("a bonus that the ledger did not send" in sentence for sentence in hands(stage))
        assert stage.ledger(row)["bonus"][0] == "due"
        cents = stage.ledger(row)["bonus"][1]
        assert "that the ledger did not send" in paid.settle(stage.study)
        assert stage.paid(row)[1] == [cents]  # Nothing more before a named person has looked.
        accept(Submission.objects.get(), "grace", "a thank-you that was sent by hand")
        assert paid.settle(stage.study) == ""
        assert stage.paid(row)[1] == [cents, cents]  # One by hand, one of the ledger.
        paid.agree(stage)


def test_it_says_so_where_only_an_amount_proves_a_bonus() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        assert looked(stage).decided == 2
        lost_and_paid_by_hand(stage, row)
        reconciled = looked(stage)
        assert any("without saying whose it is" in note for note in reconciled.notes)
        assert stage.ledger(row)["bonus"][0] == "sent"


def lost_and_paid_by_hand(stage: paid.Stage, row: Submission) -> None:
    """Our payment was lost, which we do not know; a researcher pays the same amount by hand."""
    lost_before_it_arrived(stage)
    bonus = Payout.objects.get(kind="bonus")
    row.refresh_from_db()
    assert row.identity is not None
    by_hand = [Payment("by-hand", row.external_id, row.identity.external_id, bonus.cents, "sorry")]
    posting = Posting.objects.get(pk=stage.posting.pk)
    service = service_of(posting)
    service.pay(posted_of(posting), service.prepare(posted_of(posting), by_hand), by_hand)


def test_it_grants_nothing_before_the_policy_has_decided() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=6)
        assert row.session is not None
        finished_at = row.session.finished_at
        paid.unfinished(row.session, state="running", verdict="", finished_at=None)
        with pytest.raises(PayoutRefused, match="still at it"):
            grant(row.session, "bonus", 1, "grace", "thanks")
        paid.unfinished(row.session, state="finished", verdict="passed", finished_at=finished_at)
        with pytest.raises(PayoutRefused, match=r"a bonus already \(0\.30 GBP, due, and the next settle"):
            grant(row.session, "bonus", 1, "grace", "thanks")
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [30])


def test_it_believes_no_live_list_at_once(settings: Any) -> None:
    live, tried = (Posting(platform="prolific", mode=mode) for mode in ("live", "rehearsal"))
    assert [grace(posting).total_seconds() for posting in (live, tried)] == [900, 0]
    settings.PAYOUT_GRACE_S = 1000
    assert grace(live).total_seconds() == 1000


@pytest.mark.django_db(transaction=True)
@pytest.mark.both_databases("locks")
def test_it_keeps_a_person_s_cap_over_two_sittings_that_are_decided_at_once() -> None:
    """Two workers decide two sittings of one person at the same moment, by two postings."""
    study = paid.paying(reward={"person_cap_cents": 300, "bonus_max_cents": 160, "bonus_per_match_cents": 20})
    with paid.offered(study) as stage:
        first, second = stage.person(matches=8), stage.person(matches=8)
        assert first.session is not None and second.session is not None
        Session.objects.filter(pk=second.session.pk).update(participant=first.session.participant)
        other = Posting.objects.create(
            study=study, platform="prolific", mode="rehearsal", state="closed", currency="GBP",
            reward_cents=140, cap_cents=10_000,
        )  # fmt: skip
        Submission.objects.filter(pk=second.pk).update(posting=other)
        start = threading.Barrier(2)

        def decide(posting: Posting) -> None:
            try:
                start.wait(30)
                decide_due(Posting.objects.get(pk=posting.pk))
            finally:
                connection.close()

        workers = [threading.Thread(target=decide, args=[posting]) for posting in (stage.posting, other)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        rewards = Payout.objects.filter(kind="base").count() * 140
        bonuses = sum(Payout.objects.filter(kind="bonus").values_list("cents", flat=True))
        assert rewards == 280 and bonuses <= 300 - 140


# A bonus of unknown outcome on a platform that pays every repeat ------------------------------------------


def without_an_answer(stage: paid.Stage, unknown: int = 1) -> None:
    """The coming bonus payment takes effect, and its answer is lost; after that the platform works again."""
    for batch in stage.sim.world.batches.values():
        batch.in_progress = False

    def before(call: Any) -> None:
        if "submissions/bonus-payments" in call.path:
            stage.sim.faults.forced = ["lost_answer"]
            stage.sim.before_reply.remove(before)

    stage.sim.before_reply.append(before)
    paid.settle(stage.study)
    stage.sim.faults.forced = []
    assert Payout.objects.filter(state="unknown").count() == unknown


def after_the_grace() -> None:
    Payout.objects.exclude(called_at=None).update(called_at=timezone.now() - timedelta(seconds=901))


def test_it_pays_no_person_twice_if_a_lost_payment_is_carried_out_late(settings: Any, desk: Client) -> None:
    settings.PAYOUT_GRACE_S = 900
    with paid.offered(paid.paying(), options=prolific.ProlificWorldOptions(pay_delay_s=3600)) as stage:
        row = stage.person(matches=4)
        without_an_answer(stage)
        # This platform accepts a second batch beside the first.
        for batch in stage.sim.world.batches.values():
            batch.in_progress = False
        after_the_grace()
        name = name_of(Submission.objects.get())
        for _ in range(2):
            sentence = paid.settle(stage.study)
            assert f"{name} (0.20 GBP): Prolific did not say whether it pays it" in sentence
            assert "Nothing is sent again" in sentence
            assert "Run settle again" not in sentence  # Reading once more decides nothing.
        page = desk.get(reverse("dashboard:money", args=[stage.study.slug])).content.decode()
        assert "Needs your hand" in page and "may or may not have been paid" not in page
        assert reverse("dashboard:statement", args=[stage.study.slug, row.pk]) in page
        stage.sim.clock.advance(3600)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [20])
        paid.agree(stage)


def test_it_pays_no_person_twice_if_the_list_shows_another_amount(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PAYOUT_GRACE_S, listed = 900, Submissions.detail

    def one_cent_more(*words: Any) -> dict[str, Any]:
        shown = listed(*words)
        return shown | {"bonus_payments": [cents + 1 for cents in shown["bonus_payments"]]}

    monkeypatch.setattr(Submissions, "detail", one_cent_more)
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        without_an_answer(stage)
        after_the_grace()
        for _ in range(2):
            sentence = paid.settle(stage.study)
            assert "(0.01 GBP): Prolific shows another amount than the ledger sent" in sentence
        assert stage.paid(row) == (140, [20])
        accept(Submission.objects.get(), "grace", "the platform rounds up here")
        assert paid.settle(stage.study) == "" and stage.paid(row) == (140, [20])
        assert (
            stage.ledger(row)["bonus"][0] == "failed" and posting_expenses(Posting.objects.get()).cents == 161
        )


def test_it_pays_no_person_twice_if_the_list_shows_a_sum(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PAYOUT_GRACE_S, listed = 900, Submissions.detail

    def summed(*words: Any) -> dict[str, Any]:
        shown = listed(*words)
        return shown | {"bonus_payments": [sum(shown["bonus_payments"])]}

    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        assert paid.settle(stage.study) == "" and row.session is not None
        grant(row.session, "compensation", 200, "grace", "the server was slow")
        monkeypatch.setattr(Submissions, "detail", summed)
        without_an_answer(stage, unknown=0)
        after_the_grace()
        for _ in range(2):
            assert paid.settle(stage.study) == ""
        # The sum is that of the two, and of no others: both are paid, once.
        assert stage.ledger(row)["compensation"] == ("sent", 200)
        assert stage.paid(row) == (140, [20, 200])


def test_it_sends_again_only_what_a_named_person_releases(settings: Any) -> None:
    settings.PAYOUT_GRACE_S = 900
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        assert looked(stage).decided == 2
        lost_before_it_arrived(stage)
        after_the_grace()
        assert "Needs your hand" in paid.settle(stage.study)
        name = name_of(Submission.objects.get())
        assert "--again needs --by, your name, and --reason" in paid.settle(stage.study, again=[name])
        sentence = paid.settle(stage.study, again=["ffffffff"], reason="Prolific says so")
        assert "'ffffffff' is nobody who came" in sentence and stage.paid(row) == (0, [])
        assert paid.settle(stage.study, again=[name], reason="Prolific says that it was never paid") == ""
        assert stage.paid(row) == (140, [20])
        log = LogEntry.objects.filter(change_message__contains=f"0.20 GBP of {name} due again, which never")
        assert log.get().change_message.endswith("Prolific says that it was never paid")
        paid.agree(stage)


def lost_before_it_arrived(stage: paid.Stage) -> None:
    """Our payment never reached the platform, which we do not know."""
    bonus = Payout.objects.get(kind="bonus")
    batch = PayoutBatch.objects.create(
        posting=stage.posting, purpose="bonus", cents=bonus.cents, currency=bonus.currency, by="x"
    )
    Payout.objects.filter(pk=bonus.pk).update(
        state="unknown", batch=batch, attempts=1, called_at=timezone.now()
    )
