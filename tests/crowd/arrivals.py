"""People who come from platforms, and the postings that send them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from crowd.models import Posting
from experiments.models import Study
from tests.world import Person

OUTCOMES = ("complete", "failed_checks", "screened", "declined", "device", "turned_away", "failure",
            "withdrawn")  # fmt: skip
STUDY_ID, HIT = "64b7c0ffee0000000000beef", "3HIT0000000000000000000000000A"
SUBMIT = {"live": "https://www.mturk.com", "sandbox": "https://workersandbox.mturk.com"}


def codes_of(name: str) -> dict[str, str]:
    """Codes that differ from every other text."""
    return {outcome: f"{name}{outcome.upper().replace('_', '')}".upper() for outcome in OUTCOMES}


def posting(study: Study, platform: str, **more: Any) -> Posting:
    """An open posting, live unless said otherwise."""
    known: dict[str, dict[str, Any]] = {
        "prolific": {"external_id": STUDY_ID},
        "mturk": {"external_id": "3TYPE", "names": [HIT]},
    }
    values = {"mode": "live", "codes": codes_of(platform[0]), **known.get(platform, {}), **more}
    return Posting.objects.create(study=study, platform=platform, **values)


def refused(reply: Any, status: int, code: str) -> dict[str, Any]:
    """The body of a refusal, once its status and code are checked."""
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code), reply.content
    body: dict[str, Any] = reply.json()
    return body


@dataclass
class Visitor(Person):
    """A person whose browser was sent here by a platform with these fields."""

    via: str = ""
    platform: str = "prolific"
    fields: dict[str, str] | None = None
    attempt: str = ""
    query: str = ""

    def address(self) -> str:
        return self.query or urlencode({"via": self.via, **(self.fields or {})})

    def join(self) -> Any:
        body = {"study": self.slug, "platform": self.platform, "query": self.address()}
        if self.attempt:
            body["attempt"] = self.attempt
        reply = self.call("POST", "/api/sessions/", body, "none")
        if reply.status_code in (200, 201):
            joined = reply.json()
            self.token, self.state = joined["token"], joined["session"]
        return reply

    def end(self, comment: str | None = None) -> Any:
        """Finishes as the page does: with the query of the arrival."""
        if self.state["step"] == "questions":
            self.gate(self.good_value())
        return self.call("POST", "/api/session/finish/", {"comment": comment, "query": self.address()})

    def leave(self, reason: str = "", erase: bool = False) -> Any:
        body = {"reason": reason, "erase": erase, "query": self.address()}
        return self.call("POST", "/api/session/withdraw/", body)


def prolific(name: str, by: Posting, submission: str = "", **more: Any) -> Visitor:
    fields = {
        "PROLIFIC_PID": name,
        "STUDY_ID": by.external_id,
        "SESSION_ID": submission or f"s-{name}",
        **more.pop("extra", {}),
    }
    return Visitor(name, by.study.slug, via=by.key, fields=fields, **more)


def turker(name: str, by: Posting, assignment: str = "", **more: Any) -> Visitor:
    fields = {
        "assignmentId": assignment or f"3A{name}",
        "hitId": HIT,
        "workerId": name,
        "turkSubmitTo": SUBMIT.get(by.mode, by.site) + "/",
        **more.pop("extra", {}),
    }
    return Visitor(name, by.study.slug, via=by.key, platform="mturk", fields=fields, **more)
