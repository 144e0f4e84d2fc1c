"""A simulated person takes a study through the participant API, and through nothing else.

What a person answers comes from `people`; this module does only what a browser would do: ask for the state of
the session, show the page or the trials to the person, send the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal, cast
from urllib.parse import urlencode
from uuid import UUID

from experiments.design.rng import Streams
from experiments.kinds import get_kind
from experiments.kinds.base import Choice, Reply
from experiments.kinds.rate import SCALE
from experiments.simulation.album import Album
from experiments.simulation.drawn import Drawn, drawn_words
from experiments.simulation.line import Line, Refused, open_pool
from experiments.simulation.pages import Reader
from experiments.simulation.passage import Passage, read_text
from experiments.simulation.people import (
    ExampleView,
    JudgeView,
    Located,
    LocateView,
    Person,
    RateView,
    TestView,
)
from experiments.simulation.sight import Percept
from experiments.simulation.timing import CONSULT, STUDY_PICTURE
from experiments.simulation.wire import (
    ContextWire,
    EventWire,
    ExitWire,
    FinishedWire,
    MediaWire,
    PageWire,
    ResponseWire,
    StateWire,
    StoredWire,
    StudyWire,
    TrialWire,
    choices_of,
)
from stimuli.render.png import decode
from stimuli.types import Pixels

BATCH_MAX = 50
STEPS_MAX = 200
"""More steps than any study has; ends the session with a server that repeats a step for ever."""
AWAY_MS = 20_000
"""A trial that took longer than this was left for another window."""
SHUT = frozenset({401, 403, 404, 410})
"""Replies that end a session: another tab, not admitted, no such study, full."""

Ending = Literal["finished", "screened", "declined", "left", "turned_away"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one session went, as the person saw it: the verdict itself is never told.

    `status`: finished (all trials, then the last page), screened (sent away at a gate), declined, left,
    turned_away. `step` is the last step seen, `page` the kind of the last page, `message` what the server
    said in refusing, `exit` the way back to the platform.
    """

    person: str
    kind: str
    status: Ending
    step: str
    page: str
    answered_count: int
    requests_count: int
    message: str = ""
    exit: ExitWire | None = None


