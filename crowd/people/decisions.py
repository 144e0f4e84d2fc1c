"""What a researcher decides here: build, close, unseal, approve, ask to return, reject. Each is recorded with
the person's name; none happens automatically."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from crowd.ground import audit
from crowd.ground.audit import recorded as recorded
from crowd.ground.connections import posted_of, service_of
from crowd.ground.locks import exclusive
from crowd.models import Payout, Posting, Submission
from crowd.money.ledger import SPENT_STATES, release, withhold
from crowd.money.plan import only, plan_of
from crowd.money.sending import settle
from crowd.people.seals import printed_name, seal
from crowd.platforms import has_service
from crowd.platforms.base import BadOptions, PlatformError, Service, Unsupported
from experiments.drafts import picture_keys
from experiments.errors import StudyError
from experiments.kinds.base import INSTRUCTED
from experiments.kinds.scoring import follows
from experiments.models import Response, Study
from experiments.selectors import definition_of
from stimuli.build import missing, refuse_other_packages, send
from stimuli.models import Stimulus

Action = Literal["approve", "request_return", "reject"]
DONE_WORDS = {"approve": "approve", "request_return": "ask for the return of", "reject": "reject"}


def record(study: Study, user: User, what: str) -> None:
    """One line of the study's log."""
    audit.record(study, user.get_username(), what)


def close_study(study: Study, user: User, reason: str) -> bool:
    """Ends recruitment for good; people who have begun may finish. False if it was not open any more.

    Closing opens the results. If it happens before every slot is kept, it breaks the seal: name and reason
    are stored as such and printed in every report.
    """
    changes: dict[str, object] = {"state": Study.State.CLOSED, "closed_at": timezone.now()}
    if seal(study, "human").sealed:
        changes |= {
            "unsealed_at": timezone.now(),
            "unsealed_by": printed_name(user),
            "unsealed_reason": f"closed early: {reason}",
        }
    closed = Study.objects.filter(id=study.pk, state=Study.State.OPEN).update(**changes)
    if closed == 1:
        record(study, user, f"Closed the study{': ' + reason if reason else ''}.")
    return closed == 1


def unseal_study(study: Study, user: User, reason: str) -> bool:
    """Breaks the seal in the name of a user; it cannot be restored. False if it was broken before."""
    name = printed_name(user)
    unsealed = Study.objects.filter(id=study.pk, unsealed_at__isnull=True).update(
        unsealed_at=timezone.now(), unsealed_by=name, unsealed_reason=reason
    )
    if unsealed == 1:
        record(study, user, f"Unsealed the results per condition as {name}: {reason}")
    return unsealed == 1


def send_missing(study: Study, user: User) -> int:
    """Asks the workers for every picture that is missing; failed ones are tried again. Returns how many.

    Raises OtherPackage if they were asked for from a package that is not here in the same version."""
    keys = missing(picture_keys(study))
    refuse_other_packages(keys)
    for start in range(0, len(keys), 500):
        part = keys[start : start + 500]
        Stimulus.objects.filter(key__in=part, state="failed").update(state="missing")
    send(keys)
    record(study, user, f"Asked the workers for {len(keys)} stimuli.")
    return len(keys)


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
    people = list(rows.select_related("session__participant").order_by("pk"))
    answers = _check_answers(people)
    for row in people:
        checks = len(answers[row.session_id])
        failed = checks - sum(answers[row.session_id])
        grounds = service.rejection_grounds(expected_minutes, failed)
        if row.session is not None and failed and grounds:
            name = str(row.session.participant.pseudonym)[:8]
            proposals.append(Proposal(row.pk, name, posting.platform, failed, checks, grounds))
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
class Decided:
    """How many decisions took effect, and a sentence for each that did not."""

    done: int
    problems: tuple[str, ...] = ()


def decide_batch(
    user: User, submissions: Iterable[int], action: Action, message: str = "", category: str = ""
) -> Decided:
    """A named person's decision on submissions that await one: approve (pays the reward by the ledger), ask
    to return, or reject (only on grounds that the platform permits; what was due is withheld)."""
    if not user.is_active or not user.get_username():
        raise StudyError("Only a named person decides about somebody's work. Log in.")
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
    return Decided(done, tuple(problems))


def _approve(posting: Posting, rows: Sequence[Submission], user: User) -> Decided:
    with exclusive(
        f"settle-{posting.study.slug}", "Money of this study is being settled. Try again soon."
    ) as held:
        plan = only(plan_of(posting), "approve", {row.external_id for row in rows})
        outcome = settle(posting, plan, user.get_username(), held=held)
    left = len(rows) - len(plan.payables)
    problems = [f"{count} not approved: {why}" for why, count in outcome.problems.items()]
    if left:
        problems.append(f"{left} cannot be approved now: look at what waits, and why, on the money page.")
    return Decided(outcome.sent, tuple(problems))


def _one_by_one(
    posting: Posting, rows: Sequence[Submission], user: User, action: Action, message: str, category: str
) -> Decided:
    service = service_of(posting)
    done, problems = 0, []
    for row in rows:
        try:
            if action == "reject":
                _reject(posting, service, row, user, message, category)
            else:
                _request_return(posting, service, row, user, message)
            done += 1
        except (PlatformError, Unsupported, BadOptions, StudyError) as error:
            problems.append(f"{_name(row)}: {error}")
    return Decided(done, tuple(problems))


def _name(row: Submission) -> str:
    return str(row.session.participant.pseudonym)[:8] if row.session else "somebody without a sitting"


def _request_return(posting: Posting, service: Service, row: Submission, user: User, message: str) -> None:
    if not row.external_id:
        raise StudyError("The platform's id is not known, for they did not consent or were forgotten.")
    service.request_return(posted_of(posting), row.external_id, message)
    Submission.objects.filter(pk=row.pk).update(return_requested=True)
    record(posting.study, user, f"Asked {_name(row)} to return their work: {message}")


def _reject(
    posting: Posting, service: Service, row: Submission, user: User, message: str, category: str
) -> None:
    """The ledger first: a person who is being rejected is not paid at the same moment."""
    if not _proposals(posting, service, [row.pk]):
        raise StudyError("The platform's rules give no grounds to reject this work. Approve it.")
    of_session = Payout.objects.filter(session=row.session, kind__in=["base", "bonus"])
    who = user.get_username()
    payouts = list(of_session.filter(state=Payout.State.DUE).values_list("pk", flat=True))
    taken = withhold(payouts, who, f"rejected ({category}): {message}", log=False)
    if of_session.exclude(state=Payout.State.WITHHELD).exists():
        release(payouts, who, "not rejected, for it is paid or being paid", log=False)
        raise StudyError("Their reward is paid or being paid, so they cannot be rejected any more.")
    try:
        service.reject(posted_of(posting), row.external_id, message, category)
    except (PlatformError, Unsupported, BadOptions) as error:
        _write_failed(posting, row, user, payouts, error)
        raise
    Submission.objects.filter(pk=row.pk).update(state="rejected")
    record(posting.study, user, f"Rejected {_name(row)} ({category}), {taken} payouts withheld: {message}")


def _write_failed(
    posting: Posting, row: Submission, user: User, payouts: Sequence[int], error: Exception
) -> None:
    """The log has every attempt. If it may have taken effect, nothing is paid before a researcher looks."""
    what = f"Tried to reject {_name(row)}"
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
