"""What the simulated Mechanical Turk remembers. Amounts are Decimal US dollars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from crowd.rehearsal.platform_control import CannotBe

HitStatus = Literal["Assignable", "Unassignable", "Reviewable", "Disposed"]
WorkStatus = Literal["Accepted", "Returned", "Abandoned", "Submitted", "Approved", "Rejected"]
LISTED: frozenset[str] = frozenset({"Submitted", "Approved", "Rejected"})
"""States in which the requester sees an assignment; what is only accepted is never listed."""
GONE: frozenset[str] = frozenset({"Returned", "Abandoned"})


class TurkRefusal(CannotBe):
    """The platform refuses; nothing happened. `code` is the TurkErrorCode; a bare name gets its prefix."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, f"{code}: {message}")
        self.code = code if code.startswith("AWS.") else f"AWS.MechanicalTurk.{code}"


@dataclass(frozen=True, slots=True)
class Specification:
    """The queue that receives the events of a HIT type."""

    destination: str
    version: str
    events: tuple[str, ...]


@dataclass(slots=True, eq=False)
class HitType:
    """What HITs of one kind share."""

    id: str
    group: str
    title: str
    description: str
    keywords: str
    reward: Decimal
    duration_s: int
    approval_s: int
    requirements: tuple[Mapping[str, Any], ...]
    notice: Specification | None = None
    notice_active: bool = False


@dataclass(slots=True, eq=False)
class Work:
    """One assignment accepted by one worker. The id of a returned assignment may be used again for another
    worker."""

    id: str
    worker: str
    hit: TurkHit = field(repr=False)
    accepted: datetime
    deadline: datetime
    status: WorkStatus = "Accepted"
    submitted: datetime | None = None
    ended: datetime | None = None
    approved: datetime | None = None
    rejected: datetime | None = None
    fields: tuple[tuple[str, str], ...] = ()
    answer: str = ""
    feedback: str = ""

    def require(self, status: WorkStatus) -> None:
        """Raises TurkRefusal in any other state."""
        if self.status != status:
            said = wrong_state("Assignment", self.id, status, self.status)
            raise TurkRefusal("InvalidAssignmentState", said)

    @property
    def submission(self) -> str:
        return f"{self.id}:{self.worker}"

    @property
    def approves_at(self) -> datetime | None:
        """When it is approved automatically, unless it is decided before."""
        return self.submitted and self.submitted + timedelta(seconds=self.hit.kind.approval_s)


@dataclass(slots=True, eq=False)
class TurkHit:
    """One HIT and all work that was ever accepted on it, in order."""

    id: str
    kind: HitType
    created: datetime
    expires: datetime
    places: int
    question: str
    annotation: str | None
    work: list[Work] = field(default_factory=list)
    freed: list[str] = field(default_factory=list)
    previews: int = 0
    is_disposed: bool = False
    expiry_told: bool = False
    reviewable_since: datetime | None = None

    def counted(self, *states: WorkStatus) -> int:
        return sum(work.status in states for work in self.work)

    @property
    def held(self) -> int:
        return self.counted("Accepted")

    @property
    def done(self) -> int:
        return self.counted("Submitted", "Approved", "Rejected")

    @property
    def free(self) -> int:
        return max(0, self.places - self.held - self.done)

    def status(self, now: datetime) -> HitStatus:
        if self.is_disposed:
            return "Disposed"
        expired = now >= self.expires
        if self.done >= self.places or (expired and not self.held):
            return "Reviewable"
        return "Unassignable" if expired or not self.free else "Assignable"


@dataclass(slots=True, eq=False)
class TurkPerson:
    """A worker as the platform knows them. `habit` is how they behave; the simulator does nothing with it."""

    id: str
    country: str = "US"
    subdivision: str = ""
    approvals: int = 500
    percent: int = 99
    is_adult: bool = True
    is_master: bool = False
    habit: str = "plain"
    letters: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Transfer:
    """One movement of money, in full: what the worker got, and what the platform took for it."""

    kind: Literal["reward", "bonus"]
    work: Work
    dollars: Decimal
    fee: Decimal
    at: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TurkEvent:
    """Something that happened to a HIT, for its subscribers."""

    kind: str
    at: datetime
    hit_type: str
    hit: str
    assignment: str = ""


@dataclass(slots=True)
class Grant:
    """A qualification of one worker."""

    worker: str
    value: int
    granted: datetime


@dataclass(slots=True)
class QualificationType:
    """A qualification type that the requester made."""

    id: str
    sent: dict[str, Any]
    created: datetime
    grants: dict[str, Grant] = field(default_factory=dict)


def submitted_work(hits: Sequence[TurkHit]) -> list[Work]:
    """Everything that was submitted on these HITs, in the order of submission."""
    submitted = [work for hit in hits for work in hit.work if work.status in LISTED]
    return sorted(submitted, key=lambda work: (work.submitted or work.accepted, work.id))


def wrong_state(what: str, name: str, wanted: str, status: str) -> str:
    return f"This operation can be called with a status of: {wanted}. {what} {name} has the status {status}."
