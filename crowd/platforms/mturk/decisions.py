"""Decisions on submissions. A decision is made once: an earlier decision is read and compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crowd.platforms.base import (
    Line,
    ListedSubmission,
    PlatformError,
    PlatformPosting,
    Settlement,
    SubmissionState,
    Unread,
    UnsupportedRequest,
)
from crowd.platforms.mturk.hits import GONE
from crowd.platforms.mturk.question_xml import completion_of
from crowd.platforms.mturk.wire import TurkError, TurkWire
from crowd.platforms.untrusted_text import printable

STATES: dict[str, SubmissionState] = {"Submitted": "awaiting", "Approved": "approved", "Rejected": "rejected"}
SUBMISSION = re.compile(r"([A-Z0-9]{1,64}):(A[A-Z0-9]{1,63})")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
FEEDBACK_MAX, RAW_MAX = 1024, 40
NOT_THERE = "assignmentdoesnotexist"


class Decisions:
    """Reads, approves and rejects submissions, for one account."""

    def __init__(self, wire: TurkWire) -> None:
        self.wire = wire

    def listed(self, hit_id: str, base_cents: int) -> Iterator[ListedSubmission | Unread]:
        """The submissions of a HIT over all pages; none for a HIT that Mechanical Turk has deleted. Approving
        paid `base_cents`."""
        try:
            for raw in self.wire.pages("ListAssignmentsForHIT", "Assignments", HITId=hit_id):
                yield listed_of(raw, base_cents)
        except TurkError as error:
            if error.code != GONE:
                raise

    def submission(self, posted: PlatformPosting, submission: str) -> ListedSubmission | Unread | None:
        """One submission, which Mechanical Turk shows once it is submitted; None before, or if it is another
        person's or another study's."""
        assignment_id, person = ids_of(submission)
        try:
            raw = self.wire.call("GetAssignment", AssignmentId=assignment_id)["Assignment"]
        except TurkError as error:
            if error.code == NOT_THERE:
                return None
            raise
        if raw["WorkerId"] != person or raw["HITId"] not in posted.facts["hits"]:
            return None
        return listed_of(raw, int(posted.facts["base_cents"]))

    def approve(self, posted: PlatformPosting, submissions: Sequence[str]) -> list[Settlement]:
        """One after the other. Once Mechanical Turk cannot be reached, the rest is not tried."""
        done: list[Settlement] = []
        for submission in submissions:
            try:
                done.append(self._approve_submission(posted, submission))
            except PlatformError as error:
                done.append(error.settlement(submission))
                if not error.permanent:
                    break
        return [*done, *(Settlement(rest, "failed", done[-1].message) for rest in submissions[len(done) :])]

    def reject(self, posted: PlatformPosting, submission: str, message: str, category: str) -> None:
        """`category` has no counterpart here; the person reads the message."""
        if not message.strip() or len(message) > FEEDBACK_MAX or CONTROL.search(message):
            raise UnsupportedRequest(
                f"The reason for a rejection must have 1 to {FEEDBACK_MAX} characters and no control "
                f"characters; this one has {len(message)}."
            )
        if self._decide(posted, submission, "Rejected", RequesterFeedback=message) != "Rejected":
            raise PlatformError(
                "This work was approved before; it can no longer be rejected.", permanent=True
            )

    def _approve_submission(self, posted: PlatformPosting, submission: str) -> Settlement:
        status = self._decide(posted, submission, "Approved")
        if status == "Approved":
            return Settlement(submission, "sent")
        return Settlement(submission, "failed", f"Mechanical Turk has this work as {status.lower()}.")

    def _decide(self, posted: PlatformPosting, submission: str, wanted: str, **members: str) -> str:
        """Decides about submitted work; the state that it is in then, perhaps by an earlier decision."""
        status = self._status(posted, submission)
        if status != "Submitted":
            return status
        operation = {"Approved": "ApproveAssignment", "Rejected": "RejectAssignment"}[wanted]
        try:
            self.wire.call(operation, AssignmentId=ids_of(submission)[0], **members)
            return wanted
        except TurkError:
            status = self._status(posted, submission)
            if status == "Submitted":
                raise
            return status

    def _status(self, posted: PlatformPosting, submission: str) -> str:
        """The state of an assignment. Raises PlatformError if it is another person's or another study's: the
        id of a returned assignment may be used again for the next person."""
        assignment_id, person = ids_of(submission)
        assignment = self.wire.call("GetAssignment", AssignmentId=assignment_id).get("Assignment") or {}
        if assignment.get("WorkerId") != person or assignment.get("HITId") not in posted.facts["hits"]:
            raise PlatformError(
                "Mechanical Turk has this work under another person or study; nothing was sent.",
                permanent=True,
            )
        return printable(str(assignment.get("AssignmentStatus")))


def listed_of(raw: Mapping[str, Any], base_cents: int = 0) -> ListedSubmission | Unread:
    """A boto3 Assignment as a `ListedSubmission`; approving paid `base_cents`."""
    submission, status = submission_of(raw), raw.get("AssignmentStatus")
    if not submission:
        return Unread("Mechanical Turk lists an assignment whose id or worker is missing or unreadable.")
    if not isinstance(status, str):
        return Unread("Mechanical Turk lists an assignment without a status.", submission)
    state, answer = STATES.get(status, "unknown"), raw.get("Answer")
    return ListedSubmission(
        submission=submission,
        person=raw["WorkerId"],
        state=state,
        raw=printable(status)[:RAW_MAX],
        code=completion_of(answer) if isinstance(answer, str) else "",
        started_at=_utc(raw.get("AcceptTime")),
        completed_at=_utc(raw.get("SubmitTime")),
        lines=(Line("reward", base_cents),) if state == "approved" and base_cents else (),
    )


def submission_of(raw: Mapping[str, Any]) -> str:
    """Assignment and worker of a row, as a submission is written; empty if either cannot be read."""
    submission = f"{raw.get('AssignmentId')}:{raw.get('WorkerId')}"
    return submission if SUBMISSION.fullmatch(submission) else ""


def ids_of(submission: str) -> tuple[str, str]:
    """Assignment and person of a submission. Raises PlatformError if it has another form."""
    match = SUBMISSION.fullmatch(submission)
    if not match:
        raise PlatformError(
            "A submission is not written as Mechanical Turk's: ASSIGNMENT:WORKER.", permanent=True
        )
    return match[1], match[2]


def _utc(value: datetime | None) -> datetime | None:
    """boto3 gives times in this machine's zone."""
    return value.astimezone(UTC) if value else None
