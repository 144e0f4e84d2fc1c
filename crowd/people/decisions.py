"""What a named researcher decides about submissions: approve, ask to return, reject. Each is recorded with
the name; none happens automatically."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef

from crowd.ground import audit
from crowd.ground.audit import study_log as study_log
from crowd.ground.identity_hashes import submission_hash
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.models import Payout, Posting, Submission
from crowd.money.ledger import INSTEAD, SPENT_STATES, decide_for, release, terms_of, withhold
from crowd.money.manual_decisions import grant_reward
from crowd.money.platform_statement import NAMED, name_in_sentence, name_of
from crowd.money.run import pay_only
from crowd.platforms import has_service, traits_of
from crowd.platforms.base import (
    BadOptions,
    ListedSubmission,
    PlatformError,
    Service,
    Unread,
    UnsupportedRequest,
)
from experiments.errors import StudyError
from experiments.kinds.base import INSTRUCTED
from experiments.kinds.scoring import follows
from experiments.models import Response, Study
from experiments.selectors import definition_of

Action = Literal["approve", "request_return", "reject"]
NO_DATA = "NO_DATA"
"""The ground for rejecting a submission without any response here."""
DONE_WORDS = {"approve": "approve", "request_return": "ask for the return of", "reject": "reject"}


def record(study: Study, user: User, what: str) -> None:
    """One line of the study's log."""
    audit.record(study, user.get_username(), what)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A person whom the platform's rules allow to reject. `grounds` is the rule; a researcher decides."""

    submission: int
    name: str
    platform: str
    failed_checks: int
    checks: int
    grounds: str


def propose_rejections(study: Study) -> list[Proposal]:
    """People who await a decision, were screened, and failed as many instructed checks as their platform's
    rules ask for. Raises StudyError if an account is missing."""
    proposals: list[Proposal] = []
    for posting in Posting.objects.filter(study=study).exclude(external_id="").order_by("pk"):
        if has_service(posting.platform):
            proposals += _proposals(posting, service_of(posting), None)
    return proposals


def _proposals(posting: Posting, service: Service, among: Sequence[int] | None) -> list[Proposal]:
    rows = Submission.objects.filter(
        posting=posting,
        state="awaiting",
        person_hash=F("identity__person_hash"),
        session__verdict="screened",
        session__slot__isnull=False,
    ).exclude(external_id="")
    # A submission approved here a moment ago awaits nothing, even if the platform's list was not read since.
    paid = Payout.objects.filter(session=OuterRef("session"), kind="base", state__in=SPENT_STATES)
    rows = rows.filter(~Exists(paid))
    rows = rows if among is None else rows.filter(pk__in=among)
    expected_minutes = definition_of(posting.study).reward.expected_minutes
    proposals = []
    people = list(rows.select_related(*NAMED).order_by("pk"))
    answers = _check_answers(people)
    for row in people:
        checks = len(answers[row.session_id])
        failed = checks - sum(answers[row.session_id])
        grounds = service.rejection_grounds(expected_minutes, failed)
        if row.session is not None and failed and grounds:
            proposals.append(Proposal(row.pk, name_of(row), posting.platform, failed, checks, grounds))
    return proposals


def _check_answers(people: Sequence[Submission]) -> defaultdict[Any, list[bool]]:
    """Session -> whether each instructed check that was answered was passed; one query for all."""
    by_session: defaultdict[Any, list[bool]] = defaultdict(list)
    rows = Response.objects.filter(
        session_id__in=[row.session_id for row in people], trial__check_kind=INSTRUCTED
    )
    fields = ("session_id", "value", "trial__kind", "trial__expected")
    for session, value, kind, expected in rows.values_list(*fields):
        by_session[session].append(follows(kind, expected, value))
    return by_session


@dataclass(frozen=True, slots=True)
class DecisionResult:
    """How many decisions took effect, and a sentence for each that did not."""

    done: int
    problems: tuple[str, ...] = ()


