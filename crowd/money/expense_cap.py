"""The platform's fees, and what counts against a posting's cap: payments and fees together.

The platform tells the fees of a bonus when the bonus is announced. It does not tell those of an approval
before it is paid, so they are estimated by the rate of the platform's quote.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from django.db import transaction
from django.db.models import Sum

from crowd.ground import audit, platform_clock
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting
from crowd.money.ledger import SPENT_STATES, PayoutRefused, name_and_reason, terms_of
from crowd.money.platform_statement import tallies_of
from crowd.platforms.base import BadOptions, PlatformError, PostingSpec, Service, UnsupportedRequest
from crowd.recruiting.places import outstanding
from crowd.study_check.publication_quote import spec_of
from experiments.errors import StudyError
from experiments.models import Session
from experiments.selectors import definition_of

UNKNOWN = Fraction(1, 2)
"""The rate until the platform tells its own. It is higher than any known rate, so that a run never pays more
than the cap allows."""
REASON_MIN = 20
"""Characters of the reason for another cap."""
PROBE_CENTS = 10_000
"""The bonus whose fee the platform is asked for. It is large, so that rounding does not change the rate."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Fees as shares (0-1) of what people get, for each way of paying."""

    approve: Fraction = UNKNOWN
    bonus: Fraction = UNKNOWN

    def on(self, way: str, cents: int) -> Fraction:
        """The fees of one payment, not rounded: the sum of many payments is rounded once."""
        return cents * (self.approve if way == "approve" else self.bonus)


@dataclass(frozen=True, slots=True)
class Expenses:
    """What people got or may have got, and the platform's fees for it, not rounded."""

    cents: int = 0
    fees: Fraction = Fraction(0)

    @property
    def fees_cents(self) -> int:
        return math.ceil(self.fees)

    @property
    def all(self) -> Fraction:
        return self.cents + self.fees

    @property
    def all_cents(self) -> int:
        return math.ceil(self.all)


def rates_of(posting: Posting) -> Rates:
    """The rates that the platform told last."""
    known = posting.fee_rates
    if not known:
        return Rates()
    return Rates(Fraction(*known["approve"]), Fraction(*known["bonus"]))


def posting_expenses(posting: Posting) -> Expenses:
    """What was sent or may have been, with fees: never more than the posting's cap."""
    return spent_of([posting])[posting.pk]


def spent_of(postings: Sequence[Posting]) -> dict[int, Expenses]:
    """The same for several. What the platform shows as paid beyond the ledger counts too."""
    rates = {posting.pk: rates_of(posting) for posting in postings}
    rows = Payout.objects.filter(posting__in=list(rates), state__in=SPENT_STATES).order_by()
    batches = rows.values_list(
        "posting", "state", "batch", "batch__purpose", "batch__fees_cents", "batch__cents"
    ).annotate(n=Sum("cents"))
    cents, fees = dict.fromkeys(rates, 0), dict.fromkeys(rates, Fraction(0))
    for posting, state, batch, purpose, told, whole, part in batches:
        cents[posting] += part
        if state == Payout.State.BY_HAND:
            continue  # No platform was asked, so none charges a fee.
        if batch is None or purpose == "base":
            fees[posting] += rates[posting].on("approve", part)
        elif whole:
            # The fees are those of the whole batch. A failed payment is not in it any more, nor is its fee.
            fees[posting] += Fraction(told) * part / whole
    for posting, kind, extra in _beyond(postings):
        cents[posting] += extra
        fees[posting] += rates[posting].on("bonus" if kind == "bonus" else "approve", extra)
    return {pk: Expenses(cents[pk], fees[pk]) for pk in rates}


def _beyond(postings: Sequence[Posting]) -> Iterator[tuple[int, str, int]]:
    """Posting, kind and cents of what a platform shows as paid and no payout explains, whether a person has
    accepted it or not."""
    for posting, tallied in tallies_of(postings, platform_clock.now()).items():
        for tally in tallied.values():
            for kind, cents in tally.match.surplus:
                yield posting, kind, cents


def check_room(posting: Posting, cents: int, way: str) -> None:
    """Raises PayoutRefused if one more payment, with its fees, exceeds the cap."""
    fees = rates_of(posting).on(way, cents) if way != "by hand" else Fraction(0)
    total = math.ceil(posting_expenses(posting).all + cents + fees)
    if total > posting.cap_cents:
        raise PayoutRefused(over_cap(posting, total))


def over_cap(posting: Posting, wanted: Fraction | int) -> str:
    """The sentence for what the cap does not allow."""
    return (
        f"The posting's cap of {amount_of(posting.cap_cents, posting.currency)} would be exceeded. Raise it "
        f"to at least {amount_of(math.ceil(wanted), posting.currency)}, fees included."
    )


