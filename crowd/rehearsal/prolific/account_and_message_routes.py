"""The routes about the account, its money, eligible people and messages."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from crowd.rehearsal.prolific import study_states
from crowd.rehearsal.prolific.api import Handler, ProlificReply, Request
from crowd.rehearsal.prolific.records import ProlificMessage, ProlificRefusal
from crowd.rehearsal.prolific.study_states import MINIMUM_PER_HOUR
from crowd.rehearsal.prolific.submission_states import bars
from crowd.rehearsal.prolific.world import REHEARSAL, RESEARCHER, ProlificWorld

RECOMMENDED_PER_HOUR = {"GBP": 900, "USD": 1200}
LEAST_COUNTED = 25


def _check_workspace(request: Request) -> None:
    if request.names["workspace"] != REHEARSAL:
        raise ProlificRefusal(404, f"No workspace with id {request.names['workspace']}.", "Not found")


def balance(world: ProlificWorld, request: Request) -> ProlificReply:
    _check_workspace(request)
    total, available = world.purse.balance, study_states.available(world)
    return ProlificReply(
        {
            "currency_code": world.purse.currency,
            "total_balance": total,
            "balance_breakdown": _breakdown(world, total),
            "available_balance": available,
            "available_balance_breakdown": _breakdown(world, available),
        }
    )


def _breakdown(world: ProlificWorld, cents: Decimal) -> dict[str, Decimal]:
    """How much of it people could get, and what the platform and the tax office would take in addition."""
    fee, tax = world.purse.fee_bp, world.purse.fee_bp * world.purse.vat_bp // 10_000
    people = cents * 10_000 // (10_000 + fee + tax)
    fees = min(cents - people, people * fee // 10_000)
    return {"rewards": people, "fees": fees, "vat": cents - people - fees}


def recommend_rewards(world: ProlificWorld, request: Request) -> ProlificReply:
    wanted = request.query.get("currency") or request.query.get("currency_code")
    return ProlificReply(
        [
            {
                "currency": currency,
                "min_reward_per_hour": MINIMUM_PER_HOUR[currency],
                "recommended_reward_per_hour": RECOMMENDED_PER_HOUR[currency],
            }
            for currency in ("GBP", "USD")
            if wanted in (None, currency)
        ]
    )


def eligible(world: ProlificWorld, request: Request) -> ProlificReply:
    rules = request.body["filters"]
    count = sum(not any(bars(world, rule, person) for rule in rules) for person in world.people)
    if not any(bars(world, rule, "") for rule in rules):
        count += world.options.newcomers_count
    return ProlificReply({"count": count if count >= LEAST_COUNTED else 0})


def _letter(message: ProlificMessage) -> dict[str, Any]:
    other = message.recipient if message.sender == RESEARCHER else message.sender
    return {
        "id": message.id,
        "type": "message",
        "sender_id": message.sender,
        "body": message.body,
        "sent_at": message.at.isoformat().replace("+00:00", "Z"),
        "channel_id": f"channel-{other}",
        "data": {"study_id": message.study, "category": None},
    }


def unread(world: ProlificWorld, request: Request) -> ProlificReply:
    return ProlificReply(
        {"results": [_letter(each) for each in world.messages if each.recipient == RESEARCHER]}
    )


def _send(world: ProlificWorld, people: list[str], body: str, study: str) -> ProlificReply:
    if study:
        world.study(study)
    strangers = [person for person in people if person not in world.people]
    if strangers:
        raise ProlificRefusal(400, f"Unknown participants: {', '.join(strangers)}", "Validation error")
    for person in people:
        world.messages.append(ProlificMessage(world.new_id(), RESEARCHER, person, body, study, world.now()))
        world.people[person].letters.append(body)
    return ProlificReply(None, 204)


def send(world: ProlificWorld, request: Request) -> ProlificReply:
    return _send(world, [request.body["recipient_id"]], request.body["body"], request.body["study_id"])


HANDLERS: dict[str, Handler] = {
    "workspaces.balance": balance,
    "rewards.recommended": recommend_rewards,
    "eligibility.count": eligible,
    "messages.unread": unread,
    "messages.send": send,
}
