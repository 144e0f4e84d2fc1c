"""Compares three views of one submission: the platform's list, our session, and the browser. Says what
disagrees and what to do about it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import get_args

from crowd.ground.amounts import plain
from crowd.platforms.base import Outcome

GRACE = timedelta(minutes=15)
"""How late the platform's list may be before a difference counts as a disagreement."""
SILENCE = timedelta(minutes=20)
ENDED = frozenset({"finished", "withdrawn", "declined", "turned_away"})
HANDED_IN = frozenset({"awaiting", "approved", "partly_approved", "rejected", "screened_out"})
PAID = frozenset({"approved", "partly_approved", "screened_out"})
GONE = {"returned": "returned", "timed_out": "timed out"}


@dataclass(frozen=True, slots=True)
class Theirs:
    """What the platform lists. `listed` is False if its list never showed this submission."""

    state: str = "unknown"
    raw: str = ""
    code: str = ""
    listed: bool = False
    started_at: datetime | None = None
    completed_at: datetime | None = None
    return_requested: bool = False


@dataclass(frozen=True, slots=True)
class Ours:
    """What the server knows of the session. `state` is empty if no person came.

    Instead of a reward, `compensated_cents` were sent, and `held_cents` are due when the place is given back.
    """

    state: str = ""
    verdict: str = ""
    has_slot: bool = False
    started_at: datetime | None = None
    finished_at: datetime | None = None
    same_person: bool = True
    compensated_cents: int = 0
    held_cents: int = 0

    @property
    def is_complete(self) -> bool:
        return self.state == "finished" and self.has_slot and self.verdict != "incomplete"


@dataclass(frozen=True, slots=True)
class Browser:
    """The last sign of life of the page, and what it did last. `offline`: it reported a lost connection and
    no return of it."""

    seen_at: datetime | None = None
    step: str = ""
    offline: bool = False


