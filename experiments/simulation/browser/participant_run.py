"""A simulated person takes a study through the participant API, and through nothing else.

What a person answers comes from `people`; this module does only what a browser would do: ask for the state of
the session, show the page or the trials to the person, send the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from experiments.design.rng import Streams
from experiments.kinds.base import Choice, Reply
from experiments.kinds.rate import SCALE
from experiments.simulation.browser.api_messages import (
    ContextWire,
    EventWire,
    MediaWire,
    PageWire,
    TrialWire,
    choices_of,
)
from experiments.simulation.browser.connection import Line, open_pool
from experiments.simulation.browser.page_answers import Reader
from experiments.simulation.browser.picture_cache import Album
from experiments.simulation.browser.walk import BATCH_MAX, Outcome, Walk
from experiments.simulation.drawn import Drawn, drawn_words
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
from stimuli.render.png import decode
from stimuli.types import Pixels

AWAY_MS = 20_000
"""A trial that took longer than this was left for another window."""


class SimulatedSession(Walk):
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
        super().__init__(person.name, person.kind, line, batch_max)
        self.observer = self
        self.person, self.album, self.sitting = person, album, sitting
        self.reader = Reader(
            person, quiz, self._look, self._draw_explanation, self._gate_feedback, line.fetch
        )
        self.streams = Streams(0)
        self.examples: dict[str, ExampleView] = {}
        self.consulted_ms = 0

    def take(self, study: str, platform: str = "local", query: str = "") -> Outcome:
        """Joins and goes on until the end, as the server leads. `query` is what a platform's link carries;
        the local platform's is made from the person."""
        submission = f"{self.name}-{self.sitting}"
        local = urlencode({"person": self.name, "submission": submission, "simulated": self.kind})
        return self.enter(study, platform, query or local)

    def filled(self, step: str, page: PageWire) -> Mapping[str, Any]:
        return self.reader.value(step, page)

    def comment(self) -> str:
        return self.reader.comment()

    def leaves_after(self, total: int) -> int | None:
        return self.person.leaves_after(total)

    def arrival(self, study: str) -> dict[str, str]:
        coming = super().arrival(study)
        if self.platform != "local":
            # A page load has a name, so that what a platform signed for it opens no other.
            coming["attempt"] = self.streams("attempt", self.name, self.query).bytes(16).hex()
        return coming

    def revealed(self, trial: TrialWire, label: str) -> None:
        """Looks at an example whose label is told now, and remembers it."""
        if trial["id"] not in self.examples:
            return
        self.examples[trial["id"]] = replace(self.examples[trial["id"]], label=label)
        looked_ms = self.linger_ms(trial, "revealed")
        self._note(trial, "revealed", looked_ms, shown_ms=looked_ms)
        self.clock_ms += looked_ms

    def noted(self, trial: TrialWire, reply: Reply, context: ContextWire) -> None:
        if reply.shown_ms > AWAY_MS and trial["phase"] == "test":
            context["focus_losses"] = 1
            self._note(trial, "focus_lost", 1000)
            self._note(trial, "focus_gained", reply.shown_ms - 500)

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
                self._draw_explanation(content["image"], content["mark"], content["text"]),
                tuple(self._draw_explanation(side["image"], side["mark"], side["text"]) for side in sides),
            )
        )

    def _place(self, trial: Mapping[str, Any]) -> str | int:
        """Names the page among all that the person meets: what is met again is judged anew."""
        position: int = trial["position"]
        return position if self.sitting == 1 else f"{self.sitting}/{position}"

    def _gate_feedback(self, step: str, page: PageWire, question: str, choice: str) -> Mapping[str, Any]:
        """What the page says at once of an answer at a gate."""
        body = {"digest": page["digest"], "question": question, "choice": choice}
        return cast("Mapping[str, Any]", self.line.post(f"/api/session/{step}/told/", body))

    def _draw_explanation(
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

    def context(self, trial: TrialWire, reply: Reply) -> ContextWire:
        # Looking up is of one trial: the next one begins at 0.
        consulted_ms, self.consulted_ms = self.consulted_ms, 0
        choices = choices_of(trial["content"].get("choices"))
        place = next((i for i, c in enumerate(choices) if c.value == reply.value.get("choice")), None)
        context = ContextWire(
            onset_ms=self.clock_ms,
            input="keyboard",
            key=_key(choices, place),
            image_px=self._study["picture_px"],
            pixel_ratio=1.0,
            dropped_frames=0,
            reservoir_ms=consulted_ms,
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
    album: Album | None = None,
) -> tuple[Outcome, ...]:
    """Sends all people through the study, so many at once; the outcomes in the order of `people`, of a person
    in the order of sessions. Who finished comes again, up to `sittings` times, until turned away.

    A failing connection or a server error that lasts ends the run with its exception; `on_result` and
    `progress` are called from this thread. `album` is what was looked at before.
    """
    album = album or Album()
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
