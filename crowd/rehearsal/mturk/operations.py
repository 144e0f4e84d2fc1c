"""Every operation of the service: those that are simulated, and a clear refusal of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crowd.rehearsal.mturk import hits, people, qualifications, work
from crowd.rehearsal.mturk.limits import Members
from crowd.rehearsal.mturk.model import check_reply, read
from crowd.rehearsal.mturk.records import Refused
from crowd.rehearsal.mturk.world import World

Operation = Callable[[World, Members], dict[str, Any]]
OPERATIONS: dict[str, Operation] = {
    "ApproveAssignment": work.approve_assignment,
    "AssociateQualificationWithWorker": qualifications.associate,
    "CreateAdditionalAssignmentsForHIT": hits.create_additional_assignments,
    "CreateHITType": hits.create_hit_type,
    "CreateHITWithHITType": hits.create_hit_with_hit_type,
    "CreateQualificationType": qualifications.create_qualification_type,
    "GetAccountBalance": work.get_account_balance,
    "GetAssignment": work.get_assignment,
    "GetHIT": hits.get_hit,
    "ListAssignmentsForHIT": work.list_assignments,
    "ListBonusPayments": work.list_bonus_payments,
    "ListHITs": hits.list_hits,
    "ListQualificationTypes": qualifications.list_qualification_types,
    "ListWorkersWithQualificationType": qualifications.list_workers,
    "NotifyWorkers": people.notify_workers,
    "RejectAssignment": work.reject_assignment,
    "SendBonus": work.send_bonus,
    "UpdateExpirationForHIT": hits.update_expiration,
    "UpdateNotificationSettings": people.update_notification_settings,
}


def run(world: World, operation: str, body: bytes) -> dict[str, Any]:
    """Checks a request against the service's description and carries it out. Raises Refused.

    `operation` is one of the service's own.
    """
    members = read(operation, body)
    if operation not in OPERATIONS:
        raise Refused("NotSimulated", f"The simulator does not carry out {operation}.")
    reply = OPERATIONS[operation](world, members)
    check_reply(operation, reply)
    return reply
