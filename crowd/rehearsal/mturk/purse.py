"""The requester's money: what it holds, what it paid, and the platform's fees."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from crowd.rehearsal.mturk.records import Transfer, TurkRefusal, Work

CENT = Decimal("0.01")
FEE = Decimal("0.20")
FEE_OF_TEN = Decimal("0.20")
"""Added to the fee, for the reward of a HIT with ten or more assignments."""
FEE_OF_MASTERS = Decimal("0.05")
STEP = 10


def fee_on(dollars: Decimal, rate: Decimal) -> Decimal:
    """The fee on one payment: rounded half up to cents, one cent at least."""
    return max(CENT, (dollars * rate).quantize(CENT, ROUND_HALF_UP))


def reward_rate(places: int, masters: bool) -> Decimal:
    return FEE + (FEE_OF_TEN if places >= STEP else 0) + (FEE_OF_MASTERS if masters else 0)


def in_cents(dollars: Decimal) -> int:
    return int(dollars * 100)


class TurkPurse:
    """Money comes in at the start and by `fund`; it leaves only by `pay`, and every payment is recorded."""

    def __init__(self, dollars: Decimal) -> None:
        self.received = self.balance = dollars.quantize(CENT)
        self.payments: list[Transfer] = []

    def fund(self, dollars: Decimal) -> None:
        """Adds money; a negative amount takes it away."""
        self.received += dollars
        self.balance += dollars

    def require(self, dollars: Decimal) -> None:
        if dollars > self.balance:
            raise TurkRefusal(
                "InsufficientFunds",
                "This Requester has insufficient funds in their account to complete this transaction.",
            )

    def pay(
        self,
        kind: Literal["reward", "bonus"],
        work: Work,
        dollars: Decimal,
        rate: Decimal,
        at: datetime,
        reason: str = "",
    ) -> Transfer:
        """Pays amount and fee, both or neither."""
        fee = fee_on(dollars, rate)
        self.require(dollars + fee)
        self.balance -= dollars + fee
        paid = Transfer(kind, work, dollars, fee, at, reason)
        self.payments.append(paid)
        return paid

    def paid(self, work: Work, kind: Literal["reward", "bonus"]) -> list[Transfer]:
        return [paid for paid in self.payments if paid.work is work and paid.kind == kind]
