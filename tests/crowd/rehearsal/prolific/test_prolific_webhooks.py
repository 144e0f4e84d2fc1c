"""Webhooks of the simulated Prolific: set-up, signatures, deliveries that repeat, mix and come late."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crowd.rehearsal import prolific
from crowd.rehearsal.prolific.notices import signature
from crowd.rehearsal.serving import Answer, IncomingRequest, serving
from tests.crowd.rehearsal.prolific.prolific_client import DONE, Client, researcher, said

pytestmark = pytest.mark.pure

SECRET = "cGNqFPb6y0RT3XO9-example"


class Listener:
    """An endpoint of ours: keeps the requests and answers with `status`."""

    def __init__(self) -> None:
        self.got: list[IncomingRequest] = []
        self.status = 204

    def __call__(self, asked: IncomingRequest) -> Answer:
        self.got.append(asked)
        return Answer(self.status)

    @property
    def stories(self) -> list[tuple[str, str]]:
        """(event id, status) in the order of arrival, of submissions only."""
        received = [(request.headers["x-event-id"], json.loads(request.body)) for request in self.got]
        return [
            (event, body["status"])
            for event, body in received
            if body["event_type"] == "submission.status.change"
        ]


@contextmanager
def listening() -> Iterator[tuple[Client, Listener, str]]:
    listener = Listener()
    with serving(listener) as url, researcher() as client:
        yield client, listener, f"{url}/hooks/"


def subscribed(client: Client, url: str, event_type: str = "submission.status.change") -> tuple[str, str]:
    """By the documented steps: the subscription and the signing secret."""
    secret = client.post("hooks/secrets/", {"workspace_id": "rehearsal"}).json()
    sent = {"event_type": event_type, "target_url": url, "workspace_id": "rehearsal"}
    answer = client.post("hooks/subscriptions/", sent)
    assert answer.status_code == 201
    body: dict[str, Any] = answer.json()
    [inner] = body.get("results", [body])
    path = f"hooks/subscriptions/{inner['id']}/"
    assert client.post(path, {"secret": "guess"}).status_code == 400
    assert client.post(path, {"secret": answer.headers["X-Hook-Secret"]}).json()["is_enabled"] is True
    return inner["id"], secret["value"]


def test_it_signs_as_documented() -> None:
    """The vector of the documentation's formula, computed outside."""
    body = (
        b'{"resource_id": "6394cee383e14a167638b300", "event_type": "submission.status.change", '
        b'"participant_id": "60bf9310e8dec401be6e9615", "status": "AWAITING REVIEW"}'
    )
    assert signature(SECRET, "1732000000", body) == "yOa4lag+vRTq52jHJVuh5ZXJmRG3vacQ3KtnEpEJo18="


def test_it_tells_of_every_status_once_confirmed() -> None:
    with listening() as (client, listener, url):
        _, secret = subscribed(client, url)
        study = client.published()
        submission = client.finished(study)
        assert client.verb("deliver")["sent"] == 3
        assert [status for _, status in listener.stories] == ["RESERVED", "ACTIVE", "AWAITING REVIEW"]
        for request in listener.got:
            stamp = request.headers["x-prolific-request-timestamp"]
            digest = hmac.new(secret.encode(), stamp.encode() + request.body, hashlib.sha256).digest()
            assert request.headers["x-prolific-request-signature"] == base64.b64encode(digest).decode()
            assert stamp == str(int(client.sim.clock.now().timestamp()))
            assert json.loads(request.body)["resource_id"] == submission
        assert client.verb("deliver")["sent"] == 0
        assert [event.status for event in client.sim.notices.events] == ["SUCCEEDED"] * 3


def test_it_says_nothing_before_the_confirmation() -> None:
    with listening() as (client, listener, url):
        client.post("hooks/secrets/", {"workspace_id": "rehearsal"})
        sent = {"event_type": "study.status.change", "target_url": url, "workspace_id": "rehearsal"}
        client.post("hooks/subscriptions/", sent)
        client.published()
        assert client.verb("deliver")["sent"] == 0
        assert not listener.got


def test_it_answers_a_subscription_in_both_shapes() -> None:
    shapes = set()
    with listening() as (client, _, url):
        client.post("hooks/secrets/", {"workspace_id": "rehearsal"})
        sent = {"event_type": "study.status.change", "target_url": url, "workspace_id": "rehearsal"}
        for _ in range(20):
            shapes.add("results" in client.post("hooks/subscriptions/", sent).json())
    assert shapes == {True, False}


def test_it_refuses_unknown_events_and_addresses_that_are_not_public() -> None:
    with researcher() as client:
        sent = {"target_url": "https://lab.example/hooks/", "workspace_id": "rehearsal"}
        no_secret = client.post("hooks/subscriptions/", {**sent, "event_type": "study.status.change"})
        assert no_secret.status_code == 400 and "secret" in said(no_secret)
        client.post("hooks/secrets/", {"workspace_id": "rehearsal"})
        for wrong in (
            {"event_type": "study.explodes"},
            {"event_type": "study.status.change", "target_url": "http://lab.example/hooks/"},
        ):
            assert client.post("hooks/subscriptions/", {**sent, **wrong}).status_code == 400


