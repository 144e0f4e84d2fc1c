"""Effects of the square: levels by hand, planted effects found by their own name, and none where none is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from analysis.frames import Frames
from analysis.reports.reverse_turing.mixed_model import (
    EFFECTS,
    answers_model,
    effect_tests,
    level_means,
    square_levels,
)
from analysis.reports.reverse_turing.person_scores import person_rows, scored_tests
from analysis.reports.reverse_turing.report import report
from experiments.design.squares import latin_square, williams
from tests.analysis.reports.reverse_turing.test_reverse_turing_report import (
    NAMES,
    turing_facts,
    turing_frames,
)
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
ORDERS, GROUPS = williams(3), latin_square(3)
Chance = Callable[[int, int, str, int, int], float]
"""Place, condition, condition before ("" at first), order and subset -> the share of answers that agree."""


def square(chance: Chance, rounds: int, seed: int, tests: int = 10, spread: float = 0.0) -> Frames:
    """All cells of the paper's square, `rounds` times; people's shares differ by `spread` (SD)."""
    rng = np.random.default_rng(seed)
    sittings, arms, subsets = [], {}, {}
    for number, (order, group) in enumerate([(o, g) for o in range(6) for g in range(3)] * rounds):
        session, ability, before = f"s{number:03d}", spread * rng.normal(), ""
        arms[session] = f"order-{order}/group-{group}"
        blocks = []
        for place, condition in enumerate(ORDERS[order]):
            subset = (group + condition) % 3
            subsets[session, place] = subset
            share = np.clip(chance(place, condition, before, order, subset) + ability, 0.02, 0.98)
            blocks.append((NAMES[condition], [bool(x) for x in rng.random(tests) < share]))
            before = NAMES[condition]
        sittings.append((session, blocks))
    return turing_frames(sittings, arms, lambda session, place: 100 * subsets[session, place])


def even(*given: object) -> float:
    return 0.6


PLANTED: dict[str, Chance] = {
    "period": lambda place, condition, before, order, subset: 0.45 + 0.2 * place,
    "before": lambda place, condition, before, order, subset: 0.85 if before == "lime" else 0.5,
    "sequence": lambda place, condition, before, order, subset: 0.45 + 0.4 * (order == 4),
    "subset": lambda place, condition, before, order, subset: 0.4 + 0.2 * subset,
}


def test_levels_are_those_of_the_cells() -> None:
    frames = square(even, 1, 1)
    tests = scored_tests(frames)
    levels = square_levels(frames, tests, turing_facts())
    assert list(levels) == list(EFFECTS)
    items = tests["item"].str.removeprefix("item-").astype(int) // 100
    assert list(levels["subset"]) == list(items.astype(str)), "the texts that were shown are of the subset"
    seventh = (
        tests["session"] == "s007"
    )  # the third order (2, 0, 1 of the Williams square) and the second group
    assert ORDERS[2] == tuple(NAMES.index(n) for n in dict.fromkeys(tests.loc[seventh, "condition"]))
    assert set(levels["sequence"][seventh]) == {"2"} and list(
        dict.fromkeys(levels["period"][seventh])
    ) == list("012")
    assert list(dict.fromkeys(levels["before"][seventh])) == ["", *(NAMES[c] for c in ORDERS[2][:2])]


@pytest.mark.parametrize("effect", PLANTED)
def test_a_planted_effect_is_found_under_its_own_name(effect: str) -> None:
    """36 people, ten texts per condition; the effects are of 20 to 40 points."""
    frames = square(PLANTED[effect], 2, 3)
    content = report(frames, turing_facts()).json()
    tests = content["square"]["tests"]
    assert list(tests) == list(EFFECTS)
    assert {name: row["df"] for name, row in tests.items()} == {
        "period": 2, "before": 2, "sequence": 5, "subset": 2
    }  # fmt: skip
    # Orders are judged by 36 people (less 1, less 5), subsets by the 30 texts (less 1, less 2).
    assert [tests[name]["df_error"] for name in ("sequence", "subset")] == [36 - 1 - 5, 30 - 1 - 2]
    assert tests[effect]["p"] < 0.001
    assert content["single_answers"]["p"] > 0.01, "it is no effect of conditions"


def test_an_absent_effect_is_found_about_as_often_as_alpha_allows(scale: Scale) -> None:
    """Studies of 18 people who differ, four effects each."""
    low, count = 0, scale.of(10, 125)
    for number in range(count):
        frames = square(even, 1, 1_000 * scale.seed + number, tests=5, spread=0.08)
        tests, problems = effect_tests(answers_model(frames, turing_facts()))
        assert len(tests) == len(EFFECTS) and not problems
        low += sum(ratio.p < 0.05 for ratio in tests.values())
    share = low / (count * len(EFFECTS))
    print(f"nothing planted, found in {share:.3f} of {count * len(EFFECTS)} tests")
    assert share <= likely_share(0.07, count * len(EFFECTS)).high


def test_means_by_level_are_counted_by_hand() -> None:
    frames = square(PLANTED["period"], 2, 4)
    rows = person_rows(frames)
    means = {(m.effect, m.level): (m.scores, m.mean) for m in level_means(frames, rows, turing_facts())}
    tests = scored_tests(frames)
    for block in (0, 1, 2):
        part = tests[tests["block"] == block]
        count, mean = means["period", str(block)]
        assert count == 36 and mean == pytest.approx(part["matches_model"].mean())
    items = tests["item"].str.removeprefix("item-").astype(int) // 100
    for subset in (0, 1, 2):
        share = tests.loc[items == subset, "matches_model"].mean()
        count, mean = means["subset", str(subset)]
        assert count == 36 and mean == pytest.approx(share)
    assert {level for effect, level in means if effect == "before"} == {"", *NAMES}
    assert {count for (effect, _), (count, _) in means.items() if effect == "sequence"} == {18}


def test_the_report_names_orders_and_places_for_people_to_read() -> None:
    made = report(square(even, 2, 5), turing_facts())
    levels = [row[:2] for row in made.tables()["square_means"].rows]
    assert ("Place in the session", "1") in levels and ("Condition before", "LIME") in levels
    assert ("Condition before", "No condition, in the first part") in levels
    assert ("Order of the conditions", "NONE, LIME, CONTROL") in levels
    assert [row[0] for row in made.tables()["square_tests"].rows] == list(EFFECTS.values())


def test_few_people_of_a_square_leave_out_what_they_cannot_tell() -> None:
    """Six people who all met the conditions in one order: place and condition are the same thing."""
    frames = square(even, 2, 6)
    sessions = set(frames.participants.loc[frames.participants["arm"].str.startswith("order-1"), "session"])
    frames = dataclasses.replace(
        frames,
        trials=frames.trials[frames.trials["session"].isin(sessions)],
        participants=frames.participants[frames.participants["session"].isin(sessions)],
    )
    assert set(answers_model(frames, turing_facts()).square) <= {"before", "subset"}


def test_a_study_of_one_condition_each_has_no_such_effects() -> None:
    frames = turing_frames([(f"p{n}", [(NAMES[n % 3], [True, False, n % 2 == 0])]) for n in range(24)])
    section = next(s for s in report(frames, turing_facts()).sections if s.key == "square")
    assert section.content is None and not section.tables
