"""Needs your hand: the one list of what only a person can settle, from ledger, statement and platform. Each
line says who, how much, why, and the one act. If it is empty, nothing is left to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Literal

from crowd.ground import clock
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting, Submission
from crowd.money.comparison import Compared, mendable
from crowd.money.ledger import minutes_of
from crowd.money.plan import plan_of
from crowd.money.standings import Standing, standings
from crowd.money.statement import Tally, called, name_of, tallies
from crowd.platforms import has_service, traits_of

Act = Literal["release", "accept", "person", "cap", "look"]
"""What settles a line: release or accept a payment by name; decide about the person on their page; change the
cap; look at the platform's own page."""


@dataclass(frozen=True, slots=True)
class Hand:
    """One line. `cents` is None if no amount is in question; no sentence names it, for it may tell a score.
    `command` does it at the terminal, or shows what is needed; `submission` leads to the person's page.
    `is_trouble`: a run of settle has not succeeded while it stands."""

    kind: str
    who: str
    cents: int | None
    currency: str
    why: str
    act: Act
    remedy: str
    command: str
    posting: Posting
    submission: int | None = None
    payout: int | None = None
    is_trouble: bool = True

    def __str__(self) -> str:
        amount = "" if self.cents is None else f" ({amount_of(self.cents, self.currency)})"
        return f"Needs your hand: {self.who}{amount}: {self.why} {self.remedy}"


def hands_of(posting: Posting) -> list[Hand]:
    """What is left for a person to do about one posting; the most urgent first."""
    if not has_service(posting.platform):
        return []
    open_ones = [tally for tally in tallies(posting, clock.now()).values() if tally.is_open]
    rows = Submission.objects.select_related("session__participant").in_bulk(
        [tally.submission for tally in open_ones]
    )
    hands = [hand for tally in open_ones for hand in _of_tally(posting, rows[tally.submission], tally)]
    hands += _unread(posting)
    about_money = {hand.submission for hand in hands}
    hands += [hand for hand in _of_people(posting) if hand.submission not in about_money]
    known = {(hand.submission, hand.payout) for hand in hands} | {(hand.submission, None) for hand in hands}
    waiting = [_held_back(posting, standing) for standing in standings(posting) if standing.way.needs_hand]
    hands += [hand for hand in waiting if (hand.submission, None) not in known]
    return hands + list(_over_cap(posting))


def in_brief(posting: Posting, hands: Sequence[Hand]) -> str:
    """How many lines there are, in words; that nothing is left only if nothing waits to be paid either."""
    if hands:
        return f"Needs your hand: {len(hands)}."
    is_done = not plan_of(posting).payables
    return f"Needs your hand: nothing.{' Nothing is left to do.' if is_done else ''}"


def _of_tally(posting: Posting, row: Submission, tally: Tally) -> Iterator[Hand]:
    """One line for a person whose payments and statement differ."""
    late = (*tally.missing, *tally.withdrawn)
    lacking, extra = sum(payout.cents for payout in late), tally.surplus_cents
    name, platform, currency = name_of(row), traits_of(posting.platform).title, posting.currency
    accept, again = _command(posting, "--accept", name), _command(posting, "--again", name)
    line = partial(Hand, who=called(row), currency=currency, posting=posting, submission=row.pk)
    if tally.surplus and tally.expected:
        yield line(
            kind="too_early",
            cents=extra,
            why=f"{platform} shows {_kinds(tally)} that the ledger did not send, and does not show yet what "
            "it sent. They get nothing more.",
            act="look",
            remedy=f"Wait until {minutes_of(posting)} minutes after the payment, then run settle again: it "
            "may be the same payment with another amount.",
            command=_settle(posting),
        )
    elif late and tally.surplus:
        yield line(
            kind="other_amount",
            cents=abs(extra - lacking),
            why=f"{platform} shows another amount than the ledger sent. They get nothing more.",
            act="accept",
            remedy="Ask the platform. If what it shows is what they got, accept it in your name.",
            command=accept,
        )
    elif tally.surplus:
        yield line(
            kind="surplus",
            cents=extra,
            why=f"{platform} shows {_kinds(tally)} that the ledger did not send. They get nothing more.",
            act="accept",
            remedy="Find out who paid it, then accept it in your name.",
            command=accept,
        )
    elif tally.withdrawn:
        yield line(
            kind="withdrawn",
            cents=lacking,
            why=f"{platform} showed this payment, and does not any more. They get nothing more.",
            act="release",
            remedy="Ask the platform. If it was taken back, release it in your name: then it is sent again.",
            command=again,
            payout=late[0].pk,
        )
    else:
        yield line(
            kind="missing",
            cents=lacking,
            why=f"{platform} {_fate(tally)} it and does not list it {minutes_of(posting)} minutes later or "
            "more. Nothing is sent again by itself, for it may still arrive.",
            act="release",
            remedy="Ask the platform. If it was never paid, release it in your name: then it is sent again.",
            command=again,
            payout=late[0].pk,
        )


