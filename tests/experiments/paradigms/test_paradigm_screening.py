"""Each rule by hand-made sessions, each probability by enumeration or simulation."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.design.rng import Streams
from experiments.kinds.base import Check, Choice, TrialView
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Answer, GateTry, Plan, PlannedTrial, Verdict
from experiments.paradigms.chance import GUESSER_PASS_MAX, SLIP_SHARE, pass_probability
from experiments.paradigms.screening import RULES, BadRules, read_rules, screen
from tests.experiments.pools import make_pool

pytestmark = pytest.mark.pure


def trial(position: int, check: Check = "", expected: str = "") -> TrialView:
    return TrialView(
        position=position,
        block=0,
        phase="test",
        kind="predict",
        check=check,
        condition="c0",
        choices=("a", "b"),
        expected=expected,
        truth="a",
        predicted="a",
    )


def known(position: int) -> TrialView:
    """A known task whose answer is "a"."""
    extra = {"grid": 2, "use": "known", "truth": "a"}
    return replace(trial(position), kind="solve", extra=extra)


def judged(
    trials: list[TrialView],
    choices: str,
    rules: dict[str, Any],
    *,
    rt_ms: list[int] | None = None,
    minutes: float = 10,
    gates: list[GateTry] | None = None,
) -> Verdict:
    times = rt_ms or [1000] * len(choices)
    answers = [Answer(p, {"choice": c}, times[p], times[p]) for p, c in enumerate(choices)]
    return screen(trials, gates or [], answers, minutes, rules)


def rules_of(verdict: Verdict) -> list[str]:
    return [reason.rule for reason in verdict.reasons]


@pytest.mark.parametrize(
    ("choices", "limit", "status"),
    [("aab", 1.0, "screened"), ("aaa", 1.0, "passed"), ("aab", 0.6, "passed"), ("abb", 0.6, "screened")],
)
@pytest.mark.parametrize("check", ["instructed", "repeat"])
def test_it_counts_checks(check: Check, choices: str, limit: float, status: str) -> None:
    verdict = judged([trial(n, check, "a") for n in range(3)], choices, {f"{check}_share_min": limit})
    assert verdict.status == status
    if verdict.reasons:
        (reason,) = verdict.reasons
        assert reason.found == choices.count("a") / 3 and reason.limit == limit
        assert f"{choices.count('a')} of 3 {check} checks" in reason.evidence


@pytest.mark.parametrize(
    ("choices", "limit", "status"), [("aab", 1.0, "screened"), ("aaa", 1.0, "passed"), ("aab", 0.6, "passed")]
)
def test_it_counts_known_tasks_among_the_others(choices: str, limit: float, status: str) -> None:
    """The ordinary trial, which is wrong, has no part in it."""
    trials = [*(known(n) for n in range(3)), trial(3)]
    verdict = judged(trials, f"{choices}b", {"known_share_min": limit})
    assert verdict.status == status
    if verdict.reasons:
        (reason,) = verdict.reasons
        assert (reason.rule, reason.timing) == ("known_share_min", "after")
        assert reason.evidence.startswith("2 of 3 known tasks answered as everybody can see (67%)")


def test_it_does_not_act_without_known_tasks() -> None:
    assert judged([trial(0)], "b", {"known_share_min": 1.0}).status == "passed"


def test_it_does_not_act_without_such_checks() -> None:
    rules = {"instructed_share_min": 1.0, "repeat_share_min": 1.0}
    assert judged([trial(0)], "a", rules).status == "passed"


def test_it_bounds_the_minutes_inclusively() -> None:
    rules = {"total_minutes": [1.5, 30]}
    for minutes, status in ((1.49, "screened"), (1.5, "passed"), (30, "passed"), (30.1, "screened")):
        assert judged([trial(0)], "a", rules, minutes=minutes).status == status
    (reason,) = judged([trial(0)], "a", rules, minutes=31).reasons
    assert (reason.found, reason.limit) == (31, 30)


def test_it_takes_the_median_over_scored_tests_only() -> None:
    trials = [trial(0), trial(1), trial(2), trial(3, "repeat", "a")]
    rules = {"fastest_median_ms": 300}
    assert judged(trials, "aaaa", rules, rt_ms=[100, 299, 900, 5000]).status == "screened"
    assert judged(trials, "aaaa", rules, rt_ms=[100, 300, 900, 1]).status == "passed"


def test_it_believes_no_times_that_the_server_did_not_see() -> None:
    """Four answers that claim a second each, in a session of 0.4 s: their median is at most 200 ms."""
    trials, rules = [trial(n) for n in range(4)], {"fastest_median_ms": 300}
    (reason,) = judged(trials, "abab", rules, minutes=0.4 / 60).reasons
    assert reason.found == pytest.approx(200) and "by the server's clock" in reason.evidence
    assert judged(trials, "abab", rules, minutes=0.6 / 60).status == "passed"


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=9), st.integers(0, 60_000))
def test_the_server_s_clock_changes_nothing_for_times_that_it_saw(times: list[int], more: int) -> None:
    trials, limit = [trial(n) for n in range(len(times))], 900
    minutes = (sum(times) + more) / 60_000
    verdict = judged(trials, "a" * len(times), {"fastest_median_ms": limit}, rt_ms=times, minutes=minutes)
    assert (verdict.status == "passed") == (median(times) >= limit)


def test_it_finds_one_sided_answers() -> None:
    trials = [trial(n) for n in range(4)]
    rules = {"side_share_max": 0.75}
    assert judged(trials, "aaab", rules).status == "passed"
    (reason,) = judged(trials, "bbbb", rules).reasons
    assert reason.found == 1.0 and "'b' in 100%" in reason.evidence


def test_it_finds_straight_lining_in_ratings() -> None:
    answer = Answer(0, {"q1": 4, "q2": 4, "q3": 4, "q4": 4}, 900, 900)
    assert rules_of(screen([rated(0)], [], [answer], 5, {"side_share_max": 0.9})) == ["side_share_max"]


def rated(position: int) -> TrialView:
    return TrialView(position, 0, "test", "rate", "", "c1", ("1", "2"), "", None, None)


RATED = [rated(place) for place in range(4)]


def ratings(*pages: str, rt_ms: int = 6000) -> list[Answer]:
    """Pages by the points given on them, as "333"."""
    return [
        Answer(at, {f"q{n}": int(point) for n, point in enumerate(points)}, rt_ms, rt_ms)
        for at, points in enumerate(pages)
    ]


def test_it_counts_pages_with_one_answer_to_all_questions() -> None:
    rules = {"straight_share_max": 0.5}
    assert screen(RATED, [], ratings("333", "222", "123", "112"), 5, rules).status == "passed"
    (reason,) = screen(RATED, [], ratings("333", "222", "555", "112"), 5, rules).reasons
    assert (reason.rule, reason.found) == ("straight_share_max", 0.75)
    assert "3 of 4 pages (75%)" in reason.evidence
    # Two questions may well have one answer, and a page with a single choice always has.
    assert screen(RATED, [], ratings("33", "22", "55", "11"), 5, {"straight_share_max": 0}).status == "passed"
    assert judged([trial(0)], "a", {"straight_share_max": 0}).status == "passed"


def test_it_takes_the_time_per_single_answer() -> None:
    answers = ratings("123", "123", "123", "123", rt_ms=2400)
    assert screen(RATED, [], answers, 5, {"fastest_rating_ms": 800}).status == "passed"
    (reason,) = screen(RATED, [], answers, 5, {"fastest_rating_ms": 801}).reasons
    assert reason.found == 800 and "over 12 answers" in reason.evidence
    # The server saw 6 s in all: the median of 12 times is at most twice their mean.
    (seen,) = screen(RATED, [], answers, 0.1 / 3, {"fastest_rating_ms": 400}).reasons
    assert seen.found == pytest.approx(2 * 2000 / 12) and "server's clock" in seen.evidence


def gates(kind: str, *passed: bool) -> list[GateTry]:
    return [GateTry(kind, number, ok) for number, ok in enumerate(passed, start=1)]


@pytest.mark.parametrize("kind", ["practice", "quiz"])
@pytest.mark.parametrize(
    ("tries", "status"),
    [
        ((), "passed"),
        ((True,), "passed"),
        ((False, True), "passed"),
        ((False,), "passed"),
        ((False, False), "screened"),
        ((False, False, True), "screened"),
    ],
)
def test_it_limits_the_tries(kind: str, tries: tuple[bool, ...], status: str) -> None:
    rules = {f"{kind}_attempts_max": 2}
    verdict = judged([trial(0)], "a", rules, gates=gates(kind, *tries))
    assert verdict.status == status
    assert all(reason.timing == "before" for reason in verdict.reasons)


def test_it_gives_every_reason_at_once_with_the_timing_of_the_study() -> None:
    rules = {"fastest_median_ms": {"limit": 2000, "timing": "after"}, "side_share_max": 0.5}
    verdict = judged([trial(0), trial(1)], "aa", rules)
    assert [(reason.rule, reason.timing) for reason in verdict.reasons] == [
        ("fastest_median_ms", "after"),
        ("side_share_max", "after"),
    ]


def test_it_refuses_a_timing_at_which_the_rule_is_not_known() -> None:
    with pytest.raises(BadRules, match="only after assignment"):
        read_rules({"fastest_median_ms": {"limit": 2000, "timing": "before"}})
    with pytest.raises(BadRules, match="only before assignment"):
        read_rules({"quiz_attempts_max": {"limit": 2, "timing": "after"}})


def test_it_judges_an_unfinished_session_no_further() -> None:
    verdict = judged([trial(0), trial(1)], "a", {"fastest_median_ms": 9000})
    assert verdict.status == "incomplete" and rules_of(verdict) == ["incomplete"]


def test_it_reads_every_rule_with_its_default_timing() -> None:
    raw = {name: [1, 2] if kind.pair else 1 for name, kind in RULES.items() if name != "incomplete"}
    rules = read_rules(raw)
    assert rules.keys() == RULES.keys()
    before = {name for name, rule in rules.items() if rule.timing == "before"}
    assert before == {"practice_attempts_max", "quiz_attempts_max", "training_attempts_max"}


@pytest.mark.parametrize(
    ("raw", "key", "message"),
    [
        ({"no_such_rule": 1}, "no_such_rule", "unknown rule"),
        ({"instructed_share_min": 1.1}, "instructed_share_min", "0 to 1"),
        ({"instructed_share_min": True}, "instructed_share_min", "not a number"),
        ({"instructed_share_min": math.nan}, "instructed_share_min", "not a number"),
        ({"quiz_attempts_max": 1.5}, "quiz_attempts_max", "whole number"),
        ({"total_minutes": 3}, "total_minutes", "pair"),
        ({"total_minutes": [30, 3]}, "total_minutes", "below"),
        ({"side_share_max": {"timing": "after"}}, "side_share_max", "None"),
        ({"side_share_max": {"limit": 1, "timing": "later"}}, "side_share_max", "'later'"),
        ({"side_share_max": {"limit": 1, "more": 1}}, "side_share_max", "limit and timing"),
        ({"incomplete": False}, "incomplete", "always acts"),
    ],
)
def test_it_refuses_rules_it_cannot_read(raw: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(BadRules) as caught:
        read_rules({**raw, "another_mistake": 1})
    assert message in caught.value.problems[key]
    assert "another_mistake" in caught.value.problems


def times(count: int, check: Check, options: int) -> list[tuple[Check, int]]:
    return [(check, options)] * count


def plan_with(*trials: tuple[Check, int]) -> Plan:
    planned = tuple(
        PlannedTrial(
            position=place,
            block=0,
            phase="test",
            kind="predict",
            item="i",
            condition="c0",
            explained=False,
            choices=tuple(Choice(str(n), str(n), str(n)) for n in range(options)),
            check=check,
            expected="0" if check else "",
        )
        for place, (check, options) in enumerate(trials)
    )
    return Plan(0, "participant", "c0", "c0", planned)


def test_it_knows_that_half_of_the_guessers_pass_three_binary_checks_at_sixty_percent() -> None:
    plan = plan_with(*times(3, "repeat", 2))
    assert pass_probability(plan, {"repeat_share_min": 0.6}).total == pytest.approx(0.5)


def test_it_multiplies_the_rules() -> None:
    plan = plan_with(("instructed", 4), ("instructed", 4), ("repeat", 2), ("repeat", 2), ("repeat", 2))
    rules = {"instructed_share_min": 1.0, "repeat_share_min": 0.6, "total_minutes": [1, 30]}
    guesser = pass_probability(plan, rules)
    attentive = pass_probability(plan, rules, SLIP_SHARE)
    assert guesser.total == pytest.approx(0.5 / 16) and guesser.total < GUESSER_PASS_MAX
    assert attentive.total == pytest.approx(0.95**2 * (0.95**3 + 3 * 0.95**2 * 0.05))
    assert guesser.exact and set(guesser.assumed) == {"total_minutes", "incomplete"}


def test_it_counts_independent_tries_at_the_gates() -> None:
    chance = pass_probability(plan_with(("", 2)), {"quiz_attempts_max": 2}, gates={"quiz": (4, 2)})
    assert chance.by_rule == {"quiz_attempts_max": pytest.approx(1 - (7 / 8) ** 2)}


@pytest.mark.parametrize(("options", "count", "limit"), [(2, 9, 0.7), (3, 7, 0.5), (5, 5, 0.4), (4, 6, 1.0)])
def test_it_enumerates_the_largest_share_of_one_answer(options: int, count: int, limit: float) -> None:
    every = list(product(range(options), repeat=count))
    passed = sum(max(map(answers.count, range(options))) <= limit * count for answers in every)
    chance = pass_probability(plan_with(*times(count, "", options)), {"side_share_max": limit})
    assert chance.total == pytest.approx(passed / len(every)) and chance.exact


def test_it_simulates_where_tests_differ_in_their_options() -> None:
    plan = plan_with(*times(3, "", 2), *times(2, "", 3))
    every = list(product(range(2), range(2), range(2), range(3), range(3)))
    passed = sum(max(map(answers.count, range(3))) <= 3 for answers in every) / len(every)
    chance = pass_probability(plan, {"side_share_max": 0.6}, seed=5)
    assert not chance.exact and chance.total == pytest.approx(passed, abs=0.02)
    assert chance == pass_probability(plan, {"side_share_max": 0.6}, seed=5)


def test_it_agrees_with_simulated_guessers_on_a_whole_plan() -> None:
    paradigm = get_paradigm("meta_predictor")
    pool = make_pool(slots=1)
    plan = next(iter(paradigm.plans(paradigm.Design(), pool, Streams(1))))
    rules = {"instructed_share_min": 0.5, "repeat_share_min": 0.6, "side_share_max": 0.6}
    views = [
        TrialView(
            *(t.position, t.block, t.phase, t.kind, t.check, t.condition),
            *(tuple(choice.value for choice in t.choices), t.expected, None, None),
        )
        for t in plan.trials
    ]
    rng = np.random.default_rng(0)
    passed = 0
    for _ in range(2000):
        answers = [
            Answer(v.position, {"choice": v.choices[int(rng.integers(len(v.choices)))]}, 900, 900)
            for v in views
        ]
        passed += paradigm.screen(views, [], answers, 10, rules).status == "passed"
    expected = pass_probability(plan, rules).total
    assert passed / 2000 == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 2000))


NUMBER = r"(\d+(?:\.\d+)?)"
PRINTED = {
    "practice_attempts_max": (rf"number {NUMBER} would be needed, at most {NUMBER} are", ">"),
    "training_attempts_max": (rf"number {NUMBER} would be needed, at most {NUMBER} are", ">"),
    "quiz_attempts_max": (rf"{NUMBER} tries at the quiz, at most {NUMBER} are", ">"),
    "instructed_share_min": (rf"\({NUMBER}%\), at least {NUMBER}% are", "<"),
    "repeat_share_min": (rf"\({NUMBER}%\), at least {NUMBER}% are", "<"),
    "known_share_min": (rf"\({NUMBER}%\), at least {NUMBER}% are", "<"),
    "total_minutes": (rf"took {NUMBER} minutes, {NUMBER} to", "<"),
    "fastest_median_ms": (rf"{NUMBER} ms over .* at least {NUMBER} needed", "<"),
    "side_share_max": (rf"in {NUMBER}% of .* at most {NUMBER}% is", ">"),
    "straight_share_max": (rf"pages \({NUMBER}%\), at most {NUMBER}% is", ">"),
    "fastest_rating_ms": (rf"{NUMBER} ms over .* at least {NUMBER} needed", "<"),
}
"""How the evidence of each rule prints the value and the limit, and on which side the value lies."""


@st.composite
def just_beyond(draw: st.DrawFn) -> tuple[str, dict[str, Any], Verdict]:
    """A session that breaks one rule by the least that a float, or a count, can be beyond its limit."""
    name = draw(st.sampled_from(sorted(PRINTED)))
    count = draw(st.integers(2, 40))
    right = draw(st.integers(0, count - 1))
    check: Check = "repeat" if name == "repeat_share_min" else "instructed"
    gates: list[GateTry] = []
    trials, choices, times, minutes = [trial(p) for p in range(count)], "ab" * count, [1000] * count, 10.0
    limit: Any
    if name.endswith("_attempts_max"):
        limit = draw(st.integers(1, 20))
        kind = name.removesuffix("_attempts_max")
        tries = limit + (kind == "quiz")
        gates = [GateTry(kind, attempt, False, {}) for attempt in range(tries)]
    elif name.endswith("_share_min"):
        trials = [trial(p, check, "a") for p in range(count)]
        if name == "known_share_min":
            trials = [known(p) for p in range(count)]
        choices = "a" * right + "b" * (count - right)
        limit = math.nextafter(right / count, 1)
    elif name == "side_share_max":
        choices = "a" * count + "b" * right
        trials = [trial(p) for p in range(count + right)]
        times = [1000] * (count + right)
        limit = math.nextafter(count / (count + right), 0)
    elif name == "straight_share_max":
        pages = ["444"] * count + ["445"] * right
        limit = math.nextafter(count / len(pages), 0)
        return (
            name,
            {name: limit},
            screen([rated(p) for p in range(len(pages))], [], ratings(*pages), 5, {name: limit}),
        )
    elif name in ("fastest_median_ms", "fastest_rating_ms"):
        times = draw(st.lists(st.integers(1, 9000), min_size=count, max_size=count))
        limit = math.nextafter(median(times), math.inf)
    else:
        low = draw(st.floats(0.01, 100))
        minutes, limit = math.nextafter(low, 0), [low, 200]
    verdict = judged(trials, choices[: len(trials)], {name: limit}, rt_ms=times, minutes=minutes, gates=gates)
    return name, {name: limit}, verdict


@given(just_beyond())
@settings(max_examples=300, deadline=None)
def test_its_evidence_never_prints_a_value_as_its_own_limit(drawn: tuple[str, Any, Verdict]) -> None:
    name, _, verdict = drawn
    pattern, side = PRINTED[name]
    (reason,) = verdict.reasons
    printed = re.search(pattern, reason.evidence)
    assert printed is not None, reason.evidence
    value, limit = (Fraction(text) for text in printed.groups())
    assert value > limit if side == ">" else value < limit, reason.evidence


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (1.46, "took 1.46 minutes, 1.50 to 30 are allowed"),
        (30.04, "took 30.04 minutes, 1.5 to 30.00 are allowed"),
        (45, "took 45.0 minutes, 1.5 to 30.0 are allowed"),
    ],
)
def test_it_prints_minutes_on_their_own_side_of_both_limits(minutes: float, said: str) -> None:
    verdict = judged([trial(0)], "a", {"total_minutes": [1.5, 30]}, minutes=minutes)
    assert [reason.evidence for reason in verdict.reasons] == [said]


def test_it_prints_what_was_once_printed_as_the_limit_itself() -> None:
    """20 of 21 answers are 95.2 %, which was printed as 95 %."""
    verdict = judged([trial(p) for p in range(21)], "a" * 20 + "b", {"side_share_max": 0.95})
    assert "in 95.2% of the test trials, at most 95.0% is allowed" in verdict.reasons[0].evidence


def test_every_rule_with_a_limit_is_among_those_whose_evidence_is_read() -> None:
    assert set(PRINTED) == set(RULES) - {"incomplete"}
