"""A run over a posting: look at the platform, plan, confirm, send, look again. Terminal and pages use it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from crowd.ground import platform_clock
from crowd.ground.amounts import amount_of
from crowd.ground.audit import record
from crowd.ground.platform_accounts import service_of
from crowd.ground.process_locks import HeldLock, exclusive
from crowd.models import Identity, Payout, Posting
from crowd.money.expense_cap import learn, rates_of
from crowd.money.ledger import UNSETTLED, decide_due, decide_for
from crowd.money.needs_hand import Hand, hands_of
from crowd.money.payout_readiness import Ids, Standing
from crowd.money.plan import Among, Plan, plan_of, sums_of
from crowd.money.platform_statement import read
from crowd.money.reconciling import Reconciliation, awaited_payouts, reconcile, recover, unknown_until
from crowd.money.sending import Outcome, settle
from crowd.platforms.base import ListedSubmission, PlatformError, Service, UnsupportedRequest
from crowd.recruiting.sync import SyncResult, sync_posting
from experiments.errors import StudyError
from experiments.models import Session
from experiments.sessions.lifecycle import ENDED

Sums = dict[str, tuple[int, int]]
Confirm = Callable[[Plan], None]
"""Raises if the plan that the platform has just led to may not be sent."""
BUSY = "Money of this study is being settled at this moment. Wait until that has ended, then try again."


class NotRead(StudyError):
    """The platform's list could not be read, so nothing was paid and nothing is lost."""


@dataclass(slots=True)
class Ran:
    """What a run over one posting has learned and done. `troubles` are the sentences for which it counts as
    not successful; `hands` is what is left for a person to do."""

    result: Reconciliation
    plan: Plan
    before: Sums
    after: Sums | None = None
    outcome: Outcome = field(default_factory=Outcome)
    again: Reconciliation | None = None
    troubles: list[str] = field(default_factory=list)
    hands: list[Hand] = field(default_factory=list)


def look(posting: Posting, *, everything: bool = False, replace: bool = True) -> SyncResult:
    """Reads the platform's list and statement into our rows: the bonuses of people for whom they matter now,
    or of all, with `everything`. Without `replace` nothing is changed on the platform."""

    def statement(
        row: Posting, service: Service, listings: Sequence[ListedSubmission], at: datetime
    ) -> list[str]:
        return read(row, service, listings, at, everything=everything)

    return sync_posting(posting, is_owed, statement, replace=replace)


def is_owed(identity: Identity) -> bool:
    """Whether a person is still to be paid, or may earn pay. Open sessions are read before the payouts are
    decided: one that ends in between counts as open."""
    sessions = Session.objects.filter(participant=identity.participant_id)
    if sessions.exclude(state__in=ENDED).exists():
        return True
    for session in sessions:
        decide_for(session)
    unsettled = Payout.objects.filter(session__participant=identity.participant_id, state__in=UNSETTLED)
    return unsettled.exists()


def catch_up(posting: Posting, service: Service, *, replace: bool = True) -> Reconciliation:
    """Settles all payouts that the platform's statement can settle, and adds payouts for sessions that have
    ended.

    The caller holds the study's lock. Without `replace` nothing is changed on the platform, not even the
    number of places. Raises NotRead or PlatformError; it can be repeated after either.
    """
    return _caught_up(posting, service, replace)[0]


def _caught_up(posting: Posting, service: Service, replace: bool) -> tuple[Reconciliation, Ids]:
    recovered = recover(posting)
    read_at = platform_clock.now()
    synced = look(posting, replace=replace)
    if synced.error:
        raise NotRead(synced.error)
    posting.refresh_from_db()
    untold = learn(posting, service)
    decided = decide_due(posting)
    result = reconcile(posting, read_at)
    result.recovered, result.decided = recovered, decided
    result.notes += [untold] if untold else []
    return result, synced.ids


def run(
    posting: Posting,
    by: str,
    *,
    held: HeldLock,
    confirm: Confirm | None = None,
    first: Callable[[], None] | None = None,
    among: Among | None = None,
) -> Ran:
    """Looks at the platform, pays what is due if `confirm` does not raise, and looks again. Without `confirm`
    nothing is sent. `among` takes a part of the payouts.

    1. Look: the platform's list and statement become rows. `first` is done after it, and then it looks again.
    2. Plan: which payouts, in which way, under the cap; without what the account lacks money for.
    3. Confirm: a person, or the total that one has typed.
    4. Send, each row before its request.
    5. Look again, so that what was sent is matched now and not at the next run.
    6. Say what only a person can settle.

    `held` is the study's lock. Raises NotRead, PlatformError, Unsupported before anything was sent, and what
    `confirm` raises.
    """
    service = service_of(posting)
    result, ids = _caught_up(posting, service, replace=confirm is not None)
    if first is not None:
        first()
        result, ids = _caught_up(posting, service, replace=confirm is not None)
    ran = Ran(result, plan_of(posting, ids, among), sums_of(posting))
    if confirm is not None:
        lacking = _lacking(service, ran.plan, posting)
        if lacking:
            ran.plan = plan_of(posting, ids, among, lacking=lacking)
            ran.troubles.append(lacking)
        confirm(ran.plan)
    if confirm is not None and ran.plan.payables:
        ran.outcome = settle(posting, ran.plan, by, held=held, service=service)
        try:
            ran.again = catch_up(posting, service)
        except (NotRead, PlatformError, UnsupportedRequest) as error:
            ran.troubles.append(f"{error} Nothing is lost; run settle again later.")
    ran.after = sums_of(posting) if confirm is not None else None
    ran.hands = hands_of(posting)
    ran.troubles = [*_of_sending(ran.outcome), *ran.troubles, *_unknown(posting)]
    if ran.again is not None and ran.again.due_again:
        ran.troubles.append(
            f"{ran.again.due_again} did not reach {posting.platform} and are due again. Run settle again."
        )
    ran.troubles += [str(hand) for hand in ran.hands if hand.is_trouble]
    if ran.again is not None and among is None and not ran.troubles:
        ran.troubles += _late_payouts(posting)
    return ran


