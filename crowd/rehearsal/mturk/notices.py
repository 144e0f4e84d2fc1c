"""Event notifications: collected as events happen, delivered on command, with the platform's irregularities.

Delivery is at least once, in batches and in any order. A document names HIT and assignment, never the worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3

from crowd.rehearsal.mturk.records import Event, Specification

VERSIONS = ("2014-08-15", "2006-05-05")
REHEARSAL = "rehearsal"
Send = Callable[[Specification, str], None]
"""Takes the address of a message, and its text."""


@dataclass(frozen=True, slots=True)
class Notice:
    """One document to be delivered."""

    specification: Specification
    document: dict[str, Any]
    at: datetime

    @property
    def text(self) -> str:
        """The message as the queue gets it: SNS wraps the document in an envelope of its own."""
        text = json.dumps(self.document)
        if self.specification.transport != "SNS":
            return text
        return json.dumps(
            {
                "Type": "Notification",
                "MessageId": self.document["EventDocId"],
                "TopicArn": self.specification.destination,
                "Message": text,
                "Timestamp": iso(self.at),
            }
        )


class Notices:
    """The queue of notices. At most `batch` events are sent in one document."""

    def __init__(self, customer: str, new_id: Callable[[], str], batch: int = 1) -> None:
        self.customer, self.new_id, self.batch = customer, new_id, batch
        self.waiting: list[Notice] = []
        self.sent: list[Notice] = []

    def tell(self, specification: Specification, events: Iterable[Event], at: datetime) -> None:
        """Puts documents about `events` into the queue, whether or not the specification asks for them."""
        rest = list(events)
        while rest:
            batch, rest = rest[: self.batch], rest[self.batch :]
            document = {
                "EventDocVersion": specification.version,
                "EventDocId": self.new_id(),
                "CustomerId": self.customer,
                "Events": [as_json(event) for event in batch],
            }
            self.waiting.append(Notice(specification, document, at))

    def happened(self, specification: Specification | None, event: Event) -> None:
        """Queues a requested event; adds it to the last document while that has room."""
        if specification is None or event.kind not in specification.events:
            return
        last = self.waiting[-1] if self.waiting else None
        if last and last.specification == specification and len(last.document["Events"]) < self.batch:
            last.document["Events"].append(as_json(event))
        else:
            self.tell(specification, [event], event.at)

    def taken_out(self) -> list[Notice]:
        """All waiting documents, oldest first; from now on they count as sent."""
        waiting, self.waiting = self.waiting, []
        self.sent += waiting
        return waiting


def to_queue(endpoint: str, queue_url: str = "") -> Send:
    """Sends to an SQS server at `endpoint`: into `queue_url`, or into the queue that the notice names."""
    client = boto3.client(
        "sqs", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=REHEARSAL,
        aws_secret_access_key=REHEARSAL,
    )  # fmt: skip

    def send(specification: Specification, text: str) -> None:
        client.send_message(QueueUrl=queue_url or specification.destination, MessageBody=text)

    return send


def as_json(event: Event) -> dict[str, str]:
    document = {
        "EventType": event.kind,
        "EventTimestamp": iso(event.at),
        "HITTypeId": event.hit_type,
        "HITId": event.hit,
    }
    return document | ({"AssignmentId": event.assignment} if event.assignment else {})


def iso(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