class SimulatedSession:
    """One person in one session. `quiz` holds the answers of a person who has read the instructions: question
    id -> answer. `sitting` counts the person's sessions of the study, from 1."""

    def __init__(
        self,
        person: Person,
        line: Line,
        album: Album,
        *,
        quiz: Mapping[str, str],
        batch_max: int = BATCH_MAX,
        sitting: int = 1,
    ) -> None:
        self.person, self.line, self.album, self.batch_max = person, line, album, batch_max
        self.sitting = sitting
        self.reader = Reader(person, quiz, self._look, self._drawn, self._told, line.fetch)
        self.streams = Streams(0)
        self.examples: dict[str, ExampleView] = {}
        self.clock_ms = 0
        self.consulted_ms = 0
        self.answered_count = 0
        self.events: list[EventWire] = []
        self.state: StateWire | None = None
        self.platform, self.query = "local", ""

    def take(self, study: str, platform: str = "local", query: str = "") -> Outcome:
        """Joins and goes on until the end, as the server leads. `query` is what a platform's link carries;
        the local platform's is made from the person."""
        name = self.person.name
        submission = f"{name}-{self.sitting}"
        local = urlencode({"person": name, "submission": submission, "simulated": self.person.kind})
        self.platform, self.query = platform, query or local
        try:
            return self._walk(study)
        except Refused as refusal:
            if refusal.status in SHUT or refusal.code in ("taken_part", "finished"):
                return self._outcome("turned_away", str(refusal), refusal.exit)
            raise

    def withdraw(self, reason: str) -> ExitWire | None:
        """Leaves by the page's own button, at any step of the session."""
        body = {"reason": reason, "erase": False, **self._sender()}
        return cast(FinishedWire, self.line.post("/api/session/withdraw/", body))["exit"]

    def _sender(self) -> dict[str, str]:
        """A platform's way back is built from its own query, which is sent again; the local one has none."""
        return {} if self.platform == "local" else {"query": self.query}

    def _walk(self, study: str) -> Outcome:
        name = self.person.name
        arrival = {"study": study, "platform": self.platform, "query": self.query}
        if self.platform != "local":
            # A page load has a name, so that what a platform signed for it opens no other.
            arrival["attempt"] = self.streams("attempt", name, self.query).bytes(16).hex()
        joined = self.line.post("/api/sessions/", arrival)
        self.line.token = str(joined["token"])
        state = cast(StateWire, joined["session"])
        for _ in range(STEPS_MAX):
            self.state = state
            if state["step"] in ("comment", "finish"):
                return self._end(state)
            try:
                if state["step"] == "trials":
                    if not self._do_block(state):
                        return self._outcome("left")
                    state = cast(StateWire, self.line.get("/api/session/"))
                else:
                    state = self._do_page(state)
            except Refused as refusal:
                if refusal.status != 409 or refusal.code in ("taken_part", "finished"):
                    raise
                # The server decides: ask for the actual state of the session and continue from there.
                state = cast(StateWire, self.line.get("/api/session/"))
        step = state["step"]
        raise RuntimeError(f"{name}: still at step {step!r} after {STEPS_MAX} steps; look at the server.")

    def _do_page(self, state: StateWire) -> StateWire:
        step, page = state["step"], state["page"]
        if page is None:
            raise RuntimeError(f"{self.person.name}: step {step!r} came without a page; look at the server.")
        body = {"digest": page["digest"], "value": self.reader.value(step, page)}
        return cast(StateWire, self.line.post(f"/api/session/{step}/", body))

    def _end(self, state: StateWire) -> Outcome:
        comment = self.reader.comment() if state["step"] == "comment" else None
        body = {"comment": comment, **self._sender()}
        finished = cast(FinishedWire, self.line.post("/api/session/finish/", body))
        page = state["page"]["kind"] if state["page"] else ""
        endings: dict[str, Ending] = {
            "declined": "declined",
            "screened": "screened",
            "turned_away": "turned_away",
        }
        return self._outcome(endings.get(page, "finished"), exit=finished["exit"])

    def _outcome(self, status: Ending, message: str = "", exit: ExitWire | None = None) -> Outcome:
        step = self.state["step"] if self.state else "join"
        page = self.state["page"]["kind"] if self.state and self.state["page"] else ""
        sent = self.answered_count, self.line.requests_count
        return Outcome(self.person.name, self.person.kind, status, step, page, *sent, message, exit)

    def _do_block(self, state: StateWire) -> bool:
        """Answers the block from its first open trial; False: the person left before its end."""
        assert state["block"] is not None
        last = self.person.leaves_after(state["total"] or 0)
        trials = [t for t in state["block"]["trials"] if t["position"] >= state["next"]]
        for batch in self._batches(trials):
            staying = [t for t in batch if last is None or t["position"] < last]
            if staying:
                self._send(staying)
            if len(staying) < len(batch):
                self._send_events()
                return False
        self._send_events()
        return True

    def _batches(self, trials: Sequence[TrialWire]) -> Iterator[list[TrialWire]]:
        """A phase at once, within the limit; a trial whose answer reveals something goes alone."""
        for (alone, _), group in groupby(trials, key=lambda t: (_waits(t) and t["id"], t["phase"])):
            phase = list(group)
            size = 1 if alone else self.batch_max
            for start in range(0, len(phase), size):
                yield phase[start : start + size]

    def _send(self, trials: Sequence[TrialWire]) -> None:
        responses = [self._respond(trial) for trial in trials]
        stored = cast(StoredWire, self.line.post("/api/session/responses/", {"responses": responses}))
        self.answered_count += len(responses)
        for trial in trials:
            if trial["id"] in stored["feedback"] and trial["id"] in self.examples:
                self._reveal(trial, stored["feedback"][trial["id"]]["label"])
        # Guesses go one by one; what was noted of them goes together.
        if len(self.events) >= BATCH_MAX or not _waits(trials[-1]):
            self._send_events()

    def _send_events(self) -> None:
        while self.events:
            self.line.post("/api/session/events/", {"events": self.events[:BATCH_MAX]})
            del self.events[:BATCH_MAX]

    def _reveal(self, trial: TrialWire, label: str) -> None:
        """Looks at an example whose label is told now, and remembers it."""
        self.examples[trial["id"]] = replace(self.examples[trial["id"]], label=label)
        looked_ms = self.linger_ms(trial, "revealed")
        self._note(trial, "revealed", looked_ms, shown_ms=looked_ms)
        self.clock_ms += looked_ms

    def _respond(self, trial: TrialWire) -> ResponseWire:
        self.consulted_ms = 0
        reply = get_kind(trial["kind"]).answer(self, trial)
        context = self._context(trial, reply)
        if reply.shown_ms > AWAY_MS and trial["phase"] == "test":
            context["focus_losses"] = 1
            self._note(trial, "focus_lost", 1000)
            self._note(trial, "focus_gained", reply.shown_ms - 500)
        self.clock_ms += reply.shown_ms
        return ResponseWire(
            trial=trial["id"],
            value=dict(reply.value),
            rt_ms=reply.rt_ms,
            shown_ms=reply.shown_ms,
            context=context,
        )

    @property
    def _study(self) -> StudyWire:
        assert self.state is not None
        return self.state["study"]

    # What an observer can do on a page, for the kinds (experiments.kinds.base.Observer).

    def study(self, trial: Mapping[str, Any]) -> Reply:
        content = trial["content"]
        percept, text = self._percept(content["image"], content.get("explanation")), _read(content)
        place, choices = trial["position"], choices_of(content["choices"])
        if content.get("label") is None:
            # A guess is an answer by the examples so far; what is revealed comes with the server's reply.
            guess = TestView(place, choices, tuple(self.examples.values()), percept, text=text)
            reply = self.person.answer(guess)
            self.examples[trial["id"]] = ExampleView(place, None, choices, percept, text)
        else:
            view = ExampleView(place, content["label"], choices, percept, text)
            self.examples[trial["id"]] = view
            reply = self.person.study_example(view)
        # The button to go on appears only after the minimum viewing time.
        rt_ms = max(reply.rt_ms, self._study["min_view_ms"])
        return replace(reply, rt_ms=rt_ms, shown_ms=rt_ms)

    def decide(self, trial: Mapping[str, Any]) -> Reply:
        content = trial["content"]
        way = self._study["reservoir"] if content.get("reservoir") else "off"
        opens = way == "on_request" and self.person.consults(trial["position"])
        view = TestView(
            trial["position"],
            choices_of(content["choices"]),
            tuple(self.examples.values()),
            self._percept(content["image"], None),
            reservoir=way == "always" or opens,
            text=_read(content),
        )
        reply = self.person.answer(view)
        if not opens:
            return reply
        rng = self.streams("reservoir", self.person.name, trial["position"])
        self.consulted_ms = CONSULT.draw_ms(rng, self.person.traits.slowness)
        self._note(trial, "reservoir_opened", 300)
        self._note(trial, "reservoir_closed", 300 + self.consulted_ms)
        longer = reply.rt_ms + self.consulted_ms, reply.shown_ms + self.consulted_ms
        return replace(reply, rt_ms=longer[0], shown_ms=longer[1])

    def obey(self, trial: Mapping[str, Any]) -> Reply:
        content = trial["content"]
        view = TestView(
            trial["position"],
            choices_of(content["choices"]),
            tuple(self.examples.values()),
            prompt=content["prompt"],
        )
        return self.person.answer(view)

    def rate(self, trial: Mapping[str, Any], question: Mapping[str, Any]) -> int:
        content, sides = trial["content"], question["pair"] or ()
        return self.person.rate(
            RateView(
                self._place(trial),
                question["id"],
                question["text"],
                len(SCALE),
                self._drawn(content["image"], content["mark"], content["text"]),
                tuple(self._drawn(side["image"], side["mark"], side["text"]) for side in sides),
            )
        )

    def _place(self, trial: Mapping[str, Any]) -> str | int:
        """Names the page among all that the person meets: what is met again is judged anew."""
        position: int = trial["position"]
        return position if self.sitting == 1 else f"{self.sitting}/{position}"

    def _told(self, step: str, page: PageWire, question: str, choice: str) -> Mapping[str, Any]:
        """What the page says at once of an answer at a gate."""
        body = {"digest": page["digest"], "question": question, "choice": choice}
        return cast("Mapping[str, Any]", self.line.post(f"/api/session/{step}/told/", body))

    def _drawn(
        self, image: MediaWire | None, mark: MediaWire | None, text: Mapping[str, Any] | None = None
    ) -> Drawn | None:
        """The explanation as it is drawn, for a person who looks; None if there is none."""
        if not self.person.looks:
            return None
        if mark is None:
            return drawn_words(text["tokens"]) if text is not None else None
        return self.album.drawn(
            self.line.fetch(image["url"]) if image else None, self.line.fetch(mark["url"])
        )

    def locate(self, trial: Mapping[str, Any], nothing: str) -> Located:
        content = trial["content"]
        answers = tuple(choice["value"] for choice in content["choices"])
        picture = self._picture(content["image"])
        solved = self.person.locate(LocateView(trial["position"], answers, nothing, content["grid"], picture))
        return replace(solved, took_ms=max(solved.took_ms, self._study["min_view_ms"]))

    def judge(self, trial: Mapping[str, Any]) -> tuple[bool, int]:
        content = trial["content"]
        picture, mark = self._picture(content["image"]), self._picture(content["mark"])
        # The page takes an answer at once: the time to decide is what is measured.
        return self.person.judge(JudgeView(trial["position"], content["answer"], picture, mark))

    def _picture(self, media: MediaWire | None) -> Pixels | None:
        """As it was served, for a person who looks."""
        return decode(self.line.fetch(media["url"])) if media is not None and self.person.looks else None

    def pick(self, trial: Mapping[str, Any], name: str, options: Sequence[Hashable]) -> Any:
        rng = self.streams("pick", self.person.name, trial["position"], name)
        return options[int(rng.integers(len(options)))]

    def linger_ms(self, trial: Mapping[str, Any], part: str = "") -> int:
        rng = self.streams("linger", self.person.name, self._place(trial), *([part] if part else []))
        return max(STUDY_PICTURE.draw_ms(rng, self.person.traits.slowness), self._study["min_view_ms"])

    def _percept(self, image: MediaWire | None, explanation: MediaWire | None) -> Percept | None:
        return self._look(image, explanation) if image is not None and self.person.looks else None

    def _look(self, image: MediaWire, explanation: MediaWire | None = None) -> Percept:
        overlay = None if explanation is None else self.line.fetch(explanation["url"])
        return self.album.percept(self.line.fetch(image["url"]), overlay)

    def _context(self, trial: TrialWire, reply: Reply) -> ContextWire:
        choices = choices_of(trial["content"].get("choices"))
        place = next((i for i, c in enumerate(choices) if c.value == reply.value.get("choice")), None)
        context = ContextWire(
            onset_ms=self.clock_ms,
            input="keyboard",
            key=_key(choices, place),
            image_px=self._study["picture_px"],
            pixel_ratio=1.0,
            dropped_frames=0,
            reservoir_ms=self.consulted_ms,
            focus_losses=0,
            reloads=0,
        )
        if place is not None and len(choices) == 2:
            context["side"] = "left" if place == 0 else "right"
        return cast(ContextWire, {**context, **reply.context})

    def _note(self, trial: Mapping[str, Any], kind: str, after_ms: int, **data: int) -> None:
        draw = self.streams("event", self.line.token, trial["id"], kind).bytes(16)
        self.events.append(
            EventWire(
                id=str(UUID(bytes=draw, version=4)),
                kind=kind,
                trial=trial["id"],
                at_ms=self.clock_ms + after_ms,
                data=data,
            )
        )


