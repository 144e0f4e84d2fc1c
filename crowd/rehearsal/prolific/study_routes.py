"""The routes about studies and what they cost."""

from __future__ import annotations

import csv
import io
from copy import deepcopy
from decimal import Decimal
from typing import Any

from crowd.rehearsal.prolific import study_states
from crowd.rehearsal.prolific.api import Handler, Reply, Request, paged, sliced
from crowd.rehearsal.prolific.records import FINISHED, HOLDING, Refused, Study
from crowd.rehearsal.prolific.world import RESEARCHER, World


def full(world: World, study: Study) -> dict[str, Any]:
    """A study as read by id: what was sent, and its state."""
    submissions = world.submissions_of(study.id)
    return {
        **deepcopy(study.sent),
        "id": study.id,
        "status": world.shown(study.status),
        "is_ready_to_publish": bool(study.codes),
        "researcher": {"id": RESEARCHER},
        "currency_code": world.purse.currency,
        "places_taken": sum(submission.status in HOLDING for submission in submissions),
        "number_of_submissions": sum(submission.status in FINISHED for submission in submissions),
        "average_reward_per_hour": study.cents * 60 / study.sent["estimated_completion_time"],
        "is_underpaying": False,
        "total_cost": study_states.full_cost(world, study),
        "date_created": study.created_at.isoformat(),
        "published_at": study.published_at.isoformat() if study.published_at else None,
        "publish_at": study.publish_at,
    }


ROW = (
    "id", "name", "internal_name", "status", "reward", "total_available_places", "places_taken",
    "number_of_submissions", "total_cost", "published_at", "publish_at", "date_created", "is_underpaying",
)  # fmt: skip


def row(world: World, study: Study) -> dict[str, Any]:
    """A study as listed: without its metadata, its codes and its address."""
    known = full(world, study)
    return {**{name: known.get(name) for name in ROW}, "study_type": "SINGLE"}


def create(world: World, request: Request) -> Reply:
    return Reply(full(world, study_states.create(world, deepcopy(request.body))), 201)


def read(world: World, request: Request) -> Reply:
    return Reply(full(world, world.study(request.names["study"])))


def _in_state(world: World, request: Request) -> list[Study]:
    wanted = request.query.get("state", "").replace("_", " ")
    return [study for study in world.studies.values() if not wanted or study.status == wanted]


def listed(world: World, request: Request) -> Reply:
    rows = [row(world, study) for study in reversed(_in_state(world, request))]
    return sliced(request, rows)


def of_project(world: World, request: Request) -> Reply:
    project = request.names["project"]
    if project not in world.projects:
        raise Refused(404, f"No project with id {project}.", "Not found")
    return paged(
        request, [row(world, study) for study in world.studies.values() if study.sent["project"] == project]
    )


def edit(world: World, request: Request) -> Reply:
    study = world.study(request.names["study"])
    study_states.edit(world, study, deepcopy(request.body))
    return Reply(full(world, study))


def delete(world: World, request: Request) -> Reply:
    study = world.study(request.names["study"])
    if study.status != "UNPUBLISHED":
        raise Refused(400, "Only a draft can be deleted.", "Invalid transition")
    del world.studies[study.id]
    return Reply(None, 204)


def transition(world: World, request: Request) -> Reply:
    study = world.study(request.names["study"])
    study_states.transition(world, study, request.body["action"], request.body.get("publish_at"))
    return Reply(full(world, study))


def clone(world: World, request: Request) -> Reply:
    """A draft like it; unless told otherwise it bars those who took part in the first."""
    study = world.study(request.names["study"])
    sent = deepcopy(study.sent) | ({"project": request.body["project"]} if "project" in request.body else {})
    if request.body.get("block_previous_participants", True):
        rule = {"filter_id": "previous_studies_blocklist", "selected_values": [study.id]}
        sent["filters"] = [*(sent.get("filters") or []), rule]
    return Reply(full(world, study_states.create(world, sent)), 201)


def counts(world: World, request: Request) -> Reply:
    submissions = world.submissions_of(world.study(request.names["study"]).id)
    states = (
        "ACTIVE", "APPROVED", "AWAITING REVIEW", "REJECTED", "RESERVED", "RETURNED", "TIMED-OUT",
        "PARTIALLY APPROVED", "SCREENED OUT",
    )  # fmt: skip
    by = {state: sum(submission.status == state for submission in submissions) for state in states}
    return Reply({**by, "TOTAL": len(submissions)})


def _amount(world: World, cents: Decimal | int) -> dict[str, Any]:
    return {"amount": cents, "currency": world.purse.currency}


def _breakdown(world: World, cents: Decimal | int, fees: Decimal | int, vat: Decimal | int) -> dict[str, Any]:
    return {"rewards": _amount(world, cents), "fees": _amount(world, fees), "tax": _amount(world, vat)}


def cost(world: World, request: Request) -> Reply:
    """Spent so far; `is_projected` adds what the study may still cost, bonuses aside."""
    study = world.study(request.names["study"])
    entries = world.purse.spent(study.id)
    parts = []
    for bonus in (False, True):
        rows = [entry for entry in entries if (entry.kind == "bonus") == bonus]
        parts.append([sum(e.cents for e in rows), sum(e.fees for e in rows), sum(e.vat for e in rows)])
    rewards, bonuses = parts
    if request.query.get("is_projected", "").lower() in ("true", "1"):
        fees, vat = world.purse.fees_on(study.cents)
        rewards = [study.places * cents for cents in (study.cents, fees, vat)]
    total = sum(rewards) + sum(bonuses)
    return Reply(
        {
            "rewards": _breakdown(world, *rewards),
            "bonuses": _breakdown(world, *bonuses),
            "total_cost": _amount(world, total),
        }
    )


def calculate(world: World, request: Request) -> Reply:
    each = world.purse.cost(request.body["reward"])
    return Reply({"total_cost": each * request.body["total_available_places"]})


def demographics(world: World, request: Request) -> Reply:
    """A table of everyone who was there; nothing at all before the first."""
    submissions = world.submissions_of(world.study(request.names["study"]).id)
    if not submissions:
        return Reply(status=204)
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(["Submission id", "Participant id", "Status", "Age", "Sex", "Country of residence"])
    for each in submissions:
        person = world.people[each.person]
        rows.writerow([each.id, person.id, each.status, person.age, person.sex, "United Kingdom"])
    return Reply(text=table.getvalue(), headers={"Content-Type": "text/csv; charset=utf-8"})


HANDLERS: dict[str, Handler] = {
    "studies.list": listed,
    "studies.create": create,
    "studies.of_project": of_project,
    "studies.read": read,
    "studies.edit": edit,
    "studies.delete": delete,
    "studies.transition": transition,
    "studies.clone": clone,
    "studies.counts": counts,
    "studies.cost": cost,
    "studies.demographics": demographics,
    "costs.calculate": calculate,
}
