"""Every fault that a simulator can show, met by the real adapter of every platform over real HTTP.

The oracle is the simulator's own truth: who is there, what really left the purse, which call had effect.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from crowd.platforms.base import BonusStatement, ListedSubmission, PlatformError, PlatformPosting, Unread
from crowd.rehearsal.faults import ALL, KINDS, Fault, Faults
from tests.contracts.stages import CASES, Case, Stage, settled, stage

pytestmark = pytest.mark.pure

FIRST = ["429", "", "lost_answer", "", "", "", "", "", "429", "5xx_before", "429", ""]
"""What seed 3 drew at a share of 0.5 when there were four kinds."""


def paid(on: Stage, posted: PlatformPosting, people: list[str], cents: int = 55, tag: str = "r") -> list[str]:
    payments = on.payments(posted, people, cents, tag)
    return settled(on.service.pay(posted, on.service.prepare(posted, payments), payments))


def test_it_pays_late_and_only_once_after_an_answer_that_never_came(
    on: Stage, posted: PlatformPosting
) -> None:
    """The effect comes after the list was read, and after any grace: nothing in between proves that it will
    not."""
    people = on.worked(posted, 1)
    payments = on.payments(posted, people)
    prepared = on.service.prepare(posted, payments)
    on.act("faults", forced=["late_effect"], late_s=7200.0)
    assert settled(on.service.pay(posted, prepared, payments)) == ["unknown"]
    on.wait(7199)
    assert (on.shown(posted, people), on.bonuses(people)) == ({people[0]: []}, [[]])
    on.wait(1)
    assert (on.shown(posted, people), on.bonuses(people)) == ({people[0]: [55]}, [[55]])


def test_it_publishes_once_although_a_lost_call_takes_effect_later(platform: Case) -> None:
    for number in range(4):
        with stage(platform) as on:
            calm: list[Fault] = [""] * number
            on.act("faults", forced=[*calm, "late_effect"], late_s=30.0)
            try:
                posted = on.service.publish(on.spec)
            except PlatformError:
                on.wait(60)
                posted = on.service.publish(on.spec)
            on.wait(60)
            assert (posted.places, on.service.look(posted).state) == (20, "open"), f"call {number}"
            assert published(on) == 20, f"call {number}"


def published(on: Stage) -> int:
    """Places that people can take. A late call may leave a second draft, which no participant can see."""
    return sum(posting["places"] for posting in on.postings() if posting["state"] != "UNPUBLISHED")


@pytest.mark.parametrize(("fault", "shown"), [("other_amount", [55, 71]), ("one_sum", [125])])
def test_it_shows_what_the_platform_shows_and_not_what_was_sent(
    on: Stage, posted: PlatformPosting, fault: Fault, shown: list[int]
) -> None:
    people = on.worked(posted, 1)
    assert paid(on, posted, people, 55, "first") == ["sent"]
    on.fail(fault)
    assert paid(on, posted, people, 70, "second") == ["sent"]
    assert on.bonuses(people) == [[55, 70]]
    assert on.shown(posted, people) == {people[0]: shown}


@pytest.mark.parametrize("seed", range(12))
def test_it_sets_an_odd_row_aside_and_reads_the_others(platform: Case, seed: int) -> None:
    """Each seed draws another row and another oddity."""
    with stage(platform, Faults(seed), seed=seed) as on:
        posted = on.service.publish(on.spec)
        people = on.worked(posted, 4)
        on.fail("odd_row")
        rows = list(on.service.submissions(posted))
        assert len(rows) == 4
        assert on.sim.faults.met["odd_row"] == 1
        (unread,) = [row for row in rows if isinstance(row, Unread)]
        read = [row for row in rows if isinstance(row, ListedSubmission)]
        assert {row.submission for row in read} < set(people)
        assert {row.state for row in read} == {"awaiting"}
        assert unread.submission in {"", *people} - {row.submission for row in read}
        for person in (on.truth(submission)["person"] for submission in people):
            assert person not in unread.why
        assert set(on.listed(posted)) == set(people)


def test_it_approves_the_others_beside_an_odd_row(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 4)
    on.fail("odd_row")
    states = Counter(settled(on.service.approve(posted, people)))
    assert states["sent"] >= 3
    on.fail()
    assert settled(on.service.approve(posted, people)) == ["sent"] * 4
    assert [on.truth(submission)["reward_paid_count"] for submission in people] == [1] * 4


@pytest.mark.parametrize("case", ["mturk in nines", "mturk in one"])
@pytest.mark.parametrize("seed", range(8))
def test_it_names_the_person_whose_bonus_cannot_be_read(case: str, seed: int) -> None:
    """Prolific has no list of bonuses: each submission shows its own."""
    with stage(CASES[case], Faults(seed), seed=seed) as on:
        posted = on.service.publish(on.spec)
        people = on.worked(posted, 12)
        assert set(paid(on, posted, people)) == {"sent"}
        on.sim.clock.advance(60)
        on.sim.faults.set(share=1.0, kinds=["odd_row"])
        answers = list(on.service.statement(posted, people))
        assert [answer.submission for answer in answers] == people
        shown = [answer for answer in answers if isinstance(answer, BonusStatement)]
        assert all([line.cents for line in answer.lines] == [55] for answer in shown)
        assert all(isinstance(answer, Unread) for answer in answers if answer not in shown)
        on.sim.faults.set(share=0.0)
        assert on.shown(posted, people) == {submission: [55] for submission in people}


@pytest.mark.parametrize("fault", ["half_json", "repeated_page"])
def test_it_reads_on_after_an_answer_that_was_wrong_in_form(
    on: Stage, posted: PlatformPosting, fault: Fault
) -> None:
    posted = on.service.revise(posted, replace(on.spec, places=120))
    people = on.worked(posted, 120)
    on.fail(fault)
    try:
        listed = on.listed(posted)
    except PlatformError as error:
        assert not error.permanent
        listed = on.listed(posted)
    assert set(listed) == set(people)


def test_it_ends_an_answer_that_drips(on: Stage, posted: PlatformPosting) -> None:
    """For 90 seconds, a piece at a time. boto3 has no limit for a whole answer, and waits."""
    people = on.worked(posted, 1)
    on.fail("slow_body")
    if on.case.name == "mturk":
        assert list(on.listed(posted)) == people
        return
    with pytest.raises(PlatformError, match="within 60 seconds") as caught:
        on.listed(posted)
    assert (caught.value.permanent, caught.value.uncertain) == (False, False)


def test_it_follows_no_page_for_ever(on: Stage, posted: PlatformPosting) -> None:
    posted = on.service.revise(posted, replace(on.spec, places=120))
    on.worked(posted, 120)
    on.sim.faults.set(share=1.0, kinds=["repeated_page"])
    before = on.sim.calls_count
    if posted.names and len(posted.names) > 1:
        return  # HITs of nine fill no page.
    with pytest.raises(PlatformError, match="twice") as caught:
        list(on.service.submissions(posted))
    assert (caught.value.permanent, caught.value.uncertain) == (False, False)
    assert on.sim.calls_count - before <= 3


@pytest.mark.parametrize("fault", ["half_json", "slow_body"])
def test_it_does_not_know_whether_a_spoilt_answer_meant_payment(
    on: Stage, posted: PlatformPosting, fault: Fault
) -> None:
    people = on.worked(posted, 1)
    payments = on.payments(posted, people)
    prepared = on.service.prepare(posted, payments)
    on.fail(fault)
    (result,) = on.service.pay(posted, prepared, payments)
    assert result.state in ("sent", "unknown")
    assert on.bonuses(people) == [[55]]


def test_it_meets_a_kind_only_in_a_call_that_can(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 1)
    on.fail("other_amount")
    on.service.look(posted)
    assert on.sim.faults.met["other_amount"] == 0
    assert paid(on, posted, people) == ["sent"]
    assert on.sim.faults.met["other_amount"] == 1


def test_it_refuses_a_kind_that_is_none(on: Stage) -> None:
    for wrong in ({"forced": ["fire"]}, {"kinds": ["fire"]}):
        with pytest.raises(Exception, match="fire.*is no fault"):
            on.act("faults", **wrong)
    assert on.act("faults", kinds=list(ALL))["met"] == {}


@pytest.mark.parametrize("seed", range(3))
def test_it_pays_each_person_once_among_faults_of_every_kind(platform: Case, seed: int) -> None:
    """Approvals are repeated until they are known; every bonus is called once."""
    kinds = tuple(kind for kind in ALL if kind not in ("other_amount", "one_sum", "slow_body"))
    with stage(platform, Faults(seed, 0.0, kinds), seed=seed) as on:
        posted = on.service.publish(on.spec)
        people = on.worked(posted, 12)
        on.sim.faults.share = 0.15
        for _ in range(30):
            try:
                if set(settled(on.service.approve(posted, people))) == {"sent"}:
                    break
            except PlatformError as error:
                assert not error.permanent
            on.wait(60)
        on.sim.faults.share = 0.0
        payments = on.payments(posted, people)
        prepared = on.service.prepare(posted, payments)
        on.sim.faults.share = 0.15
        states = settled(on.service.pay(posted, prepared, payments))
        on.sim.faults.share = 0.0
        on.wait(2 * 3600)
        assert [on.truth(submission)["reward_paid_count"] for submission in people] == [1] * 12
        possible: dict[str, list[list[int]]] = {"sent": [[55]], "failed": [[]], "unknown": [[], [55]]}
        for state, bonuses in zip(states, on.bonuses(people), strict=True):
            assert bonuses in possible[state]


def test_it_keeps_the_names_and_the_draws_of_the_first_four_kinds() -> None:
    assert KINDS == ("429", "5xx_before", "5xx_after", "lost_answer")
    faults = Faults(3, 0.5)
    assert [faults.draw() for _ in range(12)] == FIRST
