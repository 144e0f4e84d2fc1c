"""What may happen to a study: drafts, publishing, places, stopping. Every function holds the world's lock."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from crowd.rehearsal.prolific.records import (
    FINISHED,
    HOLDING,
    UNDECIDED,
    ProlificRefusal,
    Study,
    StudyStatus,
    invalid,
    too_poor,
    wrong_field,
)
from crowd.rehearsal.prolific.world import FIRST_PROJECT, ProlificWorld

EDITABLE = {"internal_name", "total_available_places", "access_details", "submissions_config"}
MINIMUM_PER_HOUR = {"GBP": 600, "USD": 800}


def shortest_limit(estimate_minutes: float) -> float:
    """The least maximum_allowed_time for an estimated completion time, in minutes."""
    return 2 + 2 * estimate_minutes + 2 * math.sqrt(estimate_minutes)


def create(world: ProlificWorld, sent: dict[str, Any]) -> Study:
    """A new draft at each call: creating is not idempotent."""
    check(world, sent)
    sent.setdefault("project", FIRST_PROJECT)
    sent.setdefault("maximum_allowed_time", math.ceil(shortest_limit(sent["estimated_completion_time"])))
    study = Study(world.new_id(), sent, world.now(), stop_leads_to=_stop(world))
    world.studies[study.id] = study
    return study


def _stop(world: ProlificWorld) -> StudyStatus:
    chosen = world.options.stop_leads_to
    if chosen is not None:
        return chosen
    return "AWAITING REVIEW" if world.draw("stop").random() < 0.5 else "COMPLETED"


def check(world: ProlificWorld, sent: dict[str, Any]) -> None:
    """The rules for a draft that a schema cannot express."""
    wrong: dict[str, list[str]] = {}
    floor = shortest_limit(sent["estimated_completion_time"])
    if sent.get("maximum_allowed_time", floor) < floor:
        wrong["maximum_allowed_time"] = [f"Must be at least {floor:.1f} minutes for this estimate."]
    if sent.get("project", FIRST_PROJECT) not in world.projects:
        wrong["project"] = ["This project does not exist."]
    if sent.get("is_external_study_url_secure") and not world.options.secure_enabled:
        wrong["is_external_study_url_secure"] = ["Not enabled for this workspace."]
    wrong |= _wrong_codes(world, sent)
    shares = sent.get("access_details") or []
    if shares and sum(share["total_allocation"] for share in shares) != sent["total_available_places"]:
        wrong["access_details"] = ["The allocations must sum to the total available places."]
    if wrong:
        raise ProlificRefusal(400, wrong, "Validation error")


def _wrong_codes(world: ProlificWorld, sent: dict[str, Any]) -> dict[str, list[str]]:
    codes = sent.get("completion_codes") or []
    said: list[str] = []
    names = [code["code"] for code in codes if code["code"] is not None]
    if len(set(names)) < len(names):
        said.append("Each completion code must be unique within the study.")
    for code in codes:
        actions = {action["action"] for action in code["actions"]}
        by_people = [other for other in codes if other.get("actor", "participant") == "participant"]
        if code["code"] is None and (code not in by_people or len(by_people) > 1 or actions):
            said.append("A code may be null only when it is the participant's sole one and has no actions.")
        if {"AUTOMATICALLY_APPROVE", "MANUALLY_REVIEW"} <= actions:
            said.append("AUTOMATICALLY_APPROVE and MANUALLY_REVIEW exclude each other.")
        if "DYNAMIC_PAYMENT" in actions and code.get("actor", "participant") != "researcher":
            said.append("DYNAMIC_PAYMENT needs the actor researcher.")
        for action in code["actions"]:
            if action["action"] == "FIXED_SCREEN_OUT_PAYMENT":
                said += _wrong_screen_out(world, sent, action)
            group = action.get("participant_group")
            if group is not None and group not in world.groups:
                said.append(f"No participant group with id {group}.")
    return {"completion_codes": said} if said else {}


def _wrong_screen_out(world: ProlificWorld, sent: dict[str, Any], action: dict[str, Any]) -> list[str]:
    if not world.options.screen_out_enabled:
        return ["Fixed screen-out payment is not enabled for this workspace."]
    if action["fixed_screen_out_reward"] >= sent["reward"]:
        return ["The screen-out reward must be less than the study's reward."]
    return []


def edit(world: ProlificWorld, study: Study, sent: dict[str, Any]) -> None:
    """Drafts may change in everything; a published study in little, and its places only grow."""
    if study.status in ("UNPUBLISHED", "SCHEDULED"):
        check(world, {**study.sent, **sent})
        study.sent.update(sent)
        return
    frozen = sorted(set(sent) - EDITABLE - {"completion_codes"})
    if frozen:
        raise ProlificRefusal(
            400, {name: ["This field cannot be changed after publishing."] for name in frozen}, "Frozen"
        )
    if "completion_codes" in sent:
        _check_only_slots_grow(study, sent["completion_codes"])
    places = sent.get("total_available_places", study.places)
    if places < study.places:
        raise wrong_field("total_available_places", "The number of places can only be increased.")
    added = places - study.places
    if added and available(world) < added * world.purse.cost(study.cents):
        raise too_poor("for these places")
    study.sent.update(sent)
    if added and study.status in ("AWAITING REVIEW", "COMPLETED"):
        become(world, study, "ACTIVE")


def _check_only_slots_grow(study: Study, codes: list[dict[str, Any]]) -> None:
    """The slots of a screen-out code are the one part of a published code that may change."""

    def bare(code: dict[str, Any]) -> dict[str, Any]:
        actions = [{k: v for k, v in action.items() if k != "slots"} for action in code["actions"]]
        return {**code, "actor": code.get("actor", "participant"), "actions": actions}

    if [bare(code) for code in codes] != [bare(code) for code in study.codes]:
        raise wrong_field("completion_codes", "Only slots can be changed after publishing.")
    for old, new in zip(study.codes, codes, strict=True):
        for before, after in zip(old["actions"], new["actions"], strict=True):
            if after.get("slots", 0) < before.get("slots", 0):
                raise wrong_field("completion_codes", "The number of slots can only be increased.")


def transition(world: ProlificWorld, study: Study, action: str, publish_at: str | None = None) -> None:
    steps: dict[tuple[str, str], Callable[[], None]] = {
        ("UNPUBLISHED", "PUBLISH"): lambda: _publish(world, study),
        ("UNPUBLISHED", "SCHEDULE_PUBLISH"): lambda: _schedule(world, study, publish_at),
        ("SCHEDULED", "CANCEL_PUBLISH"): lambda: become(world, study, "UNPUBLISHED"),
        ("ACTIVE", "PAUSE"): lambda: become(world, study, "PAUSED"),
        ("ACTIVE", "STOP"): lambda: _stop_now(world, study),
        ("PAUSED", "STOP"): lambda: _stop_now(world, study),
        ("PAUSED", "START"): lambda: _start(world, study),
        ("AWAITING REVIEW", "START"): lambda: _start(world, study),
    }
    step = steps.get((study.status, action))
    if step is None:
        raise invalid(f"A study that is {study.status} cannot {action}.")
    step()


def _publish(world: ProlificWorld, study: Study) -> None:
    if not study.codes:
        raise wrong_field("completion_codes", "A study needs a completion code to be published.")
    hourly = study.cents * 60 / study.sent["estimated_completion_time"]
    least = MINIMUM_PER_HOUR[world.purse.currency]
    if hourly < least:
        raise wrong_field("reward", f"{hourly:.0f} an hour is under the minimum of {least}.")
    if available(world) < full_cost(world, study):
        raise too_poor("to publish this study")
    become(world, study, "PUBLISHING")
    weights = [len(rule["weightings"]) for rule in study.sent.get("filters") or [] if rule.get("weightings")]
    if weights and not study.parts:
        study.parts = [world.new_id() for _ in range(math.prod(weights))]

    def opened() -> None:
        study.published_at = world.now()
        become(world, study, "ACTIVE")

    world.clock.after(world.options.publish_delay_s, opened)


def _schedule(world: ProlificWorld, study: Study, publish_at: str | None) -> None:
    if not publish_at:
        raise wrong_field("publish_at", "This field is required.")
    wait_s = (datetime.fromisoformat(publish_at) - world.now()).total_seconds()
    if wait_s <= 0:
        raise wrong_field("publish_at", "This moment is past.")
    study.publish_at = publish_at
    become(world, study, "SCHEDULED")

    def due() -> None:
        if study.status == "SCHEDULED" and study.publish_at == publish_at:
            try:
                _publish(world, study)
            except ProlificRefusal:
                become(world, study, "UNPUBLISHED")

    world.clock.after(wait_s, due)


def _stop_now(world: ProlificWorld, study: Study) -> None:
    open_work = any(submission.status in UNDECIDED for submission in world.submissions_of(study.id))
    become(world, study, study.stop_leads_to if open_work else "COMPLETED")


def _start(world: ProlificWorld, study: Study) -> None:
    if any(left <= 0 for left in slots_left(study).values()):
        raise invalid("The screen-out slots are used up. Add slots first.")
    if study.status == "AWAITING REVIEW" and free_places(world, study) <= 0:
        raise invalid("All places of this study are taken.")
    become(world, study, "ACTIVE")
    refresh(world, study)


def become(world: ProlificWorld, study: Study, status: StudyStatus) -> None:
    if study.status != status:
        study.status = status
        world.emit("study.status.change", resource_id=study.id, status=status, metadata=None)


def refresh(world: ProlificWorld, study: Study) -> None:
    """After a submission changed: all places done ends recruitment, all decided completes the study."""
    rows = world.submissions_of(study.id)
    if study.status == "ACTIVE" and sum(row.status in FINISHED for row in rows) >= study.places:
        become(world, study, "AWAITING REVIEW")
    if study.status == "AWAITING REVIEW" and not any(row.status in UNDECIDED for row in rows):
        become(world, study, "COMPLETED")


def free_places(world: ProlificWorld, study: Study) -> int:
    return study.places - sum(submission.status in HOLDING for submission in world.submissions_of(study.id))


def screen_outs(study: Study) -> dict[str, dict[str, Any]]:
    """The fixed screen-out action of each code that has one."""
    return {
        code["code"]: action
        for code in study.codes
        for action in code["actions"]
        if action["action"] == "FIXED_SCREEN_OUT_PAYMENT"
    }


def slots_left(study: Study) -> dict[str, int]:
    return {
        code: action["slots"] - study.slots_used.get(code, 0) for code, action in screen_outs(study).items()
    }


def full_cost(world: ProlificWorld, study: Study) -> Decimal:
    """What the study costs at most, bonuses aside."""
    return study.places * world.purse.cost(study.cents) + _slots_cost(world, study)


def _slots_cost(world: ProlificWorld, study: Study) -> Decimal:
    left = slots_left(study)
    costs = (
        max(0, left[code]) * world.purse.cost(int(action["fixed_screen_out_reward"]))
        for code, action in screen_outs(study).items()
    )
    return sum(costs, Decimal(0))


def reserved_funds(world: ProlificWorld) -> Decimal:
    """What is reserved for published studies: still in the purse, but not available."""
    total = Decimal(0)
    for study in world.studies.values():
        if study.status in ("UNPUBLISHED", "SCHEDULED"):
            continue
        rows = world.submissions_of(study.id)
        owed = sum(row.status in UNDECIDED for row in rows)
        if study.status != "COMPLETED":
            paid = sum(row.status == "APPROVED" for row in rows)
            owed = max(owed, study.places - paid)
            total += _slots_cost(world, study)
        total += owed * world.purse.cost(study.cents)
    return total


def available(world: ProlificWorld) -> Decimal:
    return world.purse.balance - reserved_funds(world)
