"""A session of the participant API from arrival to end, as a browser leads it: pages and trials in the order
of the server. What is answered comes from a subclass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, cast

from experiments.kinds import get_kind
from experiments.kinds.base import Observer, Reply
from experiments.simulation.browser.api_messages import (
    ContextWire,
    EventWire,
    ExitWire,
    FinishedWire,
    PageWire,
    ResponseWire,
    StateWire,
    StoredWire,
    StudyWire,
    TrialWire,
)
from experiments.simulation.browser.connection import Line, ServerRefusal

BATCH_MAX = 50
STEPS_MAX = 200
"""More steps than any study has; ends the session with a server that repeats a step for ever."""
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


class Walk:
    """One who answers, in one session. `name` is written in messages, `kind` into the outcome; `observer`
    meets the trials."""

    observer: Observer

    def __init__(self, name: str, kind: str, line: Line, batch_max: int = BATCH_MAX) -> None:
        self.name, self.kind, self.line, self.batch_max = name, kind, line, batch_max
        self.clock_ms = 0
        self.answered_count = 0
        self.events: list[EventWire] = []
        self.state: StateWire | None = None
        self.platform, self.query = "local", ""

    def filled(self, step: str, page: PageWire) -> Mapping[str, Any]:
        """What is sent for a page."""
        raise NotImplementedError

    def comment(self) -> str | None:
        """What is said at the end."""
        return None

    def leaves_after(self, total: int) -> int | None:
        """How many of `total` trials are answered before the session is left; None: all."""
        return None

    def revealed(self, trial: TrialWire, label: str) -> None:
        """The label of an example is told now, after the answer to it."""

    def context(self, trial: TrialWire, reply: Reply) -> ContextWire:
        """How the answer came about."""
        raise NotImplementedError

    def noted(self, trial: TrialWire, reply: Reply, context: ContextWire) -> None:
        """What else happened on the page; it may add to the context."""

    def arrival(self, study: str) -> dict[str, str]:
        return {"study": study, "platform": self.platform, "query": self.query}

    def enter(self, study: str, platform: str, query: str) -> Outcome:
        """Joins and goes on until the end, as the server leads."""
        self.platform, self.query = platform, query
        try:
            return self._walk(study)
        except ServerRefusal as refusal:
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
        joined = self.line.post("/api/sessions/", self.arrival(study))
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
            except ServerRefusal as refusal:
                if refusal.status != 409 or refusal.code in ("taken_part", "finished"):
                    raise
                # The server decides: ask for the actual state of the session and continue from there.
                state = cast(StateWire, self.line.get("/api/session/"))
        step = state["step"]
        raise RuntimeError(
            f"{self.name}: still at step {step!r} after {STEPS_MAX} steps; look at the server."
        )

    def _do_page(self, state: StateWire) -> StateWire:
        step, page = state["step"], state["page"]
        if page is None:
            raise RuntimeError(f"{self.name}: step {step!r} came without a page; look at the server.")
        body = {"digest": page["digest"], "value": self.filled(step, page)}
        return cast(StateWire, self.line.post(f"/api/session/{step}/", body))

    def _end(self, state: StateWire) -> Outcome:
        comment = self.comment() if state["step"] == "comment" else None
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
        return Outcome(self.name, self.kind, status, step, page, *sent, message, exit)

    def _do_block(self, state: StateWire) -> bool:
        """Answers the block from its first open trial; False: the person left before its end."""
        assert state["block"] is not None
        last = self.leaves_after(state["total"] or 0)
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
            if trial["id"] in stored["feedback"]:
                self.revealed(trial, stored["feedback"][trial["id"]]["label"])
        # Guesses go one by one; what was noted of them goes together.
        if len(self.events) >= BATCH_MAX or not _waits(trials[-1]):
            self._send_events()

    def _send_events(self) -> None:
        while self.events:
            self.line.post("/api/session/events/", {"events": self.events[:BATCH_MAX]})
            del self.events[:BATCH_MAX]

    def _respond(self, trial: TrialWire) -> ResponseWire:
        reply = get_kind(trial["kind"]).answer(self.observer, trial)
        context = self.context(trial, reply)
        self.noted(trial, reply, context)
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


def _waits(trial: TrialWire) -> bool:
    return get_kind(trial["kind"]).waits(trial["content"])
