"""What the page of one submission offers a named researcher, also about people who never joined."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import User
from django.db.models import Q

from crowd.ground.amounts import amount_of
from crowd.models import Message, Payout, Submission
from crowd.money.ledger import terms_of
from crowd.money.statement import called, name_of
from crowd.people.decisions import record, refusal
from crowd.platforms import service_class
from experiments.errors import StudyError
from experiments.models import Study

Act = Literal["approve", "request_return"]
NAME = re.compile(r"[0-9a-f]{8,64}")
GRANTS = {"bonus": "Bonus", "compensation": "Compensation"}
ASKED = {"approve": "approve the submission of", "request_return": "ask for the return of the submission of"}


@dataclass(frozen=True, slots=True)
class Remedies:
    """What can be done for one participant now. `refused` says why nothing can be done, or is empty."""

    row: Submission
    name: str
    grants: tuple[tuple[str, str], ...]
    approves: bool
    asks: bool
    approval: str
    refused: str
    written: tuple[Message, ...]
    payouts: tuple[Payout, ...]
    commands: dict[str, str]


def remedies_of(study: Study, row: Submission, by: str) -> Remedies:
    """What the page of one submission offers."""
    posting, name = row.posting, name_of(row)
    payouts = list(Payout.objects.filter(submission=row))
    taken = {payout.kind for payout in payouts}
    refused = refusal(row)
    can_ask = "request_return" in service_class(posting.platform).supports
    at_it = row.state in ("awaiting", "active", "reserved")
    line = ["python", "manage.py", "decide", study.slug]
    tail = [name, "--by", by, "--message", "WHY"]
    return Remedies(
        row=row,
        name=name,
        grants=tuple((k, w) for k, w in GRANTS.items() if row.session_id and k not in taken),
        approves=row.state == "awaiting" and not refused,
        asks=can_ask and at_it and not row.return_requested and not refused,
        approval=amount_of(terms_of(posting).base_cents, posting.currency),
        refused=refused,
        written=tuple(Message.objects.filter(posting=posting, external_id__startswith=to(row))),
        payouts=tuple(p for p in payouts if p.state in (Payout.State.DUE, Payout.State.WITHHELD)),
        commands={
            "approve": shlex.join([*line, "approve", *tail]),
            "request_return": shlex.join([*line, "request-return", *tail]),
        },
    )


def to(row: Submission) -> str:
    """The beginning of the id of a message that was written here first; the rest of the id is random."""
    return f"to:{row.submission_hash}:"


def submission_named(study: Study, name: str) -> Submission:
    """The submission that the first 8 or more characters of its name stand for. Raises StudyError."""
    wanted = name.replace("-", "").lower()
    if not NAME.fullmatch(wanted):
        raise StudyError(
            f"{name[:40]!r} names nobody: give the first 8 characters of the name in the terminal."
        )
    start = wanted[:8]
    rows = Submission.objects.filter(posting__study=study)
    rows = rows.select_related("posting__study", "identity", "session__participant")
    here = Q(session__participant__pseudonym__startswith=start)
    there = Q(session=None, submission_hash__startswith=start)
    submissions = [row for row in rows.filter(here | there) if _full_name(row).startswith(wanted)]
    if not submissions:
        raise StudyError(
            f"{name[:40]!r} is nobody who came to {study.slug} by a platform. The dashboard's page of a "
            "participant says the name in the terminal."
        )
    if len(submissions) > 1:
        raise StudyError(f"{name[:40]!r} fits {len(submissions)} pieces of work; give more characters.")
    return submissions[0]


def _full_name(row: Submission) -> str:
    return row.session.participant.pseudonym.hex if row.session else row.submission_hash


def note(row: Submission, user: User, text: str) -> None:
    """Stores in the log what is known about a participant's problem."""
    record(row.posting.study, user, f"Note on {called(row)}: {text}")