@dataclass(frozen=True, slots=True)
class SubmissionViews:
    """One submission in all three views. `outcome_of` reads a completion code of the posting; `read_at` is
    when its platform was last read; `lists_active`: its list shows active submissions."""

    name: str
    theirs: Theirs
    ours: Ours
    browser: Browser
    platform: str = ""
    outcome_of: Mapping[str, str] = field(default_factory=dict)
    read_at: datetime | None = None
    lists_active: bool = True


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What does not fit, what to do about it, and whom it concerns (pseudonyms)."""

    kind: str
    sentence: str
    remedy: str
    people: tuple[str, ...] = ()


def compare(seen: SubmissionViews, now: datetime) -> tuple[Disagreement, ...]:
    """Every disagreement of one submission."""
    disagreements = []
    for kind, (rule, remedy) in RULES.items():
        sentence = rule(seen, now)
        if sentence:
            disagreements.append(Disagreement(kind, sentence, remedy, (seen.name,)))
    return tuple(disagreements)


def together(disagreements: Sequence[Disagreement]) -> tuple[Disagreement, ...]:
    """The same disagreement of several people as one, in the order of urgency."""
    groups: dict[tuple[str, str], list[str]] = {}
    for disagreement in disagreements:
        groups.setdefault((disagreement.kind, disagreement.sentence), []).extend(disagreement.people)
    order = list(RULES)
    return tuple(
        Disagreement(kind, sentence, RULES[kind][1], tuple(people))
        for (kind, sentence), people in sorted(groups.items(), key=lambda group: order.index(group[0][0]))
    )


def _awaiting_compensated(seen: SubmissionViews, now: datetime) -> str:
    if seen.theirs.state != "awaiting" or not seen.ours.compensated_cents:
        return ""
    sent = plain(seen.ours.compensated_cents)
    return f"Awaits review on {seen.platform} again, after {sent} was sent because the work was gone"


def _return_open(seen: SubmissionViews, now: datetime) -> str:
    if seen.theirs.state != "awaiting" or not seen.ours.held_cents:
        return ""
    sentence = "Asked to give the place back, and has not" if seen.theirs.return_requested else (
        "Awaits review, and was not asked to give the place back"
    )  # fmt: skip
    return f"{sentence}; {plain(seen.ours.held_cents)} is due to them then"


def _person_differs(seen: SubmissionViews, now: datetime) -> str:
    if not seen.theirs.listed or not seen.ours.state or seen.ours.same_person:
        return ""
    return f"Came here as one person, and {seen.platform} lists the work as another's"


def _unknown_there(seen: SubmissionViews, now: datetime) -> str:
    since = seen.ours.started_at if seen.lists_active else seen.ours.finished_at
    if seen.theirs.listed or since is None or seen.read_at is None or seen.read_at < since + GRACE:
        return ""
    if not seen.lists_active and not (seen.ours.is_complete or seen.ours.verdict == "screened"):
        return ""  # Only submitted work is listed, and only the person submits it.
    return f"Was here, and {seen.platform} does not list this work"


def _never_here(seen: SubmissionViews, now: datetime) -> str:
    if seen.ours.state or seen.theirs.state not in HANDED_IN:
        return ""
    return f"Handed in on {seen.platform} without ever having been here"


def _approved_unfinished(seen: SubmissionViews, now: datetime) -> str:
    ours = seen.ours
    unfinished = ours.state in {"gates", "assigned", "running"} or ours.verdict == "incomplete"
    if seen.theirs.state not in PAID or not unfinished:
        return ""
    return f"{seen.theirs.raw or seen.theirs.state} on {seen.platform}, and not finished here"


def _code_early(seen: SubmissionViews, now: datetime) -> str:
    has_code = bool(seen.theirs.code) or seen.theirs.state == "awaiting"
    if not has_code or not seen.ours.state or seen.ours.state in ENDED:
        return ""
    if seen.outcome_of.get(seen.theirs.code) in {"device", "failure"} or seen.theirs.state in PAID:
        return ""
    return f"Handed in on {seen.platform} before finishing here"


OWN_CODES: dict[str, set[str]] = {
    "declined": {"declined"},
    "turned_away": {"turned_away", "failure"},
    "withdrawn": {"withdrawn", "failure"},
}


def _wrong_code(seen: SubmissionViews, now: datetime) -> str:
    code, ours = seen.theirs.code, seen.ours
    if seen.theirs.state != "awaiting" or not code or not seen.outcome_of or ours.state not in ENDED:
        return ""
    allowed = OWN_CODES.get(ours.state) or (
        {"complete", "failed_checks"} if ours.is_complete else {"screened"}
    )
    if ours.verdict == "incomplete" or seen.outcome_of.get(code) in allowed:
        return ""
    entered = seen.outcome_of.get(code)
    what = (
        f"the code for {entered!r}"
        if entered in get_args(Outcome)
        else "a code that is none of this posting's"
    )
    return f"Entered {what}, and ended here as {ours.verdict or ours.state}"


def _finished_gone(seen: SubmissionViews, now: datetime) -> str:
    word = GONE.get(seen.theirs.state)
    is_open = seen.ours.is_complete and not seen.ours.compensated_cents
    return f"Finished here, and {word} on {seen.platform}" if word and is_open else ""


def _rejected_due(seen: SubmissionViews, now: datetime) -> str:
    rejected = seen.theirs.state == "rejected" and seen.ours.is_complete
    return f"Rejected on {seen.platform}, and finished here" if rejected else ""


def _still_active(seen: SubmissionViews, now: datetime) -> str:
    ended_at = seen.ours.finished_at
    if not seen.ours.is_complete or seen.theirs.state not in {"active", "reserved"} or ended_at is None:
        return ""
    if seen.read_at is None or seen.read_at < ended_at + GRACE:
        return ""
    return f"Finished here, and still at work on {seen.platform}"


def _running_gone(seen: SubmissionViews, now: datetime) -> str:
    word = GONE.get(seen.theirs.state)
    running = seen.ours.state in {"gates", "assigned", "running"}
    return f"Running here, and {word} on {seen.platform}" if word and running else ""


def _silent(seen: SubmissionViews, now: datetime) -> str:
    at_work = seen.ours.state in {"gates", "assigned", "running"} and seen.theirs.state in {
        "active",
        "reserved",
    }
    if not at_work or seen.browser.seen_at is None or now - seen.browser.seen_at < SILENCE:
        return ""
    offline = ", after saying that it was offline" if seen.browser.offline else ""
    return f"At work on {seen.platform}, and the browser has been silent for 20 minutes or more{offline}"


Rule = Callable[[SubmissionViews, datetime], str]
RULES: dict[str, tuple[Rule, str]] = {
    "awaiting_compensated": (
        _awaiting_compensated,
        "Do not approve it: that pays a second time, and so does the platform by itself after its deadline. "
        "Ask them to give the place back.",
    ),
    "person_differs": (
        _person_differs,
        "The address was forged or passed on. Nobody is paid for it: withhold the payout, and decide about "
        "the person whom the platform lists on its own page.",
    ),
    "unknown_there": (
        _unknown_there,
        "The ids in the address were made up, or the platform is behind. Sync again; if it stays, leave the "
        "answers out by hand. Nothing is paid without a submission.",
    ),
    "never_here": (
        _never_here,
        "Nothing is due by the policy. Write to them: their page may have failed. Then ask for a return, "
        "or compensate them.",
    ),
    "approved_unfinished": (
        _approved_unfinished,
        "It is paid and stays so. Their answers do not count unless they finish.",
    ),
    "code_early": (
        _code_early,
        "Write to them: they may finish while their page is open. Else ask for a return, or let the policy "
        "pay what they did.",
    ),
    "wrong_code": (
        _wrong_code,
        "What happened here counts, not the code: settle pays by the policy. Approve or ask for "
        "a return accordingly.",
    ),
    "finished_gone": (
        _finished_gone,
        "The reward is due to them: run settle, which pays it as compensation if the platform can, and "
        "says so if it cannot.",
    ),
    "rejected_due": (
        _rejected_due,
        "The policy owes the reward. Take the rejection back on the platform, or withhold the payout with "
        "name and reason.",
    ),
    "return_open": (
        _return_open,
        "Write to them, or ask them to give the place back: they are paid once they have. Or approve their "
        "work in full on the platform; its reward then counts instead.",
    ),
    "still_active": (
        _still_active,
        "They have not entered the code. Write to them; if their time runs out, settle compensates them.",
    ),
    "running_gone": (
        _running_gone,
        "Their slot is free for another person with the next sync. "
        "Those who timed out may still finish, and are paid.",
    ),
    "silent": (
        _silent,
        "Wait: answers may be kept in their browser. The slot is free when its lease is over.",
    ),
}
"""Kind -> rule and remedy, the most urgent first."""
OPEN = frozenset({"awaiting_compensated", "never_here", "code_early"})
"""Kinds that a person can mend as long as the submission awaits review; all others are told, or mend
themselves."""
