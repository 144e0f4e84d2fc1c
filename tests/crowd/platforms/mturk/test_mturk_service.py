"""What only Mechanical Turk has, beyond the contract of all platforms: HITs, fees, qualifications, tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from crowd.platforms.base import (
    BonusStatement,
    ListedSubmission,
    Payment,
    PlatformError,
    PlatformPosting,
    PostingSpec,
    Unread,
    UnsupportedRequest,
)
from crowd.platforms.mturk.decisions import Decisions
from crowd.platforms.mturk.service import MTurk
from crowd.platforms.mturk.sqs_notices import events_of
from crowd.rehearsal.mturk import simulator
from tests.crowd.platforms.mturk.mturk_script import account, bare, refusal, reply, script

pytestmark = pytest.mark.pure

DAY_S = 86_400
SPEC = PostingSpec(
    reference="legible-wolf",
    title="Can you predict the machine?",
    description="Look at pictures.",
    url="https://lab.example/join/wolf/?via=1",
    places=20,
    reward_cents=200,
    currency="USD",
    expected_minutes=7,
    maximum_minutes=28,
    codes={"complete": "C1"},
    screened_cents=200,
    turned_away_cents=0,
    withdrawn="full",
)


@dataclass
class Scene:
    sim: Any
    service: MTurk

    def hits(self) -> list[dict[str, Any]]:
        return [dict(hit) for hit in self.sim.control("state")["postings"].values()]

    def sizes(self) -> list[int]:
        return [hit["places"] for hit in self.hits()]

    def take(self, person: str = "", hit: str = "") -> dict[str, Any]:
        return dict(self.sim.control("take", person=person, posting=hit))

    def worked(self, count: int = 1) -> list[str]:
        """`count` new people take a place and submit their work; their submissions."""
        submissions = []
        for _ in range(count):
            submissions.append(self.take()["submission"])
            self.sim.control("complete", submission=submissions[-1], code="C1")
        return submissions

    def truth(self, submission: str) -> dict[str, Any]:
        return dict(self.sim.control("state")["submissions"][submission])

    def calls(self, operation: str) -> int:
        return sum(call.operation == operation for call in self.sim.log)


@contextmanager
def scene(queue_url: str = "") -> Iterator[Scene]:
    with simulator(seed=3) as sim:
        service = MTurk(account(sim.url, queue_url), lambda seconds: sim.clock.advance(seconds))
        try:
            yield Scene(sim, service)
        finally:
            service.disconnect()


@pytest.fixture
def on() -> Iterator[Scene]:
    with scene() as opened:
        yield opened


def spec(**changes: Any) -> PostingSpec:
    return replace(SPEC, **changes)


# HITs of nine, and one HIT


def test_it_splits_into_hits_under_the_fee_step(on: Scene) -> None:
    posted = on.service.publish(SPEC)
    assert on.sizes() == [9, 9, 2]
    assert [hit["annotation"] for hit in on.hits()] == [f"legible-wolf-{n}" for n in range(3)]
    assert posted.facts["hits"] == list(on.sim.control("state")["postings"])


def test_it_makes_one_hit_beyond_the_step_where_the_study_says_so(on: Scene) -> None:
    on.service.publish(spec(options={"batch": "one"}))
    assert on.sizes() == [20]


@pytest.mark.parametrize(
    ("batch", "first", "then", "expected"),
    [
        ("nine", 4, 7, [7]),
        ("nine", 4, 9, [9]),
        ("nine", 4, 10, [9, 1]),
        ("nine", 9, 10, [9, 1]),
        ("nine", 20, 40, [9, 9, 9, 9, 4]),
        ("one", 4, 9, [9]),
        ("one", 4, 10, [4, 6]),
        ("one", 9, 30, [9, 21]),
        ("one", 10, 11, [11]),
        ("one", 20, 300, [300]),
    ],
)
def test_it_never_grows_a_hit_across_the_fee_step(
    on: Scene, batch: str, first: int, then: int, expected: list[int]
) -> None:
    first_spec = spec(places=first, options={"batch": batch})
    posted = on.service.publish(first_spec)
    revised = on.service.revise(posted, replace(first_spec, places=then))
    assert on.sizes() == expected
    assert (revised.places, len(revised.facts["hits"])) == (then, len(expected))
    assert {call.status for call in on.sim.log} == {200}  # it did not try a call that would be refused


def test_it_pays_the_fee_that_it_quoted_for_either_way(on: Scene) -> None:
    """20 people at 2.00: a fee of 0.40 each in HITs of nine, of 0.80 each in one HIT."""
    for batch, fee in (("nine", 40), ("one", 80)):
        with scene() as at:
            wanted = spec(options={"batch": batch})
            quote = at.service.quote(wanted)
            posted = at.service.publish(wanted)
            at.service.approve(posted, at.worked(20))
            state = at.sim.control("state")
            assert state["initial_balance"] - state["balance"] == 20 * (200 + fee) == quote.total_cents


def test_it_finds_its_hits_among_those_of_others(on: Scene) -> None:
    """Several pages of other studies, one with a reference that begins like ours."""
    on.service.publish(spec(reference="legible-wolf-1", places=1000))
    posted = on.service.publish(SPEC)
    assert len(on.hits()) == 112 + 3
    assert on.service.publish(SPEC).facts["hits"] == posted.facts["hits"]
    assert on.service.look(posted).places == 20


def test_it_finds_the_hit_that_a_token_made_though_no_list_shows_it(
    on: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists may lag behind; the message of the refusal names the HIT."""
    posted = on.service.publish(SPEC)
    monkeypatch.setattr(on.service.hits, "of_reference", lambda reference: [])
    assert on.service.publish(SPEC).facts["hits"] == posted.facts["hits"]
    assert on.sizes() == [9, 9, 2]


