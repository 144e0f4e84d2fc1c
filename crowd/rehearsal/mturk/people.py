"""Operations on workers: messages, and the receivers of events."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from crowd.rehearsal.mturk import limits as ask
from crowd.rehearsal.mturk.hits import known_type
from crowd.rehearsal.mturk.limits import Members
from crowd.rehearsal.mturk.notices import VERSIONS
from crowd.rehearsal.mturk.records import Refused, Specification
from crowd.rehearsal.mturk.wire import Json
from crowd.rehearsal.mturk.world import World


def notify_workers(world: World, members: Members) -> Json:
    """Writes to all workers that it can reach; the answer, with status 200, names the others."""
    subject = ask.text(members, "Subject", ask.SUBJECT, 1)
    message = ask.text(members, "MessageText", ask.MESSAGE, 1)
    if not 1 <= len(members["WorkerIds"]) <= ask.WORKERS:
        raise ask.refuse(f"WorkerIds must name 1 to {ask.WORKERS} workers, not {len(members['WorkerIds'])}.")
    failed = []
    for worker in members["WorkerIds"]:
        code, why = _unreachable(world, worker)
        if code:
            failed.append(
                {"WorkerId": worker, "NotifyWorkersFailureCode": code, "NotifyWorkersFailureMessage": why}
            )
        else:
            world.people[worker].letters.append((subject, message))
    return {"NotifyWorkersFailureStatuses": failed}


def _unreachable(world: World, worker: str) -> tuple[str, str]:
    if worker not in world.people:
        return "HardFailure", f"Worker {worker} does not exist."
    if not world.decided_for(worker):
        return "HardFailure", "You have not approved or rejected work from this worker."
    if worker in world.soft_failing:
        world.soft_failing.discard(worker)
        return "SoftFailure", "The message could not be sent at this time."
    return "", ""


def update_notification_settings(world: World, members: Members) -> Json:
    kind = known_type(world, members)
    if "Notification" not in members and "Active" not in members:
        raise ask.refuse("Either Notification or Active must be given.")
    if "Notification" in members:
        kind.notice = _specification(members["Notification"])
        kind.notice_active = True
    if kind.notice is None:
        raise ask.refuse("The HIT type has no notification specification; one must be given.")
    kind.notice_active = bool(members.get("Active", kind.notice_active))
    return {}


def _specification(sent: dict[str, Any]) -> Specification:
    destination, transport = sent["Destination"], sent["Transport"]
    if sent["Version"] not in VERSIONS:
        raise ask.refuse(f"Version must be one of {', '.join(VERSIONS)}.")
    fits = {
        "SQS": urlsplit(destination).scheme in ("http", "https"),
        "SNS": re.fullmatch(r"arn:aws:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_.-]+", destination) is not None,
        "Email": "@" in destination,
    }
    if not fits[transport]:
        raise Refused("InvalidTransportEndpoint", f"{destination} is no destination for {transport}.")
    if "Ping" in sent["EventTypes"]:
        raise ask.refuse("Ping is for tests of a specification alone.")
    return Specification(destination, transport, sent["Version"], tuple(sent["EventTypes"]))
