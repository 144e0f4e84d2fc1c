"""Event notifications: collected as events happen, delivered on command, with the platform's irregularities.

Delivery is at least once and in any order. A document names HIT and assignment, never the worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3

from crowd.rehearsal.mturk.records import Specification, TurkEvent

VERSIONS = ("2014-08-15", "2006-05-05")
REHEARSAL = "rehearsal"
Send = Callable[[Specification, str], None]
"""Takes the address of a message, and its text."""


@dataclass(frozen=True, slots=True)
class TurkNotice:
    """One document to be delivered."""

    specification: Specification
    document: dict[str, Any]

    @property
    def text(self) -> str:
        """The message as the queue gets it."""
        return json.dumps(self.document)


class TurkNotices:
    """The notices that wait, with one event each."""

    def __init__(self, customer: str, new_id: Callable[[], str]) -> None:
        self.customer, self.new_id = customer, new_id
        self.waiting: list[TurkNotice] = []

    def happened(self, specification: Specification | None, event: TurkEvent) -> None:
        """Queues an event that was asked for."""
        if specification is None or event.kind not in specification.events:
            return
        document = {
            "EventDocVersion": specification.version,
            "EventDocId": self.new_id(),
            "CustomerId": self.customer,
            "Events": [as_json(event)],
        }
        self.waiting.append(TurkNotice(specification, document))

    def taken_out(self) -> list[TurkNotice]:
        """All waiting documents, oldest first."""
        waiting, self.waiting = self.waiting, []
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


def as_json(event: TurkEvent) -> dict[str, str]:
    document = {
        "EventType": event.kind,
        "EventTimestamp": f"{event.at:%Y-%m-%dT%H:%M:%SZ}",
        "HITTypeId": event.hit_type,
        "HITId": event.hit,
    }
    return document | ({"AssignmentId": event.assignment} if event.assignment else {})