def _late_payouts(posting: Posting) -> list[str]:
    """What could not be paid at the first look and can be at the second: the confirmed total did not name it,
    so it waits for the next run."""
    left = plan_of(posting)
    if not left.payables:
        return []
    count = len(left.payables)
    return [
        f"{count} payout{'s' if count != 1 else ''} ({left.total}) on {posting.platform} could be paid only "
        "after this run had begun, and were not in its total. Run settle again."
    ]


def _lacking(service: Service, plan: Plan, posting: Posting) -> str:
    """What the account lacks for the bonuses, said before the sum is typed; empty: nothing. Rewards were set
    aside when the posting was published, and do not wait for it."""
    bonuses = sum(payable.cents for payable in plan.payables if payable.way == "bonus")
    if not bonuses:
        return ""
    _, held = service.balance()
    needed = bonuses + math.ceil(rates_of(posting).on("bonus", bonuses) if posting.fee_rates else 0)
    if held is None or held >= needed:
        return ""
    return (
        f"The account on {posting.platform} holds {amount_of(held, plan.currency)}, and "
        f"{amount_of(needed, plan.currency)} are needed for bonuses, fees included: "
        f"{amount_of(needed - held, plan.currency)} are missing. The bonuses wait, and what approving pays "
        "does not; pay them in, then run settle again."
    )


def _of_sending(outcome: Outcome) -> list[str]:
    if outcome.stopped:
        return [f"{outcome.stopped} Nothing is lost; run settle again later."]
    return [f"{count} not paid: {why}" for why, count in outcome.problems.items()]


def _unknown(posting: Posting) -> list[str]:
    until = unknown_until(posting)
    if until is None:
        return []
    amounts = list(awaited_payouts(posting).values_list("cents", flat=True))
    count, cents = len(amounts), sum(amounts)
    return [
        f"{count} payout{'s' if count != 1 else ''} ({amount_of(cents, posting.currency)}) on "
        f"{posting.platform} may or may not have been paid. Run settle again after "
        f"{until:%Y-%m-%d %H:%M:%S} UTC: then the platform's statement decides."
    ]


def pay(posting_id: int, by: str, typed_cents: int) -> None:
    """The task of a worker: reads the platform first, and pays only if the total is still the typed one. What
    goes wrong stands in the log and on the posting's card."""
    posting = Posting.objects.select_related("study").filter(pk=posting_id).first()
    if posting is None:
        return
    try:
        with exclusive(f"settle-{posting.study.slug}", BUSY) as held:
            ran = run(posting, by, held=held, confirm=lambda plan: _is_as_typed(plan, typed_cents))
    except OtherTotal as error:
        _note(posting, by, str(error))
        return
    except (StudyError, PlatformError, UnsupportedRequest) as error:
        _note(posting, by, f"Paying failed: {error} Nothing is lost; settle again later.")
        return
    if ran.troubles:
        _note(posting, by, " ".join(dict.fromkeys(ran.troubles)))


class OtherTotal(StudyError):
    """The platform changed what is due since the total was typed."""


def _is_as_typed(plan: Plan, typed_cents: int) -> None:
    # The page cannot know that the account lacks the money for bonuses: what approving pays is sent then.
    if typed_cents not in (plan.total_cents, plan.total_cents + plan.lacking_cents):
        raise OtherTotal(
            f"Nothing was paid: {amount_of(typed_cents, plan.currency)} was typed, and after a look at the "
            f"platform {plan.total} is due. Look at the batch again."
        )


def pay_only(
    posting: Posting, submissions: Collection[int], way: Literal["approve", "bonus"], by: str
) -> Ran:
    """Pays, in a person's name, what is due to some submissions one way. Raises Busy, NotRead, PlatformError,
    Unsupported."""

    def among(standing: Standing) -> bool:
        return standing.way.action == way and standing.row.submission_id in submissions

    with exclusive(f"settle-{posting.study.slug}", BUSY) as held:
        return run(posting, by, held=held, confirm=lambda plan: None, among=among)


def _note(posting: Posting, by: str, sentence: str) -> None:
    Posting.objects.filter(pk=posting.pk).update(sync_error=sentence)
    record(posting.study, by, f"{posting.platform}: {sentence}")
