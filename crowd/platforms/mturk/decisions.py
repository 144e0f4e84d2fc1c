"""Decisions on submitted work. A decision is made once: what was decided before is read and compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crowd.platforms.base import PlatformError, Posted, Settled, Unsupported, Work, WorkState
from crowd.platforms.mturk.hits import GONE
from crowd.platforms.mturk.question import completion_of
from crowd.platforms.mturk.wire import TurkError, Wire

STATES: dict[str, WorkState] = {"Submitted": "awaiting", "Approved": "approved", "Rejected": "rejected"}
SUBMISSION = re.compile(r"([A-Z0-9]{1,64}):(A[A-Z0-9]{1,63})")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
FEEDBACK_MAX, RAW_MAX = 1024, 40


class Decisions:
    """Reads, approves and rejects work, for one account."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def work(self, hit_id: str) -> Iterator[Work]:
        """The submitted work of a HIT over all pages; nothing of one that Mechanical Turk forgot."""
        try:
            for raw in self.wire.pages("ListAssignmentsForHIT", "Assignments", HITId=hit_id):
                yield work_of(raw)
        except TurkError as error:
            if error.code != GONE:
                raise

    def approve(self, posted: Posted, submissions: Sequence[str]) -> list[Settled]:
        """One after the other. Once Mechanical Turk cannot be reached, the rest is not tried."""
        found: list[Settled] = []
        for submission in submissions:
            try:
                found.append(self._approved(posted, submission))
            except PlatformError as error:
                found.append(Settled(submission, "unknown" if error.uncertain else "failed", str(error)))
                if not error.permanent:
                    break
        return [*found, *(Settled(one, "failed", found[-1].message) for one in submissions[len(found) :])]

    def reject(self, posted: Posted, submission: str, message: str) -> None:
        if not message.strip() or len(message) > FEEDBACK_MAX or CONTROL.search(message):
            raise Unsupported(
                f"The reason for a rejection must have 1 to {FEEDBACK_MAX} characters and no control "
                f"characters; this one has {len(message)}."
            )
        status = self._status(posted, submission)
        if status == "Submitted":
            try:
                self.wire.call(
                    "RejectAssignment", AssignmentId=ids_of(submission)[0], RequesterFeedback=message
                )
                return
            except TurkError:
                status = self._status(posted, submission)
                if status == "Submitted":
                    raise
        if status != "Rejected":
            raise PlatformError(
                "This work was approved before; it can no longer be rejected.", permanent=True
            )

    def _approved(self, posted: Posted, submission: str) -> Settled:
        status = self._status(posted, submission)
        if status == "Submitted":
            try:
                self.wire.call("ApproveAssignment", AssignmentId=ids_of(submission)[0])
                return Settled(submission, "sent")
            except TurkError:
                status = self._status(posted, submission)
                if status == "Submitted":
                    raise
        if status == "Approved":
            return Settled(submission, "sent")
        return Settled(submission, "failed", f"Mechanical Turk has this work as {status.lower()}.")

    def _status(self, posted: Posted, submission: str) -> str:
        """The state of a piece of work. Raises PlatformError where it is somebody else's or another study's:
        an id that was given back may come again for the next person."""
        assignment_id, person = ids_of(submission)
        found = self.wire.call("GetAssignment", AssignmentId=assignment_id)["Assignment"]
        if found["WorkerId"] != person or found["HITId"] not in posted.facts["hits"]:
            raise PlatformError(
                "Mechanical Turk has this work under another person or study; nothing was sent.",
                permanent=True,
            )
        return str(found["AssignmentStatus"])


def work_of(raw: Mapping[str, Any]) -> Work:
    """An Assignment as we speak of it."""
    status = str(raw.get("AssignmentStatus", ""))
    return Work(
        submission=f"{raw['AssignmentId']}:{raw['WorkerId']}",
        person=raw["WorkerId"],
        state=STATES.get(status, "unknown"),
        raw=status[:RAW_MAX],
        code=completion_of(raw.get("Answer") or ""),
        started_at=_utc(raw.get("AcceptTime")),
        completed_at=_utc(raw.get("SubmitTime")),
    )


def ids_of(submission: str) -> tuple[str, str]:
    """Assignment and person of a submission. Raises PlatformError where it is not written so."""
    found = SUBMISSION.fullmatch(submission)
    if not found:
        raise PlatformError(
            "A submission is not written as Mechanical Turk's: ASSIGNMENT:WORKER.", permanent=True
        )
    return found[1], found[2]


def _utc(value: datetime | None) -> datetime | None:
    """boto3 gives times in this machine's zone."""
    return value.astimezone(UTC) if value else None
