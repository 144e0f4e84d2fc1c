"""What needs a named person: money paid by hand, taken back, of odd rows, and of people who never joined."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from crowd.models import Payout, Posting, Submission
from crowd.money.expense_cap import posting_expenses
from crowd.money.ledger import PayoutRefused
from crowd.money.manual_decisions import accept, pay_by_hand
from crowd.money.platform_statement import name_of
from crowd.people.decisions import decide
from crowd.platforms.prolific.submissions_and_messages import Submissions
from crowd.platforms.prolific.wire import ProlificError, ProlificWire
from crowd.rehearsal.prolific import submission_states
from tests.crowd import paid
from tests.crowd.money.test_paid_once import at_once, hands, listed_of, looked, money

__all__ = ["at_once"]
pytestmark = pytest.mark.django_db


def test_it_writes_down_what_was_paid_outside_of_the_platform(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        looked(stage)
        bonus = Payout.objects.get(kind="bonus")
        for who, receipt in (("", "bank transfer 17"), ("grace", " ")):
            with pytest.raises(PayoutRefused):
                pay_by_hand(bonus, who, receipt)
        pay_by_hand(bonus, "grace", "bank transfer 17, in the folder of November")
        assert paid.settle(stage.study) == ""
        bonus.refresh_from_db()
        assert (bonus.state, bonus.decided_by) == ("by_hand", "grace") and "transfer 17" in bonus.receipt
        assert stage.paid(row) == (140, []) and posting_expenses(Posting.objects.get()).cents == 160
        with pytest.raises(PayoutRefused, match="may reach them by the platform"):
            pay_by_hand(Payout.objects.get(kind="base"), "grace", "once more, by mistake")
        assert hands(stage) == []


def test_it_says_if_an_approval_was_taken_back() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person()
        assert paid.settle(stage.study) == "" and stage.ledger(row)["base"] == ("sent", 140)
        world = stage.sim.world
        submission_states.become(world, world.submissions[listed_of(stage)], "AWAITING REVIEW")
        sentence = paid.settle(stage.study)
        assert "(1.40 GBP): Prolific showed this payment, and does not any more" in sentence
        assert stage.paid(row) == (140, []), "nothing is approved again by itself"
        accept(Submission.objects.get(), "grace", "the platform says that it was taken back")
        assert stage.ledger(row)["base"] == ("failed", 140) and hands(stage) == []


def test_it_names_one_odd_row_and_pays_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A listed submission without a participant, and a person whose own record is gone."""
    listed, detail = ProlificWire.rows, Submissions.detail

    def with_an_odd_row(self: Any, path: str, *words: Any, **more: Any) -> Any:
        if path == "submissions/":
            yield {"id": "64" + "0" * 22, "participant_id": None, "status": "ACTIVE"}
        yield from listed(self, path, *words, **more)

    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(3)]
        gone = next(iter(stage.sim.control.state()["submissions"]))

        def without_one(sender: Any, posted: Any, submission: str) -> dict[str, Any]:
            if submission == gone:
                raise ProlificError("Prolific answered 404: not found.", status=404, permanent=True)
            return detail(sender, posted, submission)

        monkeypatch.setattr(ProlificWire, "rows", with_an_odd_row)
        monkeypatch.setattr(Submissions, "detail", without_one)
        sentence = paid.settle(stage.study)
        assert "Prolific lists a submission whose participant is missing" in sentence
        assert f"The statement of {name_of(rows[0])} cannot be read" in sentence
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 3
        assert Payout.objects.filter(confirmed_at=None).count() == 1  # That one's bonus, not seen yet.
        monkeypatch.undo()
        assert paid.settle(stage.study) == ""
        paid.agree(stage)


def test_it_is_not_done_while_a_row_that_was_odd_at_first_can_be_paid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed, odd_once = ProlificWire.rows, [True]

    def odd_at_first(self: Any, path: str, *words: Any, **more: Any) -> Any:
        is_odd = path == "submissions/" and odd_once and odd_once.pop()
        for place, row in enumerate(listed(self, path, *words, **more)):
            yield {**row, "participant_id": None} if is_odd and place == 0 else row

    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(3)]
        monkeypatch.setattr(ProlificWire, "rows", odd_at_first)
        sentence = paid.settle(stage.study)
        assert "2 payouts (1.60 GBP) on prolific could be paid only after this run had begun" in sentence
        assert sorted(len(stage.paid(row)[1]) for row in rows) == [0, 1, 1]
        assert "Needs your hand: nothing.\n" in capsys.readouterr().out, "and not that nothing is left to do"
        assert paid.settle(stage.study) == ""
        assert "Nothing is left to do" in capsys.readouterr().out
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 3
        paid.agree(stage)


def test_it_has_a_row_for_every_cent_also_of_a_person_who_never_joined(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person()
        taken = stage.sim.control.take()
        stage.sim.control.complete(taken["submission"], stage.posting.codes["complete"])
        stage.sim.clock.advance(10)
        paid.settle(stage.study, yes=False)
        stray = Submission.objects.get(session=None)
        # The true costs are 196 each, fees included; the cap lets one of them through.
        Posting.objects.update(cap_cents=200)
        decide(researcher, stray, "approve", "their page failed, says the log")
        base = Payout.objects.get(submission=stray)
        assert (base.state, base.session, base.decided_by) == ("sent", None, "grace")
        paid.settle(stage.study)
        truth = stage.sim.control.state()["submissions"].values()
        assert sum(each["reward_paid_cents"] + sum(each["bonuses"]) for each in truth) == 140
        assert posting_expenses(Posting.objects.get()).cents == 140
        Posting.objects.update(cap_cents=392)
        assert paid.settle(stage.study) == ""
        paid.agree(stage)


def test_it_refuses_an_approval_by_hand_that_the_cap_does_not_allow_with_its_fees(researcher: User) -> None:
    with paid.offered(paid.paying()) as stage:
        taken = stage.sim.control.take()
        stage.sim.control.complete(taken["submission"], stage.posting.codes["complete"])
        stage.sim.clock.advance(10)
        paid.settle(stage.study, yes=False)
        Posting.objects.update(cap_cents=140)
        with pytest.raises(PayoutRefused, match=r"at least 1\.96 GBP, fees included"):
            decide(researcher, Submission.objects.get(), "approve", "their page failed, says the log")
        assert not Payout.objects.exists() and stage.sim.control.state()["balance"] == money(stage)
        paid.agree(stage)


def test_it_names_what_it_cannot_settle() -> None:
    study = paid.paying()
    assert "has no posting on a platform that pays" in paid.settle(study)
    with paid.offered(study):
        assert "has no mturk posting" in paid.settle(study, platform="mturk")
