"""Work, decisions, bonuses and letters at a simulated Prolific, and the state after faults."""

from dataclasses import replace
from typing import Any

import pytest

from crowd.platforms.base import (
    Account,
    BadOptions,
    BonusStatement,
    Line,
    ListedSubmission,
    Payment,
    PlatformError,
    PlatformPosting,
    Site,
    Unread,
)
from crowd.platforms.prolific.submissions_and_messages import Submissions
from crowd.platforms.prolific.wire import PAGE_SIZE
from crowd.rehearsal.faults import KINDS, Fault
from crowd.rehearsal.serving import serving
from tests.crowd.platforms.prolific.prolific_script import Script, said, wired
from tests.crowd.platforms.prolific.prolific_spec import spec
from tests.crowd.platforms.prolific.prolific_stage import (
    calls,
    finished,
    played,
    repeated,
    rows,
    told,
    wanted,
)

pytestmark = pytest.mark.pure

GROUND = (
    "You failed both instructed trials: each said on the page which key to press, and another was pressed."
)


@pytest.mark.parametrize("count", [0, 1, PAGE_SIZE, PAGE_SIZE + 1])
def test_it_lists_everybody_once(count: int) -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service, max(1, count)))
        done = finished(sim, posted, count)
        listings = rows(service, posted)
        assert [(listed.submission, listed.person) for listed in listings] == [
            (p.submission, p.person) for p in done
        ]
        assert {listed.state for listed in listings} <= {"awaiting"}
        assert {listed.code for listed in listings} <= {spec().codes["complete"]}
        assert all(listed.started_at and listed.started_at.tzinfo for listed in listings)


GOOD = {"id": "a" * 24, "participant_id": "b" * 24, "status": "AWAITING REVIEW", "study_code": "CODE"}
POSTED = PlatformPosting(
    "6394cee383e14a167638b300", "open", "ACTIVE", 5, 5, {"currency": "GBP", "reward": 300}
)


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ({"id": None}, ""),
        ({"id": ""}, ""),
        ({"id": 7}, ""),
        ({"id": ["x"]}, ""),
        ({"id": "x\u0000"}, ""),
        ({"id": "x" * 65}, ""),
        ({"participant_id": None}, "c" * 24),
        ({"participant_id": ""}, "c" * 24),
        ({"participant_id": {"id": "b"}}, "c" * 24),
        ({"participant_id": "\ud800"}, "c" * 24),
        ({"status": None}, "c" * 24),
        ({"status": 3}, "c" * 24),
        ("no object", ""),
        (None, ""),
    ],
)
def test_it_sets_a_row_aside_that_it_cannot_read(odd: Any, named: str) -> None:
    row = {**GOOD, "id": "c" * 24, **odd} if isinstance(odd, dict) else odd
    with serving(Script(said({"results": [GOOD, row, {**GOOD, "id": "d" * 24}]}))) as url:
        first, unread, last = Submissions(wired(url), Account(Site())).submissions(POSTED)
    assert isinstance(first, ListedSubmission) and isinstance(last, ListedSubmission)
    assert (first.submission, last.submission) == ("a" * 24, "d" * 24)
    assert isinstance(unread, Unread)
    assert unread.submission == named
    assert "b" * 24 not in unread.why


@pytest.mark.parametrize(
    ("odd", "code", "raw", "state"),
    [
        ({"study_code": "A\u0000B\ud800"}, "A?B?", "AWAITING REVIEW", "awaiting"),
        ({"study_code": {"code": "x"}}, "", "AWAITING REVIEW", "awaiting"),
        ({"study_code": "x" * 99}, "x" * 64, "AWAITING REVIEW", "awaiting"),
        ({"status": "NEW\u0007" + "y" * 60}, "CODE", "NEW?" + "y" * 36, "unknown"),
        ({"started_at": 7, "completed_at": ["x"]}, "CODE", "AWAITING REVIEW", "awaiting"),
        ({"started_at": "0001-01-01T00:00:00+14:00"}, "CODE", "AWAITING REVIEW", "awaiting"),
    ],
)
def test_it_reads_a_row_whose_texts_cannot_be_stored(odd: Any, code: str, raw: str, state: str) -> None:
    with serving(Script(said({"results": [{**GOOD, **odd}]}))) as url:
        (row,) = Submissions(wired(url), Account(Site())).submissions(POSTED)
    assert isinstance(row, ListedSubmission)
    assert (row.code, row.raw, row.state) == (code, raw, state)
    assert (row.started_at, row.completed_at) == (None, None)


