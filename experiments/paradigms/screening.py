"""The screening rules of all paradigms: each with its timing, its limit and a sentence of evidence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from statistics import median
from typing import Any, get_args

from experiments.kinds import get_kind
from experiments.kinds.base import INSTRUCTED, REPEAT, Check, TrialView
from experiments.kinds.scoring import is_as_asked
from experiments.paradigms.base import Answer, GateTry, Reason, Timing, Verdict
from stimuli.registry import closest

SEVERAL = 3
"""Fewer questions on one page may well have one and the same answer."""
EXACT = Context(prec=1200)
"""Holds every digit of any float."""
Limit = float | tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as a study uses it. `limit` is a number, or (lowest, highest) for total_minutes."""

    name: str
    limit: Limit
    timing: Timing


@dataclass(frozen=True, slots=True)
class RuleKind:
    """What a rule is: when it is known and acts, its meaning, the range and form of its limit."""

    timing: Timing
    meaning: str
    low: float
    high: float
    whole: bool = False
    pair: bool = False


RULES: dict[str, RuleKind] = {
    "practice_attempts_max": RuleKind("before", "tries at the practice", 1, 100, whole=True),
    "quiz_attempts_max": RuleKind("before", "tries at the quiz", 1, 100, whole=True),
    "training_attempts_max": RuleKind("before", "tries at the training", 1, 100, whole=True),
    "instructed_share_min": RuleKind("after", "share of instructed checks followed", 0, 1),
    "repeat_share_min": RuleKind("after", "share of repeat checks answered as trained", 0, 1),
    "known_share_min": RuleKind("after", "share of known tasks answered as everybody can see", 0, 1),
    "total_minutes": RuleKind("after", "minutes from arrival to the end", 0, 1440, pair=True),
    "fastest_median_ms": RuleKind("after", "median response time of test trials", 0, 3_600_000),
    "side_share_max": RuleKind("after", "largest share of one answer over test trials", 0, 1),
    "straight_share_max": RuleKind(
        "after", "largest share of test trials whose questions all got one answer", 0, 1
    ),
    "fastest_rating_ms": RuleKind("after", "median time per single answer of test trials", 0, 3_600_000),
    "incomplete": RuleKind("after", "answers to all trials; always acts", 0, 1),
}

RULE_WORDS = {
    "practice_attempts_max": "Failed the practice",
    "quiz_attempts_max": "Failed the quiz",
    "training_attempts_max": "Failed the training",
    "lane": "No place for this person",
    "instructed_share_min": "Missed instructed checks",
    "repeat_share_min": "Missed repeat checks",
    "known_share_min": "Missed known tasks",
    "total_minutes": "Too fast or too slow",
    "fastest_median_ms": "Answered too fast",
    "side_share_max": "Nearly always one answer",
    "straight_share_max": "One answer to all questions of a page",
    "fastest_rating_ms": "Rated too fast",
    "incomplete": "Did not finish",
    "withdrawn": "Withdrew",
    "surplus": "Surplus: the place had gone on",
    "unanswered": "A model gave no answer that can be read",
    "excluded_by_hand": "Left out by hand",
}
"""Rules, and other reasons to leave a session out, as pages and reports name them."""


def rule_word(rule: str) -> str:
    """A rule in words; one that is not listed keeps its name."""
    return RULE_WORDS.get(rule) or rule.replace("_", " ").capitalize()


def _strictest(kind: RuleKind, name: str) -> Limit:
    """A limit that (nearly) every value is beyond, so that a judge tells the value."""
    if kind.pair:
        return math.nextafter(kind.high, 0), kind.high
    return kind.low if name.endswith("_max") else kind.high


OF_TIME = frozenset({"total_minutes", "fastest_median_ms", "fastest_rating_ms"})
"""Rules about how long people take."""


