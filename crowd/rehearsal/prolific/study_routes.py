"""The routes about studies and what they cost."""

from __future__ import annotations

import csv
import io
from copy import deepcopy
from typing import Any

from crowd.rehearsal.prolific import study_states
from crowd.rehearsal.prolific.api import Handler, ProlificReply, Request, page_reply
from crowd.rehearsal.prolific.records import FINISHED, HOLDING, ProlificRefusal, Study, invalid
from crowd.rehearsal.prolific.world import RESEARCHER, ProlificWorld


def full(world: ProlificWorld, study: Study) -> dict[str, Any]:
    """A study as read by id: what was sent, and its state."""
    submissions = world.submissions_of(study.id)
    return {
        **deepcopy(study.sent),
        "id": study.id,
        "status": world.shown(study.status, study.id),
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


def row(world: ProlificWorld, study: Study) -> dict[str, Any]:
    """A study as listed: without its metadata, its codes and its address."""
    known = full(world, study)
    return {**{name: known.get(name) for name in ROW}, "study_type": "SINGLE"}


def create(world: ProlificWorld, request: Request) -> ProlificReply:
    return ProlificReply(full(world, study_states.create(world, deepcopy(request.body))), 201)


def read(world: ProlificWorld, request: Request) -> ProlificReply:
    return ProlificReply(full(world, world.study(request.names["study"])))


def of_project(world: ProlificWorld, request: Request) -> ProlificReply:
    project = request.names["project"]
    if project not in world.projects:
        raise ProlificRefusal(404, f"No project with id {project}.", "Not found")
    return page_reply(
        request, [row(world, study) for study in world.studies.values() if study.sent["project"] == project]
    )


def edit(world: ProlificWorld, request: Request) -> ProlificReply:
    study = world.study(request.names["study"])
    study_states.edit(world, study, deepcopy(request.body))
    return ProlificReply(full(world, study))


def delete(world: ProlificWorld, request: Request) -> ProlificReply:
    study = world.study(request.names["study"])
    if study.status != "UNPUBLISHED":
        raise invalid("Only a draft can be deleted.")
    del world.studies[study.id]
    return ProlificReply(None, 204)


def transition(world: ProlificWorld, request: Request) -> ProlificReply:
    study = world.study(request.names["study"])
    study_states.transition(world, study, request.body["action"], request.body.get("publish_at"))
    return ProlificReply(full(world, study))


def calculate(world: ProlificWorld, request: Request) -> ProlificReply:
    each = world.purse.cost(request.body["reward"])
    return ProlificReply({"total_cost": each * request.body["total_available_places"]})


def demographics(world: ProlificWorld, request: Request) -> ProlificReply:
    """A table of everyone who was there; nothing at all before the first."""
    submissions = world.submissions_of(world.study(request.names["study"]).id)
    if not submissions:
        return ProlificReply(status=204)
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(["Submission id", "Participant id", "Status", "Age", "Sex", "Country of residence"])
    for each in submissions:
        person = world.people[each.person]
        rows.writerow([each.id, person.id, each.status, person.age, person.sex, "United Kingdom"])
    return ProlificReply(text=table.getvalue(), headers={"Content-Type": "text/csv; charset=utf-8"})


HANDLERS: dict[str, Handler] = {
    "studies.create": create,
    "studies.of_project": of_project,
    "studies.read": read,
    "studies.edit": edit,
    "studies.delete": delete,
    "studies.transition": transition,
    "studies.demographics": demographics,
    "costs.calculate": calculate,
}
