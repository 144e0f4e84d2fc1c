"""What every platform with a market promises: its real adapter against its simulator, over real HTTP.
Money has a file of its own, test_platform_money.py; the platforms are set up in stages.py.

The oracle is the simulator's own truth: money that really left, work that really was decided. What the
adapter says is compared with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC
from typing import Any, get_args
from urllib.parse import urlsplit

import pytest

from crowd.platforms import PLATFORMS, has_service
from crowd.platforms.base import Outcome, PlatformError, PlatformPosting, UnsupportedRequest
from crowd.rehearsal.faults import Fault
from tests.contracts.stages import CASES, CODES, MESSAGE, REWARD, SETTLE_S, Case, Stage, settled, stage

pytestmark = pytest.mark.pure


def test_it_runs_every_platform_with_a_market() -> None:
    assert {case.name for case in CASES.values()} == {name for name in PLATFORMS if has_service(name)}


def test_it_would_notice_a_request_that_breaks_the_description(platform: Case) -> None:
    """The check with which every test in this file ends."""
    with pytest.raises(AssertionError), stage(platform) as on:
        wire = on.service.wire  # type: ignore[attr-defined]
        with pytest.raises(Exception, match="400|InvalidParameter"):
            if platform.name == "mturk":
                wire.client.list_hits(MaxResults=101)
            else:
                wire.send("POST", "studies/", {"name": 5, "surprise": True})


# Offering


def test_it_publishes_what_was_offered(on: Stage, posted: PlatformPosting) -> None:
    assert (posted.state, posted.places, posted.taken) == ("open", 20, 0)
    assert on.places() == 20
    assert posted.external_id
    assert on.spent() == 0
    assert on.take(posted)["url"].startswith(f"{on.spec.url}&")


def test_it_publishes_twice_and_there_is_one(on: Stage, posted: PlatformPosting) -> None:
    before = on.postings()
    again = on.service.publish(on.spec)
    assert (again.external_id, again.places, again.facts) == (posted.external_id, 20, posted.facts)
    assert on.postings() == before


@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after", "5xx_before", "429"])
def test_it_publishes_once_whichever_answer_is_lost(platform: Case, fault: Fault) -> None:
    with stage(platform) as calm:
        calm.service.publish(calm.spec)
        calls = calm.sim.calls_count
    for number in range(calls):
        with stage(platform) as on:
            on.fail_at(number, fault)
            posted = repeated(lambda: on.service.publish(on.spec), on)
            assert (posted.state, posted.places) == ("open", 20), f"call {number}"
            assert on.places() == 20, f"call {number}"
            assert on.sim.faults.met[fault] == 1


def repeated(verb: Callable[[], Any], on: Stage) -> Any:
    """The call, and a second one after a pause if the first may be repeated."""
    try:
        return verb()
    except PlatformError as error:
        assert not error.permanent
        on.wait(SETTLE_S)
        return verb()


def test_it_quotes_no_less_than_is_really_taken(on: Stage) -> None:
    quote = on.service.quote(on.spec)
    assert quote.currency == on.spec.currency
    assert quote.balance_cents == on.act("state")["balance"]
    posted = on.service.publish(on.spec)
    people = on.worked(posted, 20)
    on.service.approve(posted, people)
    payments = on.payments(posted, people, on.spec.bonus_max_cents)
    on.service.pay(posted, on.service.prepare(posted, payments), payments)
    on.sim.clock.advance(SETTLE_S)
    state = on.act("state")
    assert state["paid"]["reward"] == 20 * REWARD
    assert state["paid"]["bonus"] == 20 * on.spec.bonus_max_cents
    assert 20 * (REWARD + on.spec.bonus_max_cents) < on.spent() <= quote.total_cents


def test_it_says_in_a_quote_that_a_platform_is_to_close(on: Stage) -> None:
    """`publish --live` shows the notes before it asks."""
    notes = " ".join(on.service.quote(on.spec).notes)
    assert ("30 September 2026" in notes) == (on.case.name == "mturk")


def test_it_says_what_the_account_holds(on: Stage) -> None:
    assert on.service.balance() == (on.spec.currency, on.act("state")["balance"])


def left(on: Stage, cents: int) -> None:
    """Leaves so much in the account."""
    more = cents - int(on.act("state")["balance"])
    on.act("fund", **({"dollars": f"{more / 100:.2f}"} if on.case.name == "mturk" else {"cents": more}))


def test_it_offers_nothing_that_the_account_cannot_pay(platform: Case) -> None:
    """The simulator itself publishes with just this sum: the rewards and their fees."""
    with stage(platform) as rich:
        rich.service.publish(rich.spec)
        rewards = next(cents for name, cents in rich.service.quote(rich.spec).lines if "reward" in name)
        fees = next(cents for name, cents in rich.service.quote(rich.spec).lines if "fee" in name.lower())
    needed = rewards + fees
    with stage(platform) as on:
        left(on, needed - 1)
        with pytest.raises(UnsupportedRequest, match=r"0\.01 is missing"):
            on.service.publish(on.spec)
        assert on.postings() == []
        left(on, needed)
        posted = on.service.publish(on.spec)
        assert (posted.state, on.places()) == ("open", 20)
        assert on.service.publish(on.spec).places == 20
        if on.case.name == "prolific":  # it sets the rewards aside
            with pytest.raises(UnsupportedRequest, match="is missing"):
                on.service.revise(posted, replace(on.spec, places=21))
            assert on.places() == 20


def test_it_refuses_another_currency(on: Stage) -> None:
    foreign = replace(on.spec, currency="JPY")
    for verb in (on.service.quote, on.service.publish):
        with pytest.raises(UnsupportedRequest, match="JPY"):
            verb(foreign)
    assert on.postings() == []


def test_it_checks_options_and_may_check_them_again(on: Stage) -> None:
    once = on.service.check_options(on.spec.options)
    assert on.service.check_options(once) == once
    with pytest.raises(ValueError, match="no_such_key"):
        on.service.check_options({"no_such_key": 1})


@pytest.mark.parametrize("wanted", [21, 27, 40])
def test_it_adds_places_and_takes_none_back(on: Stage, posted: PlatformPosting, wanted: int) -> None:
    on.worked(posted, 3)
    more = replace(on.spec, places=wanted)
    revised = on.service.revise(posted, more)
    assert (revised.places, revised.state, revised.external_id) == (wanted, "open", posted.external_id)
    assert on.places() == wanted
    assert on.service.revise(revised, more).places == wanted
    with pytest.raises(UnsupportedRequest, match=f"{wanted - 1}"):
        on.service.revise(revised, replace(on.spec, places=wanted - 1))
    assert on.places() == wanted
    assert len(on.worked(revised, wanted - 3)) == wanted - 3


@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after", "429"])
def test_it_adds_places_once_whichever_answer_is_lost(platform: Case, fault: Fault) -> None:
    with stage(platform) as calm:
        posted = calm.service.publish(calm.spec)
        before = calm.sim.calls_count
        calm.service.revise(posted, replace(calm.spec, places=40))
        calls = calm.sim.calls_count - before
    for number in range(calls):
        with stage(platform) as on:
            posted = on.service.publish(on.spec)
            more = replace(on.spec, places=40)
            on.fail_at(number, fault)
            revised = repeated(lambda: on.service.revise(posted, more), on)  # noqa: B023 - called at once
            assert (revised.places, on.places()) == (40, 40), f"call {number}"


def test_it_revives_a_full_posting_with_more_places(on: Stage, posted: PlatformPosting) -> None:
    on.worked(posted, 20)
    full = on.service.look(posted)
    assert (full.state, full.taken) == ("open", 20)
    revised = on.service.revise(full, replace(on.spec, places=22))
    assert revised.state == "open"
    assert len(on.worked(revised, 2)) == 2


def test_it_pauses_and_resumes_for_certain(on: Stage, posted: PlatformPosting) -> None:
    paused = on.service.pause(posted)
    assert (paused.state, on.service.look(paused).state) == ("paused", "paused")
    assert not can_take(on, paused)
    assert on.service.pause(paused).state == "paused"
    open_again = on.service.resume(paused)
    assert (open_again.state, on.service.look(open_again).state) == ("open", "open")
    assert can_take(on, open_again)
    assert on.service.resume(open_again).state == "open"


def test_it_closes_for_certain_and_lets_people_finish(on: Stage, posted: PlatformPosting) -> None:
    inside = on.take(posted)["submission"]
    closed = on.service.close(posted)
    assert (closed.state, on.service.look(closed).state) == ("closed", "closed")
    assert not can_take(on, closed)
    assert on.service.close(closed).state == "closed"
    on.act("complete", submission=inside, code=CODES["complete"])
    on.sim.clock.advance(SETTLE_S)
    assert on.listed(closed)[inside].state == "awaiting"
    assert settled(on.service.approve(closed, [inside])) == ["sent"]
    assert on.truth(inside)["reward_paid_count"] == 1


@pytest.mark.parametrize("verb", ["pause", "close"])
@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after", "5xx_before", "429"])
def test_it_stops_whichever_answer_is_lost(platform: Case, verb: str, fault: Fault) -> None:
    with stage(platform) as on:
        posted = on.service.publish(on.spec)
        for number in range(4):
            on.fail_at(number, fault)
            stopped = repeated(lambda: getattr(on.service, verb)(posted), on)
            assert stopped.state in ("paused", "closed")
            assert not can_take(on, stopped)


def can_take(on: Stage, posted: PlatformPosting) -> bool:
    try:
        on.take(posted)
    except Exception:  # noqa: BLE001 - each simulator has its own way to say no
        return False
    return True


# Work


@pytest.mark.parametrize("count", [99, 100, 200])
def test_it_lists_everybody_over_exact_pages(on: Stage, count: int) -> None:
    posted = on.service.publish(replace(on.spec, places=count))
    people = on.worked(posted, count)
    listed = on.rows(posted)
    assert Counter(listed.submission for listed in listed) == Counter(people)
    assert {listed.state for listed in listed} == {"awaiting"}
    assert {listed.code for listed in listed} <= {CODES["complete"]}
    assert {listed.person for listed in listed} == {on.truth(submission)["person"] for submission in people}


def test_it_tells_times_in_utc(on: Stage, posted: PlatformPosting) -> None:
    before = on.sim.clock.now()
    (submission,) = on.worked(posted, 1)
    listed = on.listed(posted)[submission]
    assert listed.started_at is not None and listed.completed_at is not None
    assert (listed.started_at.tzinfo, listed.completed_at.tzinfo) == (UTC, UTC)
    assert before <= listed.started_at <= listed.completed_at <= on.sim.clock.now()


def test_it_tells_work_that_is_over_from_work_that_is_not(on: Stage, posted: PlatformPosting) -> None:
    back, late, inside = (on.take(posted)["submission"] for _ in range(3))
    on.act("return", submission=back)
    on.act("time_out", submission=late)
    (done,) = on.worked(posted, 1)
    listed = on.listed(posted)
    assert listed[done].state == "awaiting"
    # Some platforms list only what was handed in.
    all_three = (("back", back), ("late", late), ("inside", inside))
    states = {name: listed[submission].state for name, submission in all_three if submission in listed}
    assert states in ({}, {"back": "returned", "late": "timed_out", "inside": "active"})


def test_it_knows_each_persons_code(on: Stage, posted: PlatformPosting) -> None:
    (first,) = on.worked(posted, 1)
    (other,) = on.worked(posted, 1, "failed_checks")
    listed = on.listed(posted)
    codes = (listed[first].code, listed[other].code)
    assert codes == (CODES["complete"], CODES["failed_checks"])


# What a platform cannot do, and a platform that does not answer


def test_it_refuses_what_the_platform_cannot_do_and_sends_nothing(on: Stage, posted: PlatformPosting) -> None:
    (done,) = on.worked(posted, 1)
    person = on.truth(done)["person"]
    verbs: dict[str, Callable[[], object]] = {
        "request_return": lambda: on.service.request_return(posted, done, "Withdrew consent"),
        "reject": lambda: on.service.reject(posted, done, MESSAGE, "FAILED_CHECK"),
        "message": lambda: on.service.message(posted, person, "Hello."),
        "demographics": lambda: list(on.service.demographics(posted)),
    }
    before = on.sim.calls_count
    for name in verbs.keys() - on.service.supports:
        with pytest.raises(UnsupportedRequest):
            verbs[name]()
    if "messages" not in on.service.supports:
        assert list(on.service.messages(posted)) == []
    assert on.sim.calls_count == before


def test_it_asks_for_a_return_where_it_can(on: Stage, posted: PlatformPosting) -> None:
    if "request_return" not in on.service.supports:
        return
    submission = on.take(posted)["submission"]
    on.service.request_return(posted, submission, "Withdrew consent")
    assert on.truth(submission)["return_requested"]
    assert on.listed(posted)[submission].return_requested


def test_it_says_that_the_platform_is_down_and_nothing_is_lost(on: Stage, posted: PlatformPosting) -> None:
    people = on.worked(posted, 1)
    payments = on.payments(posted, people)
    on.sim.faults.down = True
    reads: list[Callable[[], object]] = [
        lambda: on.service.quote(on.spec),
        lambda: on.service.look(posted),
        lambda: list(on.service.submissions(posted)),
        lambda: list(on.service.statement(posted, people)),
    ]
    for read in reads:
        with pytest.raises(PlatformError) as error:
            read()
        assert (error.value.permanent, error.value.uncertain) == (False, False)
        assert str(error.value)
    for change in (on.service.publish, lambda spec: on.service.close(posted)):
        with pytest.raises(PlatformError) as error:
            change(on.spec)
        assert not error.value.permanent
    try:
        assert settled(on.service.approve(posted, people)) == ["failed"]
    except PlatformError as error:
        assert (error.permanent, error.uncertain) == (False, False)
    assert on.truth(people[0])["reward_paid_count"] == 0
    assert len(on.waited_s) > 4  # it tried more than once
    on.sim.faults.down = False
    on.sim.clock.advance(3600)
    assert on.listed(posted)[people[0]].state == "awaiting"
    assert settled(on.service.approve(posted, people)) == ["sent"]
    assert settled(on.service.pay(posted, on.service.prepare(posted, payments), payments)) == ["sent"]
    on.sim.clock.advance(SETTLE_S)
    assert on.bonuses(people) == [[55]]


def test_it_writes_to_a_person_once(on: Stage, posted: PlatformPosting) -> None:
    (done,) = on.worked(posted, 1)
    on.service.approve(posted, [done])
    person = on.truth(done)["person"]
    on.service.message(posted, person, "Thank you. Your answer 7 was not stored; you are paid all the same.")
    assert len(on.act("state")["letters"][person]) == 1
    on.fail("5xx_after")
    with pytest.raises(PlatformError) as error:
        on.service.message(posted, person, "Another.")
    assert error.value.uncertain
    assert len(on.act("state")["letters"][person]) == 2


def test_it_brings_messages_where_the_platform_has_any(on: Stage, posted: PlatformPosting) -> None:
    (done,) = on.worked(posted, 1)
    person = on.truth(done)["person"]
    on.act("message", person=person, body="Is the picture upside down?")
    messages = list(on.service.messages(posted))
    if "messages" in on.service.supports:
        assert [(message.person, message.body) for message in messages] == [
            (person, "Is the picture upside down?")
        ]
    else:
        assert messages == []


# Doors


def test_it_recognises_at_the_door_whom_the_market_lists(on: Stage, posted: PlatformPosting) -> None:
    taken = on.take(posted)
    arrival = on.entry.arrival(urlsplit(taken["url"]).query, on.site)
    assert (arrival.person, arrival.submission) == (taken["person"], taken["submission"])
    assert not arrival.preview
    assert arrival.posting in {posted.external_id, *posted.facts.get("hits", ())}
    leave(on, arrival, "complete")
    listed = on.listed(posted)[taken["submission"]]
    assert (listed.person, listed.state, listed.code) == (taken["person"], "awaiting", CODES["complete"])


def leave(on: Stage, arrival: Any, outcome: Outcome) -> None:
    """What the participant's browser does with the exit, handed to the platform."""
    way = on.entry.exit(outcome, CODES, arrival, on.site, on.service.check_options(on.spec.options))
    assert way.url.startswith(on.sim.url)
    code = way.fields.get("completion") or way.url.partition("cc=")[2]
    on.act("complete", submission=arrival.submission, code=code)
    on.sim.clock.advance(SETTLE_S)