def test_it_tells_two_postings_of_one_study_apart(on: Scene) -> None:
    """A pilot and the live study have the same HIT type; each has HITs and a list of people of its own."""
    pilot = on.service.publish(spec(reference="pilot", places=5))
    main = on.service.publish(spec(reference="main", places=9, excluded=(pilot.external_id,)))
    assert pilot.external_id != main.external_id
    assert not set(pilot.facts["hits"]) & set(main.facts["hits"])


# Who may come


def test_it_lets_no_person_come_twice_though_there_are_several_hits(on: Scene) -> None:
    posted = on.service.publish(SPEC)
    (submission,) = on.worked()
    person = submission.partition(":")[2]
    list(on.service.submissions(posted))
    with pytest.raises(Exception, match="lacks a qualification"):
        on.take(person, posted.facts["hits"][1])
    assert on.sim.control("state")["letters"] == {}  # and no letter was sent


def test_it_grants_once(on: Scene) -> None:
    posted = on.service.publish(SPEC)
    on.worked(3)
    for _ in range(3):
        list(on.service.submissions(posted))
    assert on.calls("AssociateQualificationWithWorker") == 3


def test_it_keeps_people_of_excluded_postings_away(on: Scene) -> None:
    pilot = on.service.publish(spec(reference="pilot", places=5))
    (submission,) = on.worked()
    list(on.service.submissions(pilot))
    on.service.close(pilot)
    on.service.publish(spec(reference="main", excluded=(pilot.external_id,)))
    with pytest.raises(Exception, match="lacks a qualification"):
        on.take(submission.partition(":")[2])
    on.take()


def test_it_reads_all_people_though_marking_fails(on: Scene) -> None:
    posted = on.service.publish(SPEC)
    people = on.worked(2)
    unknown = replace(posted, external_id="3NOSUCHTYPE")
    assert {listed.submission for listed in on.service.submissions(unknown)} == set(people)


# Time


def test_it_says_paused_when_the_lifetime_is_over_and_opens_again(on: Scene) -> None:
    posted = on.service.publish(spec(options={"lifetime_days": 7}))
    on.worked(1)
    on.sim.control("advance", seconds=8 * DAY_S)
    over = on.service.look(posted)
    assert (over.state, over.taken) == ("paused", 1)
    again = on.service.resume(over)
    assert again.state == "open"
    on.take()
    paused = on.service.pause(again)
    assert paused.state == on.service.look(paused).state == "paused"
    closed = on.service.close(paused)
    assert closed.state == on.service.look(closed).state == "closed"