class BadRules(ValueError):
    """Some screening rules cannot be read; `problems` maps each key to its sentence."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        super().__init__("; ".join(f"{key}: {text}" for key, text in problems.items()))


def read_rules(raw: Mapping[str, Any]) -> dict[str, Rule]:
    """The rules of a `[screening]` table: each a limit, or {limit, timing = "before" | "after"}.

    `incomplete` takes `true` or {timing} only. Raises BadRules with every mistake at once.
    """
    rules: dict[str, Rule] = {"incomplete": Rule("incomplete", 1.0, "after")}
    problems: dict[str, str] = {}
    for name, written in raw.items():
        try:
            rules[name] = _read_rule(name, written)
        except ValueError as error:
            problems[name] = str(error)
    if problems:
        raise BadRules(problems)
    return rules


def rules_without_time(rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules that may judge a model: its times are those of a network and a processor."""
    return {name: rule for name, rule in rules.items() if name not in OF_TIME}


def screen(
    trials: Sequence[TrialView],
    gates: Sequence[GateTry],
    answers: Sequence[Answer],
    total_minutes: float,
    rules: Mapping[str, Any],
) -> Verdict:
    """Judges one session against the `[screening]` table `rules`; rules that it lacks do not act.

    A session with unanswered trials is "incomplete" and judged no further. Otherwise every broken rule is a
    reason and the verdict "screened", or "passed" if none is. Shares count all checks of that kind that
    the plan holds; a rule about something the plan does not hold (no instructed checks, no test trials) does
    not act.
    """
    known = read_rules(rules)
    given = {answer.position: answer for answer in answers}
    missing = [trial.position for trial in trials if trial.position not in given]
    if missing:
        answered, planned = len(trials) - len(missing), len(trials)
        evidence = f"{answered} of {planned} trials answered, the first missing is at position {min(missing)}"
        reason = Reason("incomplete", known["incomplete"].timing, float(answered), float(planned), evidence)
        return Verdict("incomplete", (reason,))
    session = _Session(trials, gates, given, total_minutes)
    reasons = (_JUDGES[name](known[name], session) for name in RULES if name in known and name in _JUDGES)
    broken = tuple(reason for reason in reasons if reason)
    return Verdict("screened" if broken else "passed", broken)


Screen = Callable[
    [Sequence[TrialView], Sequence[GateTry], Sequence[Answer], float, Mapping[str, Any]], Verdict
]


def rule_values(
    screening: Screen,
    trials: Sequence[TrialView],
    gates: Sequence[GateTry],
    answers: Sequence[Answer],
    total_minutes: float,
) -> dict[str, float]:
    """What each rule of a paradigm's `screening` looks at in one session, under any limits of the study:
    the values that `is_beyond` compares with a limit. A rule without a value excludes this session by no
    limit.
    """
    strict = {name: {"limit": _strictest(kind, name)} for name, kind in RULES.items() if name != "incomplete"}
    reasons = screening(trials, gates, answers, total_minutes, strict).reasons
    return {reason.rule: reason.found for reason in reasons if reason.rule in strict}


def is_beyond(name: str, value: float, limit: Limit) -> bool:
    """Whether the rule with that limit excludes a session with the value."""
    if isinstance(limit, tuple):
        return not limit[0] <= value <= limit[1]
    return value > limit if name.endswith("_max") else value < limit


def modal_share(trials: Sequence[TrialView], given: Mapping[int, Answer]) -> tuple[str, float] | None:
    """The commonest answer of the unchecked test trials and its share (0-1); None without such answers."""
    counts = Counter(
        answer
        for trial in trials
        if trial.phase == "test" and not trial.check
        for answer in get_kind(trial.kind).answers(given[trial.position].value)
    )
    if not counts:
        return None
    answer, count = max(sorted(counts.items(), key=lambda pair: str(pair[0])), key=lambda pair: pair[1])
    return str(answer), count / counts.total()


def straight_share(trials: Sequence[TrialView], given: Mapping[int, Answer]) -> tuple[int, int] | None:
    """Of the unchecked test trials with at least SEVERAL answers the number whose answers are all the same,
    and how many there are; None without such trials."""
    several = [
        answers
        for trial in trials
        if trial.phase == "test" and not trial.check
        if len(answers := get_kind(trial.kind).answers(given[trial.position].value)) >= SEVERAL
    ]
    return (sum(len(set(answers)) == 1 for answers in several), len(several)) if several else None


@dataclass(frozen=True, slots=True)
class _Session:
    trials: Sequence[TrialView]
    gates: Sequence[GateTry]
    given: Mapping[int, Answer]
    total_minutes: float