def decide_batch(
    user: User, submissions: Iterable[int], action: Action, message: str = "", category: str = ""
) -> DecisionResult:
    """A named person's decision on submissions that await one: approve (pays the reward by the ledger), ask
    to return, or reject (only on grounds that the platform permits; what was due is withheld)."""
    if not user.is_active or not user.get_username():
        raise StudyError("Only a named person decides about a submission. Log in.")
    if action != "approve" and not message.strip():
        raise StudyError("Write a message: the person reads why.")
    rows = Submission.objects.filter(pk__in=list(submissions)).select_related("posting__study")
    by_posting: dict[Posting, list[Submission]] = {}
    for row in rows.order_by("pk"):
        by_posting.setdefault(row.posting, []).append(row)
    done, problems = 0, list[str]()
    for posting, rows_of_posting in by_posting.items():
        if action == "approve":
            decided = _approve(posting, rows_of_posting, user)
        else:
            decided = _one_by_one(posting, rows_of_posting, user, action, message.strip(), category)
        done += decided.done
        problems += decided.problems
    return DecisionResult(done, tuple(problems))


def _approve(posting: Posting, rows: Sequence[Submission], user: User) -> DecisionResult:
    """Pays what is due to these by approving: a run over them alone, with a look at the platform before and
    after."""
    ran = pay_only(posting, {row.pk for row in rows}, "approve", user.get_username())
    left = len(rows) - len({payable.of for payable in ran.plan.payables})
    problems = [f"{count} not approved: {why}" for why, count in ran.outcome.problems.items()]
    if ran.outcome.stopped:
        problems.append(ran.outcome.stopped)
    if left:
        problems.append(f"{left} cannot be approved now: look at what waits, and why, on the money page.")
    return DecisionResult(ran.outcome.sent, tuple(problems))


def decide(user: User, row: Submission, act: Action, message: str, category: str = "") -> None:
    """One submission, also of a person who never joined: approves it, asks for its return, or rejects it, in
    the name of `user`. Logs the reason.

    Raises StudyError, PlatformError or Unsupported; then only what the message says is certain to have
    happened.
    """
    if not message.strip():
        raise StudyError("Say why: the log keeps it, and the person who is asked to return reads it.")
    problem = refusal(row)
    if problem:
        raise StudyError(problem)
    if act == "approve":
        _grant_if_not_due(row, user, message.strip())
    decided = decide_batch(user, [row.pk], act, message, category)
    if decided.problems or not decided.done:
        raise StudyError(
            " ".join(decided.problems) or "Nothing was done: look at what waits, on the money page."
        )
    if act == "approve":
        record(
            row.posting.study,
            user,
            f"Approved the submission of {name_in_sentence(row)} by hand: {message.strip()}",
        )


def _grant_if_not_due(row: Submission, user: User, reason: str) -> None:
    """Every amount that leaves has its row first: a reward that the policy does not owe is granted."""
    if row.session is not None:
        decide_for(row.session)
    if row.state != "awaiting":
        raise StudyError(
            f"The platform says {row.raw_state or row.state}: only one that awaits review can be approved."
        )
    due = Payout.objects.filter(submission=row, state=Payout.State.DUE)
    whole = due.filter(kind__in=INSTEAD, cents=terms_of(row.posting).base_cents)
    if not due.filter(kind=Payout.Kind.BASE).exists() and not whole.exists():
        grant_reward(row, user.get_username(), reason)


def refusal(row: Submission) -> str:
    """Why nothing can be done for this person from here; empty if something can be done."""
    if not has_service(row.posting.platform):
        return f"{row.posting.platform} has no interface for machines. Speak with the person yourself."
    identity = row.identity
    if identity is not None and identity.forgotten_at is not None:
        return "They asked to be forgotten, so nobody is looked up for them. Use the platform's own page."
    if row.seen_at is None:
        return f"{row.posting.platform} does not list this submission, so nothing can be decided. Sync again."
    if identity is not None and row.person_hash and identity.person_hash != row.person_hash:
        return (
            "The platform lists this submission as another person's: the address was forged or passed on. "
            "Decide about the person whom it lists on its own page."
        )
    return ""