@pytest.mark.parametrize("outcome", ["complete", "failed_checks", "failure", "screened"])
def test_it_leaves_with_the_code_of_the_outcome(on: Stage, posted: PlatformPosting, outcome: Outcome) -> None:
    taken = on.take(posted)
    arrival = on.entry.arrival(urlsplit(taken["url"]).query, on.site)
    leave(on, arrival, outcome)
    assert on.truth(taken["submission"])["code"] == CODES[outcome]


def test_it_reveals_only_the_code_of_the_outcome(on: Stage, posted: PlatformPosting) -> None:
    taken = on.take(posted)
    arrival = on.entry.arrival(urlsplit(taken["url"]).query, on.site)
    for outcome in get_args(Outcome):
        shown = str(on.entry.exit(outcome, CODES, arrival, on.site, {}).as_json())
        assert all(code not in shown for name, code in CODES.items() if name != outcome)
        assert on.entry.exit(outcome, {}, arrival, on.site, {}).method == "none"


def test_it_frames_and_posts_only_where_the_platform_is(on: Stage, posted: PlatformPosting) -> None:
    origins = {*on.entry.ancestors(on.site), *on.entry.form_targets(on.site)}
    assert origins <= {on.sim.url}
    for live in (replace(on.site, mode="live", url=""), replace(on.site, mode="sandbox", url="")):
        named = {*on.entry.ancestors(live), *on.entry.form_targets(live)}
        assert all(urlsplit(address).hostname.endswith(".mturk.com") for address in named)  # type: ignore[union-attr]