def test_it_signs_with_the_newest_secret_only() -> None:
    with listening() as (client, listener, url):
        _, old = subscribed(client, url)
        new = client.post("hooks/secrets/", {"workspace_id": "rehearsal"}).json()["value"]
        client.take(client.published())
        client.verb("deliver")
        request = listener.got[0]
        stamp = request.headers["x-prolific-request-timestamp"]
        sent = request.headers["x-prolific-request-signature"]
        assert sent == signature(new, stamp, request.body) != signature(old, stamp, request.body)
        listed = client.get("hooks/secrets/", workspace_id="rehearsal").json()["results"]
        assert [secret["value"] for secret in listed] == [new]


def test_it_repeats_mixes_up_and_comes_late() -> None:
    with listening() as (client, listener, url):
        client.verb("webhook", url=url, secret=SECRET)
        client.finished(client.published())
        before = client.sim.clock.now()
        client.verb("deliver", duplicates=True, reverse=True, late_s=3600)
        stories = listener.stories
        assert [status for _, status in stories] == [
            "AWAITING REVIEW", "AWAITING REVIEW", "ACTIVE", "ACTIVE", "RESERVED", "RESERVED",
        ]  # fmt: skip
        assert len({event for event, _ in stories}) == 3
        stamp = int(listener.got[0].headers["x-prolific-request-timestamp"])
        assert stamp == int(before.timestamp()) + 3600


def test_it_forges_and_replays_on_demand() -> None:
    with listening() as (client, listener, url):
        client.verb("webhook", url=url, secret=SECRET)
        listener.status = 403
        client.take(client.published())
        client.verb("deliver", forged=True)
        forged = listener.got[-1]
        stamp = forged.headers["x-prolific-request-timestamp"]
        assert forged.headers["x-prolific-request-signature"] != signature(SECRET, stamp, forged.body)
        client.verb("deliver", stale_s=600, late_s=3600)
        stale = listener.got[-1]
        stamp = stale.headers["x-prolific-request-timestamp"]
        assert stale.headers["x-prolific-request-signature"] == signature(SECRET, stamp, stale.body)
        assert int(stamp) == int(client.sim.clock.now().timestamp()) - 600


def test_it_tries_again_on_the_clock_and_gives_up_after_twelve() -> None:
    with listening() as (client, listener, url):
        subscribed(client, url, "study.status.change")
        listener.status = 500
        client.post(f"studies/{client.draft()}/transition/", {"action": "PUBLISH"})
        [row] = [event for event in client.sim.notices.events if json.loads(event.body)["status"] == "ACTIVE"]
        pauses = []
        for _ in range(11):
            client.verb("deliver")
            assert client.verb("deliver")["sent"] == 0  # not before its time
            now = client.sim.clock.now()
            pauses.append((row.due_at - now).total_seconds())
            both = max(event.due_at for event in client.sim.notices.events) - now
            client.verb("advance", seconds=both.total_seconds())
        for exponent, pause in enumerate(pauses):
            assert 60 * 2**exponent <= pause <= 1.1 * 60 * 2**exponent
        client.verb("deliver")
        assert (row.status, row.attempts) == ("FAILED", 12)
        assert [event.status for event in client.sim.notices.events] == ["FAILED"] * 2
        assert len({request.headers["x-event-id"] for request in listener.got}) == 2


def test_it_survives_an_endpoint_that_is_not_there() -> None:
    listener = Listener()
    with serving(listener) as url:
        gone = url
    with researcher() as client:
        client.verb("webhook", url=gone, secret=SECRET)
        client.take(client.published())
        delivery = client.verb("deliver")
        assert set(delivery["answers"]) == {0} and delivery["waiting"] == delivery["sent"]


def test_it_lets_the_endpoint_ask_back_before_it_answers() -> None:
    seen: list[str] = []
    with researcher() as client:

        def curious(asked: IncomingRequest) -> Answer:
            body = json.loads(asked.body)
            if body["event_type"] == "submission.status.change":
                seen.append(client.work(body["resource_id"])["status"])
            return Answer(200)

        with serving(curious) as url:
            client.verb("webhook", url=url, secret=SECRET)
            client.finished(client.published())
            client.verb("deliver")
    assert seen == ["AWAITING REVIEW"] * 3


def test_it_is_subscribed_from_the_start_if_told_so() -> None:
    listener = Listener()
    with serving(listener) as url, prolific.simulator(webhook=(url, SECRET)) as sim:
        sim.control.people(count=1)
        assert sim.notices.secret == SECRET
        assert len(sim.notices.subscriptions) == 4
        assert DONE not in str(sim.log)