def _read_rule(name: str, written: object) -> Rule:
    if name not in RULES:
        raise ValueError(f"unknown rule{closest(name, RULES)}, choose among {', '.join(RULES)}")
    kind = RULES[name]
    timing: Any = kind.timing
    limit = written
    if isinstance(written, Mapping):
        if not written or not written.keys() <= {"limit", "timing"}:
            raise ValueError("a rule is a limit, or a table with limit and timing")
        timing = written.get("timing", kind.timing)
        limit = written.get("limit", True if name == "incomplete" else None)
    if timing not in get_args(Timing):
        raise ValueError(f'timing is {timing!r}, it must be "before" or "after"')
    if timing != kind.timing:
        raise ValueError(f"this rule can act only {kind.timing} assignment, for that is when it is known")
    return Rule(name, _read_limit(name, kind, limit), timing)


def _read_limit(name: str, kind: RuleKind, limit: object) -> Limit:
    if name == "incomplete":
        if limit is not True:
            raise ValueError("this rule always acts: remove it, or give its timing only")
        return 1.0
    if kind.pair:
        if not isinstance(limit, (list, tuple)) or len(limit) != 2:
            raise ValueError(f"{limit!r} is not a pair [lowest, highest]")
        low, high = (_read_number(kind, part) for part in limit)
        if low >= high:
            raise ValueError(f"the lowest, {low:g}, must be below the highest, {high:g}")
        return low, high
    return _read_number(kind, limit)


def _read_number(kind: RuleKind, limit: object) -> float:
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not kind.low <= limit <= kind.high:
        raise ValueError(f"{limit!r} is not a number from {kind.low:g} to {kind.high:g} ({kind.meaning})")
    if kind.whole and limit != int(limit):
        raise ValueError(f"{limit!r} is not a whole number ({kind.meaning})")
    return float(limit)


def _judge_attempts(rule: Rule, gates: Sequence[GateTry]) -> Reason | None:
    kind = rule.name.removesuffix("_attempts_max")
    tries = sorted((gate for gate in gates if gate.kind == kind), key=lambda gate: gate.attempt)
    limit = _number(rule)
    failed = sum(gate.passed is False for gate in tries)
    if len(tries) <= limit and (failed < limit or any(gate.passed for gate in tries)):
        return None
    return Reason(
        rule.name, rule.timing, float(len(tries)), limit, tries_evidence(kind, len(tries), failed, limit)
    )


def tries_evidence(kind: str, tries: int, failed: int, limit: float) -> str:
    """Evidence about the tries at a gate, of which there were too many or none passed."""
    if tries > limit:
        return f"{tries} tries at the {kind}, at most {limit:g} are allowed"
    return (
        f"{failed} of {tries} tries at the {kind} failed: try number {tries + 1} would be needed, at most "
        f"{limit:g} are allowed"
    )


def _judge_share(rule: Rule, check: Check, session: _Session) -> Reason | None:
    asked = [trial for trial in session.trials if trial.check == check]
    right = sum(is_as_asked(trial, session.given[trial.position].value) is True for trial in asked)
    return _judge_part(rule, right, len(asked), f"{check} checks answered as expected")


def _judge_known(rule: Rule, session: _Session) -> Reason | None:
    audits = [
        get_kind(trial.kind).audited(trial, session.given[trial.position].value) for trial in session.trials
    ]
    known = [audit for audit in audits if audit is not None]
    return _judge_part(rule, sum(known), len(known), "known tasks answered as everybody can see")


def _judge_part(rule: Rule, right: int, asked: int, what: str) -> Reason | None:
    limit = _number(rule)
    if not asked or right / asked >= limit:
        return None
    share = right / asked
    given, needed = apart(share, limit, scale=2)
    evidence = f"{right} of {asked} {what} ({given}%), at least {needed}% are needed"
    return Reason(rule.name, rule.timing, share, limit, evidence)


def _judge_minutes(rule: Rule, session: _Session) -> Reason | None:
    assert isinstance(rule.limit, tuple)
    low, high = rule.limit
    minutes = session.total_minutes
    if low <= minutes <= high:
        return None
    limit = low if minutes < low else high
    took, edge = apart(minutes, limit, digits=1)
    allowed = f"{edge} to {high:g}" if minutes < low else f"{low:g} to {edge}"
    evidence = f"took {took} minutes, {allowed} are allowed"
    return Reason(rule.name, rule.timing, minutes, limit, evidence)


