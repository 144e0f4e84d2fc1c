"""Arrivals from Mechanical Turk, and exits to it. The study is shown in a frame of the worker's page; the
address is unsigned, so it decides about no payment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from crowd.platforms.base import Arrival, Entry, Exit, NotAnArrival, Outcome, Site
from crowd.platforms.mturk.question_xml import COMPLETION
from crowd.platforms.query import fields_of, simulated_kind_of

PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
WORKER = re.compile(r"A[A-Z0-9]{1,63}")
ENTITY = re.compile(r"[A-Z0-9]{1,64}")
SUBMIT = {"live": "https://www.mturk.com", "sandbox": "https://workersandbox.mturk.com"}
FRAMES = {
    "live": ("https://worker.mturk.com", "https://requester.mturk.com"),
    "sandbox": ("https://workersandbox.mturk.com", "https://requestersandbox.mturk.com"),
}
RETURNED = frozenset(("declined", "device"))
"""Outcomes that earn nothing: the person returns the assignment, which does not lower their approval rate."""


class MTurkEntry(Entry):
    """Arrivals with assignmentId, hitId, workerId and turkSubmitTo; exits by a form that the browser posts.

    A submitted assignment is always paid its whole reward there. So an outcome leads to the form only if the
    posting has a code for it; without a code the person is asked to return the assignment.
    """

    name = "mturk"

    def arrival(self, query: str, site: Site) -> Arrival:
        fields = fields_of(query)
        hit = _entity(fields, "hitId")
        assignment = fields.get("assignmentId", "")
        if assignment in ("", PREVIEW):
            return Arrival(person="", submission="", preview=True, posting=hit)
        assignment = _entity(fields, "assignmentId")
        worker = fields.get("workerId", "")
        if not WORKER.fullmatch(worker):
            raise NotAnArrival(
                "workerId must begin with A and hold capital letters and digits alone. Open the task again "
                "from Mechanical Turk."
            )
        return Arrival(
            person=worker,
            submission=f"{assignment}:{worker}",
            simulated_kind=simulated_kind_of(fields) if site.mode == "rehearsal" else "",
            posting=hit,
            return_to=_submit_host(fields.get("turkSubmitTo", ""), site),
        )

    def exit(
        self,
        outcome: Outcome,
        codes: Mapping[str, str],
        arrival: Arrival | None,
        site: Site,
        options: Mapping[str, Any],
    ) -> Exit:
        if arrival is None or arrival.preview or outcome in RETURNED or not codes.get(outcome):
            return Exit("none")
        assignment = arrival.submission.partition(":")[0]
        return Exit(
            "POST",
            f"{arrival.return_to}/mturk/externalSubmit",
            {"assignmentId": assignment, COMPLETION: codes[outcome]},
        )

    def ancestors(self, site: Site) -> tuple[str, ...]:
        return (_origin(site.url),) if site.url else FRAMES[site.mode]

    def form_targets(self, site: Site) -> tuple[str, ...]:
        return (_origin(site.url),) if site.url else (SUBMIT[site.mode],)


def _entity(fields: Mapping[str, str], name: str) -> str:
    """An id of Amazon's; empty if the address has none, which only a preview may."""
    value = fields.get(name, "")
    if value and not ENTITY.fullmatch(value):
        raise NotAnArrival(f"{name} must hold capital letters and digits alone. Open the task again "
                           "from Mechanical Turk.")  # fmt: skip
    return value


def _submit_host(value: str, site: Site) -> str:
    """The only address that this posting's form may post to, without its trailing slash."""
    allowed = site.url.rstrip("/") if site.url else SUBMIT[site.mode]
    if value.removesuffix("/") != allowed:
        raise NotAnArrival(f"turkSubmitTo must be {allowed}. Open the task again from Mechanical Turk.")
    return allowed


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