def test_it_adds_places_to_what_is_over(on: Scene) -> None:
    posted = on.service.publish(spec(places=4, options={"lifetime_days": 7}))
    on.worked(4)
    on.sim.control("advance", seconds=8 * DAY_S)
    revised = on.service.revise(posted, spec(places=6, options={"lifetime_days": 7}))
    assert revised.state == "open"
    on.worked(2)


def test_it_adds_places_to_a_paused_posting_and_keeps_it_paused(on: Scene) -> None:
    paused = on.service.pause(on.service.publish(spec(places=12)))
    revised = on.service.revise(paused, spec(places=30))
    assert (revised.state, revised.places) == ("paused", 30)
    with pytest.raises(Exception, match="assignable"):
        on.take()
    assert on.service.resume(revised).state == "open"
    assert len(on.worked(30)) == 30


def test_it_opens_nothing_that_is_older_than_a_year(on: Scene) -> None:
    posted = on.service.publish(spec(places=3))
    paused = on.service.pause(posted)
    on.sim.control("advance", seconds=100 * DAY_S)
    on.service.resume(paused)
    on.sim.control("advance", seconds=300 * DAY_S)
    with pytest.raises(PlatformError, match="older than a year") as error:
        on.service.resume(paused)
    assert error.value.permanent


def test_it_remembers_what_amazon_forgets(on: Scene) -> None:
    posted = on.service.look(on.service.publish(SPEC))
    people = on.worked(20)
    on.service.approve(posted, people)
    posted = on.service.look(posted)
    on.sim.control("advance", seconds=130 * DAY_S)
    gone = on.service.look(posted)
    assert (gone.state, gone.raw, gone.places, gone.taken) == ("closed", "Disposed", 20, 20)
    assert list(on.service.submissions(gone)) == []
    assert list(on.service.statement(gone, people)) == [
        BonusStatement(submission, ()) for submission in people
    ]
    assert [settled.state for settled in on.service.approve(gone, people[:1])] == ["failed"]


def test_it_finds_approved_what_amazon_approved_by_itself(on: Scene) -> None:
    posted = on.service.publish(spec(options={"auto_approval_days": 3}))
    people = on.worked(2)
    on.sim.control("advance", seconds=4 * DAY_S)
    assert [settled.state for settled in on.service.approve(posted, people)] == ["sent", "sent"]
    assert [on.truth(submission)["reward_paid_count"] for submission in people] == [1, 1]


# Money


@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after"])
def test_it_sees_for_itself_that_an_approval_took_effect(on: Scene, fault: str) -> None:
    posted = on.service.publish(SPEC)
    (submission,) = on.worked()
    on.sim.faults.forced = ["", fault]
    assert [settled.state for settled in on.service.approve(posted, [submission])] == ["sent"]
    assert on.truth(submission)["reward_paid_count"] == 1


def test_it_pays_a_share_as_the_hits_reward(on: Scene) -> None:
    posted = on.service.publish(spec(options={"base_share": 0.25}))
    assert posted.facts["base_cents"] == 50
    (submission,) = on.worked()
    on.service.approve(posted, [submission])
    assert on.truth(submission)["reward_paid_cents"] == 50


def payment(submission: str, reference: str = "0a1b2c", cents: int = 55) -> Payment:
    return Payment(reference, submission, submission.partition(":")[2], cents, "Answers that match")


def paid(on: Scene, posted: PlatformPosting, *payments: Payment) -> list[str]:
    prepared = on.service.prepare(posted, payments)
    return [settled.state for settled in on.service.pay(posted, prepared, payments)]


def test_it_pays_a_payment_once_however_often_it_is_called(on: Scene) -> None:
    """A process that died after the call and calls again uses the same token."""
    posted = on.service.publish(SPEC)
    (submission,) = on.worked()
    for _ in range(3):
        assert paid(on, posted, payment(submission)) == ["sent"]
    assert on.truth(submission)["bonuses"] == [55]