def change_cap(posting: Posting, cents: int, who: str, reason: str) -> None:
    """Changes the most that a posting may pay in all, fees included, in a person's name: upwards, or down to
    what is paid, committed and set aside for people who are taking part. Raises PayoutRefused."""
    name_and_reason(who, reason)
    if len(reason.strip()) < REASON_MIN:
        raise PayoutRefused(f"Give the reason in at least {REASON_MIN} characters; the log keeps it.")
    with transaction.atomic():
        # Payments take the same row, so that none slips between the check and the new cap.
        row = Posting.objects.select_for_update().get(pk=posting.pk)
        if cents == row.cap_cents:
            raise PayoutRefused(f"The cap is {amount_of(cents, row.currency)} already. Give another amount.")
        least = least_cap(row)
        if cents < min(least, row.cap_cents):
            raise PayoutRefused(
                f"{amount_of(cents, row.currency)} is less than what is paid, committed and set aside with "
                f"fees. Give at least {amount_of(min(least, row.cap_cents), row.currency)}, or first "
                "close the posting."
            )
        Posting.objects.filter(pk=row.pk).update(cap_cents=cents)
        word = "Raised" if cents > row.cap_cents else "Lowered"
        audit.record(
            row.study,
            who,
            f"{word} the cap on {row.platform} from {amount_of(row.cap_cents, row.currency)} to "
            f"{amount_of(cents, row.currency)}: {reason}",
        )
    posting.cap_cents = cents


def least_cap(posting: Posting) -> int:
    """What is paid, due, and set aside for people at work and places that are offered, with fees, in
    cents."""
    rates = rates_of(posting)
    due = Payout.objects.filter(posting=posting, state=Payout.State.DUE).aggregate(n=Sum("cents"))["n"] or 0
    fees = max(rates.approve, rates.bonus) * due
    return math.ceil(posting_expenses(posting).all + due + fees) + set_aside(posting)


def set_aside(posting: Posting) -> int:
    """The most that people who are taking part, and places that are offered, can still cost, with fees."""
    if posting.state == Posting.State.CLOSED:
        coming = _taking_part(posting)
    else:
        coming = outstanding(posting) + _taking_part(posting)
    rates = rates_of(posting)
    most = coming * definition_of(posting.study).reward.most_cents
    return math.ceil(most * (1 + max(rates.approve, rates.bonus)))


def _taking_part(posting: Posting) -> int:
    """People who hold a slot and have not ended; those at the gates are among the outstanding places."""
    return Session.objects.filter(submission__posting=posting, state__in=["assigned", "running"]).count()


def learn(posting: Posting, service: Service) -> str:
    """Asks the platform for its rates if they are not known for so many places. Returns a sentence if it does
    not tell them; raises PlatformError if asking again may help."""
    if posting.fee_rates.get("places") == posting.places:
        return ""
    try:
        rates = _ask_rates(posting, service)
    except (BadOptions, StudyError, UnsupportedRequest) as error:
        return _untold(posting, error)
    except PlatformError as error:
        if not error.permanent:
            raise
        return _untold(posting, error)
    posting.fee_rates = rates
    posting.save(update_fields=["fee_rates"])
    return ""


def _untold(posting: Posting, error: Exception) -> str:
    if posting.fee_rates:
        return ""
    return (
        f"{posting.platform} does not tell its fees ({error}), so the cap counts half of each amount for "
        "them. Raise the cap if that is too much."
    )


def _ask_rates(posting: Posting, service: Service) -> dict[str, Any]:
    spec = _plain(posting)
    rewards = spec.places * spec.reward_cents
    base = service.quote(spec).total_cents - rewards
    probe = spec.places * PROBE_CENTS
    both = service.quote(replace(spec, bonus_max_cents=PROBE_CENTS)).total_cents - rewards - probe
    return {
        "places": posting.places,
        "approve": [max(0, base), rewards],
        "bonus": [max(0, both - base), probe],
    }


def _plain(posting: Posting) -> PostingSpec:
    """The posting as an offer in which only approvals are paid."""
    options = dict(posting.options)
    options |= {name: plain for name, plain in PLAIN.items() if name in options}
    return replace(
        spec_of(posting),
        reward_cents=terms_of(posting).base_cents,
        bonus_max_cents=0,
        screened_cents=0,
        turned_away_cents=0,
        withdrawn="none",
        options=options,
    )


PLAIN: dict[str, Any] = {"base_share": 1.0, "fixed_screen_out": False}
"""Neutral values of the options that would split a reward or pay in addition to it."""
