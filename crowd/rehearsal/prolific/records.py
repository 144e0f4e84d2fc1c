"""What the simulated platform remembers. Amounts are in minor units of the workspace's currency."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from crowd.rehearsal.platform_control import CannotBe

StudyStatus = Literal[
    "UNPUBLISHED", "SCHEDULED", "PUBLISHING", "ACTIVE", "AWAITING REVIEW", "PAUSED", "COMPLETED"
]  # fmt: skip
SubmissionStatus = Literal[
    "RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "REJECTED", "RETURNED", "TIMED-OUT", "SCREENED OUT",
]  # fmt: skip
FINISHED: frozenset[str] = frozenset({"AWAITING REVIEW", "APPROVED"})
HOLDING: frozenset[str] = FINISHED | {"RESERVED", "ACTIVE"}
"""States that keep a place of the study: a screened-out person uses a slot of the code, not a place."""
UNDECIDED: frozenset[str] = frozenset({"RESERVED", "ACTIVE", "AWAITING REVIEW"})


class ProlificRefusal(CannotBe):
    """The platform refuses; nothing happened. `detail` is a sentence, several, or field -> messages."""

    def __init__(
        self, status: int, detail: str | list[str] | dict[str, list[str]], title: str = "Bad request"
    ) -> None:
        super().__init__(detail, f"{status}: {detail}")
        self.status, self.title = status, title


def invalid(said: str) -> ProlificRefusal:
    """The state does not allow it."""
    return ProlificRefusal(400, said, "Invalid transition")


def too_poor(what: str) -> ProlificRefusal:
    return ProlificRefusal(400, f"Your balance is not sufficient {what}.", "Insufficient funds")


def wrong_field(name: str, said: str) -> ProlificRefusal:
    return ProlificRefusal(400, {name: [said]})


@dataclass(slots=True)
class ProlificPerson:
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

    def code(self, entered: str) -> dict[str, Any] | None:
        """The completion code of this text that participants may use."""
        for code in self.codes:
            if code["code"] == entered and code.get("actor", "participant") == "participant":
                return code
        return None


@dataclass(slots=True)
class ProlificSubmission:
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
class Movement:
    """One movement of money, in full: what the person got, and what the platform took for it."""

    kind: Literal["reward", "screen_out", "bonus"]
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
class ProlificMessage:
    """A message between a participant and the researcher."""

    id: str
    sender: str
    recipient: str
    body: str
    study: str
    at: datetime
