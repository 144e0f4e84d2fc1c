"""The routes about submissions and bonuses. Lists and details use different names for the same thing, as
documented."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from crowd.rehearsal.prolific import bonuses, submission_states
from crowd.rehearsal.prolific.api import Handler, Reply, Request, paged
from crowd.rehearsal.prolific.records import Refused, Submission
from crowd.rehearsal.prolific.world import World

FLAGS: dict[str, frozenset[str]] = {
    "completed": frozenset({"AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED", "REJECTED", "SCREENED OUT"}),
    "returned": frozenset({"RETURNED"}),
    "awaiting_review": frozenset({"AWAITING REVIEW"}),
    "approved": frozenset({"APPROVED"}),
    "active": frozenset({"ACTIVE"}),
    "timeout": frozenset({"TIMED-OUT"}),
    "rejected": frozenset({"REJECTED"}),
    "screened_out": frozenset({"SCREENED OUT"}),
    "completeoractive": frozenset({"ACTIVE", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED"}),
}


def _moment(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None


def row(world: World, submission: Submission) -> dict[str, Any]:
    return {
        "id": submission.id,
        "participant_id": submission.person,
        "status": world.shown(submission.status, submission.id),
        "started_at": _moment(submission.started_at),
        "completed_at": _moment(submission.completed_at),
        "study_code": submission.entered_code or None,
        "has_siblings": False,
        "return_requested": _moment(submission.return_requested),
    }


def detail(world: World, submission: Submission) -> dict[str, Any]:
    return {
        "id": submission.id,
        "participant": submission.person,
        "study_id": submission.part or submission.study,
        "parent_study_id": submission.study if submission.part else None,
        "status": world.shown(submission.status, submission.id),
        "started_at": _moment(submission.started_at),
        "completed_at": _moment(submission.completed_at),
        "entered_code": submission.entered_code or None,
        "bonus_payments": submission.shown,
        "return_requested": _moment(submission.return_requested),
    }


def listed(world: World, request: Request) -> Reply:
    submissions = _filtered(request, world.submissions_of(world.study(request.query["study"]).id))
    order = request.query.get("ordering", "started_at")
    submissions.sort(key=lambda submission: submission.started_at, reverse=order == "-started_at")
    return paged(request, [row(world, submission) for submission in submissions])


def _filtered(request: Request, submissions: list[Submission]) -> list[Submission]:
    wanted = request.query.get("status", "").upper().replace("_", " ")
    if wanted:
        submissions = [each for each in submissions if each.status == wanted]
    for name, states in FLAGS.items():
        if name in request.query:
            yes = request.query[name].lower() in ("true", "1")
            submissions = [each for each in submissions if (each.status in states) == yes]
    if "submitted_from" in request.query:
        start = _day(request.query["submitted_from"])
        submissions = [each for each in submissions if each.completed_at and each.completed_at >= start]
    if "submitted_before" in request.query:
        end = _day(request.query["submitted_before"]) + timedelta(days=1)
        submissions = [each for each in submissions if each.completed_at and each.completed_at < end]
    return submissions


def _day(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%d/%m/%Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise Refused(400, f"{text} is no date.", "Validation error") from error


def read(world: World, request: Request) -> Reply:
    return Reply(detail(world, world.submission(request.names["submission"])))


def transition(world: World, request: Request) -> Reply:
    submission = world.submission(request.names["submission"])
    submission_states.decide(world, submission, request.body)
    return Reply(detail(world, submission))


def bulk_approve(world: World, request: Request) -> Reply:
    body = request.body
    if "submission_ids" in body:
        ids = body["submission_ids"]
        submissions = [world.submissions[each] for each in ids if each in world.submissions]
        missing = [each for each in ids if each not in world.submissions]
    else:
        of_study = world.submissions_of(world.study(body["study_id"]).id)
        ids = body["participant_ids"]
        submissions = [each for each in of_study if each.person in set(ids)]
        missing = [each for each in ids if each not in {sub.person for sub in of_study}]
    if missing:
        raise Refused(400, [f"No submission for {each}." for each in missing], "Validation error")
    submission_states.bulk_approve(world, submissions)
    return Reply("The request to bulk approve has been made successfully.")


def request_return(world: World, request: Request) -> Reply:
    submission = world.submission(request.names["submission"])
    submission_states.request_return(world, submission, request.body["request_return_reasons"])
    return Reply(
        {
            "id": submission.id,
            "status": submission.status,
            "participant": submission.person,
            "return_requested": _moment(submission.return_requested),
        }
    )


def set_up_bonuses(world: World, request: Request) -> Reply:
    batch = bonuses.set_up(world, request.body["study_id"], request.body["csv_bonuses"])
    return Reply(
        {
            "id": batch.id,
            "study": batch.study,
            "amount": batch.cents,
            "fees": batch.fees,
            "vat": batch.vat,
            "total_amount": batch.cents + batch.fees + batch.vat,
        },
        201,
    )


def pay_bonuses(world: World, request: Request) -> Reply:
    bonuses.pay(world, request.names["batch"])
    return Reply({"message": "The bonuses are being paid."}, 202)


HANDLERS: dict[str, Handler] = {
    "submissions.list": listed,
    "submissions.read": read,
    "submissions.transition": transition,
    "submissions.bulk_approve": bulk_approve,
    "submissions.request_return": request_return,
    "bonuses.create": set_up_bonuses,
    "bonuses.pay": pay_bonuses,
}