def test_it_finds_its_reference_in_what_was_paid(on: Scene) -> None:
    posted = on.service.publish(SPEC)
    people = on.worked(2)
    payments = [payment(submission, f"ref-{number}", 50 + number) for number, submission in enumerate(people)]
    payments += [payment(people[0], "ref-9", 50)]
    paid(on, posted, *payments)
    for asked in (people, people[:1]):
        bonuses = {
            (shown.submission, line.cents, line.reference)
            for shown in on.service.statement(posted, asked)
            if isinstance(shown, BonusStatement)
            for line in shown.lines
        }
        assert bonuses == {(p.submission, p.cents, p.reference) for p in payments if p.submission in asked}


ROW = {"AssignmentId": "3A", "WorkerId": "A1WORKER", "HITId": "3HIT", "AssignmentStatus": "Submitted"}


@pytest.mark.parametrize(
    ("odd", "named"),
    [
        ({"AssignmentId": None}, ""),
        ({"WorkerId": None}, ""),
        ({"WorkerId": 7}, ""),
        ({"WorkerId": "A1\u0000"}, ""),
        ({"AssignmentId": "../3B"}, ""),
        ({"AssignmentStatus": None}, "3B:A1WORKER"),
        ({"AssignmentStatus": 7}, "3B:A1WORKER"),
    ],
)
def test_it_sets_a_row_aside_that_it_cannot_read(odd: dict[str, Any], named: str) -> None:
    rows = [ROW, {**ROW, "AssignmentId": "3B", **odd}, {**ROW, "AssignmentId": "3C"}]
    with script(reply(NumResults=3, Assignments=rows)) as server:
        read = list(Decisions(server.wire).listed("3HIT", 0))
    unread = [row for row in read if isinstance(row, Unread)]
    assert [row.submission for row in read] == ["3A:A1WORKER", named, "3C:A1WORKER"]
    assert [row.submission for row in unread] == [named]
    assert "A1WORKER" not in unread[0].why


def test_it_reads_a_row_whose_texts_cannot_be_stored() -> None:
    odd = {**ROW, "AssignmentStatus": "New\u0007", "Answer": 7}
    with script(reply(NumResults=1, Assignments=[odd])) as server:
        (row,) = Decisions(server.wire).listed("3HIT", 0)
    assert isinstance(row, ListedSubmission)
    assert (row.raw, row.state, row.code) == ("New?", "unknown", "")


def test_it_says_unknown_of_a_used_token_that_no_list_confirms() -> None:
    plays = [refusal("BonusAlreadyExists"), bare("x", status=200)]
    with script(*plays) as server:
        service = MTurk(account(server.url), lambda seconds: None)
        posted = PlatformPosting(
            "3Q", "open", "", 1, 1, {"hits": ["3HIT"], "options": service.check_options({})}
        )
        bonus = payment("3A:A1WORKER")
        results = service.pay(posted, service.prepare(posted, [bonus]), [bonus])
    assert [settled.state for settled in results] == ["unknown"]


@pytest.mark.parametrize(
    "wrong",
    [
        Payment("a b", "3A:A1", "A1", 5, "r"),
        Payment("r1", "3A:A1", "A2", 5, "r"),
        Payment("r1", "3A:<b>", "<b>", 5, "r"),
        Payment("r1", "3A", "A1", 5, "r"),
        Payment("r1", "3A:A1", "A1", 0, "r"),
        Payment("r1", "3A:A1", "A1", -5, "r"),
    ],
)
def test_it_prepares_nothing_that_it_could_not_pay(on: Scene, wrong: Payment) -> None:
    posted = on.service.publish(SPEC)
    before = on.sim.calls_count
    with pytest.raises(PlatformError) as error:
        on.service.prepare(posted, [wrong])
    assert error.value.permanent
    assert on.sim.calls_count == before


