"""A simulated person and a server made of lists: what is sent, in which batches, when the server decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs
from uuid import UUID

import httpx
import pytest

from experiments.kinds.base import Choice, Reply
from experiments.simulation.browser.connection import Line, ServerRefusal
from experiments.simulation.browser.participant_run import AWAY_MS, SimulatedSession
from experiments.simulation.browser.picture_cache import Album
from experiments.simulation.browser.walk import BATCH_MAX, SHUT, STEPS_MAX
from experiments.simulation.people import (
    ExampleView,
    Guesser,
    JudgeView,
    Located,
    LocateView,
    Person,
    RateView,
    TestView,
    Traits,
)
from stimuli.errors import UnknownName

pytestmark = pytest.mark.pure

BUTTONS = [{"value": v, "text": v.capitalize(), "key": k} for v, k in (("husky", "f"), ("wolf", "j"))]
MIN_VIEW_MS = 1500
EXIT = {"method": "GET", "url": "https://back.example", "fields": {}}


def trial(position: int, kind: str = "predict", phase: str = "test", **content: Any) -> dict[str, Any]:
    shown = {"image": None, "explanation": None, "text": None, "choices": BUTTONS, "prompt": None, **content}
    return {"id": f"t{position}", "position": position, "kind": kind, "phase": phase, "content": shown}


def learned(position: int, label: str | None = "Husky") -> dict[str, Any]:
    return trial(position, "learn", "train", label=label)


@dataclass
class Calm:
    """A person who always presses the first button, after a fixed time, and remembers what was shown."""

    kind: ClassVar[str] = "calm"
    took_ms: int = 700
    leaves: int | None = None
    opens: bool = False
    looks: bool = False
    views: list[TestView] = field(default_factory=list)
    examples: list[ExampleView] = field(default_factory=list)
    rated: list[RateView] = field(default_factory=list)
    name: str = "calm-1"
    traits: Traits = Traits(0.0, 1.0, 4, 1.0, 1.0, 1.0)

    @classmethod
    def drawn(cls, seed: int, number: int) -> Self:
        return cls()

    def leaves_after(self, total: int) -> int | None:
        return self.leaves

    def study_example(self, view: ExampleView) -> Reply:
        self.examples.append(view)
        return Reply({"seen": True}, self.took_ms, self.took_ms)

    def answer(self, view: TestView) -> Reply:
        self.views.append(view)
        return Reply({"choice": view.choices[0].value}, self.took_ms, self.took_ms)

    def read_plate(self, plate: str, picture: bytes, choices: Sequence[Choice]) -> Choice:
        return choices[0]

    def rate(self, view: RateView) -> int:
        self.rated.append(view)
        return len(self.rated) % view.points + 1

    def locate(self, view: LocateView) -> Located:
        choice = view.answers[view.position % len(view.answers)]
        cells = None if choice == view.nothing else (view.position % view.grid**2,)
        return Located(choice, cells, self.took_ms)

    def judge(self, view: JudgeView) -> tuple[bool, int]:
        return (view.position + len(self.name)) % 2 == 0, self.took_ms

    def consults(self, position: int) -> bool:
        return self.opens

    def pick(self, question: str, attempt: int, choices: Sequence[Choice], known: Choice | None) -> Choice:
        return known or choices[0]


class Server(Line):
    """The participant API as lists: it holds trials and how many are answered, and records what comes.

    `before` may raise a refusal, or change the server, ahead of each batch of responses.
    """

    def __init__(self, trials: Sequence[dict[str, Any]], *, reservoir: str = "off", last: str = "debrief"):
        super().__init__(httpx.Client())
        self.trials, self.reservoir, self.last = list(trials), reservoir, last
        self.next = 0
        self.batches: list[list[dict[str, Any]]] = []
        self.events: list[dict[str, Any]] = []
        self.posts: list[tuple[str, dict[str, Any]]] = []
        self.before: Callable[[Server], None] = lambda server: None

    def state(self) -> dict[str, Any]:
        done = self.next >= len(self.trials)
        page = {"kind": self.last, "digest": "", "html": "", "questions": []}
        study = {"min_view_ms": MIN_VIEW_MS, "reservoir": self.reservoir, "picture_px": 320}
        return {
            "step": "finish" if done else "trials",
            "page": page if done else None,
            "block": None if done else {"index": 0, "count": 1, "trials": self.trials},
            "next": self.next,
            "total": len(self.trials),
            "study": study,
        }

    def get(self, path: str) -> Any:
        self.requests_count += 1
        assert path == "/api/session/"
        return self.state()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        self.requests_count += 1
        self.posts.append((path, body))
        if path == "/api/sessions/":
            return {"token": "secret", "session": self.state()}
        if path == "/api/session/responses/":
            self.before(self)
            return self._stored(body["responses"])
        if path == "/api/session/events/":
            self.events += body["events"]
            return {}
        return {"debrief": None, "exit": EXIT}

    def _stored(self, responses: list[dict[str, Any]]) -> dict[str, Any]:
        expected = [t["id"] for t in self.trials[self.next : self.next + len(responses)]]
        assert [r["trial"] for r in responses] == expected, "out of order"
        self.batches.append(responses)
        self.next += len(responses)
        guessed = [t for t in self.trials if t["id"] in expected and t["content"].get("label", "") is None]
        told = {t["id"]: {"trial": t["id"], "label": "Wolf", "correct": False} for t in guessed}
        return {"next": self.next, "step": "trials", "feedback": told}


def sent(server: Server) -> list[dict[str, Any]]:
    return [response for batch in server.batches for response in batch]


def session(person: Person, server: Server, batch_max: int = BATCH_MAX) -> SimulatedSession:
    return SimulatedSession(person, server, Album(), quiz={}, batch_max=batch_max)


# Batches


@pytest.mark.parametrize(("count", "batch_max"), [(1, 50), (7, 3), (50, 50), (51, 50), (120, 50), (6, 1)])
def test_every_trial_is_sent_once_in_as_few_batches_as_the_limit_allows(count: int, batch_max: int) -> None:
    server = Server([trial(n) for n in range(count)])
    outcome = session(Calm(), server, batch_max).take("s")
    assert [r["trial"] for r in sent(server)] == [f"t{n}" for n in range(count)]
    assert len(server.batches) == -(-count // batch_max)
    assert all(len(batch) <= batch_max for batch in server.batches)
    assert (outcome.status, outcome.answered_count, outcome.exit) == ("finished", count, EXIT)


def test_a_batch_never_crosses_from_training_into_the_test() -> None:
    server = Server([*(learned(n) for n in range(3)), *(trial(n) for n in range(3, 7))])
    session(Calm(), server).take("s")
    assert [len(batch) for batch in server.batches] == [3, 4]


def test_a_guess_that_is_answered_goes_alone() -> None:
    """Of five examples the second and third are guessed first."""
    trials = [learned(n, None if n in (1, 2) else "Husky") for n in range(5)]
    server = Server(trials)
    session(Calm(), server).take("s")
    assert [[r["trial"] for r in batch] for batch in server.batches] == [["t0"], ["t1"], ["t2"], ["t3", "t4"]]


def test_what_the_reply_revealed_is_known_at_the_test() -> None:
    server, person = Server([learned(0), learned(1, None), trial(2)]), Calm()
    session(person, server).take("s")
    assert [view.label for view in person.examples] == ["Husky"]
    guess, view = person.views
    assert [(example.position, example.label) for example in guess.examples] == [(0, "Husky")]
    assert [(example.position, example.label) for example in view.examples] == [(0, "Husky"), (1, "Wolf")]
    (noted,) = [event for event in server.events if event["kind"] == "revealed"]
    assert noted["trial"] == "t1" and noted["data"]["shown_ms"] >= MIN_VIEW_MS
    guessed, tested = sent(server)[1:]
    looked_ms = tested["context"]["onset_ms"] - guessed["context"]["onset_ms"] - guessed["shown_ms"]
    assert looked_ms == noted["data"]["shown_ms"], "the next page begins when the revealed answer is left"


def test_it_begins_where_the_server_stands() -> None:
    server = Server([trial(n) for n in range(6)])
    server.next = 4
    assert session(Calm(), server).take("s").answered_count == 2
    assert [r["trial"] for r in sent(server)] == ["t4", "t5"]


@pytest.mark.parametrize("leaves", [1, 3, 5])
def test_a_leaver_answers_so_many_and_is_gone_without_a_word(leaves: int) -> None:
    server = Server([trial(n) for n in range(6)])
    outcome = session(Calm(leaves=leaves), server, batch_max=2).take("s")
    assert (outcome.status, outcome.answered_count, server.next) == ("left", leaves, leaves)
    assert not any(path.endswith(("finish/", "withdraw/")) for path, _ in server.posts)


# The server decides


def test_after_a_conflict_it_asks_where_it_stands_and_goes_on_from_there() -> None:
    """Another tab has answered two trials in the meantime: they are not sent again."""

    def rival(server: Server) -> None:
        if server.next == 2:
            server.next = 4
            raise ServerRefusal(409, "not_expected", "Another trial is next.")

    server = Server([trial(n) for n in range(8)])
    server.before = rival
    outcome = session(Calm(), server, batch_max=2).take("s")
    assert [r["trial"] for r in sent(server)] == ["t0", "t1", "t4", "t5", "t6", "t7"]
    assert (outcome.status, outcome.answered_count) == ("finished", 6)


def test_a_conflict_at_the_last_trial_ends_well() -> None:
    def rival(server: Server) -> None:
        server.next = len(server.trials)
        raise ServerRefusal(409, "not_expected", "It is over.")

    server = Server([trial(0)])
    server.before = rival
    outcome = session(Calm(), server).take("s")
    assert (outcome.status, outcome.answered_count) == ("finished", 0)


def refusing(status: int, code: str = "any") -> Server:
    server = Server([trial(0)])

    def refuse(server: Server) -> None:
        raise ServerRefusal(status, code, "No.", None)

    server.before = refuse
    return server


@pytest.mark.parametrize("status", sorted(SHUT))
def test_a_shut_door_turns_away_with_what_was_said(status: int) -> None:
    outcome = session(Calm(), refusing(status)).take("s")
    assert (outcome.status, outcome.step, outcome.answered_count) == ("turned_away", "trials", 0)
    assert str(status) in outcome.message and "No." in outcome.message


@pytest.mark.parametrize("code", ["taken_part", "finished"])
def test_a_conflict_that_ends_the_session_is_no_reason_to_ask_again(code: str) -> None:
    server = refusing(409, code)
    assert session(Calm(), server).take("s").status == "turned_away"
    assert [path for path, _ in server.posts].count("/api/session/responses/") == 1


@pytest.mark.parametrize("status", [400, 500, 503])
def test_a_fault_of_either_side_is_not_passed_over(status: int) -> None:
    with pytest.raises(ServerRefusal, match=f"{status} any: No"):
        session(Calm(), refusing(status)).take("s")


def test_a_server_that_asks_the_same_for_ever_is_left_with_a_sentence() -> None:
    server = refusing(409)
    with pytest.raises(RuntimeError, match=f"calm-1: still at step 'trials' after {STEPS_MAX} steps"):
        session(Calm(), server).take("s")
    assert [path for path, _ in server.posts].count("/api/session/responses/") == STEPS_MAX


@pytest.mark.parametrize(
    ("last", "status"),
    [("debrief", "finished"), ("screened", "screened"), ("declined", "declined"), ("turned_away",) * 2],
)
def test_the_last_page_says_how_it_ended(last: str, status: str) -> None:
    outcome = session(Calm(), Server([], last=last)).take("s")
    assert (outcome.status, outcome.page, outcome.answered_count) == (status, last, 0)


# Arrival and withdrawal


def test_the_local_link_says_who_is_simulated() -> None:
    server = Server([])
    session(Calm(), server).take("wolf-or-husky")
    body = {"study": "wolf-or-husky", "platform": "local"}
    query = "person=calm-1&submission=calm-1-1&simulated=calm"
    assert server.posts[0] == ("/api/sessions/", {**body, "query": query})
    assert server.token == "secret"


def test_a_platform_s_query_is_sent_at_both_ends_with_a_name_for_the_page_load() -> None:
    first, second = Server([]), Server([])
    for server, query in ((first, "a=1"), (second, "a=2")):
        session(Calm(), server).take("s", platform="mturk", query=query)
        (_, arrival), (_, end) = server.posts
        assert (arrival["platform"], arrival["query"], end["query"]) == ("mturk", query, query)
        assert len(bytes.fromhex(arrival["attempt"])) == 16
    assert first.posts[0][1]["attempt"] != second.posts[0][1]["attempt"]


def test_withdrawing_says_why_and_gives_the_way_back() -> None:
    server = Server([trial(0)])
    assert session(Calm(), server).withdraw("no time") == EXIT
    assert server.posts == [("/api/session/withdraw/", {"reason": "no time", "erase": False})]


# Times, looks and events


def test_an_example_is_looked_at_for_as_long_as_the_page_demands() -> None:
    server = Server([learned(0), learned(1)])
    session(Calm(took_ms=200), server).take("s")
    assert [(r["rt_ms"], r["shown_ms"]) for r in sent(server)] == [(MIN_VIEW_MS, MIN_VIEW_MS)] * 2
    slow = Server([learned(0)])
    session(Calm(took_ms=MIN_VIEW_MS + 1), slow).take("s")
    assert sent(slow)[0]["rt_ms"] == MIN_VIEW_MS + 1


def test_the_clock_of_the_page_is_the_sum_of_what_was_shown() -> None:
    server = Server([learned(0), trial(1), trial(2), trial(3)])
    session(Calm(took_ms=900), server).take("s")
    onsets = [r["context"]["onset_ms"] for r in sent(server)]
    assert onsets == [0, 1500, 2400, 3300]


@pytest.mark.parametrize(
    ("way", "opens", "is_at_hand", "is_noted"),
    [
        ("off", True, False, False),
        ("always", True, True, False),
        ("on_request", True, True, True),
        ("on_request", False, False, False),
    ],
)
def test_the_examples_are_opened_only_if_the_study_lets_them_be(
    way: str, opens: bool, is_at_hand: bool, is_noted: bool
) -> None:
    server, person = Server([learned(0), trial(1, reservoir=["t0"])], reservoir=way), Calm(opens=opens)
    session(person, server).take("s")
    assert [view.reservoir for view in person.views] == [is_at_hand]
    kinds = [event["kind"] for event in server.events]
    assert kinds == (["reservoir_opened", "reservoir_closed"] if is_noted else [])


def test_a_test_without_examples_opens_none() -> None:
    server, person = Server([trial(0, reservoir=[])], reservoir="on_request"), Calm(opens=True)
    session(person, server).take("s")
    assert not person.views[0].reservoir and server.events == []


def test_the_time_in_the_reservoir_is_told_three_times_alike() -> None:
    """By the two events, by the context, and by what it adds to the time of the answer."""
    tests = [trial(n, reservoir=["t0"]) for n in range(1, 6)]
    server = Server([learned(0), *tests], reservoir="on_request")
    session(Calm(took_ms=700, opens=True), server).take("s")
    answers = {r["trial"]: r for r in sent(server)[1:]}
    assert len(server.events) == 2 * len(tests)
    for opened, closed in zip(server.events[::2], server.events[1::2], strict=True):
        response = answers[opened["trial"]]
        spent_ms = closed["at_ms"] - opened["at_ms"]
        assert opened["trial"] == closed["trial"] and spent_ms > 0
        assert response["context"]["reservoir_ms"] == spent_ms == response["rt_ms"] - 700
        assert response["shown_ms"] == response["rt_ms"]
        assert opened["at_ms"] >= response["context"]["onset_ms"]
    assert len({event["id"] for event in server.events}) == len(server.events)
    assert {UUID(event["id"]).version for event in server.events} == {4}


@pytest.mark.parametrize(("took_ms", "is_away"), [(AWAY_MS, False), (AWAY_MS + 1, True)])
def test_a_very_long_test_was_left_for_another_window(took_ms: int, is_away: bool) -> None:
    server = Server([learned(0), trial(1)])
    session(Calm(took_ms=took_ms), server).take("s")
    assert [event["kind"] for event in server.events] == (["focus_lost", "focus_gained"] if is_away else [])
    assert [r["context"]["focus_losses"] for r in sent(server)] == [0, int(is_away)]


def test_more_events_than_a_message_holds_go_in_several_messages() -> None:
    """Forty tests in one batch with two events each: none is lost."""
    server = Server([learned(0), *(trial(n, reservoir=["t0"]) for n in range(1, 41))], reservoir="on_request")
    session(Calm(opens=True), server).take("s")
    sizes = [len(body["events"]) for path, body in server.posts if path.endswith("events/")]
    assert sizes and max(sizes) <= BATCH_MAX
    assert len({event["id"] for event in server.events}) == len(server.events) == 80


def test_the_key_and_the_side_are_those_of_the_button() -> None:
    three = [*BUTTONS, {"value": "unsure", "text": "Unsure", "key": "k"}]
    server = Server([learned(0), trial(1), trial(2, choices=BUTTONS[::-1]), trial(3, choices=three)])
    session(Calm(), server).take("s")
    told = [(r["context"]["key"], r["context"].get("side")) for r in sent(server)]
    assert told == [("Enter", None), ("f", "left"), ("j", "left"), ("f", None)]


# By kind


def test_a_check_is_read_and_not_looked_at() -> None:
    person = Calm(looks=True)
    server = Server([trial(0, "instructed", prompt="Press F.", reservoir=[])])
    session(person, server).take("s")
    assert (person.views[0].prompt, person.views[0].percept) == ("Press F.", None)


def test_every_question_of_a_rating_is_answered_after_a_look_at_each() -> None:
    side = {"image": None, "mark": None, "text": None, "sentence": None}
    pairs = (None, None, [side, side])
    questions = [
        {"id": f"q{n}", "text": f"Is it {n}?", "low": "", "high": "", "pair": pair}
        for n, pair in enumerate(pairs)
    ]
    server, person = Server([trial(n, "rate", questions=questions, mark=None) for n in range(40)]), Calm()
    session(person, server).take("s")
    asked = [(view.place, view.question, view.words, view.pair) for view in person.rated]
    assert asked[:2] == [(0, "q0", "Is it 0?", ()), (0, "q1", "Is it 1?", ())]
    assert asked[2:4] == [(0, "q2", "Is it 2?", (None, None)), (1, "q0", "Is it 0?", ())]
    values = [r["value"] for r in sent(server)]
    assert all(set(value) == {"q0", "q1", "q2"} for value in values)
    assert {rating for value in values for rating in value.values()} == {1, 2, 3, 4, 5}
    assert all(r["rt_ms"] >= 3 * MIN_VIEW_MS for r in sent(server))
    for response in sent(server):
        rows = response["context"]["questions"]
        assert [row["id"] for row in rows] == ["q0", "q1", "q2"] and not any(row["changes"] for row in rows)
        times = [0, *(row["ms"] for row in rows)]
        assert all(b - a >= MIN_VIEW_MS for a, b in pairwise(times)) and times[-1] == response["rt_ms"]


def test_a_solution_marks_a_cell_unless_it_is_none() -> None:
    choices = [*BUTTONS, {"value": "cannot_say", "text": "Cannot say", "key": "x"}]
    server = Server([trial(n, "solve", grid=4, choices=choices) for n in range(60)])
    session(Calm(), server).take("s")
    for response in sent(server):
        value = response["value"]
        assert (value["region"] is None) == (value["choice"] == "cannot_say")
        assert value["region"] is None or 0 <= value["region"][0] < 16
    assert {r["value"]["choice"] for r in sent(server)} == {"husky", "wolf", "cannot_say"}


def test_a_review_says_whether_the_answer_is_accepted() -> None:
    server = Server([trial(n, "review", answer="7", mark=None) for n in range(4)])
    session(Calm(name="even"), server).take("s")
    assert [r["value"] for r in sent(server)] == [{"accept": n % 2 == 0} for n in range(4)]
    # The time to decide is measured, so no page holds the answer back.
    assert {(r["rt_ms"], r["shown_ms"]) for r in sent(server)} == {(700, 700)} and MIN_VIEW_MS > 700


def test_a_person_reviews_the_same_again_and_another_person_differently() -> None:
    def reviews(number: int) -> list[bool]:
        server = Server([trial(n, "review", answer="7", mark=None) for n in range(30)])
        session(Guesser.drawn(seed=1, number=number), server).take("s")
        return [r["value"]["accept"] for r in sent(server)]

    assert reviews(1) == reviews(1) != reviews(2)


def test_a_kind_that_observers_do_not_know_is_named() -> None:
    with pytest.raises(UnknownName, match="sorting"):
        session(Calm(), Server([trial(0, "sorting")])).take("s")


def test_a_real_observer_goes_the_same_way() -> None:
    trials = [learned(0), learned(1), *(trial(n) for n in range(2, 12))]
    server, again = Server(trials), Server(trials)
    for line in (server, again):
        session(Guesser.drawn(3, 1), line).take("s")
    assert sent(server) == sent(again) and len(sent(server)) == len(trials)


def test_a_later_sitting_has_its_own_submission_and_is_judged_anew() -> None:
    question = {"id": "q1", "text": "Is it good?", "low": "", "high": "", "pair": None}
    trials = [trial(n, "rate", questions=[question], mark=None) for n in range(3)]
    places, waits, queries = [], [], []
    for sitting in (1, 2):
        server, person = Server(trials), Calm()
        SimulatedSession(person, server, Album(), quiz={}, sitting=sitting).take("s")
        places.append([view.place for view in person.rated])
        waits.append([response["rt_ms"] for response in sent(server)])
        queries.append(parse_qs(server.posts[0][1]["query"]))
    assert places == [[0, 1, 2], ["2/0", "2/1", "2/2"]] and waits[0] != waits[1]
    assert [query["submission"] for query in queries] == [["calm-1-1"], ["calm-1-2"]]
    assert queries[0]["person"] == queries[1]["person"]
