"""Event notifications of Mechanical Turk, taken from an SQS queue. They say that something happened, never to
whom; they come late, twice or not at all, and only trigger a sync."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from crowd.platforms.base import Account, BadNotice, Notified, PlatformError
from crowd.platforms.mturk.wire import REGION

VERSION = "2014-08-15"
EVENTS = (
    "AssignmentAccepted", "AssignmentAbandoned", "AssignmentReturned", "AssignmentSubmitted",
    "AssignmentRejected", "AssignmentApproved", "HITExpired", "HITReviewable", "HITExtended", "HITDisposed",
)  # fmt: skip
BODY_MAX = 262_144
EVENTS_MAX = 1000
EVENT_ID = re.compile(r"[A-Za-z0-9_.:=-]{1,100}")
HIT_ID = re.compile(r"[A-Z0-9]{1,64}")
EVENT_KIND = re.compile(r"[A-Za-z]{1,60}")
ROUNDS_MAX = 100


@dataclass(frozen=True, slots=True)
class Pulled:
    """How many messages of a queue were handled, and how many could not be read."""

    handled: int = 0
    unreadable: int = 0


def specification(queue_url: str) -> dict[str, Any]:
    """Which events Mechanical Turk is to send, and to which queue."""
    return {"Destination": queue_url, "Transport": "SQS", "Version": VERSION, "EventTypes": list(EVENTS)}


def events_of(body: bytes | str) -> list[Notified]:
    """The events of one message: a document of Mechanical Turk, bare or in an envelope of SNS. BadNotice.

    `posting` is the HIT, one of the posting's names. One document may tell of several events; its
    EventDocId, with a running number if there are several, is the same in every delivery.
    """
    document = _object(body)
    if "Message" in document and "EventDocId" not in document:
        if document.get("Type", "Notification") != "Notification":
            raise BadNotice(f"An envelope of kind {str(document.get('Type'))[:40]!r} tells of no event.")
        document = _object(document["Message"])
    event_id, events = document.get("EventDocId"), document.get("Events")
    if not isinstance(event_id, str) or not EVENT_ID.fullmatch(event_id):
        raise BadNotice("A notification without a readable EventDocId cannot be told from its copies.")
    if not isinstance(events, list) or not 1 <= len(events) <= EVENTS_MAX:
        raise BadNotice(f"A notification must hold 1 to {EVENTS_MAX} Events.")
    several = len(events) > 1
    return [
        _notified(event, f"{event_id}-{index}" if several else event_id) for index, event in enumerate(events)
    ]


def pull(
    queue_url: str, client: Any, handle: Callable[[list[Notified]], object], rounds_max: int = ROUNDS_MAX
) -> Pulled:
    """Takes the messages that are in the queue now and hands them on, one at a time. Raises PlatformError.

    A message is deleted only after `handle` returned, so after a crash it is read again. One that cannot be
    read stays, for the queue's own dead-letter policy.
    """
    handled = unreadable = 0
    for _ in range(rounds_max):
        messages = _asked(client.receive_message, QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages")
        if not messages:
            break
        for message in messages:
            try:
                events = events_of(message["Body"])
            except BadNotice:
                unreadable += 1
                continue
            handle(events)
            _asked(client.delete_message, QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
            handled += 1
    return Pulled(handled, unreadable)


def pull_queue(account: Account, handle: Callable[[list[Notified]], object]) -> Pulled:
    """The same for the queue of an account. Raises PlatformError."""
    return pull(account.queue_url, queue_client(account), handle)


def queue_client(account: Account, endpoint_url: str = "") -> Any:
    """A client for the account's queue, in the region that its address names."""
    host = urlsplit(account.queue_url).hostname or ""
    match = re.fullmatch(r"sqs\.([a-z0-9-]+)\.amazonaws\.com", host)
    keys = {"aws_access_key_id": account.key_id, "aws_secret_access_key": account.secret}
    return boto3.session.Session().client(
        "sqs",
        region_name=match[1] if match else REGION,
        endpoint_url=endpoint_url or None,
        config=Config(connect_timeout=10, read_timeout=30),
        **(keys if account.key_id else {}),
    )


def _asked(verb: Callable[..., dict[str, Any]], **members: Any) -> dict[str, Any]:
    try:
        return verb(**members)
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        raise PlatformError(f"The queue of notifications refused: {code}. Check MTURK_QUEUE_URL and "
                            "its access policy.", permanent=True) from error  # fmt: skip
    except BotoCoreError as error:
        raise PlatformError(
            f"The queue of notifications does not answer ({type(error).__name__})."
        ) from error


def _notified(event: Any, event_id: str) -> Notified:
    kind = event.get("EventType") if isinstance(event, dict) else None
    if not isinstance(kind, str) or not EVENT_KIND.fullmatch(kind):
        raise BadNotice("An event without a readable EventType.")
    hit = event.get("HITId", "")
    if hit and not (isinstance(hit, str) and HIT_ID.fullmatch(hit)):
        raise BadNotice("An event with an unreadable HITId.")
    return Notified(event_id, kind, posting=hit or "")


def _object(text: Any) -> dict[str, Any]:
    if not isinstance(text, bytes | str) or len(text) > BODY_MAX:
        raise BadNotice(f"A notification must be text of at most {BODY_MAX} bytes.")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadNotice("A notification is no readable JSON.") from error
    if not isinstance(value, dict):
        raise BadNotice("A notification is no JSON object.")
    return value
