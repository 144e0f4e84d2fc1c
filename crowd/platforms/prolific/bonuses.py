"""Bonuses in two steps: announced, which pays nothing; then paid by one request that is never repeated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from crowd.platforms.base import (
    BonusStatement,
    Line,
    Payment,
    PlatformError,
    PlatformPosting,
    PreparedPayments,
    Settlement,
    Unread,
    UnsupportedRequest,
)
from crowd.platforms.prolific.arrival_and_exit import ID
from crowd.platforms.prolific.money import currency_of, exact, major, whole
from crowd.platforms.prolific.submissions_and_messages import Submissions
from crowd.platforms.prolific.wire import ProlificError, segment

LINES_MAX = 200
BEFORE_THE_WALLET = {
    401: "No valid token was provided.",
    404: "The resource does not exist.",
    405: "You tried to access a resource with an invalid method.",
}
"""Answers to the paying call of which Prolific's page says what cannot be said of a call that reached the
wallet (docs.prolific.com, Get started, API fundamentals, "Error codes"). Of 429 the page on high loads says
that paying calls meet it at the wallet; of 400, 403, 422 and all others no page says whether anything was
queued, and the call is "not idempotent" (API reference, "Pay bonuses"). After those the payments are
unknown."""


def as_lines(payments: Sequence[Payment]) -> str:
    """The list that Prolific takes: `submission,1.50` per line, no header, amounts in major units."""
    return "\n".join(f"{payment.submission},{major(payment.cents)}" for payment in payments)


class ProlificBonuses(Submissions):
    """Pays bonuses and reads which were paid, for one account."""

    def prepare(self, posted: PlatformPosting, payments: Sequence[Payment]) -> PreparedPayments:
        """Announces the payments and compares what Prolific understood, to the cent."""
        _check(payments)
        if currency := posted.facts.get("currency"):
            currency_of(self.wire, self.account, str(currency))
        body = {"study_id": posted.external_id, "csv_bonuses": as_lines(payments)}
        data = self.wire.send("POST", "submissions/bonus-payments/", body).data
        if not isinstance(data, dict) or not data.get("id"):
            raise PlatformError("Prolific took the bonuses but did not name the batch. Nothing was paid.")
        fees = sum((exact(data.get(name) or 0, name) for name in ("fees", "vat")), Fraction(0))
        amount, wanted = _amount(data, fees), sum(payment.cents for payment in payments)
        if amount != wanted or data.get("study", posted.external_id) != posted.external_id:
            raise PlatformError(
                f"Prolific understood bonuses of {float(amount):g} minor units, not {wanted}. "
                "Nothing was paid.",
                permanent=True,
                of_account=True,
            )
        # Fees are bookkeeping: a fraction counts as the next whole cent, once for the batch.
        return PreparedPayments(str(data["id"]), wanted, math.ceil(fees))

    def pay(
        self, posted: PlatformPosting, prepared: PreparedPayments, payments: Sequence[Payment]
    ) -> list[Settlement]:
        """Exactly one request: a second one would pay everyone again. No request if the sum is not the
        announced one."""
        wanted = sum(payment.cents for payment in payments)
        if not prepared.external_id or prepared.cents != wanted:
            raise PlatformError(
                f"The batch announces {prepared.cents}, but {wanted} are to be paid. Nothing was sent; "
                "prepare it again.",
                permanent=True,
            )
        try:
            status = self.wire.send(
                "POST", f"bulk-bonus-payments/{segment(prepared.external_id)}/pay/"
            ).status
        except ProlificError as refused:
            is_unsent = not refused.status and not refused.uncertain
            if is_unsent or refused.status in BEFORE_THE_WALLET:
                return [Settlement(payment.reference, "failed", str(refused)) for payment in payments]
            doubt = f"{refused} It may be paid all the same; the statement will show it."
            return [Settlement(payment.reference, "unknown", doubt) for payment in payments]
        if status != 202:
            doubt = f"Prolific answered {status} instead of 202. Look at its list of bonuses."
            return [Settlement(payment.reference, "unknown", doubt) for payment in payments]
        return [Settlement(payment.reference, "sent") for payment in payments]

    def statement(
        self, posted: PlatformPosting, submissions: Sequence[str]
    ) -> Iterator[BonusStatement | Unread]:
        """What Prolific's own record of each submission shows as paid. A record that cannot be read for good
        is named; a failure that may pass ends the reading."""
        for submission in dict.fromkeys(submissions):
            try:
                paid = self.detail(posted, submission).get("bonus_payments") or []
                counts = Counter(whole(cents, "bonus_payments") for cents in paid)
            except PlatformError as error:
                if not error.permanent:
                    raise
                yield Unread(str(error), submission)
                continue
            yield BonusStatement(
                submission, tuple(Line("bonus", cents, n) for cents, n in sorted(counts.items()))
            )


def _amount(data: Mapping[str, Any], fees: Fraction) -> Fraction:
    """The sum that Prolific understood. Its reference calls `amount` a double or null; then the total less
    fees and tax says it."""
    if data.get("amount") is not None:
        return Fraction(whole(data["amount"], "amount"))
    if data.get("total_amount") is None:
        raise PlatformError(
            "Prolific took the bonuses without saying which sum it understood. Nothing was paid.",
            permanent=True,
            of_account=True,
        )
    return exact(data["total_amount"], "total_amount") - fees


def _check(payments: Sequence[Payment]) -> None:
    if not 1 <= len(payments) <= LINES_MAX:
        raise UnsupportedRequest(
            f"A batch has {len(payments)} payments; Prolific takes 1 to {LINES_MAX}. Split it."
        )
    for payment in payments:
        if payment.cents < 1:
            raise UnsupportedRequest(f"A bonus of {payment.cents} cannot be paid; the least is 1 minor unit.")
        if not ID.fullmatch(payment.submission):
            raise UnsupportedRequest(
                "A submission's id has a form that Prolific does not use; it is not sent."
            )
