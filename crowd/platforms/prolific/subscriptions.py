"""Asking Prolific to notify us: one signing secret per workspace, one confirmed subscription per event."""

from __future__ import annotations

from crowd.platforms.base import PlatformError, SubscriptionSet
from crowd.platforms.prolific.wire import ProlificWire

WANTED = ("submission.status.change", "study.status.change")


def subscribe(wire: ProlificWire, workspace: str, address: str) -> SubscriptionSet:
    """Subscribes `address` to what a sync wants to know. Repeatable: what exists is kept. Raises
    PlatformError."""
    secret = "" if _has_secret(wire, workspace) else _new_secret(wire, workspace)
    standing = {
        str(row.get("event_type"))
        for row in wire.rows("hooks/subscriptions/", {"workspace_id": workspace}, sized=False)
        if row.get("target_url") == address and row.get("is_enabled")
    }
    made = []
    for event in WANTED:
        if event not in standing:
            _subscribe(wire, workspace, address, event)
            made.append(event)
    return SubscriptionSet(secret, tuple(made), tuple(event for event in WANTED if event in standing))


def _has_secret(wire: ProlificWire, workspace: str) -> bool:
    return any(True for _ in wire.rows("hooks/secrets/", {"workspace_id": workspace}, sized=False))


def _new_secret(wire: ProlificWire, workspace: str) -> str:
    # Never repeated by itself: a second one ends the first.
    data = wire.send("POST", "hooks/secrets/", {"workspace_id": workspace}).data
    if not isinstance(data, dict) or not data.get("value"):
        raise PlatformError(
            "Prolific made a secret but its answer does not show it. Subscribe again, which makes another.",
            uncertain=True,
        )
    return str(data["value"])


def _subscribe(wire: ProlificWire, workspace: str, address: str, event: str) -> None:
    body = {"workspace_id": workspace, "event_type": event, "target_url": address}
    reply = wire.send("POST", "hooks/subscriptions/", body)
    data = reply.data if isinstance(reply.data, dict) else {}
    (row, *_) = data.get("results") or [data]
    confirmation = reply.headers.get("X-Hook-Secret", "")
    if not confirmation or "id" not in row:
        raise PlatformError(
            f"Prolific did not say how to confirm the subscription to {event}.", permanent=True
        )
    wire.send("POST", f"hooks/subscriptions/{row['id']}/", {"secret": confirmation}, safe=True)