def _read(content: Mapping[str, Any]) -> Passage | None:
    """The text of a page, as it is read."""
    return read_text(content["text"]["tokens"]) if content.get("text") else None


def _key(choices: Sequence[Choice], place: int | None) -> str:
    return "Enter" if place is None else choices[place].key


def _waits(trial: TrialWire) -> bool:
    return get_kind(trial["kind"]).waits(trial["content"])


def run_people(
    base_url: str,
    study: str,
    people: Sequence[Person],
    *,
    quiz: Mapping[str, str],
    sittings: int = 1,
    concurrency: int = 8,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    on_result: Callable[[Outcome], None] = lambda outcome: None,
    batch_max: int = BATCH_MAX,
) -> tuple[Outcome, ...]:
    """Sends all people through the study, so many at once; the outcomes in the order of `people`, of a person
    in the order of sittings. Who finished comes again, up to `sittings` times, until turned away.

    A failing connection or a server error that lasts ends the run with its exception; `on_result` and
    `progress` are called from this thread.
    """
    album = Album()
    outcomes: dict[int, list[Outcome]] = {}
    with open_pool(base_url, concurrency) as pool, ThreadPoolExecutor(concurrency) as workers:

        def take(person: Person) -> list[Outcome]:
            taken: list[Outcome] = []
            for sitting in range(1, sittings + 1):
                line = Line(pool)
                session = SimulatedSession(
                    person, line, album, quiz=quiz, batch_max=batch_max, sitting=sitting
                )
                outcome = session.take(study)
                if sitting == 1 or outcome.status != "turned_away":
                    taken.append(outcome)
                if outcome.status != "finished":
                    break
            return taken

        waiting = {workers.submit(take, person): place for place, person in enumerate(people)}
        progress("people", 0, len(people))
        try:
            for done in as_completed(waiting):
                outcomes[waiting[done]] = done.result()
                for outcome in done.result():
                    on_result(outcome)
                progress("people", len(outcomes), len(people))
        except BaseException:
            workers.shutdown(wait=True, cancel_futures=True)
            raise
    return tuple(outcome for place in range(len(people)) for outcome in outcomes[place])
