"""Every operation of the service that is simulated; a function has the name of the client's method."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from crowd.rehearsal.mturk import request_rules as ask
from crowd.rehearsal.mturk.eligibility import check_requirements
from crowd.rehearsal.mturk.notices import VERSIONS
from crowd.rehearsal.mturk.purse import CENT
from crowd.rehearsal.mturk.question_xml import read_question
from crowd.rehearsal.mturk.records import (
    Grant,
    HitType,
    QualificationType,
    Specification,
    TurkRefusal,
    submitted_work,
)
from crowd.rehearsal.mturk.request_rules import Members
from crowd.rehearsal.mturk.wire import (
    Json,
    bonus_json,
    dollars,
    hit_json,
    page,
    qualification_json,
    qualification_type_json,
    work_json,
)
from crowd.rehearsal.mturk.world import TurkWorld

# HITs ------------------------------------------------------------------------------------------------------


def create_hit_type(world: TurkWorld, members: Members) -> Json:
    requirements = tuple(members.get("QualificationRequirements", ()))
    check_requirements(requirements, world.qualifications)
    kind = world.hit_type(
        title=ask.text(members, "Title", ask.TITLE, 1),
        description=ask.text(members, "Description", ask.DESCRIPTION, 1),
        keywords=ask.text(members, "Keywords", ask.KEYWORDS),
        reward=ask.money(members, "Reward"),
        duration_s=ask.number(members, "AssignmentDurationInSeconds", ask.SECONDS),
        approval_s=ask.number(members, "AutoApprovalDelayInSeconds", ask.APPROVAL, ask.APPROVAL[1]),
        requirements=requirements,
    )
    return {"HITTypeId": kind.id}


def create_hit_with_hit_type(world: TurkWorld, members: Members) -> Json:
    token = members.get("UniqueRequestToken")
    said = "A HIT with this UniqueRequestToken already exists. The HITId of the existing HIT is"
    world.refuse_again("hit", token, "HitAlreadyExists", said)
    places = ask.number(members, "MaxAssignments", ask.PLACES, 1)
    lifetime_s = ask.number(members, "LifetimeInSeconds", ask.SECONDS)
    ask.text(members, "RequesterAnnotation", ask.ANNOTATION)
    question = ask.text(members, "Question", ask.QUESTION_BYTES, 1)
    if len(question.encode()) > ask.QUESTION_BYTES:
        raise ask.refuse(f"Question must have at most {ask.QUESTION_BYTES} bytes.")
    read_question(question)
    kind = _known_type(world, members)
    hit = world.create_hit(kind, places, lifetime_s, question, members.get("RequesterAnnotation"))
    world.remember("hit", token, hit.id)
    return {"HIT": hit_json(hit, world.now)}


def _known_type(world: TurkWorld, members: Members) -> HitType:
    kind = world.types.get(members["HITTypeId"])
    if kind is None:
        raise TurkRefusal("HITTypeDoesNotExist", f"HITType {members['HITTypeId']} does not exist.")
    check_requirements(kind.requirements, world.qualifications)
    return kind


def get_hit(world: TurkWorld, members: Members) -> Json:
    return {"HIT": hit_json(world.hit(members["HITId"]), world.now)}


def list_hits(world: TurkWorld, members: Members) -> Json:
    """Newest first."""
    hits = [hit for hit in reversed(world.hits.values()) if not hit.is_disposed]
    return page(world, "ListHITs", members, "HITs", hits, lambda hit: hit_json(hit, world.now))


def update_expiration_for_hit(world: TurkWorld, members: Members) -> Json:
    """The time comes as seconds since 1970, as the client writes it."""
    hit, value = world.hit(members["HITId"]), members["ExpireAt"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise ask.refuse("ExpireAt must be seconds since 1970.")
    expires = datetime.fromtimestamp(value, UTC)
    if expires > world.now + timedelta(seconds=ask.SECONDS[1]):
        raise ask.refuse("ExpireAt must lie within 365 days.")
    world.expire_at(hit, expires)
    return {}


def create_additional_assignments_for_hit(world: TurkWorld, members: Members) -> Json:
    hit, token = world.hit(members["HITId"]), members.get("UniqueRequestToken")
    said = "Assignments were already added with this UniqueRequestToken. The request ID was"
    world.refuse_again("places", token, "AssignmentAlreadyExists", said)
    world.add_places(hit, ask.number(members, "NumberOfAdditionalAssignments", ask.PLACES))
    world.remember("places", token, world.new_id("", 32))
    return {}


# Assignments and money -------------------------------------------------------------------------------------


def list_assignments_for_hit(world: TurkWorld, members: Members) -> Json:
    states = members.get("AssignmentStatuses") or ["Submitted", "Approved", "Rejected"]
    works = [work for work in submitted_work([world.hit(members["HITId"])]) if work.status in states]
    return page(world, "ListAssignmentsForHIT", members, "Assignments", works, work_json)


def get_assignment(world: TurkWorld, members: Members) -> Json:
    work = world.work(members["AssignmentId"])
    return {"Assignment": work_json(work), "HIT": hit_json(work.hit, world.now)}


def approve_assignment(world: TurkWorld, members: Members) -> Json:
    world.approve(world.work(members["AssignmentId"]))
    return {}


def reject_assignment(world: TurkWorld, members: Members) -> Json:
    feedback = ask.text(members, "RequesterFeedback", ask.FEEDBACK, 1)
    world.reject(world.work(members["AssignmentId"]), feedback)
    return {}


def send_bonus(world: TurkWorld, members: Members) -> Json:
    """Pays at once. The same token again is an error within a day; later it pays again."""
    token = members.get("UniqueRequestToken")
    said = "A bonus was already granted with this UniqueRequestToken. The request ID was"
    world.refuse_again("bonus", token, "BonusAlreadyExists", said)
    work = world.work(members["AssignmentId"])
    if work.worker != members["WorkerId"]:
        raise ask.refuse(f"Worker {members['WorkerId']} did not submit assignment {work.id}.")
    world.bonus(work, ask.money(members, "BonusAmount", CENT), ask.text(members, "Reason", ask.REASON, 1))
    world.remember("bonus", token, world.new_id("", 32))
    return {}


def list_bonus_payments(world: TurkWorld, members: Members) -> Json:
    if ask.one_of(members, "HITId", "AssignmentId") == "HITId":
        works = submitted_work([world.hit(members["HITId"])])
    else:
        works = [world.work(members["AssignmentId"])]
    bonuses = [paid for paid in world.listed_bonuses if paid.work in works]
    return page(world, "ListBonusPayments", members, "BonusPayments", bonuses, bonus_json)


def get_account_balance(world: TurkWorld, members: Members) -> Json:
    return {"AvailableBalance": dollars(world.purse.balance), "OnHoldBalance": "0.00"}


# Qualifications --------------------------------------------------------------------------------------------


def create_qualification_type(world: TurkWorld, members: Members) -> Json:
    name = ask.text(members, "Name", 200, 1)
    ask.text(members, "Description", ask.DESCRIPTION, 1)
    ask.text(members, "Keywords", ask.KEYWORDS)
    if any(kind.sent["Name"] == name for kind in world.qualifications.values()):
        raise TurkRefusal(
            "QualificationTypeAlreadyExists", f"You have already created a type named {name!r}."
        )
    kind = QualificationType(world.new_id("3", 30), dict(members), world.now)
    world.qualifications[kind.id] = kind
    return {"QualificationType": qualification_type_json(kind)}


def _own_type(world: TurkWorld, members: Members) -> QualificationType:
    kind = world.qualifications.get(members["QualificationTypeId"])
    if kind is None:
        named = members["QualificationTypeId"]
        raise TurkRefusal("QualificationTypeDoesNotExist", f"QualificationType {named} does not exist.")
    return kind


def list_qualification_types(world: TurkWorld, members: Members) -> Json:
    """Types of the caller; none can be requested here, and those of the system have no page."""
    words = str(members.get("Query", "")).lower()
    searched = ("Name", "Description", "Keywords")
    ours = [
        kind
        for kind in world.qualifications.values()
        if not members["MustBeRequestable"]
        and words in " ".join(str(kind.sent.get(name, "")) for name in searched).lower()
    ]
    return page(world, "ListQualificationTypes", members, "QualificationTypes", ours, qualification_type_json)


def associate_qualification_with_worker(world: TurkWorld, members: Members) -> Json:
    """Grants or changes a qualification. A notice goes out unless SendNotification is false."""
    kind, person = _own_type(world, members), world.person(members["WorkerId"])
    kind.grants[person.id] = Grant(person.id, int(members.get("IntegerValue", 1)), world.now)
    if members.get("SendNotification", True):
        person.letters.append(("Qualification assigned", str(kind.sent["Name"])))
    return {}


def list_workers_with_qualification_type(world: TurkWorld, members: Members) -> Json:
    kind = _own_type(world, members)
    grants = list(kind.grants.values()) if members.get("Status", "Granted") == "Granted" else []
    operation, write = "ListWorkersWithQualificationType", lambda grant: qualification_json(kind, grant)
    return page(world, operation, members, "Qualifications", grants, write)


# Workers ---------------------------------------------------------------------------------------------------


def notify_workers(world: TurkWorld, members: Members) -> Json:
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


def _unreachable(world: TurkWorld, worker: str) -> tuple[str, str]:
    if worker not in world.people:
        return "HardFailure", f"Worker {worker} does not exist."
    if not any(work.status in ("Approved", "Rejected") for work in world.submitted_by(worker)):
        return "HardFailure", "You have not approved or rejected work from this worker."
    if worker in world.soft_failing:
        world.soft_failing.discard(worker)
        return "SoftFailure", "The message could not be sent at this time."
    return "", ""


def update_notification_settings(world: TurkWorld, members: Members) -> Json:
    kind = _known_type(world, members)
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
    """Of a queue: it is the one receiver that is simulated."""
    destination = sent["Destination"]
    if sent["Version"] not in VERSIONS:
        raise ask.refuse(f"Version must be one of {', '.join(VERSIONS)}.")
    if sent["Transport"] != "SQS" or urlsplit(destination).scheme not in ("http", "https"):
        raise TurkRefusal(
            "InvalidTransportEndpoint", f"{destination} is no destination for {sent['Transport']}."
        )
    if "Ping" in sent["EventTypes"]:
        raise ask.refuse("Ping is for tests of a specification alone.")
    return Specification(destination, sent["Version"], tuple(sent["EventTypes"]))


OPERATIONS: dict[str, Callable[[TurkWorld, Members], Json]] = {
    "ApproveAssignment": approve_assignment,
    "AssociateQualificationWithWorker": associate_qualification_with_worker,
    "CreateAdditionalAssignmentsForHIT": create_additional_assignments_for_hit,
    "CreateHITType": create_hit_type,
    "CreateHITWithHITType": create_hit_with_hit_type,
    "CreateQualificationType": create_qualification_type,
    "GetAccountBalance": get_account_balance,
    "GetAssignment": get_assignment,
    "GetHIT": get_hit,
    "ListAssignmentsForHIT": list_assignments_for_hit,
    "ListBonusPayments": list_bonus_payments,
    "ListHITs": list_hits,
    "ListQualificationTypes": list_qualification_types,
    "ListWorkersWithQualificationType": list_workers_with_qualification_type,
    "NotifyWorkers": notify_workers,
    "RejectAssignment": reject_assignment,
    "SendBonus": send_bonus,
    "UpdateExpirationForHIT": update_expiration_for_hit,
    "UpdateNotificationSettings": update_notification_settings,
}
