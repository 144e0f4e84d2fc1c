"""What a named researcher can do for one participant on a platform: ask them to return the work, approve it
by hand, or write a note.

This also works for people who never came: their id is read from the platform's own list for the one call,
and is never stored.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db.models import Q

from crowd.ground.amounts import amount_of
from crowd.ground.connections import posted_of, service_of
from crowd.ground.identities import submission_hash
from crowd.ground.locks import Held, exclusive
from crowd.models import Message, Payout, Posting, Submission
from crowd.money.ledger import SPENT_STATES, adopt_approval, decide_for, terms_of
from crowd.money.plan import plan_of
from crowd.people.decisions import decide_batch, record
from crowd.platforms import has_service, service_class
from crowd.platforms.base import ListedSubmission, PlatformError, Service, Unread
from experiments.errors import StudyError
from experiments.models import Study

Act = Literal["approve", "request_return"]
NAME = re.compile(r"[0-9a-f]{8,64}")
GRANTS = {"bonus": "Bonus", "compensation": "Compensation"}
ASKED = {"approve": "approve the work of", "request_return": "ask for the return of the work of"}


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


def name_of(row: Submission) -> str:
    """The name in the terminal: the beginning of the pseudonym, or of the hash if no person came."""
    return str(row.session.participant.pseudonym)[:8] if row.session else row.submission_hash[:8]


def called(row: Submission) -> str:
    """The same name, as a sentence uses it."""
    return name_of(row) if row.session else f"work {name_of(row)}, whose person never came"


def remedies_of(study: Study, row: Submission, by: str) -> Remedies:
    """What the page of one submission offers."""
    posting, name = row.posting, name_of(row)
    payouts = list(Payout.objects.filter(session=row.session_id)) if row.session_id else []
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


def refusal(row: Submission) -> str:
    """Why nothing can be done for this person from here; empty if something can be done."""
    if not has_service(row.posting.platform):
        return f"{row.posting.platform} has no interface for machines. Speak with the person yourself."
    identity = row.identity
    if identity is not None and identity.forgotten_at is not None:
        return "They asked to be forgotten, so nobody is looked up for them. Use the platform's own page."
    if row.seen_at is None:
        return f"{row.posting.platform} does not list this work. Sync again; nothing can be decided before."
    if identity is not None and row.person_hash and identity.person_hash != row.person_hash:
        return (
            "The platform lists this work as another person's: the address was forged or passed on. Decide "
            "about the person whom it lists on its own page."
        )
    return ""


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


def there(service: Service, row: Submission) -> ListedSubmission:
    """This work as the platform lists it, found by its keyed hash. Raises PlatformError, StudyError."""
    for listed in service.submissions(posted_of(row.posting)):
        if isinstance(listed, Unread):
            continue
        if submission_hash(row.posting, listed.submission) == row.submission_hash:
            return listed
    raise StudyError(f"{row.posting.platform} does not list this work any more, so nothing was done.")


def note(row: Submission, user: User, text: str) -> None:
    """Stores in the log what is known about a participant's problem."""
    record(row.posting.study, user, f"Note on {called(row)}: {text}")


def decide(user: User, row: Submission, act: Act, message: str) -> None:
    """Approves one participant's work by hand or asks for its return, in the name of `user`. Logs the reason.

    Raises StudyError, PlatformError or Unsupported; then only what the message says is certain to have
    happened.
    """
    if not user.is_active or not user.get_username():
        raise StudyError("Only a named person decides about somebody's work. Log in.")
    if not message.strip():
        raise StudyError("Say why: the log keeps it, and who is asked to return reads it.")
    problem = refusal(row)
    if problem:
        raise StudyError(problem)
    if act == "request_return":
        _request_return(row, user, message.strip())
    elif row.external_id and _is_owed_by_approval(row):
        _decide_by_ledger(row, user, "approve", message.strip())
        record(row.posting.study, user, f"Approved the work of {called(row)} by hand: {message.strip()}")
    else:
        _approve_beside(row, user, message.strip())


