"""The routes about webhooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crowd.rehearsal.prolific.api import Handler, Reply, Request, sliced
from crowd.rehearsal.prolific.notices import EVENT_TYPES, Notices, Subscription
from crowd.rehearsal.prolific.records import Refused
from crowd.rehearsal.prolific.world import REHEARSAL, World


def routes(notices: Notices) -> dict[str, Handler]:
    """The handlers for one sender."""

    def bound(act: Callable[[Notices, World, Request], Reply]) -> Handler:
        return lambda world, request: act(notices, world, request)

    return {
        "hooks.secrets": bound(secrets),
        "hooks.new_secret": bound(new_secret),
        "hooks.list": bound(listed),
        "hooks.subscribe": bound(subscribe),
        "hooks.confirm": bound(confirm),
    }


def _secret(made: tuple[str, str]) -> dict[str, str]:
    return {"id": made[0], "value": made[1], "workspace_id": REHEARSAL}


def secrets(notices: Notices, world: World, request: Request) -> Reply:
    return Reply({"results": [_secret(secret) for secret in notices.secrets[-1:]]})


def new_secret(notices: Notices, world: World, request: Request) -> Reply:
    _check_workspace(request.body["workspace_id"])
    return Reply(_secret(notices.new_secret()), 201)


def _check_workspace(name: str) -> None:
    if name != REHEARSAL:
        raise Refused(404, f"No workspace with id {name}.", "Not found")


def listed(notices: Notices, world: World, request: Request) -> Reply:
    wanted = request.query.get("is_enabled", "").lower()
    subscriptions = [
        subscription.as_json()
        for subscription in notices.subscriptions.values()
        if not wanted or subscription.is_enabled == (wanted in ("true", "1"))
    ]
    return sliced(request, subscriptions)


def subscribe(notices: Notices, world: World, request: Request) -> Reply:
    """Both shapes of the answer were seen; which one comes is drawn."""
    body = request.body
    _check_workspace(body["workspace_id"])
    if body["event_type"] not in EVENT_TYPES:
        raise Refused(400, {"event_type": [f"{body['event_type']} is not a valid choice."]})
    if not notices.secret:
        raise Refused(400, "Create a secret for the workspace first.", "Validation error")
    made = notices.subscribe(body["event_type"], body["target_url"])
    shown: dict[str, Any] = made.as_json()
    if world.draw("subscription-shapes").random() < 0.5:
        shown = {"results": [shown]}
    return Reply(shown, 201, {"X-Hook-Secret": made.confirmation})


def _find(notices: Notices, request: Request) -> Subscription:
    subscription = notices.subscriptions.get(request.names["subscription"])
    if subscription is None:
        raise Refused(404, "No such subscription.", "Not found")
    return subscription


def confirm(notices: Notices, world: World, request: Request) -> Reply:
    subscription = _find(notices, request)
    if request.body["secret"] != subscription.confirmation:
        raise Refused(400, {"secret": ["This is not the value of the header X-Hook-Secret."]})
    subscription.is_enabled = True
    return Reply(subscription.as_json())