def test_it_reads_a_message_in_a_form_that_can_be_stored() -> None:
    about = {"data": {"study_id": POSTED.external_id}}
    rows = [
        {"id": "m1", "sender_id": "p1", "body": "Two\nlines\u0000\ud800.", **about},
        {"id": None, "sender_id": "p1", "body": 7, **about},
        {"id": "m3", "sender_id": None, "body": "From whom?", **about},
        {"id": "m4", "sender_id": "p2", "body": "About what?", "data": {"study_id": 5}},
    ]
    with serving(Script(said({"results": rows}))) as url:
        read = [
            (each.person, each.body) for each in Submissions(wired(url), Account(Site())).messages(POSTED)
        ]
    assert read == [("p1", "Two\nlines??."), ("p1", ""), ("p2", "About what?")]


def test_it_says_in_which_state_each_submission_is() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service, 9))
        names = ["reserved", "active", "awaiting", "approved", "rejected", "returned", "timed_out", "asked"]
        taken = {
            name: sim.control.take(posting=posted.external_id, reserve=name == "reserved")["submission"]
            for name in names
        }
        for name in ("awaiting", "approved", "rejected"):
            sim.control.complete(taken[name], spec().codes["complete"])
        sim.control.complete(taken["asked"], spec().codes["declined"])
        sim.clock.advance(60)
        service.approve(posted, [taken["approved"]])
        service.reject(posted, taken["rejected"], GROUND, "FAILED_CHECK")
        sim.control.give_back(taken["returned"])
        sim.control.time_out(taken["timed_out"])
        listings = {listed.submission: listed for listed in rows(service, posted)}
        states = {name: listings[submission].state for name, submission in taken.items()}
        assert states == {name: name for name in names[:-1]} | {"asked": "awaiting"}
        assert [name for name in names if listings[taken[name]].return_requested] == ["asked"]


@pytest.mark.parametrize("seed", range(4))
def test_it_reads_again_while_the_platform_shows_passing_states(seed: int) -> None:
    with played(seed, transient_share=0.3, publish_delay_s=5, approve_delay_s=2) as (sim, service):
        posted = repeated(lambda: service.publish(wanted(service)))
        assert [study.status for study in sim.world.studies.values()] == ["ACTIVE"]
        done = finished(sim, posted, 3)
        for _ in range(20):
            settled = service.approve(posted, [payment.submission for payment in done])
            if {result.state for result in settled} == {"sent"}:
                break
        assert [told(sim, payment)["reward_paid_count"] for payment in done] == [1, 1, 1]
        repeated(lambda: service.close(posted))
        assert [study.status for study in sim.world.studies.values()] == ["COMPLETED"]


def test_it_takes_a_passing_state_for_unknown() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        sim.world.options = replace(sim.world.options, transient_share=1.0)
        look = service.look(posted)
        assert (look.state, look.raw) == ("unknown", "PROCESSING")
        with pytest.raises(PlatformError, match="PROCESSING"):
            service.publish(wanted(service))
        (listed,) = rows(service, posted)
        assert (listed.state, listed.raw) == ("unknown", "PROCESSING")
        (settled,) = service.approve(posted, [payment.submission])
        assert settled.state == "unknown"


def test_it_approves_what_awaits_review_and_nothing_else() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service, 4))
        done = finished(sim, posted, 2)
        active = sim.control.take(posting=posted.external_id)["submission"]
        asked = [done[0].submission, active, "f" * 24, done[1].submission, done[0].submission]
        settled = service.approve(posted, asked)
        assert [result.reference for result in settled] == asked
        assert [result.state for result in settled] == ["sent", "failed", "failed", "sent", "sent"]
        assert "ACTIVE" in settled[1].message
        again = service.approve(posted, asked)
        assert [result.state for result in again] == ["sent", "failed", "failed", "sent", "sent"]
        assert len(calls(sim, "bulk-approve/")) == 1
        assert [told(sim, payment)["reward_paid_count"] for payment in done] == [1, 1]


def test_it_reads_the_list_twice_for_any_number_of_approvals() -> None:
    """Before and after; a list of 600 has six pages, and a request approves at most 500."""
    with played() as (sim, service):
        posted = service.publish(wanted(service, 600))
        done = [payment.submission for payment in finished(sim, posted, 600)]
        before = sim.calls_count
        assert {result.state for result in service.approve(posted, done)} == {"sent"}
        made = [call.operation for call in sim.log[before:]]
        assert (made.count("submissions.list"), made.count("submissions.bulk_approve")) == (12, 2)
        assert len(made) == 14


