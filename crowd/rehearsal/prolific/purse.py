"""The workspace's purse: what it holds, what is set aside, and every movement."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

from crowd.rehearsal.prolific.records import Movement

FEE_BP = 3333
VAT_BP = 2000
"""Platform fee on what people get, and value added tax on the fee, in hundredths of a per cent."""


class ProlificPurse:
    """Money comes in by `fund` and leaves by `pay` alone. A fee and its tax are rounded to `1 / fee_parts` of
    a minor unit: the platform's amounts are documented as doubles."""

    def __init__(
        self,
        balance_cents: int,
        currency: str,
        fee_bp: int = FEE_BP,
        vat_bp: int = VAT_BP,
        fee_parts: int = 1,
    ) -> None:
        self.received = self.balance = Decimal(balance_cents)
        self.currency, self.fee_bp, self.vat_bp, self.fee_parts = currency, fee_bp, vat_bp, fee_parts
        self.entries: list[Movement] = []

    def fund(self, cents: int) -> None:
        self.received += cents
        self.balance += cents

    def fees_on(self, cents: int) -> tuple[Decimal, Decimal]:
        """Fee and tax on one payment, rounded half up."""
        fees = self._share(Decimal(cents), self.fee_bp)
        return fees, self._share(fees, self.vat_bp)

    def _share(self, amount: Decimal, hundredths: int) -> Decimal:
        parts = amount * self.fee_parts * hundredths / 10_000
        return parts.quantize(Decimal(1), ROUND_HALF_UP) / self.fee_parts

    def cost(self, cents: int) -> Decimal:
        """What one payment takes out of the purse."""
        return sum(self.fees_on(cents), Decimal(cents))

    def pay(
        self,
        kind: Literal["reward", "screen_out", "bonus"],
        study: str,
        submission: str,
        cents: int,
        at: datetime,
    ) -> None:
        fees, vat = self.fees_on(cents)
        self.balance -= cents + fees + vat
        self.entries.append(Movement(kind, study, submission, cents, fees, vat, at))
