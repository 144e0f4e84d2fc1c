"""The next batch of each posting as a preview."""

from __future__ import annotations

from dataclasses import dataclass

from crowd.dashboard.postings import mode_word, title_of
from crowd.dashboard.sittings import KIND_WORDS
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting
from crowd.money.plan import Plan, plan_of
from crowd.platforms import has_service
from experiments.models import Study

NAMES_SHOWN = 6
WAY_WORDS = {"approve": "approving the work", "bonus": "bonus payment"}


@dataclass(frozen=True, slots=True)
class PaymentLine:
    """Payouts of one kind that are paid in the same way."""

    kind: str
    way: str
    payouts: int
    cents: int


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Payouts that wait for the same reason, with the names of the first few people."""

    why: str
    names: tuple[str, ...]
    more: int
    payouts: int
    cents: int


@dataclass(frozen=True, slots=True)
class PayablePosting:
    """What one posting would pay now."""

    posting: Posting
    where: str
    mode: str
    currency: str
    lines: tuple[PaymentLine, ...]
    waiting: tuple[HeldBack, ...]
    people: int
    payouts: int
    total_cents: int
    fees_cents: int
    command: str

    @property
    def total(self) -> str:
        return amount_of(self.total_cents, self.currency)


def batches_of(study: Study, mode: str) -> list[PayablePosting]:
    """Every posting of the mode to which something is due, from the rows alone."""
    due = Payout.objects.filter(state=Payout.State.DUE).values("posting")
    rows = Posting.objects.filter(study=study, mode=mode, pk__in=due).select_related("study").order_by("pk")
    postings = [posting for posting in rows if has_service(posting.platform)]
    return [_batch(posting, plan_of(posting)) for posting in postings]


def batch_of(posting: Posting) -> PayablePosting:
    """The batch of one posting, for paying it."""
    return _batch(posting, plan_of(posting))


def _batch(posting: Posting, plan: Plan) -> PayablePosting:
    return PayablePosting(
        posting=posting,
        where=title_of(posting.platform),
        mode=mode_word(posting),
        currency=plan.currency,
        lines=tuple(
            PaymentLine(KIND_WORDS[kind], WAY_WORDS[way], payouts, cents)
            for kind, way, payouts, cents in plan.lines()
        ),
        waiting=tuple(
            HeldBack(
                line.why,
                line.names[:NAMES_SHOWN],
                max(0, len(line.names) - NAMES_SHOWN),
                line.payouts,
                line.cents,
            )
            for line in plan.waiting
        ),
        people=plan.people,
        payouts=len(plan.payables),
        total_cents=plan.total_cents,
        fees_cents=plan.fees_cents,
        command=command_of(posting),
    )


def command_of(posting: Posting) -> str:
    """The command for the terminal: without its last word it only shows the batch."""
    where = f"--platform {posting.platform} --mode {posting.mode}"
    return f"python manage.py settle {posting.study.slug} {where} --yes"