def test_it_does_not_know_what_is_not_decided_yet() -> None:
    with played(approve_delay_s=3600) as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        assert [s.state for s in service.approve(posted, [payment.submission])] == ["unknown"]
        sim.clock.advance(3600)
        assert [s.state for s in service.approve(posted, [payment.submission])] == ["sent"]
        assert told(sim, payment)["reward_paid_count"] == 1


def test_it_waits_for_a_decision_that_takes_some_seconds() -> None:
    with played(approve_delay_s=5) as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        assert [s.state for s in service.approve(posted, [payment.submission])] == ["sent"]


@pytest.mark.parametrize("seed", range(6))
def test_it_pays_each_reward_once_at_a_platform_that_fails_often(seed: int) -> None:
    with played(seed) as (sim, service):
        posted = service.publish(wanted(service, 10))
        done = finished(sim, posted, 10)
        sim.control.faults(share=0.3)
        for _ in range(20):
            try:
                settled = service.approve(posted, [payment.submission for payment in done])
            except PlatformError:
                continue
            if all(result.state == "sent" for result in settled):
                break
        sim.control.faults(share=0.0)
        assert [told(sim, payment)["reward_paid_count"] for payment in done] == [1] * 10


@pytest.mark.parametrize(
    ("kind", "state", "paid"),
    [("", "sent", 1), ("429", "unknown", 0), ("5xx_before", "unknown", 0), ("5xx_after", "unknown", 1),
     ("lost_answer", "unknown", 1)],
)  # fmt: skip
def test_it_pays_bonuses_with_one_call_and_says_what_it_knows(kind: Fault, state: str, paid: int) -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        done = finished(sim, posted, 3)
        prepared = service.prepare(posted, done)
        assert prepared.cents == 100 + 101 + 102
        sim.faults.forced = [kind]
        settled = service.pay(posted, prepared, done)
        assert [(result.reference, result.state) for result in settled] == [
            (p.reference, state) for p in done
        ]
        assert len(calls(sim, "/pay/")) == 1
        assert [told(sim, payment)["bonuses"] for payment in done] == [
            [payment.cents] * paid for payment in done
        ]
        shown = list(service.statement(posted, [payment.submission for payment in done]))
        assert shown == [BonusStatement(p.submission, (Line("bonus", p.cents),) * paid) for p in done]


@pytest.mark.parametrize("parts", [1, 2, 10])
def test_it_pays_and_books_fees_with_fractions(parts: int) -> None:
    """What is booked is never less than what the platform took, and less than a cent more per batch."""
    with played(fee_bp=2750, vat_bp=1900, fee_parts=parts) as (sim, service):
        posted = service.publish(wanted(service))
        done = [replace(payment, cents=5 + number) for number, payment in enumerate(finished(sim, posted, 3))]
        prepared = service.prepare(posted, done)
        assert [result.state for result in service.pay(posted, prepared, done)] == ["sent"] * 3
        fees = sum(entry.fees + entry.vat for entry in sim.world.purse.entries)
        assert fees <= prepared.fees_cents < fees + 1
        assert service.quote(wanted(service)).balance_cents is not None


def test_it_pays_the_same_batch_twice_only_if_it_is_told_to() -> None:
    """The platform pays every repeat, so nothing here may call twice."""
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        done = finished(sim, posted, 1)
        prepared = service.prepare(posted, done)
        service.pay(posted, prepared, done)
        service.pay(posted, prepared, done)
        assert told(sim, done[0])["bonuses"] == [100, 100]


def test_it_pays_who_returned_or_ran_out_of_time() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        taken = [sim.control.take(posting=posted.external_id) for _ in range(2)]
        sim.control.give_back(taken[0]["submission"])
        sim.control.time_out(taken[1]["submission"])
        due = [Payment(f"r{i}", t["submission"], t["person"], 50, "time") for i, t in enumerate(taken)]
        settled = service.pay(posted, service.prepare(posted, due), due)
        assert [result.state for result in settled] == ["sent", "sent"]


def test_it_announces_nothing_for_a_person_who_never_took_part() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        stranger = Payment("r", "a" * 24, "b" * 24, 100, "")
        with pytest.raises(PlatformError, match="not taken part") as caught:
            service.prepare(posted, [*finished(sim, posted, 1), stranger])
        assert caught.value.permanent
        assert "a" * 24 not in str(caught.value)
        assert not sim.world.batches


