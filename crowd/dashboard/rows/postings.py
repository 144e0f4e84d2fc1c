"""A study's postings as the recruitment tab shows them, and what a researcher can ask of one.

A page never speaks with a platform: it sends a task to a worker, or shows the command that does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from django.conf import settings
from django.db.models import Count, Q

from crowd.models import Posting, Submission
from crowd.money.expense_cap import spent_of
from crowd.platforms import PLATFORMS, has_service, traits_of
from experiments.models import Study
from experiments.selectors import definition_of, free_slots

Act = Literal["pause", "resume", "close", "add", "sync"]
BY_HAND = [name for name in PLATFORMS if not has_service(name)]
PLACES_MAX = 5000


@dataclass(frozen=True, slots=True)
class PostingCard:
    """One posting as a card: `mode` is the word of its banner, `acts` what may be asked of it now."""

    posting: Posting
    name: str
    mode: str
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
        """Whether this platform has no interface for machines: buttons change a row, and need no worker."""
        return not has_service(self.posting.platform)

    @property
    def close_command(self) -> str:
        return dict(self.commands).get("Close", "")

    @property
    def summary(self) -> str:
        """What can be done, in one line."""
        return ", ".join(word for word, _ in self.commands)


def title_of(platform: str) -> str:
    """A platform's name as people read it."""
    return traits_of(platform).title if platform in PLATFORMS else platform


def mode_word(posting: Posting) -> str:
    """How real a posting is, in one conspicuous word."""
    word = posting.get_mode_display()
    return f"{word} · pilot" if posting.pilot else word


def posting_cards(study: Study, postings: Sequence[Posting]) -> list[PostingCard]:
    """The postings as cards, in a number of queries that does not grow with them."""
    ids = [posting.pk for posting in postings]
    spent = spent_of([posting for posting in postings if has_service(posting.platform)])
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
        PostingCard(
            posting=posting,
            name=title_of(posting.platform),
            mode=mode_word(posting),
            free=free[posting.pilot],
            at_it=work.get(posting.pk, (0, 0))[0],
            submitted=work.get(posting.pk, (0, 0))[1],
            spent_cents=spent[posting.pk].all_cents if posting.pk in spent else 0,
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
        return ("sync",) if has_service(posting.platform) else ()
    acts: list[Act] = []
    if posting.state in {Posting.State.OPEN, Posting.State.PAUSED}:
        acts.append("pause" if posting.state == Posting.State.OPEN else "resume")
    if has_service(posting.platform):
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
    if not has_service(posting.platform):
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
