"""Money: fees to the cent, one reward per piece of work, and a balance that always adds up."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError, HTTPClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowd.rehearsal import mturk
from crowd.rehearsal.faults import KINDS
from crowd.rehearsal.mturk import TurkSimulator
from crowd.rehearsal.platform_control import CannotBe
from experiments.design.rng import Streams
from tests.crowd.rehearsal.mturk.mturk_requester import client, hit, offer, refusal, submitted

pytestmark = pytest.mark.pure
DAY = 86_400


@pytest.fixture
def sim() -> Iterator[TurkSimulator]:
    with mturk.simulator(seed=3) as running:
        yield running


@pytest.fixture
def turk(sim: TurkSimulator) -> Any:
    return client(sim)


def balance(turk: Any) -> str:
    return str(turk.get_account_balance()["AvailableBalance"])


def truth(sim: TurkSimulator, work: dict[str, Any]) -> tuple[str, int, int, list[int]]:
    record = sim.control.state()["submissions"][work["submission"]]
    return record["state"], record["reward_paid_count"], record["reward_paid_cents"], record["bonuses"]


@pytest.mark.parametrize(
    ("reward", "places", "expected"),
    [
        ("2.00", 9, "9997.60"),  # 20 % of 2.00
        ("2.00", 10, "9997.20"),  # 40 % from ten places on
        ("0.01", 1, "9999.98"),  # one cent at least
        ("0.00", 1, "9999.99"),
        ("0.13", 1, "9999.84"),  # 2.6 cents: half up to 3
        ("0.12", 1, "9999.86"),  # 2.4 cents
        ("1.25", 10, "9998.25"),  # exactly 50 cents
        ("3", 1, "9996.40"),
    ],
)
def test_it_takes_reward_and_fee(
    sim: TurkSimulator, turk: Any, reward: str, places: int, expected: str
) -> None:
    offer(turk, Reward=reward, MaxAssignments=places)
    turk.approve_assignment(AssignmentId=submitted(sim)["assignment"])
    assert balance(turk) == expected


def test_it_takes_more_for_masters(sim: TurkSimulator, turk: Any) -> None:
    masters = [{"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists"}]
    offer(turk, QualificationRequirements=masters)
    master = sim.control.people(1, is_master=True)["people"][0]["person"]
    work = sim.control.take(person=master)
    sim.control.complete(work["submission"], "DONE")
    turk.approve_assignment(AssignmentId=work["assignment"])
    assert balance(turk) == "9997.50"


def test_it_pays_a_reward_once(sim: TurkSimulator, turk: Any) -> None:
    offer(turk)
    work = submitted(sim)
    turk.approve_assignment(AssignmentId=work["assignment"])
    with pytest.raises(turk.exceptions.RequestError, match="Approved") as caught:
        turk.approve_assignment(AssignmentId=work["assignment"])
    assert caught.value.response["TurkErrorCode"] == "AWS.MechanicalTurk.InvalidAssignmentState"
    late = {"AssignmentId": work["assignment"], "RequesterFeedback": "No."}
    assert refusal(turk.reject_assignment, **late) == "InvalidAssignmentState"
    assert truth(sim, work) == ("Approved", 1, 200, [])
    assignment = turk.get_assignment(AssignmentId=work["assignment"])["Assignment"]
    assert assignment["AssignmentStatus"] == "Approved"


def test_it_decides_only_what_was_submitted(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk)
    held = sim.control.take()
    for call in (turk.approve_assignment, turk.get_assignment):
        assert refusal(call, AssignmentId=held["assignment"]) == "AssignmentDoesNotExist"
    bonus = {"WorkerId": held["person"], "AssignmentId": held["assignment"], "Reason": "r"}
    assert refusal(turk.send_bonus, **bonus, BonusAmount="1.00") == "AssignmentDoesNotExist"
    assert turk.list_assignments_for_hit(HITId=hit_id)["Assignments"] == []


def test_it_leaves_work_undecided_without_money() -> None:
    with mturk.simulator(options=mturk.TurkOptions(balance_cents=720)) as sim:
        turk = client(sim)
        offer(turk)
        work = submitted(sim)
        sim.control.fund("-4.81")
        assert refusal(turk.approve_assignment, AssignmentId=work["assignment"]) == "InsufficientFunds"
        assert truth(sim, work) == ("Submitted", 0, 0, [])
        sim.control.fund("0.01")
        turk.approve_assignment(AssignmentId=work["assignment"])
        assert balance(turk) == "0.00"
        bonus = {"WorkerId": work["person"], "AssignmentId": work["assignment"], "Reason": "r"}
        assert refusal(turk.send_bonus, **bonus, BonusAmount="0.01") == "InsufficientFunds"
        sim.control.fund("0.02")
        turk.send_bonus(**bonus, BonusAmount="0.01")
        assert truth(sim, work) == ("Approved", 1, 200, [1])


def test_it_approves_by_itself_when_the_delay_is_over(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk, AutoApprovalDelayInSeconds=3 * DAY)
    undecided, rejected = submitted(sim), submitted(sim)
    turk.reject_assignment(AssignmentId=rejected["assignment"], RequesterFeedback="Left empty.")
    sim.clock.advance(3 * DAY - 1)
    assert truth(sim, undecided) == ("Submitted", 0, 0, [])
    sim.clock.advance(1)
    assert truth(sim, undecided) == ("Approved", 1, 200, [])
    assert truth(sim, rejected) == ("Rejected", 0, 0, [])
    approved = turk.list_assignments_for_hit(HITId=hit_id, AssignmentStatuses=["Approved"])["Assignments"]
    assert [assignment["AssignmentId"] for assignment in approved] == [undecided["assignment"]]
    assert approved[0]["ApprovalTime"] == approved[0]["AutoApprovalTime"]


def test_it_approves_by_itself_at_once_without_a_delay(sim: TurkSimulator, turk: Any) -> None:
    offer(turk, AutoApprovalDelayInSeconds=0)
    assert truth(sim, submitted(sim)) == ("Approved", 1, 200, [])


def test_it_tries_again_a_day_later_where_money_lacks(sim: TurkSimulator, turk: Any) -> None:
    offer(turk, AutoApprovalDelayInSeconds=3 * DAY)
    work = submitted(sim)
    sim.control.fund("-10000.00")
    sim.clock.advance(3 * DAY)
    assert truth(sim, work)[0] == "Submitted"
    sim.control.fund("2.40")
    sim.clock.advance(DAY)
    assert truth(sim, work) == ("Approved", 1, 200, [])


def test_it_takes_no_more_from_an_account_than_it_holds(sim: TurkSimulator, turk: Any) -> None:
    with pytest.raises(CannotBe, match=r"holds 10000\.00: -10000\.01 cannot"):
        sim.control.fund("-10000.01")
    assert balance(turk) == "10000.00"
    sim.control.fund("-10000.00")
    assert balance(turk) == "0.00"


def test_it_asks_for_feedback_with_a_rejection(sim: TurkSimulator, turk: Any) -> None:
    offer(turk)
    work = submitted(sim)
    for feedback in ("", "x" * 1025, "bell\x07"):
        no = {"AssignmentId": work["assignment"], "RequesterFeedback": feedback}
        assert refusal(turk.reject_assignment, **no) == "InvalidParameterValue"
    assert truth(sim, work)[0] == "Submitted"


def test_it_pays_a_bonus_once_per_token_and_again_a_day_later(sim: TurkSimulator, turk: Any) -> None:
    """A token is forgotten: repeating an old payment pays twice."""
    offer(turk)
    work = submitted(sim)
    bonus = {
        "WorkerId": work["person"],
        "AssignmentId": work["assignment"],
        "BonusAmount": "0.55",
        "Reason": "Six matches",
        "UniqueRequestToken": "payout-7",
    }
    turk.send_bonus(**bonus)
    assert refusal(turk.send_bonus, **bonus) == "BonusAlreadyExists"
    sim.clock.advance(DAY - 1)
    assert refusal(turk.send_bonus, **bonus) == "BonusAlreadyExists"
    assert truth(sim, work)[3] == [55]
    assert balance(turk) == "9999.34"
    sim.clock.advance(1)
    turk.send_bonus(**bonus)
    assert truth(sim, work)[3] == [55, 55]
    assert balance(turk) == "9998.68"


def test_it_lists_bonuses_of_a_hit_and_of_an_assignment(sim: TurkSimulator, turk: Any) -> None:
    hit_id, other = offer(turk), offer(turk)
    works = [submitted(sim, hit_id), submitted(sim, hit_id), submitted(sim, other)]
    for number, work in enumerate(works, 1):
        turk.send_bonus(
            WorkerId=work["person"], AssignmentId=work["assignment"], BonusAmount=f"0.0{number}", Reason="r"
        )
    pages = turk.get_paginator("list_bonus_payments").paginate(HITId=hit_id, PaginationConfig={"PageSize": 1})
    assert [bonus["BonusAmount"] for page in pages for bonus in page["BonusPayments"]] == ["0.01", "0.02"]
    listed = turk.list_bonus_payments(AssignmentId=works[2]["assignment"])["BonusPayments"]
    assert [(bonus["WorkerId"], bonus["BonusAmount"]) for bonus in listed] == [(works[2]["person"], "0.03")]


@pytest.mark.parametrize("amount", ["0", "0.00"])
def test_it_sends_no_empty_bonus(sim: TurkSimulator, turk: Any, amount: str) -> None:
    offer(turk)
    work = submitted(sim)
    bonus = {"WorkerId": work["person"], "AssignmentId": work["assignment"], "Reason": "r"}
    assert refusal(turk.send_bonus, **bonus, BonusAmount=amount) == "InvalidParameterValue"


def test_it_sends_a_bonus_only_to_the_worker_of_the_assignment(sim: TurkSimulator, turk: Any) -> None:
    offer(turk)
    first, other = submitted(sim), submitted(sim)
    bonus = {"AssignmentId": first["assignment"], "Reason": "r", "BonusAmount": "1.00"}
    assert refusal(turk.send_bonus, **bonus, WorkerId=other["person"]) == "InvalidParameterValue"
    assert balance(turk) == "10000.00"


def test_it_refuses_a_bonus_after_half_a_year(sim: TurkSimulator, turk: Any) -> None:
    offer(turk, LifetimeInSeconds=200 * DAY)
    work = submitted(sim)
    bonus = {"WorkerId": work["person"], "AssignmentId": work["assignment"], "Reason": "r"}
    sim.clock.advance(180 * DAY)
    turk.send_bonus(**bonus, BonusAmount="1.00")
    sim.clock.advance(1)
    assert refusal(turk.send_bonus, **bonus, BonusAmount="1.00") == "PermissionDeniedException"


STEP = st.tuples(
    st.sampled_from(["offer", "take", "complete", "return", "approve", "reject", "bonus", "advance", "fund"]),
    st.integers(0, 99),
)


class Walk:
    """A requester and workers who follow a list of numbers, whether it makes sense or not."""

    def __init__(self, sim: TurkSimulator, turk: Any) -> None:
        self.sim, self.turk = sim, turk
        self.works: list[dict[str, Any]] = []
        self.hits: list[str] = []

    def step(self, action: str, number: int) -> None:
        """Refused calls are skipped; the balance must be right all the same."""
        with suppress(ClientError, HTTPClientError, CannotBe, IndexError):
            getattr(self, action)(number)

    def offer(self, number: int) -> None:
        self.hits.append(
            offer(self.turk, Reward=f"{number / 33:.2f}", MaxAssignments=number % 12 + 1,
                  AutoApprovalDelayInSeconds=DAY)
        )  # fmt: skip

    def take(self, number: int) -> None:
        self.works.append(self.sim.control.take())

    def complete(self, number: int) -> None:
        self.sim.control.complete(self.works[-1 - number % 5]["submission"], "DONE")

    def give_back(self, number: int) -> None:
        self.sim.control.give_back(self.works[-1 - number % 5]["submission"])

    def approve(self, number: int) -> None:
        self.turk.approve_assignment(AssignmentId=self.works[-1 - number % 5]["assignment"])

    def reject(self, number: int) -> None:
        name = self.works[-1 - number % 5]["assignment"]
        self.turk.reject_assignment(AssignmentId=name, RequesterFeedback="Left empty.")

    def bonus(self, number: int) -> None:
        work = self.works[-1 - number % 5]
        self.turk.send_bonus(
            WorkerId=work["person"], AssignmentId=work["assignment"], BonusAmount=f"{number / 100:.2f}",
            Reason="r", UniqueRequestToken=f"bonus-{number % 7}",
        )  # fmt: skip

    def advance(self, number: int) -> None:
        self.sim.clock.advance(number * 900)

    def fund(self, number: int) -> None:
        self.sim.control.fund(f"{number - 50}.07")


setattr(Walk, "return", Walk.give_back)


def check_books(sim: TurkSimulator, turk: Any) -> None:
    """The money that came in equals balance plus payments, in cents; fees are recomputed in whole numbers."""
    state = sim.control.state()
    out = fees = 0
    for name, work in state["submissions"].items():
        places = state["postings"][work["posting"]]["places"]
        tenths = 4 if places >= 10 else 2
        assert work["reward_paid_count"] == (work["state"] == "Approved"), name
        if work["reward_paid_count"]:
            fees += max(1, (work["reward_paid_cents"] * tenths + 5) // 10)
        fees += sum(max(1, (cents * 2 + 5) // 10) for cents in work["bonuses"])
        out += work["reward_paid_cents"] + sum(work["bonuses"])
    assert state["initial_balance"] == state["balance"] + out + fees
    assert (sum(state["paid"].values()), state["fees"]) == (out, fees)
    assert turk.get_account_balance()["AvailableBalance"] == f"{state['balance'] / 100:.2f}"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(STEP, min_size=5, max_size=60), st.integers(0, 1000))
def test_it_conserves_money_over_any_walk(steps: list[tuple[str, int]], seed: int) -> None:
    with mturk.simulator(seed=seed, options=mturk.TurkOptions(balance_cents=6_000)) as sim:
        walk = Walk(sim, client(sim))
        walk.offer(50)
        for action, number in steps:
            walk.step(action, number)
        check_books(sim, walk.turk)


def test_it_conserves_money_over_long_walks_with_faults() -> None:
    """A third of all calls fail, half of these after their effect."""
    paid: Counter[str] = Counter()
    for seed in range(3):
        draws = Streams(seed)("walk")
        with mturk.simulator(seed=seed) as sim:
            walk = Walk(sim, client(sim))
            names = ["offer", "return", "reject", "advance"]
            names += ["take", "complete", "approve", "bonus"] * 3
            walk.offer(60)
            sim.faults.share = 0.3
            for _ in range(250):
                walk.step(names[int(draws.integers(len(names)))], int(draws.integers(100)))
            sim.faults.share = 0.0
            assert set(sim.faults.met) == set(KINDS)
            check_books(sim, walk.turk)
            paid.update(sim.control.state()["paid"])
    assert paid["reward"] and paid["bonus"]


def test_it_pays_once_when_many_ask_at_the_same_time(sim: TurkSimulator, turk: Any) -> None:
    offer(turk)
    work = submitted(sim)
    bonus = {
        "WorkerId": work["person"],
        "AssignmentId": work["assignment"],
        "BonusAmount": "0.55",
        "Reason": "r",
        "UniqueRequestToken": "payout-7",
    }

    def both(_: int) -> None:
        for call, members in (
            (turk.send_bonus, bonus),
            (turk.approve_assignment, {"AssignmentId": work["assignment"]}),
        ):
            with suppress(ClientError):
                call(**members)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(both, range(24)))
    assert truth(sim, work) == ("Approved", 1, 200, [55])
    had_effect = [call.operation for call in sim.log if call.effect]
    assert sorted(had_effect[-2:]) == ["ApproveAssignment", "SendBonus"]
    assert len([name for name in had_effect if name in ("ApproveAssignment", "SendBonus")]) == 2


def test_it_never_loses_a_place(sim: TurkSimulator, turk: Any) -> None:
    """Held, done and free places always sum to all places."""
    draws = Streams(9)("places")
    hit_id = offer(turk, MaxAssignments=7, LifetimeInSeconds=30 * DAY, AssignmentDurationInSeconds=DAY)
    walk = Walk(sim, turk)
    for _ in range(200):
        walk.step(["take", "complete", "return", "advance"][int(draws.integers(4))], int(draws.integers(20)))
        posting = sim.control.state()["postings"][hit_id]
        assert posting["held"] + posting["done"] + posting["free"] == 7
    assert hit(turk, hit_id)["NumberOfAssignmentsAvailable"] == posting["free"]