def test_it_rejects_on_a_named_ground_and_reads_it_back() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        (payment, *_) = finished(sim, posted, 1, "failed_checks")
        service.reject(posted, payment.submission, GROUND, "FAILED_CHECK")
        service.reject(posted, payment.submission, GROUND, "FAILED_CHECK")
        assert told(sim, payment)["state"] == "REJECTED"
        assert len(calls(sim, f"{payment.submission}/transition/")) == 1
        assert [s.state for s in service.approve(posted, [payment.submission])] == ["failed"]


@pytest.mark.parametrize(
    ("message", "category"),
    [("x" * 99, "LOW_EFFORT"), (" " * 50 + "x" * 99, "LOW_EFFORT"), (GROUND, "BORING"), (GROUND, "")],
)
def test_it_refuses_a_rejection_that_the_platform_would_refuse(message: str, category: str) -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        before = sim.calls_count
        with pytest.raises(BadOptions):
            service.reject(posted, payment.submission, message, category)
        assert sim.calls_count == before


def test_it_takes_no_decision_back() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        service.approve(posted, [payment.submission])
        with pytest.raises(PlatformError, match="APPROVED") as caught:
            service.reject(posted, payment.submission, GROUND, "LOW_EFFORT")
        assert caught.value.permanent


def test_it_decides_nothing_about_a_submission_of_another_study() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        other = service.publish(wanted(service, reference="legible-other"))
        (payment,) = finished(sim, posted, 1)
        with pytest.raises(PlatformError, match="another study"):
            service.reject(other, payment.submission, GROUND, "LOW_EFFORT")
        with pytest.raises(PlatformError, match="another study"):
            service.request_return(other, payment.submission, "Did not finish.")
        assert [s.state for s in service.approve(other, [payment.submission])] == ["failed"]
        assert told(sim, payment)["state"] == "AWAITING REVIEW"


def test_it_asks_to_return_once() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        service.request_return(posted, payment.submission, "Did not finish.")
        service.request_return(posted, payment.submission, "Did not finish.")
        assert told(sim, payment)["return_requested"]
        assert len(calls(sim, "/request-return/")) == 1
        sim.control.give_back(payment.submission)
        service.request_return(posted, payment.submission, "Did not finish.")


@pytest.mark.parametrize(
    ("minutes", "failed", "permitted"),
    [(4, 0, False), (4, 1, True), (4.99, 1, False), (5, 1, False), (5, 2, True), (30, 0, False),
     (30, 1, False), (30, 2, True)],
)  # fmt: skip
def test_it_permits_a_rejection_on_the_grounds_of_the_platform_only(
    minutes: float, failed: int, permitted: bool
) -> None:
    """4.99 minutes are announced as 5, and the announced time counts."""
    with played() as (_, service):
        ground = service.rejection_grounds(minutes, failed)
    assert bool(ground) == permitted
    assert not permitted or f"{failed} failed here" in ground


def test_it_reads_letters_about_this_study_again_and_again() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        sim.control.message(payment.person, "The page was blank.", posted.external_id)
        sim.control.message(payment.person, "About something else.", "f" * 24)
        (message,) = service.messages(posted)
        assert (message.person, message.body) == (payment.person, "The page was blank.")
        assert message.posting == posted.external_id
        assert message.sent_at
        assert [again.external_id for again in service.messages(posted)] == [message.external_id]


@pytest.mark.parametrize("kind", KINDS)
def test_it_sends_a_message_once(kind: Fault) -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        sim.faults.forced = [kind]
        with pytest.raises(PlatformError) as caught:
            service.message(posted, payment.person, "Thank you.")
        assert caught.value.uncertain == (kind != "429")
        assert len(calls(sim, "POST /api/v1/messages/")) == 1
        service.message(posted, payment.person, "Thank you again.")
        with pytest.raises(BadOptions):
            service.message(posted, payment.person, "  ")


def test_it_says_that_the_platform_is_down_and_does_nothing_then() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        done = finished(sim, posted, 1)
        sim.control.faults(down=True)
        for act in (
            lambda: service.look(posted),
            lambda: list(service.submissions(posted)),
            lambda: service.approve(posted, [done[0].submission]),
            lambda: service.prepare(posted, done),
            lambda: service.close(posted),
        ):
            with pytest.raises(PlatformError) as caught:
                act()
            assert not caught.value.permanent
            assert "503" in str(caught.value)
        sim.control.faults(down=False)
        assert [s.state for s in service.approve(posted, [done[0].submission])] == ["sent"]