def test_it_never_pays_the_next_person_under_an_id_that_came_back(on: Scene) -> None:
    """An assignment id that was given back may belong to another person now."""
    posted = on.service.publish(spec(places=1))
    first = on.take()["submission"]
    on.sim.control("return", submission=first)
    (second,) = on.worked()
    assert first.partition(":")[0] == second.partition(":")[0]
    assert first != second
    assert [settled.state for settled in on.service.approve(posted, [first])] == ["failed"]
    assert paid(on, posted, payment(first)) == ["failed"]
    assert (on.truth(second)["reward_paid_count"], on.truth(second)["bonuses"]) == (0, [])
    assert [settled.state for settled in on.service.approve(posted, [second])] == ["sent"]


def test_it_approves_no_work_of_another_study(on: Scene) -> None:
    posted = on.service.publish(SPEC)
    other = on.service.publish(spec(reference="other"))
    submission = on.sim.control("take", posting=other.facts["hits"][0])["submission"]
    on.sim.control("complete", submission=submission, code="C1")
    assert [settled.state for settled in on.service.approve(posted, [submission])] == ["failed"]
    assert on.truth(submission)["reward_paid_count"] == 0


# The provider


@pytest.mark.parametrize(
    "play", [bare("AccessDeniedException"), refusal("NotAuthorized"), bare("Gone", status=410)]
)
def test_it_says_that_the_provider_is_not_available(play: Any) -> None:
    with script(play) as server:
        service = MTurk(account(server.url), lambda seconds: None)
        with pytest.raises(PlatformError, match="not available to this account") as error:
            service.quote(SPEC)
    assert (error.value.permanent, error.value.uncertain) == (True, False)


def test_it_says_so_if_the_provider_no_longer_answers() -> None:
    service = MTurk(account("http://127.0.0.1:9"), lambda seconds: None)
    with pytest.raises(PlatformError, match="not available to this account.*cannot be reached"):
        service.quote(SPEC)


def test_it_asks_for_notifications_before_anybody_can_come() -> None:
    url = "https://sqs.us-east-1.amazonaws.com/123456789012/notices"
    with scene(url) as on:
        posted = on.service.publish(SPEC)
        kind = on.sim.world.types[posted.facts["hit_type"]]
        assert (kind.notice.destination, kind.notice_active) == (url, True)
        names = [call.operation for call in on.sim.log]
        assert names.index("UpdateNotificationSettings") < names.index("CreateHITWithHITType")


def test_it_reads_what_the_platform_tells() -> None:
    with scene("https://sqs.us-east-1.amazonaws.com/123456789012/notices") as on:
        posted = on.service.publish(SPEC)
        on.worked(2)
        documents: list[str] = []
        on.sim.control.deliver(send=lambda specification, text: documents.append(text), duplicates=True)
        notices = [notice for text in documents for notice in events_of(text)]
    assert {notice.posting for notice in notices} <= set(posted.facts["hits"])
    assert {notice.kind for notice in notices} >= {"AssignmentAccepted", "AssignmentSubmitted"}
    assert len({notice.event_id for notice in notices}) * 2 == len(notices)


def test_it_writes_to_no_person_whose_work_is_undecided(on: Scene) -> None:
    posted = on.service.publish(SPEC)
    (submission,) = on.worked()
    person = submission.partition(":")[2]
    with pytest.raises(PlatformError, match="decided") as error:
        on.service.message(posted, person, "Hello.")
    assert error.value.permanent
    on.service.approve(posted, [submission])
    on.sim.control("fail_softly", people=[person])
    with pytest.raises(PlatformError) as error:
        on.service.message(posted, person, "Hello.")
    assert not error.value.permanent
    assert on.calls("NotifyWorkers") == 2


@pytest.mark.parametrize("body", ["", " ", "x" * 4097, "a\x00b"])
def test_it_sends_no_letter_that_would_be_refused(on: Scene, body: str) -> None:
    posted = on.service.publish(SPEC)
    before = on.sim.calls_count
    verbs: list[Callable[[], None]] = [
        lambda: on.service.message(posted, "A1WORKER", body),
        lambda: on.service.reject(posted, "3A:A1WORKER", body, "OTHER"),
    ]
    for verb in verbs:
        with pytest.raises(UnsupportedRequest):
            verb()
    assert on.sim.calls_count == before
