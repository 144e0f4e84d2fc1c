"""The next batch of each posting as a preview, and paying it by a worker once its total was typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from crowd.accounts import market_of
from crowd.audit import record
from crowd.dashboard.money import money_text
from crowd.dashboard.postings import NAMES, mode_word
from crowd.dashboard.sittings import KIND_WORDS, namer
from crowd.locks import Held, exclusive
from crowd.models import Payout, Posting
from crowd.platforms import has_market
from crowd.platforms.base import PlatformError, Unsupported
from crowd.settlement import Plan, plan_of
from experiments.errors import StudyError
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
    command: str

    @property
    def total(self) -> str:
        return money_text(self.total_cents, self.currency)


def batches_of(study: Study, mode: str) -> list[PayablePosting]:
    """Every posting of the mode to which something is due, from the rows alone."""
    due = Payout.objects.filter(state=Payout.State.DUE).values("posting")
    rows = Posting.objects.filter(study=study, mode=mode, pk__in=due).select_related("study").order_by("pk")
    postings = [posting for posting in rows if has_market(posting.platform)]
    plans = [plan_of(posting) for posting in postings]
    names = _names(study, plans)
    return [_batch(posting, plan, names) for posting, plan in zip(postings, plans, strict=True)]


def batch_of(posting: Posting) -> PayablePosting:
    """The batch of one posting, for paying it; without names."""
    return _batch(posting, plan_of(posting), {})


def _batch(posting: Posting, plan: Plan, names: dict[str, str]) -> PayablePosting:
    return PayablePosting(
        posting=posting,
        where=NAMES.get(posting.platform, posting.platform),
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


def pay(posting_id: int, by: str, typed_cents: int) -> None:
    """The task of a worker: reads the platform first, and pays only if the total is still the typed one. A
    failure is shown in the log and on the posting's card.
    """
    posting = Posting.objects.select_related("study").filter(pk=posting_id).first()
    if posting is None:
        return
    busy = "Another settle of this study is running. Wait until it has ended."
    try:
        with exclusive(f"settle-{posting.study.slug}", busy) as held:
            _pay(posting, by, typed_cents, held)
    except (StudyError, PlatformError, Unsupported) as error:
        _note(posting, by, f"Paying failed: {error} Nothing is lost; settle again later.")


def _pay(posting: Posting, by: str, typed_cents: int, held: Held) -> None:
    from crowd.reconciling import catch_up
    from crowd.settlement import settle

    market = market_of(posting)
    catch_up(posting, market)
    plan = plan_of(posting)
    if plan.total_cents != typed_cents:
        typed = money_text(typed_cents, plan.currency)
        _note(
            posting,
            by,
            f"Nothing was paid: {typed} was typed, and after a look at the platform {plan.total} is due. "
            "Look at the batch again.",
        )
        return
    outcome = settle(posting, plan, by, held=held, market=market)
    catch_up(posting, market)
    if outcome.stopped:
        _note(posting, by, f"Paying ended early: {outcome.stopped} Nothing is lost; settle again later.")


def _note(posting: Posting, by: str, sentence: str) -> None:
    Posting.objects.filter(pk=posting.pk).update(sync_error=sentence)
    record(posting.study, by, f"{posting.platform}: {sentence}")