def _judge_median(rule: Rule, session: _Session) -> Reason | None:
    times = [session.given[t.position].rt_ms for t in session.trials if t.phase == "test" and not t.check]
    return _judge_times(rule, session, times, "median response time", f"{len(times)} test trials")


def _judge_rating(rule: Rule, session: _Session) -> Reason | None:
    answered = [
        (session.given[t.position].rt_ms, len(get_kind(t.kind).answers(session.given[t.position].value)))
        for t in session.trials
        if t.phase == "test" and not t.check
    ]
    times = [rt_ms / count for rt_ms, count in answered if count for _ in range(count)]
    return _judge_times(rule, session, times, "median time per answer", f"{len(times)} answers")


def _judge_times(rule: Rule, session: _Session, times: Sequence[float], what: str, of: str) -> Reason | None:
    limit = _number(rule)
    if not times:
        return None
    # The browser tells the times, and the server saw how long the whole session took. If n times add up to at
    # most T, their median is at most 2T/n: half of them are as long or longer.
    told_ms, seen_ms = float(median(times)), 2 * session.total_minutes * 60_000 / len(times)
    median_ms = min(told_ms, seen_ms)
    if median_ms >= limit:
        return None
    source = what if told_ms <= seen_ms else "by the server's clock, a median of at most"
    given, needed = apart(median_ms, limit)
    evidence = f"{source} {given} ms over {of}, at least {needed} needed"
    return Reason(rule.name, rule.timing, median_ms, limit, evidence)


def _judge_straight(rule: Rule, session: _Session) -> Reason | None:
    counted = straight_share(session.trials, session.given)
    limit = _number(rule)
    if counted is None or counted[0] / counted[1] <= limit:
        return None
    same, of = counted
    given, allowed = apart(same / of, limit, scale=2)
    evidence = (
        f"gave one answer to all questions of {same} of {of} pages ({given}%), at most {allowed}% is allowed"
    )
    return Reason(rule.name, rule.timing, same / of, limit, evidence)


def _judge_side(rule: Rule, session: _Session) -> Reason | None:
    commonest = modal_share(session.trials, session.given)
    limit = _number(rule)
    if commonest is None or commonest[1] <= limit:
        return None
    answer, share = commonest
    given, allowed = apart(share, limit, scale=2)
    evidence = f"gave the answer {answer!r} in {given}% of the test trials, at most {allowed}% is allowed"
    return Reason(rule.name, rule.timing, share, limit, evidence)


def apart(value: float, limit: float, digits: int = 0, scale: int = 0) -> tuple[str, str]:
    """A value and the limit that it is beyond, as decimals times 10 to the `scale`, with as few digits after
    the point as tell them apart (`digits` at least): evidence never prints a value as its own limit."""
    exact = [Decimal(number).scaleb(scale, EXACT) for number in (value, limit)]
    for count in range(digits, EXACT.prec):
        first, second = (f"{number:.{count}f}" for number in exact)
        if first != second:
            return first, second
    raise ValueError(f"{value!r} is not beyond {limit!r}")


def _number(rule: Rule) -> float:
    assert not isinstance(rule.limit, tuple)
    return rule.limit


_JUDGES: dict[str, Callable[[Rule, _Session], Reason | None]] = {
    "practice_attempts_max": lambda rule, session: _judge_attempts(rule, session.gates),
    "quiz_attempts_max": lambda rule, session: _judge_attempts(rule, session.gates),
    "training_attempts_max": lambda rule, session: _judge_attempts(rule, session.gates),
    "instructed_share_min": lambda rule, session: _judge_share(rule, INSTRUCTED, session),
    "repeat_share_min": lambda rule, session: _judge_share(rule, REPEAT, session),
    "known_share_min": _judge_known,
    "total_minutes": _judge_minutes,
    "fastest_median_ms": _judge_median,
    "side_share_max": _judge_side,
    "straight_share_max": _judge_straight,
    "fastest_rating_ms": _judge_rating,
}
