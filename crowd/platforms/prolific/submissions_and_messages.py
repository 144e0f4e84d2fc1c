"""What Prolific's lists say about submissions and messages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeGuard

from crowd.platforms.base import (
    Account,
    IncomingMessage,
    Line,
    LineKind,
    ListedSubmission,
    PlatformError,
    PlatformPosting,
    SubmissionState,
    Unread,
)
from crowd.platforms.prolific.arrival_and_exit import ID
from crowd.platforms.prolific.wire import ProlificError, ProlificWire, segment
from crowd.platforms.untrusted_text import printable

REWARD, SCREEN_OUT = "reward", "screen_out"
"""Entries of Posted.facts: what approving pays, and what Prolific itself pays for being screened out, in
cents."""
NEWEST = 20
"""So many of the newest submissions show which parts a weighted study has."""
LAYOUT = "\n\t"
"""What a message may hold beside printable characters."""
NOT_THERE = (400, 404)
"""How Prolific answers to an id that is none of its submissions."""
STATES: dict[str, SubmissionState] = {
    "RESERVED": "reserved",
    "ACTIVE": "active",
    "AWAITING REVIEW": "awaiting",
    "APPROVED": "approved",
    "PARTIALLY APPROVED": "partly_approved",
    "REJECTED": "rejected",
    "RETURNED": "returned",
    "TIMED OUT": "timed_out",
    "SCREENED OUT": "screened_out",
}


def state_of(raw: object) -> SubmissionState:
    """A status in our words; a passing or new one is `unknown`."""
    return STATES.get(re.sub(r"[\s_-]+", " ", str(raw).upper()).strip(), "unknown")


class Submissions:
    """Reads the submissions and messages of one account."""

    def __init__(self, wire: ProlificWire, account: Account) -> None:
        self.wire, self.account = wire, account

    def submissions(self, posted: PlatformPosting) -> Iterator[ListedSubmission | Unread]:
        """Every submission once. The oldest come first, so that newcomers do not move the pages."""
        seen: set[str] = set()
        params = {"study": posted.external_id, "ordering": "started_at"}
        for row in self.wire.rows("submissions/", params):
            listed = _read_row(row, posted)
            if not isinstance(listed, Unread):
                if listed.submission in seen:
                    continue
                seen.add(listed.submission)
            yield listed

    def submission(self, posted: PlatformPosting, submission: str) -> ListedSubmission | Unread | None:
        """One submission of this study; None if Prolific knows none of that id, or it belongs to another
        study. Of a study that Prolific has split, the detail names the whole as the parent."""
        try:
            data = self._read(submission)
        except ProlificError as refused:
            if refused.status in NOT_THERE:
                return None
            raise
        if posted.external_id not in (data.get("study_id"), data.get("parent_study_id")):
            return None
        renamed = {"participant_id": data.get("participant"), "study_code": data.get("entered_code")}
        return _read_row({**data, **renamed}, posted)

    def detail(self, posted: PlatformPosting, submission: str) -> dict[str, Any]:
        """One submission in full; refused if it belongs neither to this study nor to a part of it."""
        data = self._read(submission)
        if posted.external_id not in (data.get("study_id"), data.get("parent_study_id")):
            raise PlatformError("The submission belongs to another study on Prolific.", permanent=True)
        return data

    def _read(self, submission: str) -> dict[str, Any]:
        data = self.wire.get(f"submissions/{segment(submission)}/")
        if not isinstance(data, dict) or data.get("id") != submission:
            raise PlatformError("Prolific's answer holds another submission than asked for.", permanent=True)
        return data

    def parts_of(self, study_id: str, known: Sequence[str], count: int) -> list[str]:
        """The ids of the parts of a weighted study, as far as submissions show them: `known` ones, and those
        of the newest people. Nothing is read once all `count` are known."""
        parts = list(known)
        if len(parts) >= count:
            return parts
        params: dict[str, str | int] = {
            "study": study_id,
            "ordering": "-started_at",
            "page": 1,
            "page_size": NEWEST,
        }
        page = self.wire.get("submissions/", params)
        rows = page.get("results") if isinstance(page, Mapping) else None
        for row in rows or []:
            if len(parts) >= count:
                break
            part = self._part(study_id, row.get("id") if isinstance(row, Mapping) else None)
            if part and part not in parts:
                parts.append(part)
        return parts

    def _part(self, study_id: str, submission: object) -> str:
        """The part of the study that a submission belongs to; empty if it shows none."""
        if not is_id(submission):
            return ""
        try:
            data = self.wire.get(f"submissions/{segment(submission)}/")
        except PlatformError as error:
            if not error.permanent:
                raise
            return ""
        part = data.get("study_id") if isinstance(data, Mapping) else None
        return part if is_id(part) and part != study_id and data.get("parent_study_id") == study_id else ""

    def messages(self, posted: PlatformPosting) -> Iterator[IncomingMessage]:
        """Unread messages about this study, or about none. Reading them here does not mark them as read."""
        ours = {"", posted.external_id, *posted.names}
        for row in self.wire.rows("messages/unread/", sized=False):
            data = row.get("data")
            about = _text(data.get("study_id")) if isinstance(data, Mapping) else ""
            person, body = row.get("sender_id") or row.get("sender"), _text(row.get("body"), LAYOUT)
            if not is_id(person) or about not in ours:
                continue
            sent = row.get("sent_at") or row.get("datetime_created")
            name = row.get("id")
            yield IncomingMessage(
                external_id=name if is_id(name) else _made_id(person, sent, body),
                person=person,
                body=body,
                posting=about,
                sent_at=_moment(sent),
            )


def _read_row(row: Mapping[str, Any], posted: PlatformPosting) -> ListedSubmission | Unread:
    submission, person = row.get("id"), row.get("participant_id")
    if not is_id(submission):
        return Unread("Prolific lists a submission whose id is missing or has another form than its ids.")
    if not is_id(person):
        why = "Prolific lists a submission whose participant is missing or has another form than its ids."
        return Unread(why, submission)
    if not isinstance(row.get("status"), str):
        return Unread("Prolific lists a submission without a status.", submission)
    raw = printable(row["status"])
    state = state_of(raw)
    return ListedSubmission(
        submission=submission,
        person=person,
        state=state,
        raw=raw[:40],
        code=_text(row.get("study_code"))[:64],
        started_at=_moment(row.get("started_at")),
        completed_at=_moment(row.get("completed_at")),
        return_requested=bool(row.get("return_requested")),
        lines=_lines(state, posted),
    )


def _lines(state: SubmissionState, posted: PlatformPosting) -> tuple[Line, ...]:
    """What the list shows as paid; it says how a submission ended, and the study says what that pays."""
    paid: dict[SubmissionState, tuple[LineKind, str]] = {
        "approved": ("reward", REWARD),
        "screened_out": ("screen_out", SCREEN_OUT),
    }
    kind, fact = paid.get(state, ("reward", ""))
    cents = posted.facts.get(fact)
    return (Line(kind, int(cents)),) if cents else ()


def is_id(value: object) -> TypeGuard[str]:
    """Whether this can be an id of Prolific's."""
    return isinstance(value, str) and ID.fullmatch(value) is not None


def _text(value: object, but: str = "") -> str:
    """A text of Prolific's in a form that can be stored; anything else is none."""
    return printable(value, but) if isinstance(value, str) else ""


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(value))
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def _made_id(person: str, sent: object, body: str) -> str:
    """An id for a message that came without one, the same each time it is read."""
    return hashlib.sha256("\0".join((person, str(sent), body)).encode()).hexdigest()
