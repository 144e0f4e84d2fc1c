"""Publishing, enlarging and closing at a simulated Prolific, and the state after faults."""

from dataclasses import replace
from typing import Any

import pytest

from crowd.platforms.base import Account, PlatformError, PlatformPosting, Service, Site, UnsupportedRequest
from crowd.platforms.prolific.service import Prolific
from crowd.platforms.prolific.wire import PAGE_SIZE
from crowd.rehearsal.faults import KINDS, Fault, Faults
from crowd.rehearsal.prolific import ProlificSimulator
from tests.crowd.platforms.prolific.prolific_stage import (
    calls,
    drafted,
    finished,
    played,
    repeated,
    rows,
    service_at,
    told,
    wanted,
)

pytestmark = pytest.mark.pure


def test_it_is_a_market() -> None:
    service: Service = Prolific(Account(Site("live")), lambda seconds: None)
    assert service.name == "prolific"


def test_it_quotes_more_than_a_whole_study_then_costs() -> None:
    with played() as (sim, service):
        asked = wanted(service, bonus_max_cents=107, screened_cents=75, places=5)
        quote = service.quote(asked)
        posted = service.publish(asked)
        screened = finished(sim, posted, 1, "screened")
        sim.control.give_back(screened[0].submission)
        done = finished(sim, posted, 5)
        service.approve(posted, [payment.submission for payment in done])
        gifts = [replace(payment, cents=107) for payment in done] + [replace(screened[0], cents=75)]
        service.pay(posted, service.prepare(posted, gifts), gifts)
        state = sim.control.state()
        spent = state["initial_balance"] - state["balance"]
        assert quote.balance_cents == state["initial_balance"]
        assert [cents for _, cents in quote.lines][::2] == [1500, 535, 75]
        # The margin is at most a cent for each payment.
        assert spent <= quote.total_cents <= spent + 6


def test_it_notes_pay_under_the_recommendation_and_refuses_it_under_the_minimum() -> None:
    with played() as (_, service):
        (counted,) = service.quote(wanted(service)).notes
        note, *others = service.quote(wanted(service, reward_cents=150)).notes
        assert others == [counted]
        assert "6.92 GBP per hour" in note
        with pytest.raises(UnsupportedRequest, match="to 130 or more"):
            service.quote(wanted(service, reward_cents=129))
        assert service.quote(wanted(service, reward_cents=130)).total_cents > 0


def test_it_refuses_a_study_in_another_currency() -> None:
    with played(currency="USD") as (sim, service):
        for act in (service.quote, service.publish):
            with pytest.raises(UnsupportedRequest, match=r"USD.*GBP"):
                act(wanted(service))
        assert not sim.world.studies


def test_it_publishes_once_however_often_it_is_asked() -> None:
    with played() as (sim, service):
        first = service.publish(wanted(service))
        assert service.publish(wanted(service)) == first == service.look(first)
        (study,) = sim.world.studies.values()
        assert (study.status, study.places, study.cents) == ("ACTIVE", 5, 300)
        assert (first.state, first.places, first.taken, first.raw) == ("open", 5, 0, "ACTIVE")
        assert first.external_id in first.address


def test_it_finds_its_study_on_a_later_page() -> None:
    with played() as (sim, service):
        first = service.publish(wanted(service))
        for number in range(PAGE_SIZE):
            service.wire.send("POST", "studies/", _another(sim, number))
        assert service.publish(wanted(service)).external_id == first.external_id
        assert len(sim.world.studies) == PAGE_SIZE + 1


