"""The panel as a server with people: it loses answers as often as asked, before or after the effect."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.serving import Answer, IncomingRequest, serving

GONE = ("returned", "timed_out")


class Refused(Exception):
    """The panel does not allow this."""


@dataclass
class Panel:
    """Jobs and what people did for them. `bonuses` are kept by reference: a repeat pays nothing."""

    clock: Clock
    faults: Faults
    url: str = ""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def control(self) -> Panel:
        return self

    def answer(self, request: IncomingRequest) -> Answer | None:
        _, side, verb, *_ = [*request.path.split("/"), "", ""]
        members = json.loads(request.body or b"{}")
        fault = self.faults.draw() if side == "api" else ""
        if fault in ("429", "5xx_before"):
            return Answer(429 if fault == "429" else 503)
        try:
            with self.clock.lock:
                reply = getattr(self, f"{'do' if side == 'api' else 'people'}_{verb}")(**members)
        except (Refused, AttributeError) as error:
            return Answer(409, json.dumps({"error": str(error)}).encode())
        if fault == "lost_answer":
            return None
        if fault == "5xx_after":
            return Answer(502)
        return Answer(200, json.dumps(reply).encode(), {"Content-Type": "application/json"})

    def do_publish(self, reference: str, **job: Any) -> dict[str, Any]:
        row = {"id": f"job-{reference}", "state": "open", "taken": 0, **job}
        return self.jobs.setdefault(reference, row)

    def _job(self, job: str) -> dict[str, Any]:
        return self.jobs[job.removeprefix("job-")]

    def do_look(self, job: str) -> dict[str, Any]:
        return self._job(job)

    def do_revise(self, job: str, places: int) -> dict[str, Any]:
        self._job(job)["places"] = max(self._job(job)["places"], places)
        return self._job(job)

    def do_turn(self, job: str, state: str) -> dict[str, Any]:
        self._job(job)["state"] = state
        return self._job(job)

    def do_list(self, job: str) -> dict[str, Any]:
        return {"rows": list(self.rows.values())}

    def do_approve(self, job: str, ids: list[str]) -> dict[str, Any]:
        for name in ids:
            row = self.rows[name]
            if row["state"] == "awaiting":
                row["state"], row["paid"] = "approved", self._job(job)["reward"]
        return {"states": {name: self.rows[name]["state"] for name in ids}}

    def do_bonus(self, id: str, cents: int, reference: str) -> dict[str, Any]:
        self.rows[id]["bonuses"].setdefault(reference, cents)
        return {}

    def do_bonuses(self, job: str) -> dict[str, Any]:
        paid = {name: [(c, ref) for ref, c in row["bonuses"].items()] for name, row in self.rows.items()}
        return {"bonuses": paid}

    def people(self, count: int) -> None:
        """There are always enough."""

    def people_take(self, person: str = "") -> dict[str, Any]:
        job = next(iter(self.jobs.values()))
        if job["state"] != "open" or job["taken"] >= job["places"]:
            raise Refused("no place is left")
        name = f"s{next(self.numbers)}"
        who = person or f"p{name}"
        job["taken"] += 1
        self.rows[name] = {"id": name, "who": who, "state": "active", "code": "", "paid": 0, "bonuses": {}}
        return {"url": f"{job['url']}&who={who}&job={name}", "person": who, "submission": name}

    def people_complete(self, submission: str, code: str) -> dict[str, Any]:
        row = self.rows[submission]
        if row["state"] == "active":
            row["state"], row["code"] = "awaiting", code
        return {}

    def people_return(self, submission: str) -> dict[str, Any]:
        row = self.rows[submission]
        if row["state"] in ("active", "awaiting"):
            row["state"] = "returned"
            next(iter(self.jobs.values()))["taken"] -= 1
        return {}

    def people_time_out(self, submission: str) -> dict[str, Any]:
        self.rows[submission]["state"] = "timed_out"
        return {}

    def people_state(self) -> dict[str, Any]:
        truth = {
            name: {"reward_paid_cents": row["paid"], "bonuses": list(row["bonuses"].values())}
            for name, row in self.rows.items()
        }
        return {"submissions": truth, "faults": dict(self.faults.met)}


@contextmanager
def simulate(
    seed: int, start: datetime, faults: Faults, *, currency: str = "", port: int = 0
) -> Iterator[Panel]:
    panel = Panel(Clock(start), faults)
    with serving(panel.answer, port) as url:
        panel.url = url
        yield panel
