"""Observers of plates: what they read with which eyes, what they look at, and how long they decide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from experiments.definition.colour_vision_verdict import NOTHING, vision_from_answers
from experiments.kinds.base import Choice
from experiments.kinds.solve import CANNOT_SAY, OVERLAP_MIN
from experiments.paradigms.blind_review import BlindReview, BlindReviewDesign
from experiments.simulation.declared import declared
from experiments.simulation.dots import (
    FILE,
    SIDE,
    Eyes,
    Reading,
    known_digits,
    looking,
    marked_area,
    read,
    see,
)
from experiments.simulation.people import JudgeView, LocateView
from experiments.simulation.plate_reader import PlateReader, WeakReader, decided
from experiments.simulation.population import INVITED_MIX, PLATES_MIX, parse_mix, populate, usual_mix
from stimuli.datasets.plates.digits import read_digits
from stimuli.datasets.plates.plates import PlatesDataset, open_plates
from stimuli.datasets.plates.screening import screening_plates
from stimuli.regions.grid import covered, mask_of
from stimuli.render.png import encode
from stimuli.spec import Component
from stimuli.types import Item, Use

pytestmark = pytest.mark.pure
ORDINARY, MILD, MISSING = Eyes("deutan", 0.0), Eyes("deutan", 0.6), Eyes("protan", 1.0)


@pytest.fixture(scope="module")
def plates() -> PlatesDataset:
    """The plates of the shipped studies."""
    return open_plates(Component("plates", {"axis": "red_green", "severity": 0.6}), Path())


def some(plates: PlatesDataset, use: Use, count: int) -> list[Item]:
    return [item for item in plates.items("people") if item.use == use][:count]


def shares(plates: PlatesDataset, eyes: Eyes, use: Use, count: int) -> tuple[float, float]:
    """Of so many plates, the share read with evidence above 0, and the share of right digits among those."""
    rng = np.random.default_rng(5)
    right = []
    for item in some(plates, use, count):
        reading = read(see(plates.pixels(item.key), eyes), None, 1.0, rng)
        if reading.evidence.max() > 0:
            right.append(str(reading.digit) == item.truth)
    return len(right) / count, float(np.mean(right or [False]))


def person(kind: type[PlateReader], eyes: Eyes) -> PlateReader:
    """The first person of the kind whose eyes are at least so weak, or ordinary."""
    people = (kind.drawn(1, number) for number in range(400))
    return next(p for p in people if p.eyes.severity == 0 or 0 < eyes.severity <= p.eyes.severity)


def test_it_knows_only_digits_that_no_person_is_asked_about(plates: PlatesDataset) -> None:
    asked = {item.group for item in plates.items("people")}
    trained = {item.group for item in open_plates(Component("plates"), Path()).items("model")}
    assert len(asked) == 180 and not asked & trained
    assert trained <= set(read_digits(None).names)
    known = known_digits()
    assert known.forms.shape == (4320, SIDE * SIDE) and set(known.labels) == set(range(10))
    assert known.forms.min() >= 0 and known.forms.max() == 1


def test_ordinary_eyes_read_what_weak_ones_do_not(plates: PlatesDataset) -> None:
    read_share, right = shares(plates, ORDINARY, "task", 20)
    assert read_share == 1 and right >= 0.8
    weak_share, weak_right = shares(plates, MISSING, "task", 20)
    assert weak_share * weak_right <= 0.4


def test_everybody_reads_known_plates_and_nobody_reads_a_blank_one_well(plates: PlatesDataset) -> None:
    for eyes in (ORDINARY, MILD, MISSING):
        read_share, right = shares(plates, eyes, "known", 8)
        assert read_share == 1 and right >= 0.75
        rng = np.random.default_rng(8)
        blank = [
            read(see(plates.pixels(item.key), eyes), None, 1.0, rng).evidence.max()
            for item in some(plates, "blank", 8)
        ]
        assert np.median(blank) < 3, "19 to 1 is not reached by chance"


def test_what_is_taken_as_figure_lies_on_the_figure(plates: PlatesDataset) -> None:
    rng = np.random.default_rng(2)
    overlaps = []
    for item in some(plates, "known", 8):
        reading = read(see(plates.pixels(item.key), ORDINARY), None, 1.0, rng)
        truth, figure = covered(plates.mask(item.key), SIDE), reading.figures[int(item.truth)]
        overlaps.append((truth & figure).sum() / (truth | figure).sum())
    assert np.mean(np.array(overlaps) >= OVERLAP_MIN) >= 0.75


def test_the_colour_check_sorts_people_by_their_eyes() -> None:
    drawn = screening_plates(7, 12, 2, "red_green", 0.6, 320)
    rows = [{"id": plate.id, "answer": plate.answer, "control": plate.is_control} for plate in drawn]
    choices = [Choice(value, value, value[0]) for value in (*"0123456789", NOTHING)]
    told = {}
    for eyes, kind in ((ORDINARY, PlateReader), (Eyes("deutan", 0.8), WeakReader)):
        who = person(kind, eyes)
        answers = {p.id: who.read_plate(p.id, encode(p.pixels), choices).value for p in drawn}
        told[kind] = vision_from_answers(rows, {"filter": "off", **answers})
    assert told == {PlateReader: "ordinary", WeakReader: "reduced"}


def test_looks_go_to_a_marked_area_and_are_as_many_as_before() -> None:
    dotted = np.zeros((SIDE, SIDE))
    dotted[2:-2, 2:-2] = 1
    area = mask_of([SIDE * row + column for row in range(10, 14) for column in range(10, 14)], SIDE)
    even, led = looking(dotted, None), looking(dotted, area)
    assert_allclose([even.sum(), led.sum()], [24 * 24, 24 * 24])
    # The area of 4 x 4 cells with those around it: 6 x 6 cells have one half of the looks.
    assert_allclose(led[9:15, 9:15].sum() / led.sum(), declared(FILE)["attention"]["marked_share"].value)
    assert set(np.unique(even)) == {0, 1}


def test_an_outline_is_read_back_from_the_picture() -> None:
    picture = np.full((280, 280, 3), 200, np.uint8)
    mark = picture.copy()
    mark[100:181, [100, 180]] = mark[[100, 180], 100:181] = 0
    area = marked_area(picture, mark)
    assert area is not None and np.flatnonzero(area.any(axis=1)).tolist() == list(range(10, 18))
    assert marked_area(picture, picture) is None


def test_an_answer_is_favoured_by_how_much_better_it_fits_than_any_other() -> None:
    reading = Reading(np.array([-2.0, 9, 4, *[-1.0] * 7]), np.zeros((10, SIDE, SIDE), bool))
    assert (reading.favours(1), reading.favours(2), reading.favours(0)) == (5, -5, -9)
    unseen = Reading(np.full(10, -1.0), np.zeros((10, SIDE, SIDE), bool))
    assert unseen.favours(3) == 0, "who sees nothing leans nowhere"


@pytest.mark.parametrize("evidence", [0.0, 3.0, 30.0, -3.0])
def test_a_decision_has_the_share_and_the_mean_time_of_a_diffusion(evidence: float) -> None:
    """Closed forms (Ratcliff 1978) for a start in the middle: 1 / (1 + exp(-v a / s^2)) reach the upper
    bound, after a / 2v tanh(v a / 2 s^2) on average; a^2 / 4 s^2 without drift."""
    row = {name: parameter.value for name, parameter in declared(FILE)["decision"].items()}
    drift = row["most_drift"] * evidence / (abs(evidence) + row["half_evidence"])
    a, s = row["separation"], row["within_sd"]
    wanted = 1 / (1 + np.exp(-drift * a / s**2))
    mean = a**2 / (4 * s**2) if not drift else a / (2 * drift) * np.tanh(drift * a / (2 * s**2))
    rng = np.random.default_rng(3)
    uppers, times = zip(*(decided(evidence, rng) for _ in range(3000)), strict=True)
    # A path of steps of 1 ms passes a bound a little late.
    assert_allclose(np.mean(uppers), wanted, atol=0.03)
    assert_allclose(np.mean(times) - row["outside_s"], mean, atol=0.04)


def test_less_evidence_takes_longer() -> None:
    def mean_s(evidence: float) -> float:
        rng = np.random.default_rng(4)
        return float(np.mean([decided(evidence, rng)[1] for _ in range(2000)]))

    assert mean_s(0) > mean_s(2) > mean_s(8) > mean_s(60)


def test_people_are_weak_as_often_as_declared_and_invited_ones_always() -> None:
    severities = np.array([PlateReader.drawn(1, number).eyes.severity for number in range(3000)])
    assert_allclose((severities > 0).mean(), 0.042, atol=0.012)
    invited = [WeakReader.drawn(1, number).eyes for number in range(1000)]
    assert min(eyes.severity for eyes in invited) >= 0.1
    assert_allclose(np.mean([eyes.severity == 1 for eyes in invited]), 0.25, atol=0.05)
    assert_allclose(np.mean([eyes.axis == "deutan" for eyes in invited]), 0.75, atol=0.05)


def test_a_person_solves_what_is_seen_and_says_so_if_nothing_is(plates: PlatesDataset) -> None:
    answers = (*"0123456789", CANNOT_SAY)
    solver, blind = person(PlateReader, ORDINARY), person(WeakReader, MISSING)
    tasks = some(plates, "task", 12)
    views = [LocateView(n, answers, CANNOT_SAY, 28, plates.pixels(i.key)) for n, i in enumerate(tasks)]
    seen, missed = ([who.locate(view) for view in views] for who in (solver, blind))
    right, guessed = (
        np.mean([f.choice == item.truth for f, item in zip(each, tasks, strict=True)])
        for each in (seen, missed)
    )
    assert right >= 0.7 > 0.5 > guessed
    assert all((f.cells is None) == (f.choice == CANNOT_SAY) for f in (*seen, *missed))
    cells = [f.cells for f in seen if f.cells]
    assert all(list(c) == sorted(set(c)) and c[0] >= 0 and c[-1] < 28**2 for c in cells)
    assert solver.locate(views[0]) == seen[0], "asked again, answers the same"


def test_a_person_accepts_what_agrees_with_the_own_reading(plates: PlatesDataset) -> None:
    judge = person(PlateReader, ORDINARY)
    accepted: dict[bool, list[bool]] = {True: [], False: []}
    for number, item in enumerate(some(plates, "task", 12)):
        for is_right in (True, False):
            answer = item.truth if is_right else str((int(item.truth) + 3) % 10)
            view = JudgeView(2 * number + is_right, answer, plates.pixels(item.key))
            accepted[is_right].append(judge.judge(view)[0])
    assert np.mean(accepted[True]) >= 0.7 and np.mean(accepted[False]) <= 0.3


def test_each_stage_is_met_by_those_whose_eyes_it_is_for() -> None:
    designs: list[dict[str, object]] = [
        {"role": "solve", "colour_vision": "plates"},
        {"solutions_from": "tasks", "colour_vision": "plates"},
        {"solutions_from": "labels", "runs": 1},
    ]
    mixes = [usual_mix(BlindReview(), BlindReviewDesign.model_validate(design)) for design in designs]
    assert mixes == [PLATES_MIX, INVITED_MIX, PLATES_MIX]


@pytest.mark.parametrize("mix", [PLATES_MIX, INVITED_MIX])
def test_both_stages_meet_people_of_ordinary_and_of_reduced_sight_from_hardly_to_fully(mix: str) -> None:
    """Who goes on in one stage leaves in the other."""
    people = populate(parse_mix(mix), 60, seed=1)
    severities = [person.eyes.severity for person in people if isinstance(person, PlateReader)]
    assert min(severities) == 0 and max(severities) == 1
    assert any(0 < severity < 0.5 for severity in severities)
