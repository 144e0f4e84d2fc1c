"""The routes about the account, its money, participant groups, filters and messages."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from crowd.rehearsal.prolific import study_states
from crowd.rehearsal.prolific.api import Handler, Reply, Request, sliced
from crowd.rehearsal.prolific.records import Group, Message, Refused
from crowd.rehearsal.prolific.study_states import MINIMUM_PER_HOUR
from crowd.rehearsal.prolific.submission_states import bars
from crowd.rehearsal.prolific.world import REHEARSAL, RESEARCHER, World

RECOMMENDED_PER_HOUR = {"GBP": 900, "USD": 1200}
LEAST_COUNTED = 25
LONGEST_LOOK = timedelta(days=30)
FILTERS = (
    {"filter_id": "age", "title": "Age", "type": "range", "data_type": "integer", "min": 18, "max": 100},
    {
        "filter_id": "handedness",
        "title": "Handedness",
        "type": "select",
        "data_type": "ChoiceID",
        "choices": {"0": "Left-handed", "1": "Right-handed", "2": "Ambidextrous"},
    },
    {
        "filter_id": "current-country-of-residence",
        "title": "Current country of residence",
        "type": "select",
        "data_type": "ChoiceID",
        "choices": {"0": "United Kingdom", "1": "United States", "7": "Germany"},
    },
    *(
        {"filter_id": name, "title": name.replace("_", " "), "type": "select", "data_type": "text"}
        for name in (
            "participant_group_allowlist",
            "participant_group_blocklist",
            "previous_studies",
            "previous_studies_blocklist",
        )
    ),
)


def me(world: World, request: Request) -> Reply:
    person = {"id": RESEARCHER, "email": "researcher@example.org", "currency_code": world.purse.currency}
    return Reply(person)


def _workspace(name: str) -> dict[str, Any]:
    return {"id": name, "title": "Rehearsal: simulated money", "description": "", "owner": RESEARCHER}


def workspaces(world: World, request: Request) -> Reply:
    return sliced(request, [_workspace(REHEARSAL)])


def _check_workspace(request: Request) -> None:
    if request.names["workspace"] != REHEARSAL:
        raise Refused(404, f"No workspace with id {request.names['workspace']}.", "Not found")


def workspace(world: World, request: Request) -> Reply:
    _check_workspace(request)
    return Reply(_workspace(REHEARSAL))


def balance(world: World, request: Request) -> Reply:
    _check_workspace(request)
    total, available = world.purse.balance, study_states.available(world)
    return Reply(
        {
            "currency_code": world.purse.currency,
            "total_balance": total,
            "balance_breakdown": _breakdown(world, total),
            "available_balance": available,
            "available_balance_breakdown": _breakdown(world, available),
        }
    )


def _breakdown(world: World, cents: Decimal) -> dict[str, Decimal]:
    """How much of it people could get, and what the platform and the tax office would take in addition."""
    fee, tax = world.purse.fee_bp, world.purse.fee_bp * world.purse.vat_bp // 10_000
    people = cents * 10_000 // (10_000 + fee + tax)
    fees = min(cents - people, people * fee // 10_000)
    return {"rewards": people, "fees": fees, "vat": cents - people - fees}


def projects(world: World, request: Request) -> Reply:
    _check_workspace(request)
    return sliced(request, [{"id": name, "title": name} for name in world.projects])


def project(world: World, request: Request) -> Reply:
    name = request.names["project"]
    if name not in world.projects:
        raise Refused(404, f"No project with id {name}.", "Not found")
    return Reply({"id": name, "title": name, "workspace": REHEARSAL})


def recommended(world: World, request: Request) -> Reply:
    wanted = request.query.get("currency") or request.query.get("currency_code")
    return Reply(
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


def filters(world: World, request: Request) -> Reply:
    return sliced(request, list(FILTERS))


def filter_sets(world: World, request: Request) -> Reply:
    return sliced(request, list(world.filter_sets.values()))


def create_filter_set(world: World, request: Request) -> Reply:
    made = {**request.body, "id": world.new_id(), "version": 1, "is_locked": False, "is_deleted": False}
    world.filter_sets[made["id"]] = made
    return Reply(made, 201)


def eligible(world: World, request: Request) -> Reply:
    rules = request.body["filters"]
    count = sum(not any(bars(world, rule, person) for rule in rules) for person in world.people)
    if not any(bars(world, rule, "") for rule in rules):
        count += world.options.newcomers_count
    return Reply({"count": count if count >= LEAST_COUNTED else 0})


def _group(world: World, request: Request) -> Group:
    name = request.names["group"]
    if name not in world.groups:
        raise Refused(404, f"No participant group with id {name}.", "Not found")
    return world.groups[name]


def _shown(group: Group) -> dict[str, Any]:
    return {
        "id": group.id,
        "name": group.name,
        "description": group.description,
        "participant_count": len(group.members),
        "workspace_id": REHEARSAL,
        "is_deleted": False,
    }


def groups(world: World, request: Request) -> Reply:
    return sliced(request, [_shown(group) for group in world.groups.values()])


def create_group(world: World, request: Request) -> Reply:
    body = request.body
    members = list(dict.fromkeys(body.get("participant_ids") or []))
    made = Group(world.new_id(), body["name"], body.get("description") or "", members, world.now())
    world.groups[made.id] = made
    return Reply(_shown(made), 201)


def group(world: World, request: Request) -> Reply:
    return Reply(_shown(_group(world, request)))


def edit_group(world: World, request: Request) -> Reply:
    """A list of members given here replaces the whole list."""
    group, body = _group(world, request), request.body
    group.name = body.get("name", group.name)
    group.description = body.get("description") or group.description
    if "participant_ids" in body:
        group.members = list(dict.fromkeys(body["participant_ids"]))
    return Reply(_shown(group))


def delete_group(world: World, request: Request) -> Reply:
    del world.groups[_group(world, request).id]
    return Reply(None, 204)


def members(world: World, request: Request) -> Reply:
    group = _group(world, request)
    return sliced(
        request,
        [{"participant_id": who, "datetime_created": group.created_at.isoformat()} for who in group.members],
    )


def add_members(world: World, request: Request) -> Reply:
    group = _group(world, request)
    group.members += [
        member for member in dict.fromkeys(request.body["participant_ids"]) if member not in group.members
    ]
    return members(world, request)


def remove_members(world: World, request: Request) -> Reply:
    group = _group(world, request)
    group.members = [member for member in group.members if member not in set(request.body["participant_ids"])]
    return members(world, request)


def _letter(message: Message) -> dict[str, Any]:
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


def letters(world: World, request: Request) -> Reply:
    if not {"user_id", "created_after"} & request.query.keys():
        raise Refused(400, "Either user_id or created_after is required.", "Validation error")
    rows = list(world.messages)
    if "user_id" in request.query:
        rows = [each for each in rows if request.query["user_id"] in (each.sender, each.recipient)]
    if "created_after" in request.query:
        after = _moment(request.query["created_after"])
        if after < world.now() - LONGEST_LOOK:
            raise Refused(400, {"created_after": ["At most 30 days back."]}, "Validation error")
        rows = [each for each in rows if each.at >= after]
    return Reply({"results": [_letter(each) for each in rows]})


def _moment(text: str) -> datetime:
    """The query may have lost its plus sign to a space."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(400, {"created_after": ["This is no moment."]}, "Validation error") from error


