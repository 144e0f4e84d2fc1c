"""The workspace's purse: what it holds, what is set aside, and every movement."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from crowd.rehearsal.prolific.records import Entry

FEE_BP = 3333
VAT_BP = 2000
"""Platform fee on what people get, and value added tax on the fee, in hundredths of a per cent."""


class Purse:
    """Money comes in by `fund` and leaves by `pay` alone."""

    def __init__(self, balance_cents: int, currency: str, fee_bp: int = FEE_BP, vat_bp: int = VAT_BP) -> None:
        self.received = self.balance = balance_cents
        self.currency, self.fee_bp, self.vat_bp = currency, fee_bp, vat_bp
        self.entries: list[Entry] = []

    def fund(self, cents: int) -> None:
        self.received += cents
        self.balance += cents

    def fees_on(self, cents: int) -> tuple[int, int]:
        """Fee and tax on one payment, rounded half up."""
        fees = (cents * self.fee_bp + 5_000) // 10_000
        return fees, (fees * self.vat_bp + 5_000) // 10_000

    def cost(self, cents: int) -> int:
        """What one payment takes out of the purse."""
        return cents + sum(self.fees_on(cents))

    def pay(
        self,
        kind: Literal["reward", "screen_out", "partial", "bonus"],
        study: str,
        submission: str,
        cents: int,
        at: datetime,
    ) -> None:
        fees, vat = self.fees_on(cents)
        self.balance -= cents + fees + vat
        self.entries.append(Entry(kind, study, submission, cents, fees, vat, at))

    def spent(self, study: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.study == study]
