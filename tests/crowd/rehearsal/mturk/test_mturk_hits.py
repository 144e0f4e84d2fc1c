"""HITs over their life: states, places, tokens, expiry, lists."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from crowd.rehearsal import mturk
from crowd.rehearsal.mturk import TurkSimulator
from crowd.rehearsal.platform_control import CannotBe
from tests.crowd.rehearsal.mturk.mturk_requester import (
    SPEC,
    client,
    created,
    hit,
    offer,
    question,
    refusal,
    submitted,
)

pytestmark = pytest.mark.pure
DAY = 86_400
HIT_TYPE = ("AssignmentDurationInSeconds", "AutoApprovalDelayInSeconds", "Reward", "Title", "Description",
            "Keywords")  # fmt: skip


@pytest.fixture
def sim() -> Iterator[TurkSimulator]:
    with mturk.simulator(seed=2) as running:
        yield running


@pytest.fixture
def turk(sim: TurkSimulator) -> Any:
    return client(sim)


def status(turk: Any, hit_id: str) -> str:
    return str(hit(turk, hit_id)["HITStatus"])


def test_it_follows_a_hit_from_offer_to_review(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, MaxAssignments=2)
    seen = [status(turk, hit_id)]
    first, second = sim.control.take(), sim.control.take()
    seen.append(status(turk, hit_id))
    sim.control("return", submission=second["submission"])
    seen.append(status(turk, hit_id))
    sim.control.complete(first["submission"], "DONE")
    sim.control.complete(sim.control.take()["submission"], "DONE")
    seen.append(status(turk, hit_id))
    assert seen == ["Assignable", "Unassignable", "Assignable", "Reviewable"]
    works = turk.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    turk.approve_assignment(AssignmentId=works[0]["AssignmentId"])
    turk.reject_assignment(AssignmentId=works[1]["AssignmentId"], RequesterFeedback="Nothing was answered.")
    sim.clock.advance(120 * DAY)
    assert sim.control.state()["postings"][hit_id]["state"] == "Disposed"
    assert refusal(turk.get_hit, HITId=hit_id) == "HITDoesNotExist"
    assert refusal(turk.list_assignments_for_hit, HITId=hit_id) == "HITDoesNotExist"
    rejected = works[1]["AssignmentId"]
    assert refusal(turk.get_assignment, AssignmentId=rejected) == "AssignmentDoesNotExist"
    assert refusal(turk.approve_assignment, AssignmentId=rejected) == "AssignmentDoesNotExist"
    assert turk.list_hits()["HITs"] == []


def test_it_counts_places_as_documented(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, MaxAssignments=5)
    works = [submitted(sim) for _ in range(3)]
    sim.control.take()
    sim.control.preview()
    turk.approve_assignment(AssignmentId=works[0]["assignment"])
    turk.reject_assignment(AssignmentId=works[1]["assignment"], RequesterFeedback="Left empty.")

    def counts() -> tuple[int, int, int]:
        answer = hit(turk, hit_id)
        return (
            answer["NumberOfAssignmentsPending"],
            answer["NumberOfAssignmentsAvailable"],
            answer["NumberOfAssignmentsCompleted"],
        )

    assert counts() == (2, 1, 2)  # held and previewed; free; decided, a rejected place being used up
    sim.clock.advance(301)
    assert counts() == (1, 1, 2)


def test_it_refuses_growth_over_the_ten(sim: TurkSimulator, turk: Any) -> None:
    small, large = offer(turk, MaxAssignments=7), offer(turk, MaxAssignments=10)

    def grow(hit_id: str, by: int) -> Any:
        return {"HITId": hit_id, "NumberOfAdditionalAssignments": by}

    code = "InvalidMaximumAssignmentsIncrease"
    assert refusal(turk.create_additional_assignments_for_hit, **grow(small, 3)) == code
    turk.create_additional_assignments_for_hit(**grow(small, 2))
    assert refusal(turk.create_additional_assignments_for_hit, **grow(small, 1)) == code
    turk.create_additional_assignments_for_hit(**grow(large, 90))
    assert [hit(turk, hit_id)["MaxAssignments"] for hit_id in (small, large)] == [9, 100]
    call = turk.create_additional_assignments_for_hit
    assert refusal(call, **grow(large, 0)) == "InvalidParameterValue"


def test_it_adds_places_once_per_token(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, MaxAssignments=1)
    more = {"HITId": hit_id, "NumberOfAdditionalAssignments": 2, "UniqueRequestToken": "grow-1"}
    turk.create_additional_assignments_for_hit(**more)
    assert refusal(turk.create_additional_assignments_for_hit, **more) == "AssignmentAlreadyExists"
    assert hit(turk, hit_id)["MaxAssignments"] == 3
    sim.clock.advance(DAY)
    turk.create_additional_assignments_for_hit(**more)
    assert hit(turk, hit_id)["MaxAssignments"] == 5


def test_it_opens_a_finished_hit_again_for_more_places(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, MaxAssignments=1)
    submitted(sim)
    turk.create_additional_assignments_for_hit(HITId=hit_id, NumberOfAdditionalAssignments=1)
    assert status(turk, hit_id) == "Assignable"
    submitted(sim)
    assert status(turk, hit_id) == "Reviewable"


def test_it_names_the_existing_hit_when_a_token_comes_again(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, UniqueRequestToken="t" * 64)
    with pytest.raises(turk.exceptions.RequestError, match=hit_id) as caught:
        offer(turk, UniqueRequestToken="t" * 64)
    assert caught.value.response["TurkErrorCode"].lower() == "aws.mechanicalturk.hitalreadyexists"
    kind = hit(turk, hit_id)["HITTypeId"]
    other_way = {"HITTypeId": kind, "LifetimeInSeconds": 60, "Question": question()}
    call = turk.create_hit_with_hit_type
    assert refusal(call, **other_way, UniqueRequestToken="t" * 64) == "HitAlreadyExists"
    assert len(sim.control.state()["postings"]) == 1


def test_it_forgets_a_token_after_a_day(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, UniqueRequestToken="posting-1", LifetimeInSeconds=7 * DAY)
    sim.clock.advance(DAY - 1)
    assert refusal(created, turk=turk, **SPEC, UniqueRequestToken="posting-1") == "HitAlreadyExists"
    sim.clock.advance(1)
    assert offer(turk, UniqueRequestToken="posting-1") != hit_id


def test_it_spends_no_token_on_a_refused_request(sim: TurkSimulator, turk: Any) -> None:
    assert refusal(created, turk=turk, **(SPEC | {"Reward": "$2"}), UniqueRequestToken="a")
    assert offer(turk, UniqueRequestToken="a")


def test_it_gives_identical_properties_one_hit_type(turk: Any) -> None:
    members = {name: SPEC[name] for name in HIT_TYPE}
    first = turk.create_hit_type(**members)["HITTypeId"]
    assert turk.create_hit_type(**members)["HITTypeId"] == first
    assert turk.create_hit_type(**members, QualificationRequirements=[])["HITTypeId"] == first
    assert turk.create_hit_type(**(members | {"Reward": "2.01"}))["HITTypeId"] != first
    same = hit(turk, offer(turk))
    assert (same["HITTypeId"], same["Reward"]) == (first, "2.00")
    code = refusal(
        turk.create_hit_with_hit_type, HITTypeId="3NONE", LifetimeInSeconds=60, Question=question()
    )
    assert code == "HITTypeDoesNotExist"


def test_it_expires_with_work_still_open(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, LifetimeInSeconds=600, AssignmentDurationInSeconds=3600)
    sim.clock.advance(599)
    held = sim.control.take()
    sim.clock.advance(1)
    assert status(turk, hit_id) == "Unassignable"
    with pytest.raises(CannotBe, match="assignable"):
        sim.control.take()
    sim.clock.advance(3598)
    sim.control.complete(held["submission"], "DONE")  # one second before its own deadline
    assert status(turk, hit_id) == "Reviewable"


def test_it_ends_work_at_its_deadline(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, MaxAssignments=1, AssignmentDurationInSeconds=600, LifetimeInSeconds=1200)
    held = sim.control.take()
    sim.clock.advance(600)
    assert status(turk, hit_id) == "Assignable"
    with pytest.raises(CannotBe, match="Abandoned"):
        sim.control.complete(held["submission"], "DONE")
    assert turk.list_assignments_for_hit(HITId=hit_id)["Assignments"] == []
    sim.control.take()
    sim.clock.advance(600)
    assert status(turk, hit_id) == "Reviewable"  # expired and abandoned at the same moment


@pytest.mark.parametrize("when", [0, datetime(2015, 1, 1, tzinfo=UTC), mturk.START])
def test_it_expires_at_once_for_any_past_time(sim: TurkSimulator, turk: Any, when: Any) -> None:
    hit_id = offer(turk)
    turk.update_expiration_for_hit(HITId=hit_id, ExpireAt=when)
    answer = hit(turk, hit_id)
    assert answer["HITStatus"] == "Reviewable"
    assert answer["Expiration"].astimezone(UTC) == mturk.START


def test_it_opens_again_with_a_later_expiry(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk)
    turk.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    turk.update_expiration_for_hit(HITId=hit_id, ExpireAt=mturk.START + timedelta(hours=2))
    assert status(turk, hit_id) == "Assignable"
    sim.clock.advance(7200)
    assert status(turk, hit_id) == "Reviewable"
    beyond = mturk.START + timedelta(days=367)
    assert refusal(turk.update_expiration_for_hit, HITId=hit_id, ExpireAt=beyond) == "InvalidParameterValue"


def test_it_disposes_of_a_hit_after_120_days(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, LifetimeInSeconds=DAY)
    submitted(sim)
    sim.clock.advance(DAY + 120 * DAY - 1)
    assert status(turk, hit_id) == "Reviewable"
    sim.clock.advance(1)
    assert refusal(turk.get_hit, HITId=hit_id) == "HITDoesNotExist"


def test_it_pays_for_nothing_that_the_account_could_not_pay() -> None:
    """Three places at 2.00 and a fifth cost 7.20; ten or more cost two fifths more."""
    with mturk.simulator(options=mturk.TurkOptions(balance_cents=720)) as sim:
        turk = client(sim)
        offer(turk, MaxAssignments=3)
        assert refusal(created, turk=turk, **SPEC | {"MaxAssignments": 4}) == "InsufficientFunds"
        sim.control.fund("20.80")
        offer(turk, MaxAssignments=10)
        assert refusal(created, turk=turk, **SPEC | {"MaxAssignments": 11}) == "InsufficientFunds"
        assert turk.get_account_balance()["AvailableBalance"] == "28.00"  # nothing is taken before approval


@pytest.mark.parametrize("count", [0, 9, 10, 11, 20])
@pytest.mark.parametrize("size", [1, 5, 10, 100])
def test_it_pages_without_losing_or_repeating(count: int, size: int) -> None:
    with mturk.simulator(seed=count) as sim:
        turk = client(sim)
        offered = [offer(turk, RequesterAnnotation=f"number-{index}") for index in range(count)]
        pages = list(turk.get_paginator("list_hits").paginate(PaginationConfig={"PageSize": size}))
        listed = [row["HITId"] for page in pages for row in page["HITs"]]
        assert listed == offered[::-1]
        assert all(page["NumResults"] == len(page["HITs"]) <= size for page in pages)
        assert ("NextToken" in pages[-1]) is False and all("NextToken" in page for page in pages[:-1])


def test_it_carries_a_token_on_a_full_last_page_and_sometimes_on_another(
    sim: TurkSimulator, turk: Any
) -> None:
    for _ in range(4):
        offer(turk)
    full = turk.list_hits(MaxResults=4)
    assert len(full["HITs"]) == 4 and full["NextToken"]
    beyond = turk.list_hits(MaxResults=4, NextToken=full["NextToken"])
    assert beyond["HITs"] == [] and beyond["NumResults"] == 0 and "NextToken" not in beyond
    seen = {"NextToken" in turk.list_hits(MaxResults=100) for _ in range(40)}
    assert seen == {True, False}


def test_it_takes_a_page_token_of_the_same_list_only(sim: TurkSimulator, turk: Any) -> None:
    first, other = offer(turk, MaxAssignments=9), offer(turk)
    for _ in range(2):
        submitted(sim, first)
    token = turk.list_assignments_for_hit(HITId=first, MaxResults=1)["NextToken"]
    assert refusal(turk.list_assignments_for_hit, HITId=other, NextToken=token) == "InvalidParameterValue"
    assert refusal(turk.list_hits, NextToken=token) == "InvalidParameterValue"
