"""What `study_check` says of pictures that are not what they look like in a file browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests import world
from tests.crowd.conftest import Outcome
from tests.stimuli.profiled import P3, SRGB, between, matrix_profile, paint

pytestmark = pytest.mark.django_db
COUNT = 56
"""Pictures of the small study."""


Change = Callable[[NDArray[np.uint8]], NDArray[np.generic]]


def repaint(path: Path, change: Change, profile: bytes = b"") -> None:
    for file in sorted((path.parent / "images").rglob("*.png")):
        with Image.open(file) as picture:
            pixels = np.asarray(picture)
        paint(file, change(pixels), profile)


def declare(path: Path, more: str) -> None:
    path.write_text(path.read_text().replace('path = "images"', f'path = "images", {more}'))


def test_dark_pictures_are_told_instead_of_a_guess(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    repaint(path, lambda pixels: pixels // 16)
    printed, _ = outcome(path)
    assert f"{COUNT} of {COUNT} pictures use levels 3 to 13 of 255, so that people see hardly" in printed
    assert "trained on pictures in colour" not in printed


def test_colours_of_12_bits_in_16_are_told_as_well(tmp_path: Path, outcome: Outcome) -> None:
    """Pillow reads the upper half of colours of 16 bits, so no levels can be declared for them."""
    path = world.write_study(tmp_path)
    for file in (tmp_path / "images").rglob("*.png"):
        with Image.open(file) as picture:
            cv2.imwrite(str(file), np.asarray(picture).astype(np.uint16) * 16)
    assert f"{COUNT} of {COUNT} pictures use levels 3 to 13 of 255" in outcome(path)[0]


def test_a_single_dark_picture_is_counted_alone(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    paint(path.parent / "images" / "left" / "left-00.png", np.full((32, 32, 3), 7, np.uint8))
    assert f"1 of {COUNT} pictures use levels 7 to 7 of 255" in outcome(path)[0]


def test_scans_of_12_bits_are_refused_until_their_levels_are_declared(
    tmp_path: Path, outcome: Outcome
) -> None:
    path = world.write_study(tmp_path)
    repaint(path, lambda pixels: pixels[..., 0].astype(np.uint16) * 16)
    most = max(int(np.asarray(Image.open(file)).max()) for file in (tmp_path / "images").rglob("*.png"))
    _, why = outcome(path)
    assert (
        f"{COUNT} of {COUNT} pictures have 16 bits and use levels 0 to {most} of 65535" in why
        and "levels = 4096" in why
    )
    declare(path, "levels = 4096")
    printed, why = outcome(path)
    assert why == "" and "hardly anything" not in printed


TURNED = 4


def test_what_colour_profiles_change_is_counted(tmp_path: Path, outcome: Outcome) -> None:
    """Red beside grey is the brighter half by its bare numbers, and the darker one in its own colours."""
    red, grey = np.array((200, 60, 60), np.uint8), 105
    assert red.sum() > 3 * grey > between(red, P3, SRGB).clip(0, 255).sum()
    path = world.write_study(tmp_path)
    for n in range(TURNED):
        pixels = np.full((32, 32, 3), grey, np.uint8)
        pixels[:16, :16] = red
        pixels[20:, 20:] = n
        paint(tmp_path / "images" / "left" / f"left-{n:02d}.png", pixels, matrix_profile(P3, None))
    profiled = f"{TURNED} of {COUNT} pictures have a colour profile that is not sRGB and"
    changed = (
        f"Of {TURNED} pictures whose profile is not sRGB, {TURNED} have another answer of the model if they "
        f"are read the other way, and {TURNED} another label that people see."
    )
    printed, _ = outcome(path)
    assert f"{profiled} are converted to sRGB" in printed and changed in printed
    declare(path, 'colour = "numbers"')
    printed, _ = outcome(path)
    assert f"{profiled} are read as bare numbers" in printed and changed in printed


def test_a_network_that_the_study_trains_learns_the_colours_that_it_shows(
    tmp_path: Path, outcome: Outcome
) -> None:
    path = world.write_study(tmp_path)
    repaint(path, lambda pixels: pixels, matrix_profile(P3, None))
    small = '{ name = "trained_cnn", input_px = 32, epochs = 1, width = 1 }'
    text = (
        path.read_text()
        .replace('{ name = "toy", input_px = 32 }', small)
        .replace("share = 1.0", "share = 0.5")
    )
    path.write_text(text)
    line = 'another label that people see; it was trained with colour = "convert".'
    assert line in outcome(path)[0]


def test_nothing_is_said_of_pictures_without_profiles(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    repaint(path, lambda pixels: pixels, matrix_profile(SRGB, None))
    printed, why = outcome(path)
    assert why == "" and "profile" not in printed and "hardly anything" not in printed
