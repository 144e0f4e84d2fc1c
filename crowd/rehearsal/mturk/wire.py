"""How the platform writes its replies: HITs, assignments, bonuses, pages of a list."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from crowd.rehearsal.mturk.purse import CENT
from crowd.rehearsal.mturk.records import Grant, QualificationType, Transfer, TurkHit, Work
from crowd.rehearsal.mturk.request_rules import refuse
from crowd.rehearsal.mturk.world import TurkWorld

PAGE = 10
"""Entries of a page if the request names no MaxResults."""
TOKEN_SHARE = 0.25
"""A last page that is not full still carries a token this often; a full one always does."""
Thing = TypeVar("Thing")
Json = dict[str, Any]


def dollars(amount: Decimal) -> str:
    return str(amount.quantize(CENT))


def epoch(at: datetime) -> float:
    """Times leave as seconds since 1970."""
    return round(at.timestamp(), 3)


def without_nothing(**members: Any) -> Json:
    """Members that have no value are left out, as the platform does."""
    return {name: value for name, value in members.items() if value is not None}


def hit_json(hit: TurkHit, now: datetime) -> Json:
    kind = hit.kind
    return without_nothing(
        HITId=hit.id,
        HITTypeId=kind.id,
        HITGroupId=kind.group,
        CreationTime=epoch(hit.created),
        Title=kind.title,
        Description=kind.description,
        Question=hit.question,
        Keywords=kind.keywords or None,
        HITStatus=hit.status(now),
        MaxAssignments=hit.places,
        Reward=dollars(kind.reward),
        AutoApprovalDelayInSeconds=kind.approval_s,
        Expiration=epoch(hit.expires),
        AssignmentDurationInSeconds=kind.duration_s,
        RequesterAnnotation=hit.annotation,
        QualificationRequirements=[dict(requirement) for requirement in kind.requirements],
        HITReviewStatus="NotReviewed",
        NumberOfAssignmentsPending=hit.held + hit.previews,
        NumberOfAssignmentsAvailable=hit.free,
        NumberOfAssignmentsCompleted=hit.counted("Approved", "Rejected"),
    )


def work_json(work: Work) -> Json:
    approves = work.approves_at
    return without_nothing(
        AssignmentId=work.id,
        WorkerId=work.worker,
        HITId=work.hit.id,
        AssignmentStatus=work.status,
        AutoApprovalTime=epoch(approves) if approves else None,
        AcceptTime=epoch(work.accepted),
        SubmitTime=epoch(work.submitted) if work.submitted else None,
        ApprovalTime=epoch(work.approved) if work.approved else None,
        RejectionTime=epoch(work.rejected) if work.rejected else None,
        Deadline=epoch(work.deadline),
        Answer=work.answer,
        RequesterFeedback=work.feedback or None,
    )


def bonus_json(paid: Transfer) -> Json:
    return {
        "WorkerId": paid.work.worker,
        "BonusAmount": dollars(paid.dollars),
        "AssignmentId": paid.work.id,
        "Reason": paid.reason,
        "GrantTime": epoch(paid.at),
    }


def qualification_json(kind: QualificationType, grant: Grant) -> Json:
    return {
        "QualificationTypeId": kind.id,
        "WorkerId": grant.worker,
        "GrantTime": epoch(grant.granted),
        "IntegerValue": grant.value,
        "Status": "Granted",
    }


def qualification_type_json(kind: QualificationType) -> Json:
    shown = ("Name", "Description", "Keywords", "QualificationTypeStatus")
    return {
        "QualificationTypeId": kind.id,
        "CreationTime": epoch(kind.created),
        "IsRequestable": False,
        **{name: kind.sent[name] for name in shown if name in kind.sent},
    }


def page(
    world: TurkWorld,
    operation: str,
    members: Mapping[str, Any],
    name: str,
    things: Sequence[Thing],
    write: Callable[[Thing], Json],
) -> Json:
    """One page of a list. The last page with entries may carry a token that leads to an empty one."""
    scope = f"{operation}|{members.get('HITId', '')}|{members.get('AssignmentId', '')}"
    start = _start(members["NextToken"], scope) if "NextToken" in members else 0
    size = int(members.get("MaxResults", PAGE))
    shown = things[start : start + size]
    shown_page: Json = {"NumResults": len(shown), name: [write(thing) for thing in shown]}
    more = start + size < len(things)
    if more or len(shown) == size or (shown and world.paging.random() < TOKEN_SHARE):
        shown_page["NextToken"] = base64.b64encode(f"{start + len(shown)}|{scope}".encode()).decode()
    return shown_page


def _start(token: str, scope: str) -> int:
    try:
        start, _, rest = base64.b64decode(token, validate=True).decode().partition("|")
        if rest == scope:
            return int(start)
    except (binascii.Error, ValueError):
        pass
    raise refuse("The NextToken is not one of this list.")
