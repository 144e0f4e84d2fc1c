"""Payouts that are due, each with what the platform shows: who the person is, and how it can be paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from crowd.ground import platform_clock
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting, Submission
from crowd.money.ledger import terms_of
from crowd.money.payment_route import Case, Way, way_of
from crowd.money.platform_statement import name_in_sentence, tallies
from crowd.platforms import traits_of
from crowd.platforms.base import Kind, SubmissionState
from experiments.selectors import definition_of

READ = (
    *(field.attname for field in Payout._meta.concrete_fields),
    *("submission__posting_id", "submission__state", "submission__return_requested"),
    *("submission__seen_at", "submission__submission_hash", "submission__person_hash"),
    *("submission__external_id", "submission__session_id"),
    *("submission__session__participant__pseudonym", "submission__identity__forgotten_at"),
    *("submission__identity__person_hash", "submission__identity__external_id"),
)
"""The columns that a standing needs, for up to 20,000 payouts: no answers, devices or statements."""
Ids = Mapping[str, tuple[str, str]]
"""Hash of a submission -> the platform's ids of submission and person, as its list has just shown them."""
SENDS = ("approve", "bonus")
OPEN = "Something else of theirs needs your hand first; nothing more is sent to them before."


@dataclass(frozen=True, slots=True)
class Standing:
    """One due payout and the way to pay it.

    `submission` and `person` are the platform's ids; it is proved that they belong to the session. Both are
    empty if they are not stored and were not given: the next look at the platform brings them. `name` is the
    person's, or of one who never joined the submission's.
    """

    row: Payout
    way: Way
    name: str
    submission: str = ""
    person: str = ""


def standings(posting: Posting, ids: Ids | None = None) -> list[Standing]:
    """Every due payout of the posting, oldest first. With `ids`, of people whose ids are not stored."""
    rows = Payout.objects.filter(posting=posting, state=Payout.State.DUE).order_by("pk")
    rows = rows.select_related("submission__identity", "submission__session__participant").only(*READ)
    bases = dict(
        Payout.objects.filter(posting=posting, kind=Payout.Kind.BASE)
        .exclude(state=Payout.State.FAILED)
        .values_list("submission_id", "state")
    )
    blocked = {pk for pk, tally in tallies(posting, platform_clock.now()).items() if tally.is_open}
    approval_cents, traits = terms_of(posting).base_cents, traits_of(posting.platform)
    refusal, other_reward = _posting_refusal(posting), other_reward_of(posting)
    result = []
    for row in rows:
        submission = row.submission
        submission.posting = posting
        name = name_in_sentence(submission)
        why = refusal or _refusal(posting, row, submission, approval_cents)
        if why:
            result.append(Standing(row, Way("wait", why, needs_hand=True), name))
            continue
        case = Case(
            kind=cast(Kind, row.kind),
            cents=row.cents,
            state=cast(SubmissionState, submission.state),
            approval_cents=approval_cents,
            has_base=_stands(bases.get(submission.pk), submission.state),
            return_requested=submission.return_requested,
            pays_returned=traits.pays_returned,
        )
        way = way_of(case)
        if way.action == "approve" and other_reward:
            way = Way("wait", other_reward)
        if way.action in SENDS and submission.pk in blocked:
            way = Way("wait", OPEN)
        result.append(Standing(row, way, name, *_ids(submission, ids)))
    return [_require_id(standing, ids) for standing in result]


def _ids(submission: Submission, ids: Ids | None) -> tuple[str, str]:
    person = submission.identity.external_id if submission.identity is not None else ""
    if submission.external_id and person:
        return submission.external_id, person
    return (ids or {}).get(submission.submission_hash, ("", ""))


def _require_id(standing: Standing, ids: Ids | None) -> Standing:
    """A payout that can be sent needs an id; if the platform was just read, it must have given it."""
    if standing.way.action in SENDS and ids is not None and not standing.submission:
        return replace(standing, way=Way("wait", "The platform does not list their submission any more."))
    return standing


def _stands(base: str | None, state: str) -> bool:
    """Whether the submission has a reward of its own, so that other amounts are paid in addition to it.

    A withheld reward is none while the platform may still approve it, or if it has: then an amount that was
    granted instead of it waits, or is covered.
    """
    if base == Payout.State.WITHHELD:
        return state not in {"awaiting", "approved"}
    return base is not None


def other_reward_of(posting: Posting) -> str:
    """Why no work is approved: the platform shows another reward than approving is to pay. Empty: it does
    not."""
    shown, meant = posting.shown_cents, terms_of(posting).base_cents
    if shown is None or shown == meant:
        return ""
    return (
        f"{traits_of(posting.platform).title} shows a reward of {amount_of(shown, posting.currency)} now, "
        f"and {amount_of(meant, posting.currency)} was offered: approving would pay the former, so it waits."
    )


def _posting_refusal(posting: Posting) -> str:
    reward = definition_of(posting.study).reward
    if posting.currency != reward.currency:
        return (
            f"The posting pays in {posting.currency or 'no currency'}, the study promises {reward.currency}: "
            "nothing is sent. Publish it in the study's currency, or pay by hand."
        )
    if posting.reward_cents != reward.amount_cents:
        return (
            f"The posting offers {amount_of(posting.reward_cents, posting.currency)}, the study promises "
            f"{amount_of(reward.amount_cents, reward.currency)}: nothing is sent. Pay by hand."
        )
    return ""


def _refusal(posting: Posting, row: Payout, submission: Submission, approval_cents: int) -> str:
    """Why this amount may not be sent to the person that the platform lists; empty: it may."""
    if submission.posting_id != posting.pk:
        return "The session did not come by this posting. Pay by hand, or withhold it."
    if row.currency != posting.currency:
        return (
            f"The ledger owes {amount_of(row.cents, row.currency)}, and the posting pays in "
            f"{posting.currency}: nothing is sent. Pay by hand, or withhold it."
        )
    if submission.seen_at is None:
        return (
            "The platform does not list their submission: they have not handed it in there. If they cannot "
            "any more, pay by hand, and write it down."
        )
    identity = submission.identity
    if identity is not None and identity.person_hash != submission.person_hash:
        return (
            "The platform says that this submission is another person's: the address was forged. Withhold "
            "it; the true person is on the platform's page."
        )
    if identity is not None and identity.forgotten_at is not None and not submission.external_id:
        return "The platform's id was removed at the person's wish, so it must be paid by hand."
    if row.kind == Payout.Kind.BASE and row.cents != approval_cents:
        return (
            f"Approving pays {amount_of(approval_cents, posting.currency)}, and the ledger owes "
            f"{amount_of(row.cents, row.currency)}. Pay by hand, or withhold it."
        )
    return ""
