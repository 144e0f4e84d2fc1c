"""The routes about submissions and bonuses. Lists and details use different names for the same thing, as
documented."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from crowd.rehearsal.prolific import bonuses, submission_states
from crowd.rehearsal.prolific.api import Handler, ProlificReply, Request, page_reply
from crowd.rehearsal.prolific.records import ProlificRefusal, ProlificSubmission
from crowd.rehearsal.prolific.world import ProlificWorld


def _moment(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None


def row(world: ProlificWorld, submission: ProlificSubmission) -> dict[str, Any]:
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


def detail(world: ProlificWorld, submission: ProlificSubmission) -> dict[str, Any]:
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


def list_submissions(world: ProlificWorld, request: Request) -> ProlificReply:
    submissions = world.submissions_of(world.study(request.query["study"]).id)
    order = request.query.get("ordering", "started_at")
    submissions.sort(key=lambda submission: submission.started_at, reverse=order == "-started_at")
    return page_reply(request, [row(world, submission) for submission in submissions])


def read(world: ProlificWorld, request: Request) -> ProlificReply:
    return ProlificReply(detail(world, world.submission(request.names["submission"])))


def transition(world: ProlificWorld, request: Request) -> ProlificReply:
    submission = world.submission(request.names["submission"])
    submission_states.decide(world, submission, request.body)
    return ProlificReply(detail(world, submission))


def bulk_approve(world: ProlificWorld, request: Request) -> ProlificReply:
    ids = request.body["submission_ids"]
    submissions = [world.submissions[each] for each in ids if each in world.submissions]
    missing = [each for each in ids if each not in world.submissions]
    if missing:
        raise ProlificRefusal(400, [f"No submission for {each}." for each in missing], "Validation error")
    submission_states.bulk_approve(world, submissions)
    return ProlificReply("The request to bulk approve has been made successfully.")


def request_return(world: ProlificWorld, request: Request) -> ProlificReply:
    submission = world.submission(request.names["submission"])
    submission_states.request_return(world, submission, request.body["request_return_reasons"])
    return ProlificReply(
        {
            "id": submission.id,
            "status": submission.status,
            "participant": submission.person,
            "return_requested": _moment(submission.return_requested),
        }
    )


def set_up_bonuses(world: ProlificWorld, request: Request) -> ProlificReply:
    batch = bonuses.set_up(world, request.body["study_id"], request.body["csv_bonuses"])
    return ProlificReply(
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


def pay_bonuses(world: ProlificWorld, request: Request) -> ProlificReply:
    bonuses.pay(world, request.names["batch"])
    return ProlificReply({"message": "The bonuses are being paid."}, 202)


HANDLERS: dict[str, Handler] = {
    "submissions.list": list_submissions,
    "submissions.read": read,
    "submissions.transition": transition,
    "submissions.bulk_approve": bulk_approve,
    "submissions.request_return": request_return,
    "bonuses.create": set_up_bonuses,
    "bonuses.pay": pay_bonuses,
}
