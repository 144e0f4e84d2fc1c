"""Bonuses in two steps: announced, which pays nothing; then paid by one request that is never repeated."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction

from crowd.platforms.base import (
    Account,
    Line,
    Payment,
    PlatformError,
    Posted,
    Prepared,
    Settled,
    Shown,
    Unread,
    Unsupported,
)
from crowd.platforms.prolific.entry import ID
from crowd.platforms.prolific.money import currency_of, exact, major, whole
from crowd.platforms.prolific.submissions import detail
from crowd.platforms.prolific.wire import Refused, Wire, segment

LINES_MAX = 200


def as_lines(payments: Sequence[Payment]) -> str:
    """The list that Prolific takes: `submission,1.50` per line, no header, amounts in major units."""
    return "\n".join(f"{payment.submission},{major(payment.cents)}" for payment in payments)


def prepare(wire: Wire, account: Account, posted: Posted, payments: Sequence[Payment]) -> Prepared:
    """Announces the payments and compares what Prolific understood, to the cent."""
    _check(payments)
    if currency := posted.facts.get("currency"):
        currency_of(wire, account, str(currency))
    body = {"study_id": posted.external_id, "csv_bonuses": as_lines(payments)}
    data = wire.send("POST", "submissions/bonus-payments/", body).data
    if not isinstance(data, dict) or not data.get("id"):
        raise PlatformError("Prolific took the bonuses but did not name the batch. Nothing was paid.")
    amount, wanted = whole(data.get("amount"), "amount"), sum(payment.cents for payment in payments)
    if amount != wanted or data.get("study", posted.external_id) != posted.external_id:
        raise PlatformError(
            f"Prolific understood bonuses of {amount} minor units, not {wanted}. Nothing was paid.",
            permanent=True,
        )
    # Fees are bookkeeping: a fraction counts as the next whole cent, once for the batch.
    fees = sum((exact(data.get(name) or 0, name) for name in ("fees", "vat")), Fraction(0))
    return Prepared(str(data["id"]), amount, math.ceil(fees))


def pay(wire: Wire, prepared: Prepared, payments: Sequence[Payment]) -> list[Settled]:
    """Exactly one request: a second one would pay everyone again. No request if the sum is not the announced
    one."""
    wanted = sum(payment.cents for payment in payments)
    if not prepared.external_id or prepared.cents != wanted:
        raise PlatformError(
            f"The batch announces {prepared.cents}, but {wanted} are to be paid. Nothing was sent; "
            "prepare it again.",
            permanent=True,
        )
    try:
        status = wire.send("POST", f"bulk-bonus-payments/{segment(prepared.external_id)}/pay/").status
    except Refused as refused:
        if refused.uncertain:
            return [Settled(payment.reference, "unknown", str(refused)) for payment in payments]
        return [Settled(payment.reference, "failed", str(refused)) for payment in payments]
    if status != 202:
        doubt = f"Prolific answered {status} instead of 202. Look at its list of bonuses."
        return [Settled(payment.reference, "unknown", doubt) for payment in payments]
    return [Settled(payment.reference, "sent") for payment in payments]


def statement(wire: Wire, posted: Posted, submissions: Sequence[str]) -> Iterator[Shown | Unread]:
    """What Prolific's own record of each submission shows as paid. A record that cannot be read for good is
    named; a failure that may pass ends the reading."""
    for submission in dict.fromkeys(submissions):
        try:
            paid = detail(wire, posted, submission).get("bonus_payments") or []
            counts = Counter(whole(cents, "bonus_payments") for cents in paid)
        except PlatformError as error:
            if not error.permanent:
                raise
            yield Unread(str(error), submission)
            continue
        yield Shown(submission, tuple(Line("bonus", cents, n) for cents, n in sorted(counts.items())))


def _check(payments: Sequence[Payment]) -> None:
    if not 1 <= len(payments) <= LINES_MAX:
        raise Unsupported(f"A batch has {len(payments)} payments; Prolific takes 1 to {LINES_MAX}. Split it.")
    for payment in payments:
        if payment.cents < 1:
            raise Unsupported(f"A bonus of {payment.cents} cannot be paid; the least is 1 minor unit.")
        if not ID.fullmatch(payment.submission):
            raise Unsupported("A submission's id has a form that Prolific does not use; it is not sent.")
