"""Payouts that are due, each with what the platform shows: who the person is, and how it can be paid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting, Submission
from crowd.money.ledger import terms_of
from crowd.money.ways import Case, Way, way_of
from crowd.platforms import traits_of
from crowd.platforms.base import Kind, SubmissionState
from experiments.selectors import definition_of

READ = (
    *(field.attname for field in Payout._meta.concrete_fields),
    *("session__participant__pseudonym", "session__submission__posting_id", "session__submission__state"),
    *("session__submission__return_requested", "session__submission__seen_at"),
    *("session__submission__person_hash", "session__submission__external_id"),
    *("session__submission__identity__person_hash", "session__submission__identity__external_id"),
)
"""The columns that a standing needs, for up to 20,000 payouts: no answers, devices or lists of bonuses."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One due payout and the way to pay it.

    `submission` and `person` are the platform's ids; it is proved that they belong to the session. `name` is
    the beginning of the pseudonym.
    """

    row: Payout
    way: Way
    name: str
    submission: str = ""
    person: str = ""


def standings(posting: Posting) -> list[Standing]:
    """Every due payout of the posting, oldest first."""
    rows = Payout.objects.filter(posting=posting, state=Payout.State.DUE).order_by("pk")
    rows = rows.select_related("session__submission__identity", "session__participant").only(*READ)
    return _standings(posting, rows)


def _standings(posting: Posting, rows: Iterable[Payout]) -> list[Standing]:
    bases = dict(
        Payout.objects.filter(posting=posting, kind=Payout.Kind.BASE)
        .exclude(state=Payout.State.FAILED)
        .values_list("session_id", "state")
    )
    approval_cents = terms_of(posting).base_cents
    refusal = _posting_refusal(posting)
    result = []
    for row in rows:
        submission: Submission | None = getattr(row.session, "submission", None)
        name = str(row.session.participant.pseudonym)[:8]
        why = refusal or _refusal(posting, row, submission, approval_cents)
        if why or submission is None or submission.identity is None:
            result.append(Standing(row, Way("wait", why), name))
            continue
        case = Case(
            kind=cast(Kind, row.kind),
            cents=row.cents,
            state=cast(SubmissionState, submission.state),
            approval_cents=approval_cents,
            has_base=_stands(bases.get(row.session_id), submission.state),
            return_requested=submission.return_requested,
            pays_returned=traits_of(posting.platform).pays_returned,
        )
        result.append(
            Standing(row, way_of(case), name, submission.external_id, submission.identity.external_id)
        )
    return result


def _stands(base: str | None, work: str) -> bool:
    """Whether the session has a reward of its own, so that other amounts are paid in addition to it.

    A withheld reward counts as one, unless the platform may still pay it or has paid it.
    """
    if base == Payout.State.WITHHELD:
        return work not in {"awaiting", "approved"}
    return base is not None


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


def _refusal(posting: Posting, row: Payout, submission: Submission | None, approval_cents: int) -> str:
    """Why this amount may not be sent to the person that the platform lists; empty: it may."""
    if submission is None or submission.posting_id != posting.pk:
        return "The session did not come by this posting. Pay by hand, or withhold it."
    if row.currency != posting.currency:
        return (
            f"The ledger owes {amount_of(row.cents, row.currency)}, and the posting pays in "
            f"{posting.currency}: nothing is sent. Withhold it and pay by hand."
        )
    if submission.seen_at is None:
        return (
            "The platform does not list their work: they have not handed it in there. If they cannot any "
            "more, pay by hand, then withhold it."
        )
    identity = submission.identity
    if identity is None or identity.person_hash != submission.person_hash:
        return (
            "The platform says that this submission is another person's: the address was forged. Withhold "
            "it; the true person is on the platform's page."
        )
    if not submission.external_id:
        return "The platform's id was removed at the person's wish, so it must be paid by hand."
    if row.kind == Payout.Kind.BASE and row.cents != approval_cents:
        return (
            f"Approving pays {amount_of(approval_cents, posting.currency)}, and the ledger owes "
            f"{amount_of(row.cents, row.currency)}. Pay by hand, or withhold it."
        )
    return ""
