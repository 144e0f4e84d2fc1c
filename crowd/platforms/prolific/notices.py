"""Webhook deliveries: verified over the raw bytes, then read as far as a sync needs."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from crowd.platforms.base import BadNotice, Notification

WINDOW_S = 300
BODY_MAX = 65_536
TIMESTAMP = "x-prolific-request-timestamp"
SIGNATURE = "x-prolific-request-signature"
EVENT = "x-event-id"
EVENT_ID = re.compile(r"[\x21-\x7e]{1,140}")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """base64(HMAC-SHA256(secret, timestamp + body))."""
    mac = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256)
    return base64.b64encode(mac.digest()).decode()


def read_notice(headers: Mapping[str, str], body: bytes, secret: str, now: datetime) -> list[Notification]:
    """Raises BadNotice for a forged, stale or unreadable delivery."""
    given = {name.lower(): value for name, value in headers.items()}
    if not secret:
        raise BadNotice("No webhook secret is set, so no notification can be verified.")
    if len(body) > BODY_MAX:
        raise BadNotice(f"The notification has {len(body)} bytes; the limit is {BODY_MAX}.")
    timestamp = _value(given, TIMESTAMP)
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise BadNotice("The notification carries no time stamp.")
    if not _is_signed(_value(given, SIGNATURE), secret, timestamp, body):
        raise BadNotice("The signature of the notification does not fit.")
    if abs(now.timestamp() - int(timestamp)) > WINDOW_S:
        raise BadNotice(f"The notification is not from within {WINDOW_S} seconds of now.")
    event_id = _value(given, EVENT)
    if not EVENT_ID.fullmatch(event_id):
        raise BadNotice("The notification carries no event id of 1 to 140 printable characters.")
    payload = _payload(body)
    kind, resource = _text(payload, "event_type"), _text(payload, "resource_id")
    return [
        Notification(
            event_id=event_id,
            kind=kind,
            posting=resource if kind.startswith("study.") else "",
            submission=resource if kind.startswith("submission.") else "",
        )
    ]


def _value(given: Mapping[str, str], name: str) -> str:
    """A header's value. The example of Prolific's page on verifying shows each with a comma at its end, which
    neither a number nor base64 can hold."""
    return given.get(name, "").strip().rstrip(",").strip()


def _is_signed(given: str, secret: str, timestamp: str, body: bytes) -> bool:
    wanted = (signature(secret, timestamp, form) for form in _forms(body))
    return any(hmac.compare_digest(given.encode(), form.encode()) for form in wanted)


def _forms(body: bytes) -> Iterator[bytes]:
    """The bytes as received; then as Prolific's own sample re-serializes the parsed JSON."""
    yield body
    try:
        yield json.dumps(json.loads(body)).encode()
    except (ValueError, RecursionError):
        return


def _payload(body: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadNotice("The notification is not JSON.") from error
    if not isinstance(payload, dict):
        raise BadNotice("The notification is not a JSON object.")
    return payload


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name, "")
    if not isinstance(value, str) or not re.fullmatch(r"[\w.:-]{1,60}", value):
        raise BadNotice(f"{name} of the notification is not a word of 1 to 60 characters.")
    return value
