"""A study's postings as the recruitment tab shows them, and what a researcher can ask of one.

A page never speaks with a platform: it sends a task to a worker, or shows the command that does the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.db.models import Count, Q, Sum

from crowd.models import Payout, Posting, Submission
from crowd.platforms import PLATFORMS, has_market
from experiments.errors import StudyError
from experiments.models import Study
from experiments.selectors import definition_of, free_slots

Act = Literal["pause", "resume", "close", "add", "sync"]
ACTS: tuple[Act, ...] = ("pause", "resume", "close", "add", "sync")
SPENT = ("sending", "sent", "unknown")
"""Payouts that count as spent: those that may have been sent, too."""
NAMES = {"prolific": "Prolific", "mturk": "Mechanical Turk", "local": "Local", "link": "Link"}
BY_HAND = [name for name in PLATFORMS if not has_market(name)]
PLACES_MAX = 5000
AMOUNT_MAX_CENTS = 100_000_000
AMOUNT = re.compile(r"\s*([0-9][0-9,]{0,12})\.([0-9]{2})\s*([A-Z]{3})?\s*")


def cents_of(typed: str) -> int | None:
    """A typed amount, 1,234.50 or 1234.50 GBP, in cents; None if it is not an amount."""
    amount = AMOUNT.fullmatch(typed)
    return None if amount is None else int(amount[1].replace(",", "")) * 100 + int(amount[2])


def granted_cents(typed: str, currency: str) -> int:
    """A typed amount of money, for a person or a cap. Raises StudyError."""
    cents, amount = cents_of(typed), AMOUNT.fullmatch(typed)
    if cents is None or amount is None:
        raise StudyError(f"{typed.strip()[:40]!r} is no amount. Give it as 1.50 or 1.50 {currency}.")
    if amount[3] and amount[3] != currency:
        raise StudyError(
            f"This posting pays in {currency}, not in {amount[3]}. Give the amount in {currency}."
        )
    if not 0 < cents <= AMOUNT_MAX_CENTS:
        raise StudyError(f"Give at least 0.01 and at most {AMOUNT_MAX_CENTS // 100:,}.00 {currency}.")
    return cents


@dataclass(frozen=True, slots=True)
class Offered:
    """One posting as a card: `mode` is the word of its banner, `acts` what may be asked of it now."""

    posting: Posting
    name: str
    mode: str
    tone: str
    free: int
    at_it: int
    submitted: int
    spent_cents: int
    hourly_cents: int
    floor_cents: int | None
    acts: tuple[Act, ...]
    commands: tuple[tuple[str, str], ...]

    @property
    def open_places(self) -> int:
        return max(0, self.posting.places - self.posting.taken)

    @property
    def is_below_floor(self) -> bool:
        return self.floor_cents is not None and self.hourly_cents < self.floor_cents

    @property
    def spent_share(self) -> int:
        """Percent of the cap that is spent, for the bar."""
        cap = self.posting.cap_cents
        return min(100, round(100 * self.spent_cents / cap)) if cap else 0

    @property
    def is_by_hand(self) -> bool:
        """Whether this platform has no interface for machines."""
        return works_here(self.posting)

    @property
    def can_press(self) -> bool:
        """Whether buttons work without a worker."""
        return self.is_by_hand

    @property
    def close_command(self) -> str:
        return dict(self.commands).get("Close", "")

    @property
    def summary(self) -> str:
        """What can be done, in one line."""
        return ", ".join(word for word, _ in self.commands)


def mode_word(posting: Posting) -> str:
    """How real a posting is, in one conspicuous word."""
    word = posting.get_mode_display()
    return f"{word} · pilot" if posting.pilot else word


def offered(study: Study, postings: Sequence[Posting]) -> list[Offered]:
    """The postings as cards, in a number of queries that does not grow with them."""
    ids = [posting.pk for posting in postings]
    spent = dict(
        Payout.objects.filter(posting__in=ids, state__in=SPENT)
        .values_list("posting")
        .annotate(n=Sum("cents"))
        .order_by()
    )
    work = {
        row["posting"]: (row["at_it"], row["submitted"])
        for row in Submission.objects.filter(posting__in=ids)
        .values("posting")
        .annotate(
            at_it=Count("id", filter=Q(state__in=["reserved", "active"])),
            submitted=Count("id", filter=Q(state="awaiting")),
        )
        .order_by()
    }
    free = {pilot: free_slots(study, pilot=pilot).count() for pilot in {p.pilot for p in postings}}
    minutes = definition_of(study).reward.expected_minutes
    return [
        Offered(
            posting=posting,
            name=NAMES.get(posting.platform, posting.platform),
            mode=mode_word(posting),
            tone=posting.mode,
            free=free[posting.pilot],
            at_it=work.get(posting.pk, (0, 0))[0],
            submitted=work.get(posting.pk, (0, 0))[1],
            spent_cents=spent.get(posting.pk, 0),
            hourly_cents=int(posting.reward_cents * 60 / minutes),
            floor_cents=settings.HOURLY_FLOOR_CENTS.get(posting.currency),
            acts=acts_of(posting),
            commands=commands_of(study, posting),
        )
        for posting in postings
    ]


def acts_of(posting: Posting) -> tuple[Act, ...]:
    """What can be asked of a posting in its state."""
    if posting.state == Posting.State.CLOSED:
        return ("sync",) if has_market(posting.platform) else ()
    acts: list[Act] = []
    if posting.state in {Posting.State.OPEN, Posting.State.PAUSED}:
        acts.append("pause" if posting.state == Posting.State.OPEN else "resume")
    if has_market(posting.platform):
        # If the platform counts no places, there are none to add: every person who has the link may come.
        acts += ["add", "sync"] if acts else ["sync"]
    return (*acts, "close")


WORDS: dict[Act, str] = {
    "pause": "Pause",
    "resume": "Resume",
    "close": "Close",
    "add": "Add places",
    "sync": "Sync now",
}


def commands_of(study: Study, posting: Posting) -> tuple[tuple[str, str], ...]:
    """The line for the terminal for each act."""
    if works_here(posting):
        return ()
    return tuple((WORDS[act], command_of(study, posting, act)) for act in acts_of(posting))


def command_of(study: Study, posting: Posting, act: Act, count: int = 0) -> str:
    flags = {"pause": " --pause", "resume": " --resume", "close": " --close", "sync": " --sync"}
    flag = f" --add {count or 'N'}" if act == "add" else flags[act]
    mode = {"live": " --live", "sandbox": " --sandbox", "rehearsal": " --rehearse"}[posting.mode]
    pilot = " --pilot" if posting.pilot else ""
    return f"python manage.py publish {study.slug} --platform {posting.platform}{mode}{pilot}{flag}"


def most_of(study: Study, posting: Posting, count: int) -> int:
    """What so many places cost at most, in cents, without the platform's fees."""
    reward = definition_of(study).reward
    return count * max(reward.most_cents, posting.reward_cents)


def works_here(posting: Posting) -> bool:
    """Whether a page may do it itself: if no platform has to be asked, one row changes."""
    return not has_market(posting.platform)
