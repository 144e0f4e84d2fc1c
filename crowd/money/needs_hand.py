"""Needs your hand: the one list of what only a person can settle, from ledger, statement and platform. Each
line says who, how much, why, and the one act. If it is empty, nothing is left to do."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Literal

from django.db.models import Exists, OuterRef

from crowd.ground import platform_clock
from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting, Submission
from crowd.money.payout_grace import minutes_of
from crowd.money.payout_readiness import Standing, other_reward_of, standings
from crowd.money.plan import plan_of
from crowd.money.platform_statement import NAMED, Tally, name_in_sentence, name_of, tallies
from crowd.money.submission_comparison import SubmissionComparison, mendable
from crowd.platforms import has_service, traits_of

Act = Literal["release", "accept", "reward", "person", "cap", "look"]
"""What settles a line: release or accept a payment by name; accept the reward that the platform shows; decide
about the person on their page; change the cap; look at the platform's own page."""


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
    open_ones = [tally for tally in tallies(posting, platform_clock.now()).values() if tally.is_open]
    rows = Submission.objects.select_related(*NAMED).in_bulk([tally.submission for tally in open_ones])
    hands = [hand for tally in open_ones for hand in _of_tally(posting, rows[tally.submission], tally)]
    hands += _unread(posting)
    hands += _unclear(posting)
    about_money = {hand.submission for hand in hands if hand.kind != "gone"}
    hands += [hand for hand in _of_people(posting) if hand.submission not in about_money]
    known = {(hand.submission, key) for hand in hands if hand.kind != "gone" for key in (hand.payout, None)}
    refused = [hand for hand in _refused_payments(posting) if (hand.submission, None) not in known]
    hands += refused
    known |= {(hand.submission, None) for hand in refused}
    waiting = [_held_back(posting, standing) for standing in standings(posting) if standing.way.needs_hand]
    hands += [hand for hand in waiting if (hand.submission, None) not in known]
    return [*hands, *_other_reward(posting), *_over_cap(posting)]


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
    name, platform = name_of(row), traits_of(posting.platform).title
    accept, again = _command(posting, "--accept", name), _command(posting, "--again", name)
    line = partial(_hand, posting, who=name_in_sentence(row), submission=row.pk)
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
            why=f"{platform} {_fate(tally)} and does not list it {minutes_of(posting)} minutes later or "
            "more. Nothing is sent again by itself, for it may still arrive.",
            act="release",
            remedy="Ask the platform. If it was never paid, release it in your name: then it is sent again.",
            command=again,
            payout=late[0].pk,
        )


def _fate(tally: Tally) -> str:
    answered = all(payout.state == Payout.State.SENT for payout in tally.missing)
    return "accepted it" if answered else "did not say whether it pays it"


def _kinds(tally: Tally) -> str:
    words = {"reward": "a reward", "screen_out": "a payment for being screened out", "bonus": "a bonus"}
    return " and ".join(dict.fromkeys(words[kind] for kind, _ in tally.surplus))


def _unread(posting: Posting) -> Iterator[Hand]:
    for sentence in posting.unread:
        yield _hand(
            posting,
            kind="unread",
            who="A row of the list",
            why=f"{sentence} It was set aside; all others were read.",
            act="look",
            remedy="Look at it on the platform's own page, and tell the platform.",
            command=_publish(posting, "--sync"),
        )


UNCLEAR_AFTER = timedelta(hours=24)
"""A state that we do not know may pass by itself within this time; then settle does not succeed any more."""


def _unclear(posting: Posting) -> Iterator[Hand]:
    """States that we do not know, of the posting or of people, and people whom the list named until they
    were paid."""
    title, since = traits_of(posting.platform).title, platform_clock.now() - UNCLEAR_AFTER
    line = partial(_hand, posting, act="look", command=_publish(posting, "--sync"))
    if posting.unclear_at is not None:
        yield line(
            kind="unclear",
            who="The posting",
            why=f"{title} says {posting.raw_state!r} of it since {posting.unclear_at:%Y-%m-%d %H:%M} UTC, a "
            "state that is not known here. No replacement is offered meanwhile.",
            remedy="Look at it on the platform's own page, and pause or close it there if it is over.",
            is_trouble=posting.unclear_at <= since,
        )
    rows = Submission.objects.filter(posting=posting, seen_at__isnull=False)
    for row in rows.filter(state="unknown", state_at__isnull=False).select_related(*NAMED):
        yield line(
            kind="unclear",
            who=name_in_sentence(row),
            why=f"{title} says {row.raw_state!r} of their submission since "
            f"{row.state_at:%Y-%m-%d %H:%M} UTC, a state that is not known here. Nothing is sent to them "
            "while it does.",
            remedy="Look at it on the platform's own page. Wait, or pay by hand and write it down.",
            command=_command(posting, "--by-hand", name_of(row)),
            submission=row.pk,
            is_trouble=row.state_at is not None and row.state_at <= since,
        )
    paid = Payout.objects.filter(submission=OuterRef("pk"), state=Payout.State.SENT)
    left = rows.filter(Exists(paid), gone_at__isnull=False)
    for row in left.select_related(*NAMED):
        yield line(
            kind="gone",
            who=name_in_sentence(row),
            why=f"They were paid, and {title} does not list their submission since "
            f"{row.gone_at:%Y-%m-%d %H:%M} UTC.",
            remedy="Ask the platform: their account may be closed, or the payment taken back.",
            submission=row.pk,
            is_trouble=False,
        )


