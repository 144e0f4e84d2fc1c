"""Event notifications of Mechanical Turk, taken from an SQS queue. They say that something happened, never to
whom; they come late, twice or not at all, and only trigger a sync."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from crowd.platforms.base import Account, BadNotice, Notification, PlatformError
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


def specification(queue_url: str) -> dict[str, Any]:
    """Which events Mechanical Turk is to send, and to which queue."""
    return {"Destination": queue_url, "Transport": "SQS", "Version": VERSION, "EventTypes": list(EVENTS)}


def events_of(body: bytes | str) -> list[Notification]:
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
        _read_event(event, f"{event_id}-{index}" if several else event_id)
        for index, event in enumerate(events)
    ]


def pull(queue_url: str, client: Any, handle: Callable[[list[Notification]], object]) -> None:
    """Takes the messages that are in the queue now and hands them on, one at a time. Raises PlatformError.

    A message is deleted only after `handle` returned, so after a crash it is read again. One that cannot be
    read stays, for the queue's own dead-letter policy.
    """
    for _ in range(ROUNDS_MAX):
        reply = _call_queue(client.receive_message, QueueUrl=queue_url, MaxNumberOfMessages=10)
        if not reply.get("Messages"):
            return
        for message in reply["Messages"]:
            try:
                events = events_of(message["Body"])
            except BadNotice:
                continue
            handle(events)
            _call_queue(client.delete_message, QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])


def pull_queue(account: Account, handle: Callable[[list[Notification]], object]) -> None:
    """The same for the queue of an account. Raises PlatformError."""
    pull(account.queue_url, queue_client(account), handle)


def queue_client(account: Account) -> Any:
    """A client for the account's queue, in the region that its address names."""
    host = urlsplit(account.queue_url).hostname or ""
    match = re.fullmatch(r"sqs\.([a-z0-9-]+)\.amazonaws\.com", host)
    keys = {"aws_access_key_id": account.key_id, "aws_secret_access_key": account.secret}
    return boto3.session.Session().client(
        "sqs",
        region_name=match[1] if match else REGION,
        config=Config(connect_timeout=10, read_timeout=30),
        **(keys if account.key_id else {}),
    )


def _call_queue(verb: Callable[..., dict[str, Any]], **members: Any) -> dict[str, Any]:
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


def _read_event(event: Any, event_id: str) -> Notification:
    kind = event.get("EventType") if isinstance(event, dict) else None
    if not isinstance(kind, str) or not EVENT_KIND.fullmatch(kind):
        raise BadNotice("An event without a readable EventType.")
    hit = event.get("HITId", "")
    if hit and not (isinstance(hit, str) and HIT_ID.fullmatch(hit)):
        raise BadNotice("An event with an unreadable HITId.")
    return Notification(event_id, kind, posting=hit or "")


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
