"""What answers to plates say: at every border, and of readers whose eyes are known."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import binom

from experiments.definition.colour_vision_verdict import (
    FILTER,
    NOTHING,
    OFF,
    ON,
    ORDINARY_SHARE_MIN,
    REDUCED_SHARE_MAX,
    UNKNOWN,
    Limits,
    vision_from_answers,
)
from experiments.definition.gate_page_tables import PlatesTable
from tests.experiments.definitions import definition

pytestmark = pytest.mark.pure

COLOURED, CONTROLS = 10, 2
ROWS: list[dict[str, Any]] = [
    {"id": f"plate-{number}", "answer": str(number % 10), "control": number in (0, 6)}
    for number in range(COLOURED + CONTROLS)
]
COLOURED_IDS = [row["id"] for row in ROWS if not row["control"]]
CONTROL_IDS = [row["id"] for row in ROWS if row["control"]]


def answered(missed: tuple[str, ...] = (), filters: str = OFF, wrong: str = NOTHING) -> dict[str, Any]:
    read = {row["id"]: wrong if row["id"] in missed else row["answer"] for row in ROWS}
    return {FILTER: filters, **read}


def by_hand(missed_count: int, control_missed: bool, filters: str) -> str:
    """The rule in words of its own: 0 or 1 missed of ten are ordinary, 4 or more reduced."""
    if control_missed or filters == ON:
        return "unclear"
    if missed_count <= 1:
        return "ordinary"
    return "reduced" if missed_count >= 4 and filters == OFF else "unclear"


def test_it_follows_the_rule_for_every_combination_of_plates() -> None:
    """All 1024 sets of missed plates, with every set of missed controls and every answer about filters."""
    controls = [missed for size in range(CONTROLS + 1) for missed in combinations(CONTROL_IDS, size)]
    missed_sets = [m for size in range(COLOURED + 1) for m in combinations(COLOURED_IDS, size)]
    assert len(missed_sets) == 1024
    for coloured, missed_controls, filters in product(missed_sets, controls, (OFF, ON, UNKNOWN)):
        said = vision_from_answers(ROWS, answered((*coloured, *missed_controls), filters))
        assert said == by_hand(len(coloured), bool(missed_controls), filters), (coloured, filters)


@pytest.mark.parametrize("wrong", [NOTHING, "5"])
def test_it_counts_a_wrong_digit_like_none(wrong: str) -> None:
    missed = tuple(name for name in COLOURED_IDS if name != "plate-5")
    assert vision_from_answers(ROWS, answered(missed, wrong=wrong)) == "reduced"


def test_it_needs_every_answer() -> None:
    for name in (FILTER, *(row["id"] for row in ROWS)):
        for value in (None, ""):
            answers = answered() | {name: value}
            assert vision_from_answers(ROWS, answers) == "unclear"
        del answers[name]
        assert vision_from_answers(ROWS, answers) == "unclear"
    assert vision_from_answers(ROWS, answered() | {FILTER: "perhaps"}) == "unclear"


def test_no_answer_at_all_is_a_check_that_was_left_out() -> None:
    assert vision_from_answers(ROWS, {}) == "skipped"


@pytest.mark.parametrize(
    ("plates", "ordinary", "reduced"),
    [(11, 10, 7), (10, 9, 6), (15, 14, 9), (21, 19, 13), (4, 4, 2), (39, 36, 24)],
)
def test_its_limits_are_those_of_the_published_test(plates: int, ordinary: int, reduced: int) -> None:
    """Ishihara's editions: of 11 plates 10 are ordinary and 7 deficient; 9 of 15 and 13 of 21 deficient."""
    assert Limits().counts(plates) == (ordinary, reduced)
    assert reduced / plates <= REDUCED_SHARE_MAX < ORDINARY_SHARE_MIN <= ordinary / plates


@pytest.mark.parametrize("coloured", range(4, 39))
def test_each_number_of_plates_leaves_room_for_doubt(coloured: int) -> None:
    ordinary, reduced = Limits().counts(coloured)
    assert 0 < reduced < ordinary <= coloured and ordinary - reduced >= 2


def test_other_limits_hold_if_a_study_sets_them() -> None:
    strict = Limits(ordinary_share_min=1.0, reduced_share_max=0.1)
    assert vision_from_answers(ROWS, answered(("plate-1",)), strict) == "unclear"
    assert vision_from_answers(ROWS, answered(tuple(COLOURED_IDS[:-1])), strict) == "reduced"
    assert vision_from_answers(ROWS, answered(tuple(COLOURED_IDS[:-2])), strict) == "unclear"


def shares(reads: float, control_reads: float, rng: np.random.Generator, people: int) -> dict[str, float]:
    """How often each result comes out for readers who read a plate with these probabilities."""
    results = []
    for _ in range(people):
        missed = tuple(
            row["id"] for row in ROWS if rng.random() >= (control_reads if row["control"] else reads)
        )
        results.append(vision_from_answers(ROWS, answered(missed)))
    return {vision: results.count(vision) / people for vision in ("ordinary", "reduced", "unclear")}


@pytest.mark.parametrize(
    ("reads", "control_reads", "likeliest", "ordinary_most"),
    [
        (0.98, 0.99, "ordinary", 1.0),
        (0.5, 0.99, "reduced", 0.02),
        (0.05, 0.99, "reduced", 1e-6),
        (1 / 11, 1 / 11, "unclear", 1e-6),
    ],
    ids=["ordinary eyes", "mild deficiency", "strong deficiency", "guesser"],
)
def test_it_sorts_readers_as_often_as_the_binomial_says(
    reads: float, control_reads: float, likeliest: str, ordinary_most: float
) -> None:
    """Each share within four standard errors of the exact probability."""
    people, rng = 4000, np.random.default_rng(15)
    passes = control_reads**CONTROLS
    exact = {
        "ordinary": passes * binom.sf(8, COLOURED, reads),
        "reduced": passes * binom.cdf(6, COLOURED, reads),
    }
    exact["unclear"] = 1 - sum(exact.values())
    sorted_as = shares(reads, control_reads, rng, people)
    for vision, p in exact.items():
        assert sorted_as[vision] == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / people) + 1e-3), vision
    assert max(sorted_as, key=lambda vision: sorted_as[vision]) == likeliest
    assert exact["ordinary"] <= ordinary_most


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"count": 6, "controls": 3}, "leaves 3 plates of colours"),
        ({"count": 6, "controls": 10}, "leaves 0 plates of colours"),
        ({"ordinary_share_min": 0.5, "reduced_share_max": 0.6}, "set reduced_share_max below"),
        ({"ordinary_share_min": 0.6, "reduced_share_max": 0.6}, "6 or more would be ordinary and 6 or fewer"),
        ({"prevalence": 0.0}, "greater than 0"),
        ({"axis": "all"}, "Input should be"),
    ],
)
def test_a_table_that_cannot_tell_people_apart_is_refused(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        PlatesTable.model_validate(table)


def test_what_people_do_not_meet_is_in_no_digest() -> None:
    checked = [definition(plates=table) for table in ({}, {"prevalence": 0.08}, {"count": 14})]
    digests = [each.digest for each in checked]
    assert digests[0] == digests[1] != digests[2]


def test_studies_without_a_check_keep_their_digest() -> None:
    met = definition().as_met()
    assert "plates" not in met and "special_category" not in met["ethics"]
    assert definition(plates={}).digest != definition().digest
    named = definition(ethics={"contact": "lab@example.org", "special_category": "health"})
    assert named.as_met()["ethics"]["special_category"] == "health"
