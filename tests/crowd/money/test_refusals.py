"""Money under refusals: a call that may have moved money is never a "no", and one person's trouble is one
person's. The platform's own record says what was paid."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.utils import timezone

from analysis.tables.response_reader import read_frames
from crowd import tasks
from crowd.ground import platform_accounts
from crowd.models import Payout, PayoutBatch, Posting, Submission
from crowd.money.needs_hand import hands_of
from crowd.money.platform_statement import name_of
from crowd.people.submission_actions import submission_named
from crowd.platforms.base import ALL_REFUSED
from crowd.platforms.prolific.bonuses import BEFORE_THE_WALLET
from crowd.rehearsal import prolific
from crowd.rehearsal.faults import ALL, KINDS, LATER
from crowd.rehearsal.prolific import bonuses as simulated_bonuses
from crowd.rehearsal.prolific import submission_states
from crowd.rehearsal.prolific.control import ProlificControl
from crowd.rehearsal.prolific.records import ProlificRefusal
from experiments.errors import StudyError
from experiments.models import Study
from experiments.sessions.pseudonyms import Pseudonyms, is_called
from tests.crowd import paid
from tests.crowd.reference import OPEN

pytestmark = pytest.mark.django_db
HOUR_S = 3600


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """No time passes between two tries."""
    monkeypatch.setattr(platform_accounts.open_service, "__defaults__", (lambda seconds: None,))
    settings.PAYOUT_GRACE_S = 900


def when_paying(stage: paid.Stage, fault: str) -> None:
    """The coming call that pays bonuses meets the fault."""

    def before(call: Any) -> None:
        if "submissions/bonus-payments" in call.path:
            stage.sim.faults.forced = [fault]
            stage.sim.before_reply.remove(before)

    stage.sim.before_reply.append(before)


def after_the_grace() -> None:
    Payout.objects.exclude(called_at=None).update(called_at=timezone.now() - timedelta(seconds=901))


def lines(stage: paid.Stage) -> list[tuple[str, str]]:
    """Kind and name of each line that needs a hand."""
    return [(hand.kind, hand.who) for hand in hands_of(Posting.objects.get(pk=stage.posting.pk))]


def names() -> set[str]:
    return {name_of(row) for row in Submission.objects.select_related("session__participant")}


@pytest.mark.parametrize("late_s", [HOUR_S, 30 * HOUR_S, 240 * HOUR_S])
def test_a_refusal_that_is_carried_out_late_pays_nobody_twice(late_s: int) -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(4)]
        stage.sim.faults.late_s = late_s
        when_paying(stage, "refused_late")
        assert "Prolific answered 4" in paid.settle(stage.study)
        assert stage.sim.faults.met["refused_late"] == 1
        assert [stage.ledger(row)["bonus"][0] for row in rows] == ["unknown"] * 4
        for _ in range(3):
            after_the_grace()
            sentence = paid.settle(stage.study)
            assert sentence.count("(0.20 GBP): Prolific did not say whether it pays it") == 4
            assert "Nothing is sent again by itself" in sentence
            assert {who for kind, who in lines(stage) if kind == "missing"} == names()
        assert all(stage.paid(row) == (140, []) for row in rows)
        stage.sim.clock.advance(late_s)
        assert paid.settle(stage.study) == ""
        assert all(stage.paid(row) == (140, [20]) for row in rows)
        assert lines(stage) == []
        paid.agree(stage)


def test_what_arrives_after_it_was_sent_again_is_told_by_the_next_settle() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        stage.sim.faults.late_s = 2 * HOUR_S
        when_paying(stage, "refused_late")
        paid.settle(stage.study)
        after_the_grace()
        paid.settle(stage.study)
        (name,) = names()
        assert paid.settle(stage.study, again=[name], reason="the platform said: never") == ""
        assert stage.paid(row) == (140, [20]) and lines(stage) == []
        stage.sim.clock.advance(2 * HOUR_S)
        assert "that the ledger did not send" in paid.settle(stage.study)
        assert stage.paid(row) == (140, [20, 20]) and lines(stage) == [("surplus", name)]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 422, 429])
def test_only_what_the_platform_says_is_before_the_wallet_counts_as_not_paid(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise ProlificRefusal(status, "No.", "No")

    monkeypatch.setattr("crowd.rehearsal.prolific.bonuses.pay", refuse)
    with paid.offered(paid.paying()) as stage:
        row = stage.person(matches=4)
        assert f"Prolific answered {status}" in paid.settle(stage.study)
        assert stage.ledger(row)["bonus"][0] == ("due" if status in (401, 404, 405) else "unknown")
        assert stage.paid(row) == (140, [])
    assert set(BEFORE_THE_WALLET) == {401, 404, 405}


@pytest.mark.parametrize("named", [True, False], ids=["named", "not named"])
def test_refused_people_are_named_and_all_others_paid_in_the_same_run(named: bool) -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(12)]
        refused = [rows[at] for at in (0, 3, 4, 11)]
        ids = {row.submission_hash: name for name, row in zip(
            stage.sim.control.state()["submissions"], rows, strict=True)}  # fmt: skip
        for row in refused:
            stage.sim.control.refuse(ids[row.submission_hash], named)
        for _ in range(2):
            sentence = paid.settle(stage.study)
            assert sentence.count("Prolific refuses this payment") == 4
            told = {who for kind, who in lines(stage) if kind == "refused"}
            assert told == {name_of(row) for row in refused}
            assert [stage.paid(row)[1] for row in rows] == [[] if row in refused else [20] for row in rows]
        # Of what was announced, one batch was ever paid.
        assert PayoutBatch.objects.filter(purpose="bonus", state="paid").count() == 1
        commands = [hand.command for hand in hands_of(stage.posting) if hand.kind == "refused"]
        assert commands and all("--by-hand" in command for command in commands)
        paid.settle(stage.study, by_hand=[name_of(refused[0])], receipt="bank, 2026-11")
        assert stage.ledger(refused[0])["bonus"][0] == "by_hand"
        stage.sim.world.unpayable.clear()
        assert paid.settle(stage.study) == ""
        assert [stage.paid(row)[1] for row in rows] == [[] if row is rows[0] else [20] for row in rows]


def test_a_refused_approval_is_named_and_all_others_are_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    approve = submission_states.bulk_approve

    def refuse(world: Any, submissions: list[Any]) -> None:
        if bad in {each.id for each in submissions}:
            raise ProlificRefusal(400, "One of them cannot be approved.", "Validation error")
        approve(world, submissions)

    with paid.offered(paid.paying()) as stage:
        rows = [stage.person() for _ in range(7)]
        bad = list(stage.sim.control.state()["submissions"])[4]
        monkeypatch.setattr(submission_states, "bulk_approve", refuse)
        for _ in range(2):
            sentence = paid.settle(stage.study)
            assert "1 not paid" in sentence and sentence.count("Prolific refuses this payment") == 1
            assert lines(stage) == [("refused", name_of(rows[4]))]
            assert [stage.paid(row)[0] for row in rows] == [0 if row is rows[4] else 140 for row in rows]


@pytest.mark.parametrize("count", [4, 6])
def test_what_is_refused_to_all_is_pinned_on_none_of_them(count: int) -> None:
    """Of a few it cannot be told, and each is named."""
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(count)]
        for submission in stage.sim.control.state()["submissions"]:
            stage.sim.control.refuse(submission, False)
        assert "Some of these bonuses cannot be paid" in paid.settle(stage.study)
        assert len(lines(stage)) == (count if count < ALL_REFUSED else 0)
        assert all(stage.paid(row) == (140, []) for row in rows)


def test_parts_are_paid_when_only_the_whole_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up = simulated_bonuses.set_up

    def refuse(world: Any, study: str, csv: str) -> Any:
        if len(csv.splitlines()) > 3:
            raise ProlificRefusal(400, "This is too much at once.", "Validation error")
        return set_up(world, study, csv)

    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(7)]
        monkeypatch.setattr(simulated_bonuses, "set_up", refuse)
        assert paid.settle(stage.study) == ""
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 7
        paid.agree(stage)


def test_a_page_s_total_pays_rewards_although_bonuses_lack_money() -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(3)]
        paid.settle(stage.study, yes=False)
        stage.sim.control.fund(-int(stage.sim.control.state()["available"]) + 10)
        tasks.pay_batch(stage.posting.pk, "grace", 479)
        assert [stage.paid(row) for row in rows] == [(0, [])] * 3
        tasks.pay_batch(stage.posting.pk, "grace", 480)
        assert [stage.paid(row) for row in rows] == [(140, [])] * 3
        assert "are missing" in Posting.objects.get().sync_error


def test_a_row_that_cannot_be_read_is_not_gone() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person()
        assert paid.settle(stage.study) == ""
        for _ in range(4):
            stage.sim.faults.forced = ["odd_row"]
            paid.settle(stage.study)
            assert "gone" not in {kind for kind, _ in lines(stage)}
        assert stage.sim.faults.met["odd_row"] >= 3 and stage.paid(row) == (140, [])


def test_hyphens_name_no_person() -> None:
    name, pseudonym = "p-0123456789abcdef", UUID(int=7)
    assert is_called(name, pseudonym, "3456") and is_called(name, pseudonym, "00000000-0000")
    assert not any(is_called(name, pseudonym, word) for word in ("--------", "0-0-0", "fedc"))


def test_a_cause_of_the_account_is_told_once_and_names_nobody() -> None:
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(6)]

        def refuse(call: Any) -> None:
            if "bonus-payments" in call.path:
                raise AssertionError("the account was asked again")

        stage.sim.control.fund(-int(stage.sim.control.state()["balance"]))
        stage.sim.before_reply.append(refuse)
        assert "are missing. The bonuses wait" in paid.settle(stage.study)
        assert all(stage.paid(row)[1] == [] for row in rows) and lines(stage) == []


def test_rewards_do_not_wait_for_the_money_of_bonuses() -> None:
    """They were set aside when the posting was published."""
    with paid.offered(paid.paying()) as stage:
        rows = [stage.person(matches=4) for _ in range(5)]
        stage.sim.control.fund(-int(stage.sim.control.state()["available"]) + 10)
        sentence = paid.settle(stage.study)
        assert "The bonuses wait, and what approving pays does not" in sentence and "are missing" in sentence
        assert [stage.paid(row) for row in rows] == [(140, [])] * 5
        stage.sim.control.fund(100_000)
        assert paid.settle(stage.study) == ""
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 5
        paid.agree(stage)


@pytest.mark.parametrize("fault", ["null_amount", "text_amount"])
def test_an_amount_of_another_type_stops_no_bonus(fault: str) -> None:
    with paid.offered(paid.paying(), options=prolific.ProlificWorldOptions(fee_parts=100)) as stage:
        rows = [stage.person(matches=4) for _ in range(3)]
        stage.sim.faults.forced = [fault]
        assert paid.settle(stage.study) == ""
        assert stage.sim.faults.met[fault] == 1
        assert [stage.paid(row) for row in rows] == [(140, [20])] * 3


def test_a_raised_reward_is_not_paid_before_a_named_person_accepts_it() -> None:
    with paid.offered(paid.paying()) as stage:
        early = stage.person(matches=4)
        assert paid.settle(stage.study) == ""
        rows = [stage.person(matches=4) for _ in range(3)]
        stage.sim.control.raise_reward(stage.posting.external_id, 200)
        sentence = paid.settle(stage.study)
        assert "shows a reward of 2.00 GBP now, and 1.40 GBP was offered" in sentence
        # A bonus is owed for any reward.
        assert [stage.paid(row) for row in rows] == [(0, [20])] * 3
        (hand,) = hands_of(Posting.objects.get())
        assert hand.kind == "reward" and hand.cents == 600 and "--accept-reward" in hand.command
        assert paid.settle(stage.study, accept_reward=True, reason="agreed with the ethics board") == ""
        assert [stage.paid(row) for row in rows] == [(200, [20])] * 3
        # Who was approved before got the reward of then, and no line says otherwise.
        assert stage.paid(early) == (140, [20]) and lines(stage) == []
        late = stage.person(matches=4)
        assert paid.settle(stage.study) == ""
        assert stage.paid(late) == (200, [20])
        paid.agree(stage)


def test_a_raised_reward_is_accepted_on_its_page(desk: Client) -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person()
        stage.sim.control.raise_reward(stage.posting.external_id, 200)
        paid.settle(stage.study)
        page = f"/studies/{stage.study.slug}/recruitment/{stage.posting.pk}/reward/"
        assert page in desk.get(f"/studies/{stage.study.slug}/money/").content.decode()
        assert "shows a reward of 2.00 GBP now" in desk.get(page).content.decode()
        assert desk.post(page, {"reason": "why"}).status_code == 400
        assert desk.post(page, {"reason": "agreed with the ethics board"}).status_code == 302
        assert paid.settle(stage.study) == "" and stage.paid(row) == (200, [])
        reply = desk.post(page, {"reason": "agreed with the ethics board"})
        assert reply.status_code == 400 and "nothing to accept" in reply.content.decode()


def test_a_person_has_one_name_everywhere_and_any_part_of_it_finds_them(desk: Client, tmp_path: Path) -> None:
    with paid.offered(paid.paying()) as stage:
        row, other = stage.person(matches=4, outcome=""), stage.person(matches=4)
        assert row.session is not None and other.session is not None
        paid.settle(stage.study, csv=str(tmp_path / "books.csv"))
        (name,) = set(export_names(stage.study)[row.session.pk])
        assert re.fullmatch(r"p-[0-9a-f]{16}", name) and name == name_of(row)
        assert f"{name}" in (tmp_path / "books.csv").read_text()
        root = f"/studies/{stage.study.slug}"
        for part in (name, name[:8], name[2:], name[5:12], name.upper()):
            assert submission_named(stage.study, part) == row
            page = desk.get(f"{root}/participants/", {"q": part}).content.decode()
            assert name in page and name_of(other) not in page
        for text in (desk.get(f"{root}/money/").content.decode(), str(hands_of(stage.posting))):
            assert str(row.session.participant.pseudonym)[:8] not in text
        with pytest.raises(StudyError, match="nobody who came"):
            submission_named(stage.study, "p-000000000000")
        with pytest.raises(StudyError, match="6 or more characters"):
            submission_named(stage.study, "p-1")


def export_names(study: Study) -> dict[Any, set[str]]:
    """Session -> the names of its person in the exported table of participants."""
    frame = read_frames(study).participants
    people = {str(session): row for session, row in zip(frame["session"], frame["participant"], strict=True)}
    call = Pseudonyms.of(study, "")
    return {pk: {people[call("s", pk)]} for pk in study.sessions.values_list("pk", flat=True)}


def test_it_accepts_no_reward_that_is_the_offered_one() -> None:
    with paid.offered(paid.paying()) as stage:
        stage.person()
        said = paid.settle(stage.study, accept_reward=True, reason="to be sure")
        assert "There is nothing to accept" in said


def test_a_reward_as_text_stops_no_sync() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person()
        stage.sim.world.studies[stage.posting.external_id].sent["reward"] = "140"
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [])


@pytest.mark.parametrize("status", ["PROCESSING", "UNDER INVESTIGATION", ""])
def test_a_status_that_nobody_knows_is_told_at_once_and_stops_settle_after_a_day(status: str) -> None:
    with paid.offered(paid.paying()) as stage:
        row, other = stage.person(), stage.person()
        (listed, *_) = stage.sim.control.state()["submissions"]
        stage.sim.control.call_by(status or " ", submission=listed)
        assert paid.settle(stage.study) == ""
        assert (stage.paid(row), stage.paid(other)) == ((0, []), (140, []))
        assert lines(stage) == [("unclear", name_of(Submission.objects.get(state="unknown")))]
        Submission.objects.filter(state="unknown").update(state_at=timezone.now() - timedelta(hours=25))
        assert "a state that is not known here" in paid.settle(stage.study)
        assert [kind for kind, _ in lines(stage)] == ["unclear"]
        stage.sim.control.call_by("", submission=listed)
        assert paid.settle(stage.study) == ""
        assert stage.paid(row) == (140, [])


def test_a_person_who_leaves_the_list_after_pay_is_told() -> None:
    with paid.offered(paid.paying()) as stage:
        row = stage.person()
        assert paid.settle(stage.study) == ""
        (listed,) = stage.sim.control.state()["submissions"]
        kept = stage.sim.world.submissions.pop(listed)
        paid.settle(stage.study)
        assert lines(stage) == [("gone", name_of(Submission.objects.get()))]
        stage.sim.world.submissions[listed] = kept
        assert paid.settle(stage.study) == "" and lines(stage) == []
        assert stage.paid(row) == (140, [])


def test_every_fault_of_money_has_a_page_and_every_page_a_fault() -> None:
    """The simulator makes what the platform's own pages leave open."""
    known = {*ALL, *ProlificControl.VERBS}
    told = {each.fault for each in OPEN}
    assert told <= known
    assert {*KINDS, *LATER, "null_amount", "text_amount", "odd_row"} <= told
    assert all(each.page and each.says.endswith(".") for each in OPEN)