def _another(sim: ProlificSimulator, number: int) -> dict[str, Any]:
    (study, *_) = sim.world.studies.values()
    return {**study.sent, "internal_name": f"another-{number}"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", range(7))
def test_it_publishes_one_study_if_any_call_fails(kind: Fault, place: int) -> None:
    with played() as (sim, service):
        sim.faults.forced = [*[""] * place, kind]  # type: ignore[list-item]
        posted = repeated(lambda: service.publish(wanted(service)))
        published = [study for study in sim.world.studies.values() if study.status != "UNPUBLISHED"]
        assert [study.id for study in published] == [posted.external_id]
        assert len(sim.world.studies) == 1


@pytest.mark.parametrize("seed", range(8))
def test_it_publishes_one_study_at_a_platform_that_fails_often(seed: int) -> None:
    with played(seed, Faults(seed, share=0.3), publish_delay_s=3) as (sim, service):
        posted = repeated(lambda: service.publish(wanted(service)))
        published = [study.id for study in sim.world.studies.values() if study.status == "ACTIVE"]
        assert published == [posted.external_id]


@pytest.mark.parametrize("stop_at", range(12))
def test_it_publishes_one_study_though_the_process_dies(stop_at: int) -> None:
    class Killed(BaseException):
        pass

    with played() as (sim, service):
        send = service.wire._once
        done: list[int] = []

        def dying(*arguments: Any) -> Any:
            reply = send(*arguments)
            done.append(1)
            if len(done) == stop_at:
                raise Killed
            return reply

        setattr(service.wire, "_once", dying)  # noqa: B010 - mypy knows it as a method
        try:
            service.publish(wanted(service))
        except Killed:
            service_at(sim).publish(wanted(service))
        assert [study.status for study in sim.world.studies.values()] == ["ACTIVE"]


def test_it_corrects_a_draft_but_never_a_published_study() -> None:
    with played() as (sim, service):
        drafted(sim, service, wanted(service))
        posted = service.publish(wanted(service, reward_cents=350))
        (study,) = sim.world.studies.values()
        assert (study.id, study.cents) == (posted.external_id, 350)
        with pytest.raises(PlatformError, match=r"reward: sent 300, has 350") as caught:
            service.publish(wanted(service))
        assert caught.value.permanent
        assert study.cents == 350


def test_it_takes_the_published_one_of_two_studies_with_its_reference() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        service.wire.send("POST", "studies/", sim.world.studies[posted.external_id].sent)
        assert service.publish(wanted(service)).external_id == posted.external_id
        (other,) = sim.world.studies.keys() - {posted.external_id}
        service.wire.send("POST", f"studies/{other}/transition/", {"action": "PUBLISH"})
        with pytest.raises(PlatformError, match="2 published studies"):
            service.publish(wanted(service))


def test_it_adds_places_and_takes_none_back() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        more = service.revise(posted, wanted(service, 8))
        assert more.places == 8
        assert service.revise(more, wanted(service, 8)).places == 8
        assert len(calls(sim, f"PATCH /api/v1/studies/{posted.external_id}/")) == 1
        with pytest.raises(UnsupportedRequest, match="8 are offered, 7"):
            service.revise(more, wanted(service, 7))


def test_it_reopens_a_study_that_was_full() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service, 2))
        done = finished(sim, posted, 2)
        full = service.look(posted)
        assert (full.raw, full.state, full.taken) == ("AWAITING REVIEW", "open", 2)
        service.approve(posted, [payment.submission for payment in done])
        over = service.look(posted)
        assert (over.raw, over.state) == ("COMPLETED", "closed")
        with pytest.raises(UnsupportedRequest, match="Raise the number of places"):
            service.resume(over)
        again = service.revise(over, wanted(service, 3))
        assert (again.raw, again.state, again.places) == ("ACTIVE", "open", 3)


def test_it_adds_slots_for_screened_people_with_the_places() -> None:
    options = {"fixed_screen_out": True, "screened_reserve_share": 0.5}
    with played() as (sim, service):
        posted = service.publish(wanted(service, 4, screened_cents=50, options=options))
        service.revise(posted, wanted(service, 8, screened_cents=50, options=options))
        assert _slots(sim, posted) == 4
        (screened, *_) = finished(sim, posted, 1, "screened")
        (listed,) = rows(service, posted)
        assert listed.state == "screened_out"
        assert told(sim, screened)["reward_paid_cents"] == 50


def _slots(sim: ProlificSimulator, posted: PlatformPosting) -> int:
    codes = sim.world.studies[posted.external_id].codes
    (slots,) = [int(a["slots"]) for code in codes for a in code["actions"] if "slots" in a]
    return slots


@pytest.mark.parametrize("raw", ["COMPLETED", "AWAITING REVIEW"])
def test_it_closes_in_every_state_after_stopping(raw: str) -> None:
    with played(stop_leads_to=raw) as (sim, service):
        posted = service.publish(wanted(service))
        finished(sim, posted, 1)
        closed = service.close(posted)
        assert (closed.state, closed.raw) == ("closed", raw)
        assert service.look(closed).state == service.close(closed).state == "closed"
        assert len(calls(sim, "/transition/")) == 2


def test_it_pauses_and_resumes() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        paused = service.pause(posted)
        assert paused.state == service.pause(paused).state == "paused"
        assert service.resume(paused).state == service.resume(paused).state == "open"
        assert len(calls(sim, "/transition/")) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", ["pause", "close"])
@pytest.mark.parametrize("place", range(3))
def test_it_pauses_and_closes_through_any_fault(kind: Fault, verb: str, place: int) -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        sim.faults.forced = [*[""] * place, kind]  # type: ignore[list-item]
        state = getattr(service, verb)(posted).state
        assert state == {"pause": "paused", "close": "closed"}[verb]


def test_it_deletes_a_draft_that_is_closed() -> None:
    with played() as (sim, service):
        drafted(sim, service, wanted(service))
        (study_id,) = sim.world.studies
        draft = PlatformPosting(study_id, "draft", "UNPUBLISHED", 5, 0)
        assert service.look(draft).state == "draft"
        assert service.close(draft).state == service.close(draft).state == "closed"
        assert not sim.world.studies


def test_it_reports_a_study_that_is_gone() -> None:
    with played() as (_, service), pytest.raises(PlatformError) as caught:
        service.look(PlatformPosting("6" * 24, "open", "ACTIVE", 5, 0))
    assert caught.value.permanent
