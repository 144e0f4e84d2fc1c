"""The ledger as the money tab shows it: sums for one bar, pay per hour, and payouts row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median

from django.conf import settings
from django.db.models import Q, QuerySet, Sum

from crowd.dashboard.rows.places_and_exclusions import ORIGIN_WORDS
from crowd.models import Payout, Posting
from crowd.money.ledger import SPENT_STATES
from crowd.money.needs_hand import Hand, hands_of
from crowd.money.platform_statement import name_of
from crowd.money.reconciling import awaited_payouts, unknown_until
from crowd.money.totals import Books, books_of
from crowd.people.result_seals import concealing, seals
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
    """The money of one mode beside its books: people at it, open places, the edges of the bar in cents, and
    what is awaited."""

    books: Books
    at_it: int
    open_places: int
    awaited: int
    unknown_until: datetime | None

    @property
    def fees_end(self) -> int:
        return self.books.spent + self.books.fees

    @property
    def due_end(self) -> int:
        return self.fees_end + self.books.due

    @property
    def scale(self) -> int:
        """The width of the bar."""
        return max(self.books.cap, self.books.total, 1)


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
    """The sums over the postings of one mode."""
    postings = [posting for posting in postings_of(study, mode) if has_service(posting.platform)]
    until = [moment for posting in postings if (moment := unknown_until(posting)) is not None]
    ids = [posting.pk for posting in postings]
    return Spending(
        books=books_of(postings),
        at_it=Session.objects.filter(submission__posting__in=ids, state__in=AT_IT).count(),
        open_places=sum(max(0, p.places - p.taken) for p in postings if p.state in RECRUITS),
        awaited=sum(awaited_payouts(posting).count() for posting in postings),
        unknown_until=max(until, default=None),
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


def needs_hand(study: Study, mode: str) -> list[Hand]:
    """What only a person can settle about the postings of one mode. While results are sealed, and a bonus
    would tell a score, no amount stands there."""
    hands = [hand for posting in postings_of(study, mode) for hand in hands_of(posting)]
    is_sealed = bool(concealing(study, seals(study, ORIGIN_WORDS)))
    return [replace(hand, cents=None) if is_sealed and hand.kind != "cap" else hand for hand in hands]


def postings_of(study: Study, mode: str) -> list[Posting]:
    """The postings of one mode, oldest first."""
    return list(Posting.objects.filter(study=study, mode=mode).select_related("study").order_by("pk"))


def person_of(row: Payout, name: Callable[[object], str]) -> str:
    """The name that an export gives to the person of a payout; of a person who never joined, the
    submission's."""
    return name_of(row.submission) if row.session is None else name(row.session.participant.pseudonym)


def payouts_of(study: Study, mode: str, state: str = "", kind: str = "") -> QuerySet[Payout, Payout]:
    """The ledger, latest first."""
    rows = Payout.objects.filter(posting__study=study, posting__mode=mode)
    rows = rows.filter(state=state) if state in Payout.State.values else rows
    rows = rows.filter(kind=kind) if kind in Payout.Kind.values else rows
    return rows.select_related(
        "posting", "submission__session__participant", "session__participant", "batch"
    ).order_by("-created_at", "-pk")