def there(service: Service, row: Submission) -> ListedSubmission:
    """This submission as the platform lists it, found by its keyed hash. The id of a person who never joined
    or has not consented is read for one call, and never stored. Raises PlatformError, StudyError."""
    for listed in service.submissions(posted_of(row.posting)):
        if isinstance(listed, Unread):
            continue
        if submission_hash(row.posting, listed.submission) == row.submission_hash:
            return listed
    raise StudyError(f"{row.posting.platform} does not list this submission any more, so nothing was done.")


def _one_by_one(
    posting: Posting, rows: Sequence[Submission], user: User, action: Action, message: str, category: str
) -> DecisionResult:
    service = service_of(posting)
    done, problems = 0, []
    for row in rows:
        try:
            if action == "reject":
                _reject(posting, service, row, user, message, category)
            else:
                _request_return(posting, service, row, user, message)
            done += 1
        except (PlatformError, UnsupportedRequest, BadOptions, StudyError) as error:
            problems.append(f"{name_of(row)}: {error}")
    return DecisionResult(done, tuple(problems))


def _request_return(posting: Posting, service: Service, row: Submission, user: User, message: str) -> None:
    submission = row.external_id or there(service, row).submission
    service.request_return(posted_of(posting), submission, message)
    Submission.objects.filter(pk=row.pk).update(return_requested=True)
    record(posting.study, user, f"Asked {name_in_sentence(row)} to return the submission: {message}")


def _reject(
    posting: Posting, service: Service, row: Submission, user: User, message: str, category: str
) -> None:
    """The ledger first: a person who is being rejected is not paid at the same moment."""
    if not _has_grounds(posting, service, row, category):
        raise StudyError("The platform's rules give no grounds to reject this submission. Approve it.")
    of_session = Payout.objects.filter(submission=row, kind__in=["base", "bonus"])
    submission = row.external_id or there(service, row).submission
    who = user.get_username()
    payouts = list(of_session.filter(state=Payout.State.DUE).values_list("pk", flat=True))
    taken = withhold(payouts, who, f"rejected ({category}): {message}", log=False)
    if of_session.exclude(state=Payout.State.WITHHELD).exists():
        release(payouts, who, "not rejected, for it is paid or being paid", log=False)
        raise StudyError("Their reward is paid or being paid, so they cannot be rejected any more.")
    try:
        service.reject(posted_of(posting), submission, message, category)
    except (PlatformError, UnsupportedRequest, BadOptions) as error:
        _write_failed(posting, row, user, payouts, error)
        raise
    Submission.objects.filter(pk=row.pk).update(state="rejected")
    record(
        posting.study,
        user,
        f"Rejected {name_in_sentence(row)} ({category}), {taken} payouts withheld: {message}",
    )


def _has_grounds(posting: Posting, service: Service, row: Submission, category: str) -> bool:
    """Failed instructed checks; or no data at all, if the platform has that ground."""
    if category == NO_DATA and NO_DATA in traits_of(posting.platform).grounds:
        answers = (
            Response.objects.filter(session=row.session_id) if row.session_id else Response.objects.none()
        )
        return row.state == "awaiting" and not answers.exists()
    return bool(_proposals(posting, service, [row.pk]))


def _write_failed(
    posting: Posting, row: Submission, user: User, payouts: Sequence[int], error: Exception
) -> None:
    """The log has every attempt. If it may have taken effect, nothing is paid before a researcher looks."""
    what = f"Tried to reject {name_in_sentence(row)}"
    if isinstance(error, PlatformError) and error.uncertain:
        record(
            posting.study,
            user,
            f"{what}; it may have taken effect, so {len(payouts)} payouts stay withheld. Look at the "
            f"platform, and release them if it has not: {error}",
        )
        return
    release(payouts, user.get_username(), "the rejection did not take place", log=False)
    record(posting.study, user, f"{what}; it did not take effect, and they are still owed: {error}")
