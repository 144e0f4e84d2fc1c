"""The simulator as a whole: address, clock, faults, world, log, and the order in which a call fails."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.platform_control import PREFIX
from crowd.rehearsal.prolific import (
    account_and_message_routes,
    api,
    bonuses,
    control,
    entry,
    hook_routes,
    malformed,
    schema,
    study_routes,
    submission_routes,
)
from crowd.rehearsal.prolific.notices import ProlificNotices
from crowd.rehearsal.prolific.records import ProlificRefusal
from crowd.rehearsal.prolific.world import ProlificWorld, ProlificWorldOptions
from crowd.rehearsal.serving import Answer, Call, CallLog, IncomingRequest, as_json, serving

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
RETRY_AFTER_S = 1
LATE_REFUSALS = (
    ProlificRefusal(429, "Request was throttled.", "Too many requests"),
    ProlificRefusal(400, "Your balance is being verified.", "Bad request"),
    ProlificRefusal(403, "This action is not allowed.", "Forbidden"),
    ProlificRefusal(422, "The payment cannot be processed.", "Unprocessable"),
)
"""Answers of which no page of the platform says that the wallet was not reached."""
COMPLETE_PATH = "/submissions/complete"


class ProlificSimulator(CallLog):
    """A simulated Prolific."""

    def __init__(
        self, seed: int, start: datetime, faults: Faults | None, options: ProlificWorldOptions
    ) -> None:
        super().__init__()
        self.clock = Clock(start)
        self.faults = faults or Faults(seed)
        self.world = ProlificWorld(self.clock, seed, options)
        self.notices = ProlificNotices(self.world)
        self.signer = entry.Signer()
        self.control = control.ProlificControl(self.world, self.faults, self.notices, self.signer)
        self.url = self.public = ""
        self.handlers: dict[str, api.Handler] = {
            **study_routes.HANDLERS,
            **submission_routes.HANDLERS,
            **account_and_message_routes.HANDLERS,
            **hook_routes.HANDLERS,
        }
        self._log_lock = threading.Lock()

    def __call__(self, request: IncomingRequest) -> Answer | None:
        """Answers one request: of the researcher's software, a participant's browser, or the rehearsal."""
        if request.path.startswith(PREFIX):
            return self.control.answer(request)
        if request.path.rstrip("/") == COMPLETE_PATH and request.method == "GET":
            return _thanks(request)
        if request.path == entry.KEYS_PATH and request.method == "GET":
            return api.outage(self.world, 503) if self.faults.down else as_json(self.signer.keys())
        return self._api(request)

    def _api(self, request: IncomingRequest) -> Answer | None:
        operation, named, _ = schema.find(request.method, request.path)
        name = operation.name if operation else f"{request.method} {request.path}"
        fault = self.faults.draw(lambda kind: malformed.meets(kind, name, request.method))
        if fault == "429":
            with self.world.lock:
                reply = api.refusal(
                    self.world,
                    ProlificRefusal(429, "Request was throttled.", "Too many requests"),
                    {"Retry-After": str(RETRY_AFTER_S)},
                )
        elif fault == "5xx_before":
            with self.world.lock:
                reply = api.outage(self.world, 503)
        elif fault in ("late_effect", "refused_late"):
            late = partial(api.answer, self.world, request, self.handlers)
            self.clock.after(self.faults.late_s, late)
            reply = Answer(504)
            if fault == "refused_late":
                with self.world.lock:
                    number = int(self.world.draw("late refusals").integers(len(LATE_REFUSALS)))
                    reply = api.refusal(self.world, LATE_REFUSALS[number])
        else:
            if fault in ("other_amount", "one_sum"):
                bonuses.mark(self.world, named["batch"], fault)
            _, reply = api.answer(self.world, request, self.handlers)
            reply = malformed.corrupt_answer(self.world, fault, request, reply)
        has_effect = request.method in malformed.CHANGES and reply.status < 400
        if fault == "5xx_after":
            with self.world.lock:
                reply = api.outage(self.world, 502)
        call = Call(name, request.method, request.path, reply.status, fault, has_effect)
        with self._log_lock:
            self.log.append(call)
        for hook in self.before_reply:
            hook(call)
        if fault in ("lost_answer", "late_effect"):
            return None
        return self.faults.spoilt(fault, reply, self.clock)


def _thanks(request: IncomingRequest) -> Answer:
    """The page that a participant's browser opens with the completion code."""
    code = (request.query.get("cc") or [""])[-1]
    said = f"Thank you, code {code} received" if code else "No completion code was given"
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Simulated Prolific</title></head>'
        f"<body><h1>{html.escape(said)}</h1><p>This is a simulation. No money moves.</p></body></html>"
    )
    return Answer(200 if code else 400, page.encode(), {"Content-Type": "text/html; charset=utf-8"})


@contextmanager
def simulator(
    seed: int = 0,
    start: datetime = START,
    faults: Faults | None = None,
    *,
    port: int = 0,
    options: ProlificWorldOptions = ProlificWorldOptions(),  # noqa: B008 - a frozen value
    webhook: tuple[str, str] | None = None,
    public: str = "",
) -> Iterator[ProlificSimulator]:
    """Serves a simulated Prolific until the block ends. `webhook` is an address and its secret, subscribed to
    everything; `public` the address that browsers use, if it differs from the listening address."""
    made = ProlificSimulator(seed, start, faults, options)
    if webhook:
        made.notices.hook(*webhook)
    with serving(made, port) as url:
        made.url, made.public = url, public or url
        yield made
