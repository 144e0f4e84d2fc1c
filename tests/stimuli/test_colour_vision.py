"""Simulated colour vision against two other libraries and against plain arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from colorspacious import cspace_convert
from colorspacious.cvd import machado_et_al_2009_matrix
from daltonlens.simulate import Deficiency, Simulator_Machado2009
from skimage.color import rgb2lab

from stimuli.colour_vision.light import decoded, encoded, to_lab
from stimuli.colour_vision.machado import AXES, Axis, contrast, matrix, simulate
from stimuli.errors import BadSpec
from stimuli.types import Pixels

pytestmark = pytest.mark.pure
PUBLISHED = (0.0, 0.1, 0.3, 0.5, 0.6, 0.9, 1.0)
SEVERITIES = (*PUBLISHED, 0.25, 0.77)
WITHIN_A_LEVEL = 1


def colours() -> Pixels:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 256, (30, 20, 3))
    drawn[0, :9] = np.array(np.meshgrid([0, 128, 255], [0, 255], [0, 255])).reshape(3, -1).T[:9]
    return drawn.astype(np.uint8)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("axis", AXES)
def test_its_matrices_are_those_of_colorspacious(axis: Axis, severity: float) -> None:
    theirs = machado_et_al_2009_matrix(f"{axis}omaly".replace("deutan", "deuteran"), severity * 100)
    assert matrix(axis, severity) == pytest.approx(np.array(theirs), abs=1e-9)


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("axis", AXES)
def test_pictures_look_as_they_do_by_two_other_libraries(axis: Axis, severity: float) -> None:
    ours = simulate(colours(), axis, severity).astype(int)
    space: dict[str, Any] = {"name": "sRGB1+CVD", "cvd_type": f"{axis}omaly", "severity": severity * 100}
    space["cvd_type"] = space["cvd_type"].replace("deutan", "deuteran")
    spacious = np.clip(cspace_convert(colours() / 255, space, "sRGB1"), 0, 1) * 255
    assert np.abs(ours - spacious).max() <= WITHIN_A_LEVEL
    if severity in PUBLISHED:  # daltonlens 0.1.5 takes a tenth of the step between two published matrices
        dalton = Simulator_Machado2009().simulate_cvd(colours(), Deficiency[axis.upper()], severity)
        assert np.abs(ours - dalton).max() <= WITHIN_A_LEVEL


def one_by_one(colour: tuple[int, int, int], weights: list[list[float]]) -> list[int]:
    """The same, of one pixel, in plain arithmetic."""
    light = [level / 255 for level in colour]
    light = [level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4 for level in light]
    mixed = [sum(weight * level for weight, level in zip(row, light, strict=True)) for row in weights]
    kept = [min(max(level, 0.0), 1.0) for level in mixed]
    bent = [12.92 * level if level <= 0.0031308 else 1.055 * level ** (1 / 2.4) - 0.055 for level in kept]
    return [round(level * 255) for level in bent]


def test_a_pixel_looks_as_plain_arithmetic_has_it() -> None:
    deuteranopia = [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ]
    for colour in ((200, 30, 40), (10, 250, 90), (0, 0, 255), (255, 255, 255), (3, 2, 1)):
        seen = simulate(np.array([[colour]], np.uint8), "deutan", 1.0)
        assert seen[0, 0].tolist() == one_by_one(colour, deuteranopia)


@pytest.mark.parametrize("axis", AXES)
def test_ordinary_eyes_see_what_is_there_and_greys_stay_grey(axis: Axis) -> None:
    assert np.array_equal(simulate(colours(), axis, 0.0), colours())
    grey = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, axis=1)
    assert np.abs(simulate(grey, axis, 0.7).astype(int) - grey).max() <= WITHIN_A_LEVEL


@pytest.mark.parametrize("severity", [-0.1, 1.01, float("nan")])
def test_it_refuses_a_severity_that_does_not_exist(severity: float) -> None:
    with pytest.raises(BadSpec, match=r"severity = .*choose 0 .* to 1"):
        matrix("protan", severity)


def test_levels_survive_the_way_to_light_and_back() -> None:
    assert np.array_equal(encoded(decoded(colours())), colours())
    assert encoded(np.array([-0.2, 1.4])).tolist() == [0, 255]


def test_lightness_and_hue_are_those_of_scikit_image() -> None:
    assert to_lab(decoded(colours())) == pytest.approx(rgb2lab(colours()), abs=0.03)


def test_contrast_is_the_distance_of_mean_colours() -> None:
    """In closed form: black and white are 100 apart; grey of half the light is 76.07 from black."""
    black, white = np.zeros((4, 3)), np.ones((2, 3))
    assert contrast(black, white) == pytest.approx(100)
    assert contrast(white, white) == 0
    mixed = np.array([[0.0] * 3, [1.0] * 3])
    assert contrast(black, mixed) == pytest.approx(116 * 0.5 ** (1 / 3) - 16, abs=1e-6)


def test_red_and_green_of_a_screen_come_closer_for_both_kinds_of_eyes() -> None:
    red, green = np.array((0.4, 0.05, 0.05)), np.array((0.08, 0.14, 0.05))
    for axis in ("protan", "deutan"):
        assert contrast(red, green, axis, 1.0) < 0.6 * contrast(red, green)
    assert contrast(red, green, "tritan", 1.0) > 0.8 * contrast(red, green)
