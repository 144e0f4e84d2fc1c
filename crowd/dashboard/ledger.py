"""The ledger as the money tab shows it: sums for one bar, pay per hour, and payouts row by row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet, Sum

from crowd.models import Payout, Posting
from crowd.money.cap import rates_of, spent_of
from crowd.money.ledger import SPENT_STATES, grace, missing
from crowd.platforms import has_service
from experiments.models import Session, Study
from experiments.selectors import definition_of

MODES = {"live": "Live", "sandbox": "Sandbox", "rehearsal": "Rehearsal"}
"""The most real mode first. Money of different modes is never added up."""
OWED = Q(state__in=[Payout.State.DUE, *SPENT_STATES])
AT_IT = ("gates", "assigned", "running")
RECRUITS = ("draft", "open", "paused")


@dataclass(frozen=True, slots=True)
class Spending:
    """The money of one mode. `spent` was sent or may have been; `due` is decided and waits; `in_progress` is
    reserved for people who have begun, and `ahead` for places not taken yet: both at the most that one person
    may get. The cap covers fees too: `fees` are those on what was spent, `fees_ahead` those on the rest, at
    most.
    """

    mode: str
    currency: str
    spent_cents: int
    due_cents: int
    in_progress_cents: int
    ahead_cents: int
    fees_cents: int
    fees_ahead_cents: int
    cap_cents: int
    unknown: int
    unknown_until: datetime | None

    @property
    def committed_cents(self) -> int:
        return self.due_cents + self.in_progress_cents

    @property
    def ahead_at(self) -> int:
        return self.spent_cents + self.committed_cents

    @property
    def projected_cents(self) -> int:
        return self.ahead_at + self.ahead_cents

    @property
    def most_cents(self) -> int:
        """What counts against the cap if every place is taken: with fees."""
        return self.projected_cents + self.fees_cents + self.fees_ahead_cents

    @property
    def scale(self) -> int:
        """The width of the bar."""
        return max(self.cap_cents, self.projected_cents, 1)

    @property
    def is_over(self) -> bool:
        return 0 < self.cap_cents < self.most_cents


@dataclass(frozen=True, slots=True)
class Hourly:
    """What people who finished get per hour, bonuses included, and the floor."""

    people: int
    median_cents: int | None
    median_minutes: float | None
    floor_cents: int | None
    promised_cents: int
    currency: str

    @property
    def is_below(self) -> bool:
        if self.floor_cents is None or self.median_cents is None:
            return False
        return self.median_cents < self.floor_cents


def modes_of(study: Study) -> list[str]:
    """The modes in which money moves, most real first."""
    rows = Posting.objects.filter(study=study).values_list("mode", "platform").distinct().order_by()
    used = {mode for mode, platform in rows if has_service(platform)}
    return [mode for mode in MODES if mode in used]


def spending_of(study: Study, mode: str) -> Spending:
    """Sums over the postings of one mode, in four queries."""
    rows = Posting.objects.filter(study=study, mode=mode).defer("options", "codes")
    postings = [posting for posting in rows if has_service(posting.platform)]
    ids = [posting.pk for posting in postings]
    sums = Payout.objects.filter(posting__in=ids).aggregate(
        spent=Sum("cents", filter=Q(state__in=SPENT_STATES)),
        due=Sum("cents", filter=Q(state="due")),
        unknown=Count("id", filter=Q(state="unknown")),
        called_at=Max("called_at", filter=Q(state="unknown")),
    )
    at_it = Session.objects.filter(submission__posting__in=ids, state__in=AT_IT).count()
    open_places = sum(max(0, p.places - p.taken) for p in postings if p.state in RECRUITS)
    reward, called_at = definition_of(study).reward, sums["called_at"]
    rates = [rates_of(posting) for posting in postings]
    dearest = max((rate for each in rates for rate in (each.approve, each.bonus)), default=0)
    coming = (sums["due"] or 0) + reward.most_cents * (at_it + open_places)
    wait = max((grace(posting) for posting in postings), default=None)
    return Spending(
        mode=mode,
        currency=reward.currency,
        spent_cents=sums["spent"] or 0,
        due_cents=sums["due"] or 0,
        in_progress_cents=reward.most_cents * at_it,
        ahead_cents=reward.most_cents * open_places,
        fees_cents=sum(each.fees_cents for each in spent_of(postings).values()),
        fees_ahead_cents=math.ceil(coming * dearest),
        cap_cents=sum(posting.cap_cents for posting in postings),
        unknown=sums["unknown"],
        unknown_until=called_at + wait if called_at and wait is not None else None,
    )


def hourly_of(study: Study, mode: str) -> Hourly:
    """One query, for any number of people; the time is the whole session, from arrival to end."""
    reward = definition_of(study).reward
    rows = (
        Payout.objects.filter(OWED, posting__study=study, posting__mode=mode)
        .filter(session__state="finished", session__slot__isnull=False, session__finished_at__isnull=False)
        .values_list("session", "session__started_at", "session__finished_at")
        .annotate(cents=Sum("cents"))
        .order_by()
    )
    minutes, per_hour = [], []
    for _, started, finished, cents in rows:
        took = (finished - started).total_seconds() / 60
        if took > 0:
            minutes.append(took)
            per_hour.append(cents * 60 / took)
    return Hourly(
        people=len(minutes),
        median_cents=round(median(per_hour)) if per_hour else None,
        median_minutes=median(minutes) if minutes else None,
        floor_cents=settings.HOURLY_FLOOR_CENTS.get(reward.currency),
        promised_cents=int(reward.amount_cents * 60 / reward.expected_minutes),
        currency=reward.currency,
    )


def needs_hand(study: Study, mode: str) -> list[Payout]:
    """Bonuses that were sent and that the platform does not list: only a named person sends them again."""
    lost = Payout.objects.none()
    for posting in Posting.objects.filter(study=study, mode=mode):
        if has_service(posting.platform):
            lost = lost | missing(posting)
    return list(lost.select_related("posting", "session__participant").order_by("pk"))


def payouts_of(study: Study, mode: str, state: str = "", kind: str = "") -> QuerySet[Payout, Payout]:
    """The ledger, latest first."""
    rows = Payout.objects.filter(posting__study=study, posting__mode=mode)
    rows = rows.filter(state=state) if state in Payout.State.values else rows
    rows = rows.filter(kind=kind) if kind in Payout.Kind.values else rows
    return rows.select_related("posting", "session__participant", "batch").order_by("-created_at", "-pk")
