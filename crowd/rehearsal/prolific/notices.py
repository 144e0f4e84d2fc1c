"""Webhooks: subscriptions with their secrets, and a sender that signs, repeats, reorders and delays."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx

from crowd.rehearsal.prolific.world import REHEARSAL, ProlificWorld

EVENT_TYPES = {
    "submission.status.change": "The status of a submission changed.",
    "study.status.change": "The status of a study changed.",
    "study.progress.change": "A study made progress.",
    "study.has_high_return_rate": "Many participants return this study.",
}
ATTEMPTS = 12
FIRST_RETRY_S = 60
TIMEOUT_S = 10.0


@dataclass(slots=True)
class Subscription:
    """A receiver and its event type. Nothing is sent before the confirmation."""

    id: str
    event_type: str
    target_url: str
    confirmation: str
    is_enabled: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "event_type": self.event_type,
            "target_url": self.target_url,
            "is_enabled": self.is_enabled,
            "workspace_id": REHEARSAL,
        }


@dataclass(slots=True)
class ProlificEvent:
    """One thing to tell one subscriber. The id stays the same in every attempt."""

    id: str
    subscription: str
    event_type: str
    resource: str
    body: bytes
    at: datetime
    due_at: datetime
    status: str = "PENDING"
    attempts: int = 0
    answers: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Manner:
    """How deliveries go wrong: sent twice, newest first, stamped `stale_s` ago, or signed with a wrong
    secret."""

    duplicates: bool = False
    reverse: bool = False
    stale_s: float = 0.0
    forged: bool = False


def signature(secret: str, timestamp: str, body: bytes) -> str:
    digest = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


class ProlificNotices:
    """The sender of one workspace. It is told by the world of changes and stores what is to be sent."""

    def __init__(self, world: ProlificWorld) -> None:
        self.world = world
        self.subscriptions: dict[str, Subscription] = {}
        self.secrets: list[tuple[str, str]] = []
        self.events: list[ProlificEvent] = []
        world.notices = self

    @property
    def secret(self) -> str:
        """The secret that signs now; empty before the first."""
        return self.secrets[-1][1] if self.secrets else ""

    def new_secret(self, value: str = "") -> tuple[str, str]:
        """A new secret; the previous one is no longer used."""
        value = value or base64.urlsafe_b64encode(self.world.draw("secrets").bytes(24)).decode()
        self.secrets.append((self.world.new_id(), value))
        return self.secrets[-1]

    def subscribe(self, event_type: str, target_url: str, *, confirmed: bool = False) -> Subscription:
        made = Subscription(self.world.new_id(), event_type, target_url, self.world.new_id(), confirmed)
        self.subscriptions[made.id] = made
        return made

    def hook(self, url: str, secret: str) -> None:
        """Sends all events to one address, signed with a secret that the researcher already has."""
        self.new_secret(secret)
        for event_type in EVENT_TYPES:
            self.subscribe(event_type, url, confirmed=True)

    def queue(self, event_type: str, members: dict[str, Any]) -> None:
        for target in self.subscriptions.values():
            if target.event_type == event_type and target.is_enabled:
                body = json.dumps({"event_type": event_type, **members}).encode()
                now = self.world.now()
                event = ProlificEvent(
                    self.world.new_id(), target.id, event_type, members["resource_id"], body, now, now
                )
                self.events.append(event)

    def deliver(self, manner: Manner = Manner()) -> list[int]:  # noqa: B008 - a frozen value
        """Sends what is due now, over real HTTP; the answers, in order (0: none came).

        Never called with the world's lock held: the receiver may call us before it answers.
        """
        with self.world.lock:
            due = [e for e in self.events if e.status == "PENDING" and e.due_at <= self.world.now()]
        if manner.reverse:
            due.reverse()
        answers = []
        with httpx.Client(timeout=TIMEOUT_S) as client:
            for event in due:
                for _ in range(2 if manner.duplicates else 1):
                    answers.append(self._send(client, event, manner))
        return answers

    def _send(self, client: httpx.Client, event: ProlificEvent, manner: Manner) -> int:
        with self.world.lock:
            target = self.subscriptions[event.subscription].target_url
            stamp = str(int((self.world.now() - timedelta(seconds=manner.stale_s)).timestamp()))
            secret = self.secret if not manner.forged else self.secret + "-forged"
        headers = {
            "Content-Type": "application/json",
            "X-Prolific-Request-Timestamp": stamp,
            "X-Prolific-Request-Signature": signature(secret, stamp, event.body),
            "X-Event-ID": event.id,
            "X-Timestamp": event.at.isoformat(),
        }
        try:
            status = client.post(target, content=event.body, headers=headers).status_code
        except httpx.HTTPError:
            status = 0
        with self.world.lock:
            self._note(event, status)
        return status

    def _note(self, event: ProlificEvent, status: int) -> None:
        """Success, another try later (a minute, doubling, a little varied), or given up after twelve."""
        event.attempts += 1
        event.answers.append(status)
        if 200 <= status < 300 or event.status == "SUCCEEDED":
            event.status = "SUCCEEDED"
        elif event.attempts >= ATTEMPTS:
            event.status = "FAILED"
        else:
            jitter = 1 + 0.1 * float(self.world.draw("jitter").random())
            pause = FIRST_RETRY_S * 2 ** (event.attempts - 1) * jitter
            event.due_at = self.world.now() + timedelta(seconds=pause)