def _fate(tally: Tally) -> str:
    answered = all(payout.state == Payout.State.SENT for payout in tally.missing)
    return "accepted" if answered else "gave no answer to"


def _kinds(tally: Tally) -> str:
    words = {"reward": "a reward", "screen_out": "a payment for being screened out", "bonus": "a bonus"}
    return " and ".join(dict.fromkeys(words[kind] for kind, _ in tally.surplus))


def _unread(posting: Posting) -> Iterator[Hand]:
    for sentence in posting.unread:
        yield Hand(
            kind="unread",
            who="A row of the list",
            cents=None,
            currency=posting.currency,
            why=f"{sentence} It was set aside; all others were read.",
            act="look",
            remedy="Look at it on the platform's own page, and tell the platform.",
            command=f"python manage.py publish {posting.study.slug} --platform {posting.platform} --sync",
            posting=posting,
        )


def _of_people(posting: Posting) -> Iterator[Hand]:
    """What does not fit between the platform's list and our session, and that a person can mend."""
    for row in mendable(posting):
        for disagreement in row.open_disagreements:
            yield _person(posting, row, disagreement.kind, disagreement.sentence, disagreement.remedy)


def _person(posting: Posting, row: Compared, kind: str, why: str, remedy: str) -> Hand:
    return Hand(
        kind=kind,
        who=row.seen.name,
        cents=None,
        currency=posting.currency,
        why=f"{why}.{_deadline(posting, row.submission)}",
        act="person",
        remedy=remedy,
        command=shlex.join(
            [
                "python",
                "manage.py",
                "decide",
                posting.study.slug,
                "request-return",
                name_of(row.submission),
                "--by",
                "NAME",
                "--message",
                "WHY",
            ]
        ),  # fmt: skip
        posting=posting,
        submission=row.submission.pk,
        is_trouble=kind in URGENT,
    )


URGENT = frozenset({"awaiting_compensated"})


def _deadline(posting: Posting, row: Submission) -> str:
    """When the platform decides by itself."""
    traits = traits_of(posting.platform)
    days = posting.options.get(traits.approves_after_option) or traits.approves_after_days
    if not days or row.completed_at is None:
        return ""
    until = row.completed_at + timedelta(days=int(days))
    return f" {traits.title} approves it by itself on {until:%Y-%m-%d}."


def _held_back(posting: Posting, standing: Standing) -> Hand:
    row = standing.row
    return Hand(
        kind="held_back",
        who=standing.name,
        cents=row.cents,
        currency=row.currency,
        why=f"The {row.get_kind_display().lower()} cannot be sent.",
        act="person",
        remedy=standing.way.why,
        command=_command(posting, "--by-hand", standing.name),
        posting=posting,
        submission=row.submission_id,
        payout=row.pk,
        is_trouble=False,
    )


def _over_cap(posting: Posting) -> Iterator[Hand]:
    for waiting in plan_of(posting).waiting:
        if waiting.is_over_cap:
            yield Hand(
                kind="cap",
                who=f"{waiting.payouts} payout{'s' if waiting.payouts != 1 else ''}",
                cents=waiting.cents,
                currency=posting.currency,
                why="They are due, and the cap does not allow them.",
                is_trouble=False,
                act="cap",
                remedy=waiting.why,
                command=f"python manage.py publish {posting.study.slug} --platform {posting.platform} --cap "
                "AMOUNT --by NAME --reason WHY",
                posting=posting,
            )


def _command(posting: Posting, flag: str, name: str) -> str:
    more = ["--receipt", "WHERE"] if flag == "--by-hand" else ["--reason", "WHY"]
    return f"{_settle(posting)} {shlex.join([flag, name, '--by', 'NAME', *more])}"


def _settle(posting: Posting) -> str:
    words = ["python", "manage.py", "settle", posting.study.slug, "--platform", posting.platform, "--mode"]
    return shlex.join([*words, posting.mode])
