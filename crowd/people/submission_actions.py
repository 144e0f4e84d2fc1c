"""What the page of one submission offers a named researcher, also about people who never joined."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from django.contrib.auth.models import User

from crowd.ground.amounts import amount_of
from crowd.models import Message, Payout, Submission
from crowd.money.ledger import terms_of
from crowd.money.platform_statement import NAMED, name_in_sentence, name_of
from crowd.people.decisions import record, refusal
from crowd.platforms import service_class
from experiments.errors import StudyError
from experiments.models import Study
from experiments.sessions.pseudonyms import is_called, namer

Act = Literal["approve", "request_return"]
NAME = re.compile(r"[ps0-9a-f-]{6,64}")
GRANTS = {"bonus": "Bonus", "compensation": "Compensation"}
ASKED = {"approve": "approve the submission of", "request_return": "ask for the return of the submission of"}


@dataclass(frozen=True, slots=True)
class Remedies:
    """What can be done for one participant now. `refused` says why nothing can be done, or is empty."""

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
    """The submission of the person whose name has this part, of six characters or more; or, if no person
    joined, whose own begins so. Raises StudyError."""
    word = name.strip().casefold()
    if not NAME.fullmatch(word):
        raise StudyError(
            f"{name[:40]!r} names nobody: give the name that pages and terminal show, or 6 or more "
            "characters of it."
        )
    rows = Submission.objects.filter(posting__study=study).select_related(*NAMED, "identity")
    call = namer(study)
    submissions = [row for row in rows if _is_meant(row, word, call)]
    if not submissions:
        raise StudyError(
            f"{name[:40]!r} is nobody who came to {study.slug} by a platform. The dashboard's list of "
            "participants finds a person by any part of the name."
        )
    if len(submissions) > 1:
        raise StudyError(f"{name[:40]!r} fits {len(submissions)} pieces of work; give more characters.")
    return submissions[0]


def _is_meant(row: Submission, word: str, call: Callable[[object], str]) -> bool:
    if row.session is None:
        return row.submission_hash.startswith(word)
    pseudonym = row.session.participant.pseudonym
    return is_called(call(pseudonym), pseudonym, word)


def note(row: Submission, user: User, text: str) -> None:
    """Stores in the log what is known about a participant's problem."""
    record(row.posting.study, user, f"Note on {name_in_sentence(row)}: {text}")
