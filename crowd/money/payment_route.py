"""Decides how a payout can be paid now, from what the platform shows of the submission. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crowd.platforms.base import Kind, SubmissionState

Action = Literal["approve", "bonus", "paid", "covered", "move", "wait", "fail"]
"""What to do with a payout.

approve: approve the submission, so that the platform pays its reward
bonus: send it as a bonus
paid: nothing, because the platform has paid it already
covered: nothing, because the platform has paid its whole reward instead
move: owe it as compensation instead
wait: nothing now
fail: nothing, because it can never be paid
"""
AT_WORK = frozenset({"reserved", "active", "unknown"})
GONE = frozenset({"returned", "timed_out"})
APPROVED = "approved"


@dataclass(frozen=True, slots=True)
class Case:
    """One payout with the platform's state of the submission. `approval_cents` is what approving pays;
    `has_base`: the session has a valid reward of its own, so this amount is added to it."""

    kind: Kind
    cents: int
    state: SubmissionState
    approval_cents: int
    has_base: bool = False
    return_requested: bool = False
    pays_returned: bool = True


@dataclass(frozen=True, slots=True)
class Way:
    """What to do, and the sentence for the researcher if nothing can be done now. `needs_hand`: only a person
    can change that."""

    action: Action
    why: str = ""
    needs_hand: bool = False


def way_of(case: Case) -> Way:
    """The only way in which this payout can be treated now."""
    if case.state in AT_WORK:
        return Way("wait", "The platform shows them still at work; it will list them when they have ended.")
    if case.state == "rejected":
        return _asks(
            "Rejected on the platform. Withhold the payout with the reason, or undo the rejection there."
        )
    if case.kind == "base":
        return _base(case)
    if case.kind == "bonus" or case.has_base:
        return _extra(case)
    return _alone(case)


def _base(case: Case) -> Way:
    if case.state == APPROVED:
        return Way("paid")
    if case.state == "awaiting":
        return Way("approve")
    if case.state in GONE:
        return Way("move") if case.pays_returned else _never()
    return _asks(
        "They finished, but the platform has paid them a part only. Withhold this payout and grant the "
        "difference as compensation."
    )


def _extra(case: Case) -> Way:
    if case.state in GONE and not case.pays_returned:
        return _never()
    return Way("bonus")


def _alone(case: Case) -> Way:
    """A payout for being screened out, or a compensation, that is not paid in addition to a reward.

    While the submission awaits review, the platform may still pay its whole reward, by a click or at its own
    deadline. So nothing is sent before the submission is gone.
    """
    if case.state == "screened_out" and case.kind == "screen_out":
        return Way("paid")
    if case.state == APPROVED and case.cents <= case.approval_cents:
        return Way("covered")
    if case.state in GONE:
        return Way("bonus") if case.pays_returned else _never()
    if case.state == "awaiting" and case.cents == case.approval_cents:
        return Way("approve")
    if case.state == "awaiting" and case.return_requested:
        return _asks(
            "They were asked to give the place back, and are paid once they have. Write to them; or approve "
            "their work on the platform, which pays the whole reward instead."
        )
    if case.state == "awaiting":
        return _asks(
            "Approving would pay the whole reward. Ask them to return their work; they are paid "
            "once they have."
        )
    return _asks("The platform has paid them a part already. Withhold this, or grant the difference.")


def _asks(why: str) -> Way:
    """Nothing now: a person has to act first."""
    return Way("wait", why, needs_hand=True)


def _never() -> Way:
    return Way(
        "fail",
        "The platform pays no bonus for a submission that was returned or timed out. Offer them a piece of "
        "work of their own that pays this amount, or pay by hand.",
    )
