"""The four numbers of a study's money, which add up, and every payment and fee as a table for the finance
office."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from django.db.models import Count, Q, Sum

from analysis.spreadsheet_cells import escape_cell
from crowd.ground.amounts import plain
from crowd.models import Payout, PayoutBatch, Posting, StatementLine
from crowd.money.expense_cap import set_aside, spent_of
from crowd.money.platform_statement import name_of
from crowd.platforms import has_service
from experiments.models import Study

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

COLUMNS = (
    "date_utc", "platform", "mode", "participant", "what", "amount", "currency", "state", "by", "reason",
    "receipt", "seen_on_statement_utc",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Books:
    """In cents. `spent`: what people got or may have got, also what the platform shows beyond the ledger;
    `fees`: the platform's on it; `due`: decided and not sent; `aside`: for people who are taking part and
    places
    that are offered, at most, with fees. Together they are the most that it can cost by now, `total`."""

    spent: int
    fees: int
    due: int
    aside: int
    cap: int
    currency: str

    @property
    def total(self) -> int:
        return self.spent + self.fees + self.due + self.aside

    def lines(self) -> list[tuple[str, int]]:
        return [
            ("Spent on people", self.spent),
            ("Fees of the platform", self.fees),
            ("Still due", self.due),
            ("Set aside for people taking part and open places", self.aside),
            ("Together", self.total),
            ("Cap", self.cap),
        ]


def books_of(postings: Sequence[Posting]) -> Books:
    """The sums over postings of one mode and currency."""
    chosen = [posting for posting in postings if has_service(posting.platform)]
    spent = spent_of(chosen).values()
    due = Payout.objects.filter(posting__in=[posting.pk for posting in chosen], state=Payout.State.DUE)
    return Books(
        spent=sum(each.cents for each in spent),
        fees=math.ceil(sum(each.fees for each in spent)),
        due=due.aggregate(n=Sum("cents"))["n"] or 0,
        aside=sum(set_aside(posting) for posting in chosen),
        cap=sum(posting.cap_cents for posting in chosen),
        currency=chosen[0].currency if chosen else "",
    )


def write_books(study: Study, path: Path, concealed: Collection[str] = ()) -> None:
    """Every payment and fee of a study as a file of CSV; people by pseudonym."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        write_rows(study, file, concealed)


def write_rows(study: Study, to: SupportsWrite[str], concealed: Collection[str] = ()) -> None:
    """The same to an open file or response. Bonuses of `concealed` origins stand there as one sum, because
    each would tell a sealed score."""
    writer = csv.writer(to)
    writer.writerow(COLUMNS)
    rows = [*_payouts(study, concealed), *_accepted_lines(study), *_fees(study)]
    writer.writerows([escape_cell(cell) for cell in row] for row in rows)


def _payouts(study: Study, concealed: Collection[str]) -> Iterator[tuple[str, ...]]:
    payouts = Payout.objects.filter(posting__study=study).order_by("pk")
    sealed = Q(kind=Payout.Kind.BONUS, session__origin__in=list(concealed))
    for row in payouts.exclude(sealed).select_related(
        "submission__posting__study", "posting", "submission__session__participant"
    ):
        yield (
            _time(row.sent_at or row.created_at), row.posting.platform, row.posting.mode,
            name_of(row.submission), row.get_kind_display(), plain(row.cents), row.currency,
            row.get_state_display(), row.decided_by, row.reason, row.receipt, _time(row.confirmed_at),
        )  # fmt: skip
    sums = (
        payouts.filter(sealed)
        .order_by("posting", "state")
        .values_list("posting__platform", "posting__mode", "currency", "state")
    )
    for platform, mode, currency, state, count, cents in sums.annotate(n=Count("pk"), c=Sum("cents")):
        yield (
            "", platform, mode, f"{count} people", "Bonuses, sealed", plain(cents), currency,
            Payout.State(state).label, "", "", "", "",
        )  # fmt: skip


def _accepted_lines(study: Study) -> Iterator[tuple[str, ...]]:
    """What the platform shows beyond the ledger, and a named person has explained."""
    lines = StatementLine.objects.filter(submission__posting__study=study, accepted__gt=0).order_by("pk")
    for line in lines.select_related("submission__posting__study", "submission__session__participant"):
        posting = line.submission.posting
        yield (
            _time(line.first_at), posting.platform, posting.mode, name_of(line.submission),
            f"{line.get_kind_display()}, not by the ledger", plain(line.cents * line.accepted),
            posting.currency, "accepted", line.accepted_by, line.accepted_reason, "", _time(line.read_at),
        )  # fmt: skip


def _fees(study: Study) -> Iterator[tuple[str, ...]]:
    """Fees of bonuses, as the platform told them. It does not tell those of rewards."""
    batches = PayoutBatch.objects.filter(posting__study=study, fees_cents__gt=0)
    for batch in batches.exclude(state=PayoutBatch.State.DROPPED).select_related("posting").order_by("pk"):
        yield (
            _time(batch.called_at), batch.posting.platform, batch.posting.mode, "", "Fee",
            f"{batch.fees_cents / 100:.4f}", batch.currency, batch.get_state_display(), batch.by, "", "", "",
        )  # fmt: skip


def _time(moment: object) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else ""
