"""A researcher's side of the simulated Prolific, written from its documentation and not from our adapter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from crowd.rehearsal import prolific
from crowd.rehearsal.faults import Faults

URL = (
    "https://lab.example/join/wolf/?via=p1&PROLIFIC_PID={{%PROLIFIC_PID%}}"
    "&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
)
DONE, DECLINED, SCREENED = "DONE-1", "DECLINED-1", "SCREENED-1"


def code(name: str, code_type: str, *actions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"code": name, "code_type": code_type, "actions": list(actions), **more}


CODES = [
    code(DONE, "COMPLETED", {"action": "MANUALLY_REVIEW"}),
    code(DECLINED, "NO_CONSENT", {"action": "REQUEST_RETURN", "return_reason": "No consent was given."}),
]
SCREEN_OUT = code(
    SCREENED,
    "FIXED_SCREENOUT",
    {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 20, "slots": 2},
)


class Client:
    """Plain HTTP with the token; paths are under /api/v1/."""

    def __init__(self, sim: prolific.ProlificSimulator, http: httpx.Client) -> None:
        self.sim, self.http = sim, http

    def get(self, path: str, **query: Any) -> httpx.Response:
        return self.http.get(f"/api/v1/{path}", params=query)

    def post(self, path: str, body: Any = None) -> httpx.Response:
        return self.http.post(f"/api/v1/{path}", json=body)

    def patch(self, path: str, body: Any) -> httpx.Response:
        return self.http.patch(f"/api/v1/{path}", json=body)

    def delete(self, path: str) -> httpx.Response:
        return self.http.delete(f"/api/v1/{path}")

    def verb(self, verb: str, **members: Any) -> dict[str, Any]:
        """A verb of the control, over HTTP as another process would."""
        answer = self.http.post(f"/_simulator/{verb}", json=members)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def draft(self, **changes: Any) -> str:
        answer = self.post("studies/", study(**changes))
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def published(self, **changes: Any) -> str:
        study_id = self.draft(**changes)
        answer = self.move(study_id, "PUBLISH")
        assert answer.status_code == 200, answer.text
        return study_id

    def move(self, study_id: str, action: str) -> httpx.Response:
        return self.post(f"studies/{study_id}/transition/", {"action": action})

    def status(self, study_id: str) -> str:
        return str(self.get(f"studies/{study_id}/").json()["status"])

    def work(self, submission: str) -> dict[str, Any]:
        return dict(self.get(f"submissions/{submission}/").json())

    def take(self, study_id: str, **members: Any) -> str:
        return str(self.verb("take", posting=study_id, **members)["submission"])

    def finished(self, study_id: str, entered: str = DONE) -> str:
        """A person takes a place and enters the code, and the platform has processed it."""
        submission = self.take(study_id)
        self.verb("complete", submission=submission, code=entered)
        self.verb("advance", seconds=5)
        return submission

    def decide(self, submission: str, action: str, **members: Any) -> httpx.Response:
        return self.post(f"submissions/{submission}/transition/", {"action": action, **members})

    def batch(self, study_id: str, *lines: str) -> httpx.Response:
        return self.post(
            "submissions/bonus-payments/", {"study_id": study_id, "csv_bonuses": "\n".join(lines)}
        )


def study(**changes: Any) -> dict[str, Any]:
    """A study that the documentation allows; None removes a member."""
    whole = {
        "name": "Wolf or husky?",
        "internal_name": "wolf-1",
        "description": "<p>You see pictures.</p>",
        "external_study_url": URL,
        "prolific_id_option": "url_parameters",
        "completion_codes": CODES,
        "total_available_places": 3,
        "estimated_completion_time": 10,
        "maximum_allowed_time": 30,
        "reward": 200,
        "device_compatibility": ["desktop"],
        "filters": [],
        "project": prolific.REHEARSAL,
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


@contextmanager
def researcher(
    seed: int = 0, faults: Faults | None = None, token: str = prolific.REHEARSAL, **options: Any
) -> Iterator[Client]:
    """A simulator and a client that knows its token."""
    with (
        prolific.simulator(seed, faults=faults, options=prolific.ProlificWorldOptions(**options)) as sim,
        httpx.Client(base_url=sim.url, headers={"Authorization": f"Token {token}"}, timeout=30) as http,
    ):
        yield Client(sim, http)


def said(answer: httpx.Response) -> Any:
    """The detail of an error, in any of its three shapes."""
    body = answer.json()
    return body.get("error", body)["detail"]


def conserved(state: dict[str, Any]) -> bool:
    """The balance fell by the people's money plus the platform's fees, counted twice and independently."""
    paid = sum(work["reward_paid_cents"] + sum(work["bonuses"]) for work in state["submissions"].values())
    left = state["initial_balance"] - state["balance"]
    return bool(left == paid + state["fees"] and paid == sum(state["paid"].values()))
