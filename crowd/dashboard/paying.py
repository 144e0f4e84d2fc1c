"""The next batch of each posting as a preview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from crowd.dashboard.postings import mode_word, title_of
from crowd.dashboard.sittings import KIND_WORDS, namer
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting
from crowd.money.plan import Plan, plan_of
from crowd.platforms import has_service
from experiments.models import Participant, Study

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
    plans = [plan_of(posting) for posting in postings]
    names = _names(study, plans)
    return [_batch(posting, plan, names) for posting, plan in zip(postings, plans, strict=True)]


def batch_of(posting: Posting) -> PayablePosting:
    """The batch of one posting, for paying it; without names."""
    return _batch(posting, plan_of(posting), {})


def _batch(posting: Posting, plan: Plan, names: dict[str, str]) -> PayablePosting:
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
                tuple(names.get(name, name) for name in line.names[:NAMES_SHOWN]),
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


def _names(study: Study, plans: Sequence[Plan]) -> dict[str, str]:
    """The dashboard's names for the beginnings of pseudonyms that a plan gives."""
    short = {name for plan in plans for line in plan.waiting for name in line.names[:NAMES_SHOWN]}
    if not short:
        return {}
    wanted = Q()
    for name in short:
        wanted |= Q(pseudonym__startswith=name)
    name_of = namer(study)
    pseudonyms = Participant.objects.filter(wanted, study=study).values_list("pseudonym", flat=True)
    return {str(pseudonym)[:8]: name_of(pseudonym) for pseudonym in pseudonyms}


def command_of(posting: Posting) -> str:
    """The command for the terminal: without its last word it only shows the batch."""
    where = f"--platform {posting.platform} --mode {posting.mode}"
    return f"python manage.py settle {posting.study.slug} {where} --yes"
