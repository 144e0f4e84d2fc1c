"""The routes about webhooks."""

from __future__ import annotations

from typing import Any

from crowd.rehearsal.prolific.api import Handler, ProlificReply, Request, slice_reply
from crowd.rehearsal.prolific.notices import EVENT_TYPES, Subscription
from crowd.rehearsal.prolific.records import ProlificRefusal, wrong_field
from crowd.rehearsal.prolific.world import REHEARSAL, ProlificWorld


def _secret(made: tuple[str, str]) -> dict[str, str]:
    return {"id": made[0], "value": made[1], "workspace_id": REHEARSAL}


def secrets(world: ProlificWorld, request: Request) -> ProlificReply:
    return ProlificReply({"results": [_secret(secret) for secret in world.notices.secrets[-1:]]})


def new_secret(world: ProlificWorld, request: Request) -> ProlificReply:
    _check_workspace(request.body["workspace_id"])
    return ProlificReply(_secret(world.notices.new_secret()), 201)


def _check_workspace(name: str) -> None:
    if name != REHEARSAL:
        raise ProlificRefusal(404, f"No workspace with id {name}.", "Not found")


def list_subscriptions(world: ProlificWorld, request: Request) -> ProlificReply:
    return slice_reply(request, [each.as_json() for each in world.notices.subscriptions.values()])


def subscribe(world: ProlificWorld, request: Request) -> ProlificReply:
    """Both shapes of the answer were seen; which one comes is drawn."""
    body = request.body
    _check_workspace(body["workspace_id"])
    if body["event_type"] not in EVENT_TYPES:
        raise wrong_field("event_type", f"{body['event_type']} is not a valid choice.")
    if not world.notices.secret:
        raise ProlificRefusal(400, "Create a secret for the workspace first.", "Validation error")
    made = world.notices.subscribe(body["event_type"], body["target_url"])
    shown: dict[str, Any] = made.as_json()
    if world.draw("subscription-shapes").random() < 0.5:
        shown = {"results": [shown]}
    return ProlificReply(shown, 201, {"X-Hook-Secret": made.confirmation})


def _find(world: ProlificWorld, request: Request) -> Subscription:
    subscription: Subscription | None = world.notices.subscriptions.get(request.names["subscription"])
    if subscription is None:
        raise ProlificRefusal(404, "No such subscription.", "Not found")
    return subscription


def confirm(world: ProlificWorld, request: Request) -> ProlificReply:
    subscription = _find(world, request)
    if request.body["secret"] != subscription.confirmation:
        raise wrong_field("secret", "This is not the value of the header X-Hook-Secret.")
    subscription.is_enabled = True
    return ProlificReply(subscription.as_json())


HANDLERS: dict[str, Handler] = {
    "hooks.secrets": secrets,
    "hooks.new_secret": new_secret,
    "hooks.list": list_subscriptions,
    "hooks.subscribe": subscribe,
    "hooks.confirm": confirm,
}
