"""Raw marks of people and of models become solutions on one path; lures and transplants by the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from experiments.design.rng import Streams
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms.base import BadDesign
from experiments.paradigms.solution_numbers import numbers_of, overlaps, told_by_form
from experiments.paradigms.solutions import (
    FrozenSolution,
    LabelledItem,
    Settings,
    SolvedItem,
    SourceAnswer,
    freeze_given,
    region_mask,
    solutions_of_given,
    solutions_of_labels,
)
from stimuli.regions.grid import cells_of
from stimuli.regions.mark_smoothing import KINDS, RegionKind, shape_region
from stimuli.types import Mask, Use

pytestmark = pytest.mark.pure

SIDE = 12
ANSWERS = ("1", "2", "3")
RAW = Settings("strokes", 0)


def disk(radius: float, row: float = 5.5, column: float = 5.5) -> Mask:
    y, x = np.mgrid[:SIDE, :SIDE]
    return np.asarray((y - row) ** 2 + (x - column) ** 2 <= radius**2)


def items(count: int = 12, uses: Sequence[Use] = ("task",)) -> list[SolvedItem]:
    """Items whose truths go round the answers, and uses go round theirs."""
    made = []
    for number in range(count):
        use = uses[number % len(uses)]
        truth = "" if use == "blank" else ANSWERS[number % len(ANSWERS)]
        made.append(SolvedItem(f"i{number:02d}", truth, f"g{number}", use))
    return made


def stage(some: Sequence[SolvedItem], *, by_people: int = 2, confidence: float = 0.9) -> list[SourceAnswer]:
    """People paint disks of many sizes, the model has one smooth map per item; both answer right."""
    given = []
    for at, item in enumerate(some):
        if item.use == "blank":
            continue
        marks = [disk(1.5 + (at + n) % 4) for n in range(by_people)]
        given += [SourceAnswer(item.key, "people", item.truth, n, mark) for n, mark in enumerate(marks)]
        y, x = np.mgrid[:SIDE, :SIDE]
        strengths = -np.hypot(y - 3.0 - at % 5, x - 4.3)
        given.append(SourceAnswer(item.key, "model", item.truth, 0, strengths, confidence))
    return given


def frozen(
    some: Sequence[SolvedItem], settings: Settings = RAW, seed: int = 1, **more: Any
) -> tuple[FrozenSolution, ...]:
    return freeze_given(stage(some, **more), some, settings, "tasks", Streams(seed))


def of(solutions: Sequence[FrozenSolution], use: str, source: str = "") -> list[FrozenSolution]:
    return [s for s in solutions if s.use == use and source in ("", s.source)]


# Solutions


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_people_painted_is_shaped_and_nothing_else(kind: RegionKind) -> None:
    some, settings = items(), Settings(kind, 1)
    painted = {(g.item, g.source, g.number): g.mark for g in stage(some) if g.is_painted}
    numbers: Counter[str] = Counter()
    for solution in of(frozen(some, settings), "solution", "people"):
        mark = painted[solution.item, "people", numbers[solution.item]]
        numbers[solution.item] += 1
        assert mark is not None and solution.region == cells_of(shape_region(mark, kind, 1))
        assert solution.made == {"marked": mark.sum(), "area": len(solution.region or ())}


def test_a_map_is_cut_to_the_area_of_a_mark_of_the_same_answer() -> None:
    some = items(30)
    solutions = frozen(some)
    areas = {s.key: (s.choice, len(s.region or ())) for s in of(solutions, "solution", "people")}
    drawn: Counter[int] = Counter()
    for solution in of(solutions, "solution", "model"):
        choice, area = areas[solution.made["area_of"]]
        assert choice == solution.choice and area == len(solution.region or ()) == solution.made["marked"]
        drawn[area] += 1
    assert len(drawn) == 4, "all sizes that people paint are drawn"


def test_a_cut_takes_the_strongest_cells() -> None:
    some = items(3)
    strengths = {g.item: g.mark for g in stage(some) if not g.is_painted}
    for solution in of(frozen(some), "solution", "model"):
        field, region = strengths[solution.item], region_mask(solution, SIDE)
        assert field is not None and field[region].min() >= field[~region].max()
        assert solution.made["threshold"] == field[region].min()


def test_every_method_gets_the_same_area_for_an_item() -> None:
    some = items()
    given = stage(some)
    other = [
        replace(g, source="other", mark=-g.mark) for g in given if g.mark is not None and g.confidence < 1
    ]
    made = freeze_given([*given, *other], some, RAW, "tasks", Streams(1))
    of_item = {(s.source, s.item): s.made for s in of(made, "solution") if s.source != "people"}
    for item in some:
        assert of_item["model", item.key]["area_of"] == of_item["other", item.key]["area_of"]


def test_people_and_models_go_one_path() -> None:
    """A map of zeros and ones that equals a painted mark, cut to its area, is the same region: under every
    setting nothing tells where it came from."""
    some = items(6)
    painted = [
        SourceAnswer(item.key, "people", item.truth, 0, disk(2.0 + at)) for at, item in enumerate(some)
    ]
    # One mark for each answer, so that the area drawn is its own.
    alone = painted[:3]
    mapped = [replace(g, source="model", mark=np.asarray(g.mark, np.float64), confidence=0.7) for g in alone]
    for kind in KINDS:
        for smooth in (0, 1, 2):
            made = solutions_of_given([*alone, *mapped], Settings(kind, smooth), "t", Streams(3))
            regions: dict[str, list[Any]] = {"people": [], "model": []}
            for solution in made:
                regions[solution.source].append(solution.region)
            assert regions["people"] == regions["model"]


@pytest.mark.parametrize(("below", "abstains"), [(0.0, False), (0.9, False), (0.91, True), (1.0, True)])
def test_a_model_that_is_not_sure_cannot_say(below: float, abstains: bool) -> None:
    solutions = frozen(items(), replace(RAW, abstain_below=below))
    for solution in of(solutions, "solution", "model"):
        assert (solution.choice == CANNOT_SAY, solution.region is None) == (abstains, abstains)
    assert all(s.choice != CANNOT_SAY for s in of(solutions, "solution", "people")), "people are sure"


def test_who_cannot_say_has_no_region() -> None:
    some = items(6)
    given = [*stage(some), SourceAnswer("i00", "people", CANNOT_SAY, 2, None)]
    made = freeze_given(given, some, RAW, "tasks", Streams(1))
    [mute] = [s for s in of(made, "solution") if s.choice == CANNOT_SAY]
    assert mute.region is None and mute.item == "i00" and mute.made == {}
    assert CANNOT_SAY not in {s.choice for s in made if s.use != "solution"}


def test_an_answer_that_was_painted_on_nothing_is_refused() -> None:
    some = items(3)
    given = [replace(g, choice="9") if g.source == "model" and g.item == "i01" else g for g in stage(some)]
    with pytest.raises(BadDesign, match="model answers '9' to 'i01', and no mark was painted for this"):
        freeze_given(given, some, RAW, "tasks", Streams(1))


# Lures and transplants


def test_a_lure_is_false_and_has_the_region_of_another_solution_that_gave_it() -> None:
    some = items(20, ("task", "task", "task", "known", "tuning", "blank"))
    solutions = frozen(some)
    by_key, facts = {s.key: s for s in solutions}, {item.key: item for item in some}
    lures = of(solutions, "lure")
    assert {(s.item, s.source) for s in lures} == {
        (item.key, source) for item in some if item.use in ("task", "known") for source in ("people", "model")
    }
    for lure in lures:
        donor = by_key[lure.donor]
        given = {s.choice for s in of(solutions, "solution", lure.source) if s.item == lure.item}
        assert lure.choice not in {facts[lure.item].truth, *given}
        assert (donor.source, donor.choice, donor.region) == (lure.source, lure.choice, lure.region)
        assert donor.use == "solution" and facts[donor.item].use in ("task", "known")
        assert facts[donor.item].group != facts[lure.item].group


def test_sources_have_the_same_false_answer_and_answers_differ_between_items() -> None:
    some = items(30)
    answers = {(s.item, s.source): s.choice for s in of(frozen(some), "lure")}
    assert all(answers[item.key, "people"] == answers[item.key, "model"] for item in some)
    assert len({answers[item.key, "people"] for item in some if item.truth == "1"}) == 2


def test_a_lure_never_takes_what_the_source_itself_answered() -> None:
    some = items(12)
    given = [
        replace(g, choice="2") if g.item == "i00" and g.source == "people" and g.number else g
        for g in stage(some)
    ]
    made = freeze_given(given, some, RAW, "tasks", Streams(1))
    [lure] = [s for s in of(made, "lure", "people") if s.item == "i00"]
    assert lure.choice == "3", "the truth is 1, and one of its people said 2"


def test_without_another_solution_of_a_false_answer_there_is_no_lure() -> None:
    some = [item for item in items(12) if item.truth == "1"]
    assert of(frozen(some), "lure") == []
    twins = [item._replace(group="one photograph") for item in items(2)]
    assert of(frozen(twins), "lure") == []


def test_a_blank_item_gets_answer_and_region_of_a_real_solution_of_each_source() -> None:
    some = items(18, ("task", "task", "blank"))
    solutions = frozen(some)
    by_key = {s.key: s for s in solutions}
    blank = [item.key for item in some if item.use == "blank"]
    alone = of(solutions, "alone")
    assert Counter((s.item, s.source) for s in alone) == Counter(
        (key, source) for key in blank for source in ("people", "model")
    )
    donors: dict[str, set[str]] = {}
    for solution in alone:
        donor = by_key[solution.donor]
        assert (donor.source, donor.choice, donor.region) == (
            solution.source,
            solution.choice,
            solution.region,
        )
        donors.setdefault(solution.item, set()).add(donor.item)
    assert all(len(of_item) == 1 for of_item in donors.values()), "of the same item for every source"
    assert len(set().union(*donors.values())) > 1


def test_keys_are_unique_and_name_no_person() -> None:
    solutions = frozen(items(18, ("task", "known", "blank")))
    assert len({s.key for s in solutions}) == len(solutions)
    assert all(len(s.key) == 24 and set(s.key) <= set("0123456789abcdef") for s in solutions)


def test_the_same_seed_freezes_the_same_and_another_one_does_not() -> None:
    some = items(18, ("task", "known", "blank"))
    assert frozen(some, seed=4) == frozen(some, seed=4) != frozen(some, seed=5)


# Labels


def labelled(count: int = 12) -> list[LabelledItem]:
    return [
        LabelledItem(f"i{n}", ANSWERS[n % 3], ANSWERS[(n + n % 2) % 3], (), "known" if n % 4 == 3 else "task")
        for n in range(count)
    ]


def test_labels_are_held_against_what_the_model_predicts() -> None:
    some = labelled()
    made = solutions_of_labels(some, ANSWERS, "labels", ["predicted"], "s", Streams(1))
    real = {(s.item, s.source): s for s in of(made, "solution")}
    for item in some:
        assert real[item.key, "labels"].choice == item.truth
        assert real[item.key, "predicted"].choice == item.predicted
    assert {s.region for s in made} == {None}


def test_every_annotator_s_label_is_a_solution() -> None:
    some = [item._replace(labels=("1", "3", "1")) for item in labelled(1)]
    made = solutions_of_labels(some, ANSWERS, "labels", ["predicted"], "s", Streams(1))
    assert [s.choice for s in of(made, "solution", "labels")] == ["1", "3", "1"]
    assert len({s.key for s in made}) == len(made)
    [lure] = of(made, "lure", "labels")
    assert lure.choice == "2", "neither the truth nor any annotator's"


def test_lures_of_labels_are_false_and_alike_where_they_can_be() -> None:
    some = [item._replace(predicted=item.truth) for item in labelled()]
    lures = {
        (s.item, s.source): s.choice
        for s in of(solutions_of_labels(some, ANSWERS, "labels", ["predicted"], "s", Streams(1)), "lure")
    }
    for item in some:
        assert lures[item.key, "labels"] == lures[item.key, "predicted"] != item.truth


def test_blank_and_tuning_items_have_no_labels_to_judge() -> None:
    uses: tuple[Use, ...] = ("blank", "tuning")
    some = [item._replace(use=use) for item, use in zip(labelled(2), uses, strict=True)]
    assert solutions_of_labels(some, ANSWERS, "labels", ["predicted"], "s", Streams(1)) == ()


# Numbers


def test_it_counts_solutions_areas_and_flat_maps() -> None:
    some = items(6)
    flat = np.zeros((SIDE, SIDE))
    given = [replace(g, mark=flat) if (g.item, g.source) == ("i00", "model") else g for g in stage(some)]
    given.append(SourceAnswer("i01", "people", CANNOT_SAY, 2, None))
    made = freeze_given(given, some, RAW, "tasks", Streams(1))
    model, people = numbers_of(made, given)
    assert (model.source, model.solutions, model.abstained, model.flat) == ("model", 6, 0, 1)
    assert (people.source, people.solutions, people.abstained, people.flat) == ("people", 13, 1, 0)
    areas = [len(s.region) for s in made if s.source == "people" and s.use == "solution" and s.region]
    assert people.areas == tuple(np.percentile(areas, [25, 50, 75])) and people.marked == np.median(areas)


def test_regions_of_one_form_cannot_be_told_apart_and_others_can() -> None:
    """Squares of people and of the model, at other places; then the model's with a hole."""
    some = items(40)
    rng = np.random.default_rng(5)

    def square(hole: bool) -> Mask:
        mask = np.zeros((SIDE, SIDE), bool)
        row, column, side = *rng.integers(0, 6, 2), int(rng.integers(3, 7))
        mask[row : row + side, column : column + side] = True
        mask[row + 1, column + 1] = not hole
        return mask

    def told(hole: bool) -> Any:
        solutions = [
            FrozenSolution(f"{item.key}{source}", item.key, source, "1", cells_of(square(hole and at == 1)))
            for item in some
            for at, source in enumerate(("people", "model"))
        ]
        return told_by_form(solutions, "people", SIDE, 1)["model"]

    alike, apart = told(False), told(True)
    assert alike.low <= 0.5 <= alike.high and alike.pictures == 40
    assert apart.low > 0.9


def test_what_cannot_be_measured_is_unknown() -> None:
    some = items(3)
    made = frozen(some)
    assert told_by_form(made, "people", SIDE, 1) == {"model": None}
    mute = [replace(s, region=None) for s in made]
    assert overlaps(mute, "people", SIDE) == {"model": None, "people": None}


def test_overlaps_are_means_over_pairs_of_one_item_and_answer() -> None:
    def solution(key: str, item: str, source: str, choice: str, *cells: int) -> FrozenSolution:
        return FrozenSolution(key, item, source, choice, cells)

    made = [
        solution("a", "i", "people", "1", 0, 1),
        solution("b", "i", "people", "1", 1, 2),
        solution("c", "i", "people", "2", 5),
        solution("d", "i", "model", "1", 0, 1),
        solution("e", "j", "model", "1", 0),
    ]
    assert overlaps(made, "people", SIDE) == {
        "model": pytest.approx((1 + 1 / 3) / 2),
        "people": pytest.approx(1 / 3),
    }
