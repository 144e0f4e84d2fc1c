"""The next batch of each posting as a preview."""

from __future__ import annotations

from dataclasses import dataclass

from crowd.dashboard.rows.postings import mode_word, title_of
from crowd.dashboard.rows.sessions import KIND_WORDS
from crowd.models import Payout, Posting
from crowd.money.plan import Plan, plan_of
from crowd.platforms import has_service
from experiments.models import Study

WAY_WORDS = {"approve": "approving the work", "bonus": "bonus payment"}


@dataclass(frozen=True, slots=True)
class PayablePosting:
    """What one posting would pay now: the plan, and its `lines` as kind, way, payouts and cents."""

    posting: Posting
    where: str
    mode: str
    plan: Plan
    lines: list[tuple[str, str, int, int]]
    command: str


def batches_of(study: Study, mode: str) -> list[PayablePosting]:
    """Every posting of the mode to which something is due, from the rows alone."""
    due = Payout.objects.filter(state=Payout.State.DUE).values("posting")
    rows = Posting.objects.filter(study=study, mode=mode, pk__in=due).select_related("study").order_by("pk")
    return [batch_of(posting) for posting in rows if has_service(posting.platform)]


def batch_of(posting: Posting) -> PayablePosting:
    """The batch of one posting."""
    plan = plan_of(posting)
    return PayablePosting(
        posting=posting,
        where=title_of(posting.platform),
        mode=mode_word(posting),
        plan=plan,
        lines=[(KIND_WORDS[kind], WAY_WORDS[way], n, cents) for kind, way, n, cents in plan.lines()],
        command=command_of(posting),
    )


def command_of(posting: Posting) -> str:
    """The command for the terminal: without its last word it only shows the batch."""
    where = f"--platform {posting.platform} --mode {posting.mode}"
    return f"python manage.py settle {posting.study.slug} {where} --yes"
