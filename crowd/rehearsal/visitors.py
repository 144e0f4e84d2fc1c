"""People of a simulated platform: they take a place there, take part here over HTTP, and return with the
code, each by their own habit. Nothing here touches the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from crowd.rehearsal.habits import WRONG_CODE
from experiments.simulation import person_class
from experiments.simulation.browser.api_messages import ExitWire
from experiments.simulation.browser.connection import Line, open_pool
from experiments.simulation.browser.participant_run import SimulatedSession
from experiments.simulation.browser.picture_cache import Album
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.people import Person

LEAVES = frozenset({"returns_midway", "comes_back"})


class NoPlace(Exception):
    """The platform has no place for this person."""


@dataclass(frozen=True, slots=True)
class Control:
    """The control interface of a simulated platform, by which people act: POST /_simulator/<verb>."""

    url: str
    client: httpx.Client

    def __call__(self, verb: str, **members: Any) -> dict[str, Any]:
        reply = self.client.post(f"{self.url}/_simulator/{verb}", json=members)
        body: dict[str, Any] = reply.json()
        if reply.status_code >= 400:
            raise NoPlace(str(body.get("error", body)))
        return body


@dataclass(frozen=True, slots=True)
class Visit:
    """What one person did: the habit, the platform's submission id, and how the session went (None: the
    platform had no place)."""

    habit: str
    submission: str
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Crowd:
    """People of one platform for one study. `server_url` is ours; `quiz` the answers of careful readers;
    `before_take` is called before a person takes a place."""

    control: Control
    server_url: str
    slug: str
    platform: str
    quiz: Mapping[str, str]
    pool: httpx.Client
    album: Album
    before_take: Callable[[], None] = lambda: None

    def visit(self, person: Person) -> Visit:
        """One person from preview to exit, by the habit that the platform drew for them."""
        self.before_take()
        try:
            taken = self.control("take")
        except NoPlace:
            return Visit("", "", None)
        habit = str(taken.get("habit") or "plain")
        if habit == "previews_first":
            self._look(str(self.control("preview")["url"]))
        if habit in LEAVES:
            person = person_class("leaver").drawn(*_number(person))
        outcome = self._take_part(person, str(taken["url"]))
        self._go_back(habit, taken, outcome)
        if habit == "comes_back":
            self._come_again(person, str(taken["person"]))
        return Visit(habit, str(taken["submission"]), outcome)

    def _look(self, url: str) -> None:
        """A preview is a page like any other, and leaves nothing behind."""
        self.pool.get(self._here(url)).raise_for_status()

    def _here(self, url: str) -> str:
        """The path and query of an address of ours: the server may listen elsewhere than at BASE_URL."""
        parts = urlsplit(url)
        return f"{parts.path}?{parts.query}"

    def _take_part(self, person: Person, url: str) -> Outcome:
        query = f"{urlsplit(url).query}&simulated={person.kind}"
        sitting = SimulatedSession(person, Line(self.pool), self.album, quiz=self.quiz)
        return sitting.take(self.slug, self.platform, query)

    def _go_back(self, habit: str, taken: Mapping[str, Any], outcome: Outcome) -> None:
        submission = str(taken["submission"])
        if outcome.status == "left":
            self._quietly("return", submission=submission)
            return
        if habit == "finishes_late":
            # The place runs out on the platform while the last answers are given here.
            self._quietly("time_out", submission=submission)
            return
        if outcome.exit is None or outcome.exit["method"] == "none":
            self._quietly("return", submission=submission)
            return
        for _ in range(2 if habit == "submits_twice" else 1):
            self._hand_in(outcome.exit, submission, wrong=habit == "wrong_code")
        if outcome.status != "finished":
            # The page said that the place is to be given back; if the platform does not allow that, it
            # refuses.
            self._quietly("return", submission=submission)

    def _hand_in(self, way_back: ExitWire, submission: str, wrong: bool) -> None:
        if way_back["method"] == "POST":
            fields = dict(way_back["fields"])
            if wrong and "completion" in fields:
                fields["completion"] = WRONG_CODE
            self.control.client.post(way_back["url"], data=fields)
            return
        code = (parse_qs(urlsplit(way_back["url"]).query).get("cc") or [""])[-1]
        self._quietly("complete", submission=submission, code=WRONG_CODE if wrong else code)

    def _come_again(self, person: Person, who: str) -> None:
        """The same person takes another place, is told that once is enough, and gives it back."""
        self.before_take()
        try:
            taken = self.control("take", person=who)
        except NoPlace:
            return
        outcome = self._take_part(person, str(taken["url"]))
        self._go_back("plain", taken, outcome)

    def _quietly(self, verb: str, **members: Any) -> None:
        """What the platform refuses a person (a second code, a place that is gone) ends there."""
        try:
            self.control(verb, **members)
        except NoPlace:
            return


def _number(person: Person) -> tuple[int, int]:
    _, seed, number = person.name.rsplit("-", 2)
    return int(seed), int(number)


def send_crowd(
    simulator_url: str,
    server_url: str,
    slug: str,
    platform: str,
    people: Sequence[Person],
    quiz: Mapping[str, str],
    *,
    concurrency: int = 8,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    before_take: Callable[[], None] = lambda: None,
) -> list[Visit]:
    """Sends all `people`, so many at once. Returns the visits in the order of `people`.

    `before_take` is called, by several threads, whenever a person is about to take a place.
    """
    visits: dict[int, Visit] = {}
    with (
        httpx.Client(timeout=60) as outside,
        open_pool(server_url, concurrency) as pool,
        ThreadPoolExecutor(concurrency) as workers,
    ):
        control = Control(simulator_url, outside)
        crowd = Crowd(control, server_url, slug, platform, quiz, pool, Album(), before_take)
        waiting = {workers.submit(crowd.visit, person): index for index, person in enumerate(people)}
        try:
            for done in as_completed(waiting):
                visits[waiting[done]] = done.result()
                progress("people", len(visits), len(people))
        except BaseException:
            workers.shutdown(wait=True, cancel_futures=True)
            raise
    return [visits[index] for index in range(len(people))]
