"""What every platform with a market promises of money: its real adapter against its simulator.

The oracle is the simulator's own purse: what really left it, payment by payment.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from crowd.platforms.base import BonusStatement, Payment, PlatformError, PlatformPosting
from crowd.rehearsal.faults import Fault
from tests.contracts.stages import MESSAGE, REWARD, SETTLE_S, Case, Stage, settled, stage

pytestmark = pytest.mark.pure


# Decisions


def test_it_approves_everybody_once(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 12)
    assert settled(on.service.approve(posted, people)) == ["sent"] * 12
    spent = on.spent()
    again = on.service.approve(posted, people)
    assert [result.reference for result in again] == people
    assert settled(again) == ["sent"] * 12
    assert on.spent() == spent
    truths = [on.truth(submission) for submission in people]
    assert [(truth["reward_paid_count"], truth["reward_paid_cents"]) for truth in truths] == [
        (1, REWARD)
    ] * 12
    assert {listed.state for listed in on.rows(posted)} == {"approved"}


@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after", "5xx_before", "429"])
def test_it_approves_once_whichever_answer_is_lost(platform: Case, fault: Fault) -> None:
    for number in range(4):
        with stage(platform) as on:
            posted = on.service.publish(on.spec)
            people = on.worked(posted, 2)
            on.fail_at(number, fault)
            results = on.service.approve(posted, people)
            if "unknown" in settled(results) or "failed" in settled(results):
                on.wait(SETTLE_S)
                results = on.service.approve(posted, people)
            assert settled(results) == ["sent", "sent"], f"call {number}"
            assert [on.truth(submission)["reward_paid_count"] for submission in people] == [1, 1], (
                f"call {number}"
            )


def test_it_says_sent_only_of_what_was_paid(on: Stage, posted: PlatformPosting) -> None:
    """An unknown submission and a returned one, beside a real one."""
    (done,) = on.worked(posted, 1)
    back = on.take(posted)["submission"]
    on.act("return", submission=back)
    stranger = done[::-1] if ":" not in done else f"3NOBODY:{done.partition(':')[2]}"
    states = {result.reference: result.state for result in on.service.approve(posted, [stranger, back, done])}
    assert states == {stranger: "failed", back: "failed", done: "sent"}
    assert on.act("state")["paid"]["reward"] == REWARD


def test_it_rejects_once_and_never_what_was_paid(on: Stage, posted: PlatformPosting) -> None:
    bad, good = on.worked(posted, 2)
    on.service.approve(posted, [good])
    on.service.reject(posted, bad, MESSAGE, "FAILED_CHECK")
    on.service.reject(posted, bad, MESSAGE, "FAILED_CHECK")
    assert on.truth(bad)["state"] == on.case.rejected
    assert settled(on.service.approve(posted, [bad])) == ["failed"]
    with pytest.raises(PlatformError) as error:
        on.service.reject(posted, good, MESSAGE, "FAILED_CHECK")
    assert error.value.permanent
    assert on.truth(good)["state"] == on.case.approved
    assert on.act("state")["paid"]["reward"] == REWARD


@pytest.mark.parametrize(
    ("minutes", "failed", "permitted"),
    [(3, 0, False), (3, 1, True), (4.9, 1, False), (5, 1, False), (5, 2, True)],
)
def test_it_permits_a_rejection_after_fair_checks_only(
    on: Stage, minutes: float, failed: int, permitted: bool
) -> None:
    assert bool(on.service.rejection_grounds(minutes, failed)) is permitted


# Money


def test_it_pays_nothing_before_it_is_told_to(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 3)
    payments = on.payments(posted, people)
    spent = on.spent()
    prepared = on.service.prepare(posted, payments)
    on.service.prepare(posted, payments)
    assert prepared.cents == 3 * 55
    on.sim.clock.advance(SETTLE_S)
    assert on.spent() == spent
    assert on.bonuses(people) == [[], [], []]


@pytest.mark.parametrize("cents", [1, 30, 55, 1234])
def test_it_pays_each_exactly_once_and_to_the_cent(on: Stage, posted: PlatformPosting, cents: int) -> None:
    people = on.worked(posted, 4)
    payments = on.payments(posted, people, cents)
    spent = on.spent()
    prepared = on.service.prepare(posted, payments)
    results = on.service.pay(posted, prepared, payments)
    assert [(result.reference, result.state) for result in results] == [
        (p.reference, "sent") for p in payments
    ]
    on.sim.clock.advance(SETTLE_S)
    assert on.bonuses(people) == [[cents]] * 4
    assert on.spent() - spent == prepared.cents + prepared.fees_cents


def test_it_tells_the_fees_of_different_payments(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 5)
    payments = [
        replace(payment, cents=cents)
        for payment, cents in zip(on.payments(posted, people), (1, 7, 13, 99, 250), strict=True)
    ]
    spent = on.spent()
    prepared = on.service.prepare(posted, payments)
    on.service.pay(posted, prepared, payments)
    on.sim.clock.advance(SETTLE_S)
    assert prepared.cents == 370
    assert on.spent() - spent == prepared.cents + prepared.fees_cents


def test_it_pays_one_person_twice_where_two_payments_say_so(on: Stage, posted: PlatformPosting) -> None:
    (person,) = on.worked(posted, 1)
    for tag in ("first", "second"):
        payments = on.payments(posted, [person], tag=tag)
        on.service.pay(posted, on.service.prepare(posted, payments), payments)
    on.sim.clock.advance(SETTLE_S)
    assert on.bonuses([person]) == [[55, 55]]
    assert on.shown(posted, [person]) == {person: [55, 55]}


@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after"])
def test_it_does_not_know_what_was_paid_without_an_answer_and_finds_out(
    on: Stage, posted: PlatformPosting, fault: Fault
) -> None:
    people = on.worked(posted, 3)
    payments = on.payments(posted, people)
    prepared = on.service.prepare(posted, payments)
    on.fail(fault)
    before = on.sim.calls_count
    results = on.service.pay(posted, prepared, payments)
    on.fail()
    assert "unknown" in settled(results)
    assert on.sim.calls_count - before <= 3  # at most once per payment
    on.sim.clock.advance(SETTLE_S)
    assert on.bonuses(people) == [[55], [55], [55]]
    assert on.shown(posted, people) == {submission: [55] for submission in people}


@pytest.mark.parametrize("fault", ["429", "5xx_before"])
def test_it_does_not_say_sent_where_nothing_was_paid(
    on: Stage, posted: PlatformPosting, fault: Fault
) -> None:
    people = on.worked(posted, 1)
    payments = on.payments(posted, people)
    prepared = on.service.prepare(posted, payments)
    on.fail(fault)
    results = on.service.pay(posted, prepared, payments)
    # Prolific says nowhere that a refused call had no effect.
    is_certain = fault == "429" and on.case.name != "prolific"
    assert settled(results) == ["failed" if is_certain else "unknown"]
    on.sim.clock.advance(SETTLE_S)
    assert on.bonuses(people) == [[]]
    assert on.shown(posted, people) == {people[0]: []}


def test_it_shows_bonuses_of_those_asked_for(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 15)
    payments = on.payments(posted, people)
    on.service.pay(posted, on.service.prepare(posted, payments), payments)
    on.sim.clock.advance(SETTLE_S)
    for asked in (people[:1], people[3:5], people):
        assert on.shown(posted, asked) == {submission: [55] for submission in asked}
    statement = on.service.statement(posted, people)
    references = {
        line.reference for shown in statement if isinstance(shown, BonusStatement) for line in shown.lines
    }
    assert references in ({""}, {payment.reference for payment in payments})


def test_it_pays_no_sum_that_was_not_prepared(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 2)
    payments = on.payments(posted, people)
    prepared = on.service.prepare(posted, payments[:1])
    before = on.sim.calls_count
    with pytest.raises(PlatformError) as error:
        on.service.pay(posted, prepared, payments)
    assert error.value.permanent
    assert not error.value.uncertain
    assert on.sim.calls_count == before


def test_it_pays_no_stranger(on: Stage, posted: PlatformPosting) -> None:
    """A person who never took part: preparing or paying fails, and no money is spent."""
    (done,) = on.worked(posted, 1)
    stranger = "3NOBODY:A1NOBODY" if ":" in done else "5f5f5f5f5f5f5f5f5f5f5f5f"
    person = stranger.partition(":")[2] or "5e5e5e5e5e5e5e5e5e5e5e5e"
    payments = [Payment("r1", stranger, person, 55, "Forged")]
    spent = on.spent()
    try:
        states = settled(on.service.pay(posted, on.service.prepare(posted, payments), payments))
    except PlatformError as error:
        assert error.permanent
    else:
        assert states == ["failed"]
    on.sim.clock.advance(SETTLE_S)
    assert on.spent() == spent


def test_it_fails_for_certain_without_money(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 2)
    drained = on.act("state")["balance"]
    on.act(
        "fund", **({"dollars": f"-{drained / 100:.2f}"} if on.case.name == "mturk" else {"cents": -drained})
    )
    # Some platforms hold the rewards back when a study is published, so they are there still.
    for result in on.service.approve(posted, people):
        assert (result.state == "sent") == bool(on.truth(result.reference)["reward_paid_count"])
    payments = on.payments(posted, people)
    try:
        states = settled(on.service.pay(posted, on.service.prepare(posted, payments), payments))
    except PlatformError as error:
        assert error.permanent
        assert not error.uncertain
    else:
        assert set(states) == {"unknown" if on.case.name == "prolific" else "failed"}
    assert on.bonuses(people) == [[], []]