def unread(world: World, request: Request) -> Reply:
    return Reply({"results": [_letter(each) for each in world.messages if each.recipient == RESEARCHER]})


def _send(world: World, people: list[str], body: str, study: str) -> Reply:
    if study:
        world.study(study)
    strangers = [person for person in people if person not in world.people]
    if strangers:
        raise Refused(400, f"Unknown participants: {', '.join(strangers)}", "Validation error")
    for person in people:
        world.messages.append(Message(world.new_id(), RESEARCHER, person, body, study, world.now()))
        world.people[person].letters.append(body)
    return Reply(None, 204)


def send(world: World, request: Request) -> Reply:
    return _send(world, [request.body["recipient_id"]], request.body["body"], request.body["study_id"])


def send_bulk(world: World, request: Request) -> Reply:
    return _send(world, request.body["ids"], request.body["body"], request.body["study_id"])


def send_group(world: World, request: Request) -> Reply:
    group_id = request.body["participant_group_id"]
    if group_id not in world.groups:
        raise Refused(404, f"No participant group with id {group_id}.", "Not found")
    return _send(
        world, world.groups[group_id].members, request.body["body"], request.body.get("study_id", "")
    )


HANDLERS: dict[str, Handler] = {
    "users.me": me,
    "workspaces.list": workspaces,
    "workspaces.read": workspace,
    "workspaces.balance": balance,
    "workspaces.projects": projects,
    "projects.read": project,
    "rewards.recommended": recommended,
    "filters.list": filters,
    "filter_sets.list": filter_sets,
    "filter_sets.create": create_filter_set,
    "eligibility.count": eligible,
    "groups.list": groups,
    "groups.create": create_group,
    "groups.read": group,
    "groups.edit": edit_group,
    "groups.delete": delete_group,
    "groups.members": members,
    "groups.add": add_members,
    "groups.remove": remove_members,
    "messages.list": letters,
    "messages.unread": unread,
    "messages.send": send,
    "messages.send_bulk": send_bulk,
    "messages.send_group": send_group,
}