def _decide_by_ledger(row: Submission, user: User, act: Act, message: str) -> None:
    decided = decide_batch(user, [row.pk], act, message)
    if decided.problems or not decided.done:
        raise StudyError(
            " ".join(decided.problems) or "Nothing was done: look at what waits, on the money page."
        )


def _request_return(row: Submission, user: User, message: str) -> None:
    if row.external_id:
        _decide_by_ledger(row, user, "request_return", message)
        return
    service = service_of(row.posting)
    service.request_return(posted_of(row.posting), there(service, row).submission, message)
    Submission.objects.filter(pk=row.pk).update(return_requested=True)
    record(row.posting.study, user, f"Asked {called(row)} to return the work: {message}")


def _is_owed_by_approval(row: Submission) -> bool:
    """Whether the ledger has a due payout that approving pays; then the approval goes through the ledger."""
    assert row.session is not None
    decide_for(row.session)
    due = Payout.objects.filter(session=row.session, state=Payout.State.DUE)
    whole = Q(kind__in=["compensation", "screen_out"], cents=terms_of(row.posting).base_cents)
    return due.filter(Q(kind="base") | whole).exists()


def _approve_beside(row: Submission, user: User, message: str) -> None:
    """Approves work for which the policy owes no reward. The platform pays it once, even if asked twice."""
    _refuse_second(row)
    posting, study = row.posting, row.posting.study
    busy = "Money of this study is being settled. Try again soon."
    with exclusive(f"settle-{study.slug}", busy) as held:
        _within_cap(posting)
        service = service_of(posting)
        listed = there(service, row)
        if listed.state != "awaiting":
            raise StudyError(
                f"The platform says {listed.raw or listed.state}: only work that awaits review is approved."
            )
        record(study, user, f"Approves the work of {called(row)} by hand: {message}")
        state, why = _approve(posting, service, listed, held)
        if state == "sent":
            Submission.objects.filter(pk=row.pk).update(state="approved")
            if row.session_id:
                adopt_approval(posting, row.session_id)
            record(study, user, f"Approved the work of {called(row)}: {_amount(posting)}.")
            return
    word = "may or may not be approved; the next sync shows it" if state == "unknown" else "was not approved"
    raise StudyError(f"The work of {called(row)} {word}. {why}")


def _refuse_second(row: Submission) -> None:
    """Raises StudyError if a payout was withheld, or if another amount was paid instead of the reward."""
    if row.session_id is None:
        return
    payouts = Payout.objects.filter(session=row.session_id)
    if payouts.filter(state=Payout.State.WITHHELD).exists():
        raise StudyError("A payout of theirs is withheld. Release it first, then approve.")
    instead = payouts.filter(kind__in=["compensation", "screen_out"], state__in=SPENT_STATES).first()
    if instead is not None:
        raise StudyError(
            f"They were paid {amount_of(instead.cents, instead.currency)} already, and approving pays the "
            "whole reward on top. Ask them to return the work."
        )


def _approve(posting: Posting, service: Service, listed: ListedSubmission, held: Held) -> tuple[str, str]:
    held.check()
    try:
        settled: list[Any] = list(service.approve(posted_of(posting), [listed.submission]))
    except PlatformError as error:
        return ("unknown" if error.uncertain else "failed"), str(error)
    return (settled[0].state, settled[0].message) if settled else ("unknown", "No answer came.")


def _amount(posting: Posting) -> str:
    return amount_of(terms_of(posting).base_cents, posting.currency)


def _within_cap(posting: Posting) -> None:
    """Raises StudyError if one more approval exceeds the cap. Approved work without a payout counts too."""
    plan, pays = plan_of(posting), terms_of(posting).base_cents
    beside = Submission.objects.filter(
        posting=posting, state="approved", session__payouts__isnull=True
    ).count()
    total = plan.spent_cents + (beside + 1) * pays
    if total > plan.cap_cents:
        raise StudyError(
            f"The posting's cap of {amount_of(plan.cap_cents, posting.currency)} would be exceeded. Raise it "
            f"to at least {amount_of(total, posting.currency)}."
        )
