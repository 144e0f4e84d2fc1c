from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from scipy.ndimage import binary_erosion

from stimuli.colour_vision.light import LUMINANCE, decoded
from stimuli.colour_vision.machado import AXES, Axis, contrast
from stimuli.datasets.plates.colours import EYES, LEAST_CONTRAST, MOST_CONTRAST, Line, screening_pair
from stimuli.datasets.plates.screening import ScreeningPlate, screening_plates
from stimuli.errors import BadSpec

pytestmark = pytest.mark.pure
SMALL_PX = 120
DARKER_THAN_PAPER = 0.6


def sides(plate: ScreeningPlate) -> tuple[Any, Any]:
    """The two colours of a plate, found in its pixels: reddish and greenish ones far from any paper."""
    light = decoded(plate.pixels)
    is_dot = binary_erosion(light @ LUMINANCE < DARKER_THAN_PAPER)
    coloured = light[is_dot]
    reddish = coloured[:, 0] > coloured[:, 1]
    return coloured[reddish], coloured[~reddish]


def test_it_has_as_many_plates_and_controls_as_asked_and_a_control_first() -> None:
    plates = screening_plates(4, count=12, controls=3, size_px=SMALL_PX)
    assert len(plates) == 12 and sum(plate.is_control for plate in plates) == 3
    assert plates[0].is_control
    assert len({plate.id for plate in plates}) == 12
    assert {plate.pixels.shape for plate in plates} == {(120, 120, 3)}


def test_every_plate_offers_ten_digits_and_nothing_and_has_a_digit_for_an_answer() -> None:
    for plate in screening_plates(0, size_px=SMALL_PX):
        assert [value for value, _text in plate.choices] == [*"0123456789", "nothing"]
        assert plate.answer in "0123456789"


def test_digits_differ_as_much_as_they_can() -> None:
    assert Counter(plate.answer for plate in screening_plates(1, size_px=SMALL_PX)).most_common(1)[0][1] == 2
    assert len({plate.answer for plate in screening_plates(1, count=10, size_px=SMALL_PX)}) == 10


def test_the_same_seed_gives_the_same_plates() -> None:
    first, again, other = (screening_plates(seed, count=4, size_px=SMALL_PX) for seed in (7, 7, 8))
    assert [p.pixels.tobytes() for p in first] == [p.pixels.tobytes() for p in again]
    assert [p.pixels.tobytes() for p in first] != [p.pixels.tobytes() for p in other]


@pytest.mark.parametrize("line", ["protan", "deutan", "red_green"])
def test_ordinary_eyes_read_at_a_glance_what_reduced_ones_do_not_read(line: Line) -> None:
    colours = screening_pair(line, 0.6, 15.0)
    assert colours.contrast("protan", 0.0) > MOST_CONTRAST
    for axis in EYES[line]:
        assert max(colours.contrast(axis, s / 10) for s in range(6, 11)) < LEAST_CONTRAST


def test_a_tritan_screening_needs_a_higher_severity() -> None:
    with pytest.raises(BadSpec, match=r"severity = 0\.6 on the axis tritan: .* choose a higher severity"):
        screening_pair("tritan", 0.6, 15.0)
    assert screening_pair("tritan", 0.8, 15.0).contrast("tritan", 0.8) < LEAST_CONTRAST


def test_the_pixels_of_plates_keep_the_promise_of_their_colours() -> None:
    for plate in screening_plates(2, size_px=240):
        figure, ground = sides(plate)
        ordinary = contrast(figure, ground)
        reduced = [contrast(figure, ground, axis, 0.6) for axis in ("protan", "deutan")]
        if plate.is_control:
            everybody: list[tuple[Axis, float]] = [(axis, s / 10) for axis in AXES for s in range(11)]
            assert min(contrast(figure, ground, *eyes) for eyes in everybody) > MOST_CONTRAST
        else:
            assert ordinary > MOST_CONTRAST and max(reduced) < LEAST_CONTRAST


@pytest.mark.parametrize(("count", "controls"), [(12, 0), (3, 3), (1, 1)])
def test_it_refuses_plates_without_a_control_or_with_nothing_else(count: int, controls: int) -> None:
    with pytest.raises(BadSpec, match=rf"count = {count}, controls = {controls}: needed is"):
        screening_plates(0, count, controls)
