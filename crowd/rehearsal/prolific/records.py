"""What the simulated platform remembers. Amounts are in minor units of the workspace's currency."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

StudyStatus = Literal[
    "UNPUBLISHED", "SCHEDULED", "PUBLISHING", "ACTIVE", "AWAITING REVIEW", "PAUSED", "COMPLETED"
]  # fmt: skip
SubmissionStatus = Literal[
    "RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED", "REJECTED", "RETURNED",
    "TIMED-OUT", "SCREENED OUT",
]  # fmt: skip
PAID: frozenset[str] = frozenset({"APPROVED", "PARTIALLY APPROVED", "SCREENED OUT"})
FINISHED: frozenset[str] = frozenset({"AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED"})
HOLDING: frozenset[str] = FINISHED | {"RESERVED", "ACTIVE"}
"""States that keep a place of the study: a screened-out person uses a slot of the code, not a place."""
UNDECIDED: frozenset[str] = frozenset({"RESERVED", "ACTIVE", "AWAITING REVIEW"})


class Refused(Exception):
    """The platform refuses; nothing happened. `detail` is a sentence, several, or field -> messages."""

    def __init__(
        self, status: int, detail: str | list[str] | dict[str, list[str]], title: str = "Bad request"
    ) -> None:
        super().__init__(f"{status}: {detail}")
        self.status, self.detail, self.title = status, detail, title


@dataclass(slots=True)
class Person:
    """A participant. `habit` is how they behave (people.py); the simulator itself does nothing with it."""

    id: str
    habit: str = "plain"
    age: str = "31"
    sex: str = "Female"
    letters: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Study:
    """A study as sent by the researcher, and its state. `parts`: the ids of the studies into which weightings
    divide it."""

    id: str
    sent: dict[str, Any]
    created_at: datetime
    status: StudyStatus = "UNPUBLISHED"
    published_at: datetime | None = None
    publish_at: str | None = None
    stop_leads_to: StudyStatus = "COMPLETED"
    slots_used: dict[str, int] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)

    @property
    def places(self) -> int:
        return int(self.sent["total_available_places"])

    @property
    def cents(self) -> int:
        return int(self.sent["reward"])

    @property
    def codes(self) -> list[dict[str, Any]]:
        return list(self.sent.get("completion_codes") or [])

    def code(self, entered: str, actor: str) -> dict[str, Any] | None:
        """The completion code of this text that `actor` may use."""
        for code in self.codes:
            if code["code"] == entered and code.get("actor", "participant") == actor:
                return code
        return None


@dataclass(slots=True)
class Submission:
    """One person's participation in one study. Every payment is recorded separately, so that a second one is
    visible; `shown_as` says of a bonus, by its place, how the list shows it wrongly."""

    id: str
    study: str
    person: str
    started_at: datetime
    status: SubmissionStatus = "ACTIVE"
    part: str = ""
    completed_at: datetime | None = None
    entered_code: str = ""
    return_requested: datetime | None = None
    rewards: list[int] = field(default_factory=list)
    bonuses: list[int] = field(default_factory=list)
    shown_as: dict[int, str] = field(default_factory=dict)
    rejection: tuple[str, str] = ("", "")
    return_reasons: list[str] = field(default_factory=list)

    @property
    def shown(self) -> list[int]:
        """The bonuses as the list shows them."""
        shown: list[int] = []
        for place, cents in enumerate(self.bonuses):
            fault = self.shown_as.get(place, "")
            if fault == "one_sum":
                shown = [sum(shown) + cents]
            else:
                shown.append(cents + 1 if fault == "other_amount" else cents)
        return shown


@dataclass(slots=True)
class Batch:
    """Bonuses that were set up: (submission, cents) each. `paid_count` counts every pay call that took
    effect; on the real platform, too, a second call pays again. `fault`: how the list will show them."""

    id: str
    study: str
    lines: tuple[tuple[str, int], ...]
    fees: Decimal
    vat: Decimal
    paid_count: int = 0
    in_progress: bool = False
    fault: str = ""

    @property
    def cents(self) -> int:
        return sum(cents for _, cents in self.lines)


@dataclass(frozen=True, slots=True)
class Entry:
    """One movement of money, in full: what the person got, and what the platform took for it."""

    kind: Literal["reward", "screen_out", "partial", "bonus"]
    study: str
    submission: str
    cents: int
    fees: Decimal
    vat: Decimal
    at: datetime


@dataclass(slots=True)
class Group:
    """A named list of participants."""

    id: str
    name: str
    description: str
    members: list[str]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """A message between a participant and the researcher."""

    id: str
    sender: str
    recipient: str
    body: str
    study: str
    at: datetime