def _of_people(posting: Posting) -> Iterator[Hand]:
    """What does not fit between the platform's list and our session, and that a person can mend."""
    for row in mendable(posting):
        for disagreement in row.open_disagreements:
            yield _person(posting, row, disagreement.kind, disagreement.sentence, disagreement.remedy)


def _person(posting: Posting, row: SubmissionComparison, kind: str, why: str, remedy: str) -> Hand:
    words = ["python", "manage.py", "decide", posting.study.slug, "request-return", name_of(row.submission)]
    return _hand(
        posting,
        kind=kind,
        who=row.seen.name,
        why=f"{why}.{_deadline(posting, row.submission)}",
        act="person",
        remedy=remedy,
        command=shlex.join([*words, "--by", "NAME", "--message", "WHY"]),
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
    return _hand(
        posting,
        kind="held_back",
        who=standing.name,
        cents=row.cents,
        currency=row.currency,
        why=f"The {row.get_kind_display().lower()} cannot be sent.",
        act="person",
        remedy=standing.way.why,
        command=_command(posting, "--by-hand", standing.name),
        submission=row.submission_id,
        payout=row.pk,
        is_trouble=False,
    )


def _refused_payments(posting: Posting) -> Iterator[Hand]:
    """Payments that the platform refused by themselves, for good. They are tried again at every settle."""
    rows = Payout.objects.filter(posting=posting, state=Payout.State.DUE, refused_at__isnull=False)
    for row in rows.select_related("submission__session__participant", "submission__posting__study").order_by(
        "pk"
    ):
        yield _hand(
            posting,
            kind="refused",
            who=name_in_sentence(row.submission),
            cents=row.cents,
            currency=row.currency,
            why=f"{traits_of(posting.platform).title} refuses this payment: {row.error}",
            act="person",
            remedy="All others were paid. Look at it on the platform's own page; pay it by hand and write it "
            "down, or withhold it on the person's page.",
            command=_command(posting, "--by-hand", name_of(row.submission)),
            submission=row.submission_id,
            payout=row.pk,
        )


def _other_reward(posting: Posting) -> Iterator[Hand]:
    why = other_reward_of(posting)
    waiting = [standing for standing in standings(posting) if why and standing.way.why == why]
    if waiting:
        yield _hand(
            posting,
            kind="reward",
            who=f"{len(waiting)} payout{'s' if len(waiting) != 1 else ''}",
            cents=len(waiting) * (posting.shown_cents or 0),
            why=why,
            act="reward",
            remedy="Find out who raised it. If it is to be paid, accept it in your name: the cap counts the "
            "new amount. Else set it back there, if the platform lets you.",
            command=f"{_settle(posting)} --accept-reward --by NAME --reason WHY",
        )


def _over_cap(posting: Posting) -> Iterator[Hand]:
    for waiting in plan_of(posting).waiting:
        if waiting.is_over_cap:
            yield _hand(
                posting,
                kind="cap",
                who=f"{waiting.payouts} payout{'s' if waiting.payouts != 1 else ''}",
                cents=waiting.cents,
                why="They are due, and the cap does not allow them.",
                is_trouble=False,
                act="cap",
                remedy=waiting.why,
                command=_publish(posting, "--cap AMOUNT --by NAME --reason WHY"),
            )


def _hand(posting: Posting, **of: Any) -> Hand:
    """A line about a posting, by default in its currency and about no amount."""
    return Hand(**{"posting": posting, "currency": posting.currency, "cents": None, **of})


def _publish(posting: Posting, flags: str) -> str:
    return f"python manage.py publish {posting.study.slug} --platform {posting.platform} {flags}"


def _command(posting: Posting, flag: str, name: str) -> str:
    more = ["--receipt", "WHERE"] if flag == "--by-hand" else ["--reason", "WHY"]
    return f"{_settle(posting)} {shlex.join([flag, name, '--by', 'NAME', *more])}"


def _settle(posting: Posting) -> str:
    words = ["python", "manage.py", "settle", posting.study.slug, "--platform", posting.platform, "--mode"]
    return shlex.join([*words, posting.mode])
