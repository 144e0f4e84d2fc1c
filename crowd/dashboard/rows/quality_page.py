"""How the people of a study do while it runs: who passes which check, how long they take, how far they come.
No condition is read, so that nothing of it is sealed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, Max
from django.utils import timezone

from crowd.dashboard.charts import Chart, columns, histogram
from experiments.gates.plan import gate_plan
from experiments.kinds.base import INSTRUCTED, REPEAT
from experiments.models import Gate, Response, Session, Slot, Study
from experiments.paradigms.screening import RULES, Limit, Rule, is_beyond, read_rules, rule_word
from experiments.selectors import arm_of, definition_of
from experiments.sessions.verdicts import fill_measures

GATES = {name.removesuffix("_attempts_max"): name for name, kind in RULES.items() if kind.timing == "before"}
"""Gates that people can fail, with the rule about it."""
CHECKS = {INSTRUCTED: "Instructed checks", REPEAT: "Repeat checks"}
MET = {
    "instructed_share_min": "Enough instructed checks",
    "repeat_share_min": "Enough repeat checks",
    "known_share_min": "Enough known tasks",
    "total_minutes": "Neither too fast nor too slow",
    "fastest_median_ms": "Took time to answer",
    "fastest_rating_ms": "Took time to rate",
    "side_share_max": "Not always one answer",
    "straight_share_max": "Not one answer to all questions",
}
"""A rule of screening by what those do who meet it."""
PERIOD_HOURS = (1 / 60, 1 / 12, 1 / 4, 1, 3, 6, 12, 24, 72, 168, 672)
PERIODS_MAX = 48
FILLED_AT_ONCE = 50
"""Sessions from before measures were kept: so many are worked out whenever the page is looked at."""
RECENT = timedelta(hours=6)
# From five people the 95 % interval of a pace is a third to 2.3 times (exact Poisson), and wider from fewer.
PASSED_MIN = 5
SUSPECT_MIN = 3
OVER = ("passed", "screened")
LEFT = ("incomplete", "withdrawn")


class ScreenedSession(NamedTuple):
    """A session, as it is counted here."""

    id: UUID
    started_at: datetime
    verdict: str
    verdict_at: datetime | None
    broken: frozenset[str]
    measures: dict[str, Any]
    is_claimed: bool

    def value(self, rule: str) -> float | None:
        value: float | None = self.measures.get("rules", {}).get(rule)
        return value


Rows = Sequence[ScreenedSession]


@dataclass(frozen=True, slots=True)
class Passing:
    """How many passed a check, of those who met it; and those by the time of their arrival."""

    word: str
    passed: int
    asked: int
    limit: str = ""
    alone: int = 0
    times: Sequence[tuple[str, int, int]] = ()
    what: str = "people"

    @property
    def rate(self) -> str:
        return f"{100 * self.passed / self.asked:.0f} %" if self.asked else "–"

    @property
    def chart(self) -> Chart:
        rows = [
            (name, 100 * passed / asked if asked else 0, f"{passed} of {asked}")
            for name, passed, asked in self.times
        ]
        key = self.word.lower().replace(" ", "-")
        return columns(key, self.word, rows, ("arrived (UTC)", "passed"), most=100)


@dataclass(frozen=True, slots=True)
class OriginQuality:
    """Everything that the page shows of one origin."""

    arrived: int
    ended: int
    finished: int
    passed: int
    checks: Sequence[Passing]
    suspects: Sequence[str]
    charts: Sequence[Chart]
    rate: str
    until: str
    waiting: int = 0


def origin_quality(
    study: Study, origin: str, places_left: int, tried: Mapping[str, Limit] | None = None
) -> OriginQuality:
    """`places_left` are those that are not kept yet; `tried` are limits that were tried last."""
    waiting = fill_measures(study, origin, FILLED_AT_ONCE)
    rows = _screened_sessions(study, origin)
    rules = read_rules(definition_of(study).rules)
    finished = [row for row in rows if row.verdict in OVER and row.measures]
    names = _Periods(rows)
    checks = [
        *_gates(study, origin, rows, names),
        *_trial_checks(finished, names),
        *_rules(finished, rules, names),
    ]
    ended = [row for row in rows if row.verdict]
    rate, until = pace(rows, places_left)
    passed = sum(row.verdict == "passed" for row in rows)
    return OriginQuality(
        arrived=len(rows),
        ended=len(ended),
        finished=len(finished),
        passed=passed,
        checks=checks,
        suspects=list(_suspects(finished, rules)),
        charts=list(_charts(study, origin, rows, finished, ended, rules, tried or {}, names)),
        rate=rate,
        until=until,
        waiting=waiting,
    )


def _screened_sessions(study: Study, origin: str) -> list[ScreenedSession]:
    fields = ("id", "started_at", "verdict", "verdict_at", "reasons", "measures", "claimed_at")
    rows = Session.objects.filter(study=study, origin=origin).order_by("started_at", "id")
    return [
        ScreenedSession(
            key, started, verdict, verdict_at, _rules_of(reasons), measures, claimed_at is not None
        )
        for key, started, verdict, verdict_at, reasons, measures, claimed_at in rows.values_list(
            *fields
        ).iterator(2000)
    ]


def _rules_of(reasons: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(reason["rule"] for reason in reasons)


class _Periods:
    """Names the time of an arrival by the shortest period of which at most 48 hold all arrivals."""

    def __init__(self, rows: Rows) -> None:
        moments = [row.started_at for row in rows]
        first, last = (min(moments), max(moments)) if moments else (timezone.now(), timezone.now())
        span = (last - first).total_seconds() / 3600
        self.hours = next((h for h in PERIOD_HOURS if span / h < PERIODS_MAX - 1), PERIOD_HOURS[-1])
        self.first = self._start(first)
        self.count = int((last - self.first) / timedelta(hours=self.hours)) + 1

    def _start(self, moment: datetime) -> datetime:
        day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return day + timedelta(hours=self.hours) * int((moment - day) / timedelta(hours=self.hours))

    def of(self, moment: datetime) -> int:
        return int((moment - self.first).total_seconds() // (3600 * self.hours))

    def word(self, place: int) -> str:
        start = self.first + timedelta(hours=self.hours) * place
        return f"{start:%Y-%m-%d}" if self.hours >= 24 else f"{start:%b %-d, %H:%M}"

    def told(self, marks: Sequence[tuple[datetime, int, int]]) -> list[tuple[str, int, int]]:
        """Of (arrival, passed, asked) the sums of each period."""
        sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
        for moment, passed, asked in marks:
            counts = sums[self.of(moment)]
            counts[0] += passed
            counts[1] += asked
        return [(self.word(place), *sums[place]) for place in range(self.count)]  # type: ignore[misc]


def _gates(study: Study, origin: str, rows: Rows, names: _Periods) -> Iterator[Passing]:
    """Who passed a gate in the end, of those who passed it or have no try left."""
    by_session = {row.id: row for row in rows}
    tries = Gate.objects.filter(session__study=study, session__origin=origin, kind__in=GATES)
    has_passed: dict[str, dict[UUID, bool]] = defaultdict(dict)
    for kind, session, passed in tries.values_list("kind", "session", "passed").iterator(2000):
        has_passed[kind][session] = has_passed[kind].get(session, False) or bool(passed)
    for kind, rule in GATES.items():
        marks = [
            (by_session[session].started_at, int(passed), 1)
            for session, passed in has_passed[kind].items()
            if session in by_session and (passed or by_session[session].verdict)
        ]
        if marks:
            alone = sum(row.broken == {rule} for row in rows)
            through = sum(mark[1] for mark in marks)
            yield Passing(page_word(kind), through, len(marks), "", alone, names.told(marks))


def _trial_checks(finished: Rows, names: _Periods) -> Iterator[Passing]:
    """Checks answered as asked, of all that were shown to people who finished."""
    for kind, word in CHECKS.items():
        marks = [
            (row.started_at, *row.measures["checks"][kind])
            for row in finished
            if kind in row.measures.get("checks", {})
        ]
        if marks:
            right, asked = sum(m[1] for m in marks), sum(m[2] for m in marks)
            yield Passing(word, right, asked, times=names.told(marks), what="answers")


def _rules(finished: Rows, rules: Mapping[str, Rule], names: _Periods) -> Iterator[Passing]:
    """Who meets each rule that acts at the end."""
    for name, rule in rules.items():
        if name == "incomplete" or rule.timing == "before":
            continue
        told = [(row, value) for row in finished if (value := row.value(name)) is not None]
        # A rule without a value in some session, such as a share that is perfect, excludes it by no limit.
        marks = [(row.started_at, int(name not in row.broken), 1) for row in finished]
        if told:
            alone = sum(row.broken == {name} for row in finished)
            passed = sum(mark[1] for mark in marks)
            word, limit = MET.get(name, f"Not “{rule_word(name).lower()}”"), limit_word(name, rule.limit)
            yield Passing(word, passed, len(marks), limit, alone, names.told(marks))


def limit_word(name: str, limit: Limit) -> str:
    if isinstance(limit, tuple):
        return f"{limit[0]:g} to {limit[1]:g} minutes"
    unit = " ms" if name.endswith("_ms") else ""
    return f"at {'most' if name.endswith('_max') else 'least'} {limit:g}{unit}"


def _suspects(finished: Rows, rules: Mapping[str, Rule]) -> Iterator[str]:
    """Rules that most of those break who break no other."""
    for name in rules:
        others = [row for row in finished if not row.broken - {name}]
        failing = sum(name in row.broken for row in others)
        if failing >= SUSPECT_MIN and 2 * failing > len(others):
            yield (
                f"“{rule_word(name)}” excludes {failing} of {len(others)} who meet every other rule: perhaps "
                "the rule is wrong, and not the people."
            )


def pace(rows: Rows, places_left: int) -> tuple[str, str]:
    """How many passed in the last hours, and until when the last place is kept if it goes on so. No time
    before the first arrival counts: people could not have passed in it."""
    now = timezone.now()
    since = max(now - RECENT, min((row.started_at for row in rows), default=now))
    kept = [row.verdict_at for row in rows if row.verdict == "passed" and row.verdict_at is not None]
    recent = sum(moment >= since for moment in kept)
    rate = f"{recent} in the last {_duration(now - since)}"
    if places_left <= 0:
        return rate, "every place is kept"
    if recent < PASSED_MIN:
        return rate, f"cannot be told from fewer than {PASSED_MIN} people"
    return (
        rate,
        f"about {_duration((now - since) * places_left / recent)}, if it goes on as with these {recent}",
    )


def _duration(time: timedelta) -> str:
    hours = time.total_seconds() / 3600
    for limit, unit, of_hours in ((1.5, "minutes", 60.0), (48.0, "hours", 1.0)):
        if hours < limit:
            return f"{max(hours * of_hours, 1):.{int(unit == 'hours')}f} {unit}"
    return f"{hours / 24:.0f} days"


def _charts(
    study: Study, origin: str, rows: Rows, finished: Rows, ended: Rows,
    rules: Mapping[str, Rule], tried: Mapping[str, Limit], names: _Periods,
) -> Iterator[Chart]:  # fmt: skip
    of_time = [name for name in ("fastest_median_ms", "fastest_rating_ms") if name in rules]
    words = {
        "fastest_median_ms": "Median response time",
        "fastest_rating_ms": "Median time per answer",
        "total_minutes": "Minutes from arrival to the end",
    }
    for name in (*(of_time or ["fastest_median_ms"]), "total_minutes"):
        values = [value for row in finished if (value := row.value(name)) is not None]
        if values:
            unit = "min" if name == "total_minutes" else "ms"
            limits = list(_lines(rules.get(name), tried.get(name)))
            yield histogram(name.replace("_", "-"), f"{words[name]} of each person", values, unit, limits)
    yield from _blocks(finished)
    if ended:
        yield _staying(study, origin, ended)
    if rows:
        counts = names.told([(row.started_at, int(row.verdict == "passed"), 1) for row in rows])
        told = [
            (name, float(passed), f"{arrived} arrived, {passed} passed") for name, passed, arrived in counts
        ]
        yield columns(
            "arrivals", "Arrivals, and those who passed", told, ("arrived (UTC)", "people"),
            behind=[float(arrived) for _, _, arrived in counts],
            top=f"up to {max(arrived for _, _, arrived in counts)} people",
        )  # fmt: skip


def _lines(rule: Rule | None, tried: Limit | None) -> Iterator[tuple[float, str, str]]:
    for limit, what, tone in ((rule.limit if rule else None, "limit", "limit"), (tried, "tried", "tried")):
        if limit is not None:
            for end in limit if isinstance(limit, tuple) else (limit,):
                yield end, f"{what} {end:g}", tone


def _blocks(finished: Rows) -> Iterator[Chart]:
    times: dict[int, list[float]] = defaultdict(list)
    for row in finished:
        for block, seconds in row.measures.get("blocks", {}).items():
            times[int(block)].append(seconds)
    if times:
        told = [
            (f"Block {block + 1}", median(values), f"{median(values):.1f} s, {len(values)} people")
            for block, values in sorted(times.items())
        ]
        title, top = (
            "Time that the trials of a block were shown, median",
            f"up to {max(t[1] for t in told):.1f} s",
        )
        yield columns("blocks", title, told, ("block", "time"), top=top)


def _staying(study: Study, origin: str, ended: Rows) -> Chart:
    """Of those who came to an end, how many came as far as each page and trial."""
    gates = Gate.objects.filter(session__study=study, session__origin=origin, session__verdict__gt="")
    met: dict[str, int] = dict(
        gates.order_by().values_list("kind").annotate(n=Count("session", distinct=True))
    )
    slot = study.slots.order_by("pk").first()
    reached = _last_positions(study, origin, ended, slot)
    stops = gate_plan(study, arm_of(slot, study) if slot else None)
    pages = {
        place: list(dict.fromkeys(s.kind for s in stops if (s.place == "end") == place))
        for place in (False, True)
    }
    counts: list[tuple[str, int]] = [("Arrived", len(ended))]
    counts += [(page_word(kind), met[kind]) for kind in pages[False] if kind in met]
    counts.append(("Got a place", sum(row.is_claimed for row in ended)))
    remaining = reached.total()
    for position in range(max(reached, default=-1) + 1):
        counts.append((f"Trial {position + 1}", remaining))
        remaining -= reached[position]
    counts += [(page_word(kind), met[kind]) for kind in pages[True] if kind in met]
    told = [(name, float(n), f"{n} of {len(ended)}") for name, n in counts]
    return columns(
        "staying", "How far people came", told, ("page or trial", "answered it"), most=float(len(ended)),
        note="People who are still at it are not counted.", top=f"{len(ended)} people",
    )  # fmt: skip


def _last_positions(study: Study, origin: str, ended: Rows, slot: Slot | None) -> Counter[int]:
    """How many answered a trial last, by its position. Only those who did not finish are asked for: who is
    screened or passed with a place has answered all trials."""
    left = Response.objects.filter(session__study=study, session__origin=origin, session__verdict__in=LEFT)
    furthest = left.values("session").annotate(at=Max("position")).order_by()
    reached = Counter(row["at"] for row in furthest)
    last = slot.trials.aggregate(at=Max("position"))["at"] if slot else None
    if last is not None:
        reached[last] += sum(row.is_claimed and row.verdict in OVER for row in ended)
    return reached


def page_word(kind: str) -> str:
    return kind.replace("_", " ").capitalize()


def what_if(study: Study, origin: str, name: str, written: object) -> dict[str, Any]:
    """What another limit of a rule would do to those who finished: how many `more` and `fewer` it would
    exclude. Raises ValueError for a limit that the rule cannot have."""
    limit = read_rules({name: written})[name].limit
    rows = [row for row in _screened_sessions(study, origin) if row.verdict in OVER and row.measures]
    more = fewer = 0
    for row in rows:
        value = row.value(name)
        is_out = value is not None and is_beyond(name, value, limit)
        more += is_out and not row.broken
        fewer += row.broken == {name} and not is_out
    return {
        "rule": name,
        "limit": list(limit) if isinstance(limit, tuple) else limit,
        "more": more,
        "fewer": fewer,
        "of": len(rows),
    }


def can_be_tried(study: Study) -> list[tuple[str, str, str]]:
    """The rules that act at the end: name, words, and the limit of this study if it has the rule."""
    rules = read_rules(definition_of(study).rules)
    return [
        (name, rule_word(name), limit_word(name, rules[name].limit) if name in rules else "not used")
        for name, kind in RULES.items()
        if kind.timing == "after" and name != "incomplete"
    ]
