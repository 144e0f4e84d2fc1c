"""Only submissions whose payouts and lines do not fit are compared: of others the comparison says nothing."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from django.utils import timezone

from crowd.models import Payout, PayoutBatch, Posting, StatementLine, Submission
from crowd.money.platform_statement import Tally, tallies, tallies_of
from experiments.models import Study
from tests.crowd.logins import posting_of

pytestmark = pytest.mark.django_db
SUBMISSIONS, KINDS = 150, ("reward", "screen_out", "bonus")


def drawn(posting: Posting, rng: random.Random) -> None:
    """Submissions with up to three payouts and lines: most fit, and some differ in any way that is stored."""
    at = timezone.now() - timedelta(days=9)
    batches = [
        PayoutBatch.objects.create(posting=posting, purpose=purpose, cents=100)
        for purpose in ("base", "bonus")
    ]
    for number in range(SUBMISSIONS):
        row = Submission.objects.create(
            posting=posting, submission_hash=f"s{number}", person_hash=f"p{number}", state="approved"
        )
        for place in range(rng.randint(0, 3)):
            cents, kind = rng.choice((10, 20, 140)), rng.choice(KINDS)
            reference = f"r{number}-{place}" if rng.random() < 0.5 else ""
            is_odd = rng.random() < 0.25
            if not is_odd or rng.random() < 0.6:
                Payout.objects.create(
                    posting=posting,
                    submission=row,
                    kind=("base", "bonus", "compensation")[place],
                    cents=cents,
                    currency="GBP",
                    reason="x",
                    reference=f"{number}-{place}-{reference}",
                    batch=batches[kind == "bonus"] if rng.random() < 0.8 else None,
                    state=rng.choice(("unknown", "sending", "due")) if is_odd else "sent",
                    attempts=1,
                    called_at=at if rng.random() < 0.8 else None,
                    confirmed_at=None if is_odd and rng.random() < 0.5 else at,
                )
            if not is_odd or rng.random() < 0.6:
                ours = f"{number}-{place}-{reference}" if rng.random() < 0.5 else ""
                line, _ = StatementLine.objects.get_or_create(
                    submission=row,
                    kind=kind,
                    cents=cents,
                    reference=ours,
                    defaults={"count": 0, "first_at": at, "read_at": at},
                )
                line.count += 1 + (is_odd and rng.random() < 0.3)
                line.save()


def says_nothing(tally: Tally) -> bool:
    unsettled = [p for p in tally.payouts.values() if p.confirmed_at is None or p.state != "sent"]
    doubts = (tally.missing, tally.late, tally.expected, tally.withdrawn, tally.surplus)
    return not (unsettled or any(doubts) or tally.match.surplus or tally.match.lacking)


@pytest.mark.parametrize("platform", ["prolific", "mturk"])
def test_what_is_left_out_says_nothing(study: Study, platform: str) -> None:
    posting = posting_of(study)
    Posting.objects.filter(pk=posting.pk).update(platform=platform)
    posting.refresh_from_db()
    drawn(posting, random.Random(18))
    at = timezone.now()
    compared, left_out = tallies(posting, at), 0
    for row in Submission.objects.filter(posting=posting):
        whole = tallies(posting, at, only=row).get(row.pk)
        if row.pk in compared:
            assert compared[row.pk] == whole
        elif whole is not None:
            left_out += 1
            assert says_nothing(whole), (whole, list(row.lines.values()))
    assert left_out > 10 and len(compared) > 50
    assert any(not says_nothing(tally) for tally in compared.values())
    assert tallies_of([posting], at) == {posting.pk: compared}
