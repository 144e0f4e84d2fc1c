"""Colour profiles against closed forms, levels of 16 bits, and other kinds of files that pictures come in."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import skimage
from numpy.typing import NDArray
from PIL import Image

from stimuli.datasets import DECODING, folder, open_dataset
from stimuli.datasets.colour_profiles import OUTSIDE_LEVELS, clipped, profile_of
from stimuli.datasets.folder import FolderDataset, open_folder
from stimuli.datasets.picture_reader import Decoding, eight_bit, read_picture
from stimuli.errors import BadSpec
from stimuli.spec import Component
from tests.stimuli.profiled import (
    ADOBE,
    P3,
    SRGB,
    between,
    grey_of,
    grey_profile,
    matrix_profile,
    paint,
    table_profile,
)

pytestmark = pytest.mark.pure
CONVERT = Decoding("convert")
COLOURS: NDArray[np.uint8] = np.random.default_rng(40).integers(0, 256, (24, 20, 3), dtype=np.uint8)
GREYS: NDArray[np.uint8] = np.repeat(np.array([[0, 128, 255]], np.uint8), 9, axis=0).repeat(3, axis=1)


def classes(root: Path, profile: bytes = b"", levels: int = 0) -> Path:
    """Two classes of three pictures: colours with a profile, or greys of 16 bits below `levels`."""
    for label in ("cat", "dog"):
        for n in range(3):
            if levels:
                pixels = np.linspace(0, levels - 1 - n, 120).reshape(10, 12).astype(np.uint16)
                paint(root / label / f"{label}{n}.png", pixels)
            else:
                moved = np.roll(COLOURS, n + 3 * (label == "dog"), axis=0)
                paint(root / label / f"{label}{n}.png", moved, profile)
    return root


def opened(root: Path, version: int = DECODING, **params: object) -> FolderDataset:
    component = Component("folder", {"path": ".", "people_share": 1.0, **params})
    made = open_dataset(component, root, version)
    assert isinstance(made, FolderDataset)
    return made


@pytest.mark.parametrize(("colours", "gamma"), [(P3, None), (ADOBE, 563 / 256)])
def test_profiles_are_followed_as_the_closed_form_says(
    tmp_path: Path, colours: tuple[tuple[float, ...], ...], gamma: float | None
) -> None:
    path = paint(tmp_path / "a.png", COLOURS, matrix_profile(colours, gamma))
    meant = between(COLOURS, colours, SRGB, gamma)
    assert np.abs(read_picture(path, CONVERT) - meant.clip(0, 255)).max() <= 1
    assert np.array_equal(read_picture(path), COLOURS), "training code leaves profiles aside"
    assert np.abs(meant.clip(0, 255) - COLOURS).max() > 40, "so that the two differ"


def test_pixels_that_srgb_cannot_show_are_counted() -> None:
    """A colour that is clipped comes back as another one: by how much, the closed form says."""
    back = between(between(COLOURS, P3, SRGB).clip(0, 255), SRGB, P3)
    moved = np.abs(back - COLOURS).max(axis=2)
    outside = clipped(Image.fromarray(COLOURS), matrix_profile(P3, None))
    assert outside[moved > OUTSIDE_LEVELS + 2].all() and not outside[moved < OUTSIDE_LEVELS - 2].any()
    assert 0.2 < outside.mean() < 0.6
    assert not clipped(Image.fromarray(GREYS), matrix_profile(P3, None)).any()


@pytest.mark.parametrize("profile", [matrix_profile(SRGB, None), b""])
def test_srgb_by_any_name_stays_to_the_level(tmp_path: Path, profile: bytes) -> None:
    path = paint(tmp_path / "a.png", COLOURS, profile)
    assert np.array_equal(read_picture(path, CONVERT), COLOURS)


@pytest.mark.parametrize(
    ("name", "is_srgb"),
    [("chelsea.png", True), ("astronaut.png", True), ("rocket.jpg", False), ("page.png", False)],
)
def test_published_pictures_have_the_profiles_that_they_name(name: str, is_srgb: bool) -> None:
    """HP's sRGB twice, Adobe RGB, and greys of 20 % dot gain, as scikit-image carries them."""
    with Image.open(Path(skimage.__file__).parent / "data" / name) as picture:
        assert picture.info["icc_profile"]
        assert (profile_of(picture) == b"") == is_srgb


@pytest.mark.parametrize("space", [b"RGB ", b"CMYK"])
def test_a_profile_of_tables_is_followed_by_the_intent_that_is_named(tmp_path: Path, space: bytes) -> None:
    profile = table_profile(space, middle=70, perceptual=30)
    rgb = np.repeat(GREYS[..., None], 3, axis=2)
    picture = Image.fromarray(rgb)
    if space == b"CMYK":
        picture = Image.merge("CMYK", [Image.fromarray(255 - GREYS)] * 4)
    path = tmp_path / "a.jpg"
    picture.save(path, quality=100, icc_profile=profile)
    for intent, middle in (("relative", 70), ("perceptual", 30)):
        read = read_picture(path, Decoding("convert", intent))  # type: ignore[arg-type]
        assert np.abs(read[4, [1, 4, 7], 0] - np.array([0, grey_of(middle), 255])).max() <= 4


def test_the_black_of_a_profile_becomes_black(tmp_path: Path) -> None:
    """Light is scaled so that the darkest of the profile has none: Y' = (Y - Yb) / (1 - Yb)."""
    profile = table_profile(b"RGB ", 70, black=20)
    path = paint(tmp_path / "a.png", np.repeat(GREYS[..., None], 3, axis=2), profile)
    dark, middle = (((lightness + 16) / 116) ** 3 for lightness in (20, 70))
    scaled = 116 * ((middle - dark) / (1 - dark)) ** (1 / 3) - 16
    read = read_picture(path, CONVERT)[4, [1, 4, 7], 0]
    assert np.abs(read - np.array([0, grey_of(scaled), 255])).max() <= 1


def test_greys_follow_profiles_of_greys_and_of_colours(tmp_path: Path) -> None:
    meant = 255 * (1.055 * (GREYS / 255) ** (1 / 2.4) - 0.055)
    read = read_picture(paint(tmp_path / "grey.png", GREYS, grey_profile(1.0)), CONVERT)
    assert np.abs(read[..., 0] - meant.clip(0)).max() <= 1 and np.ptp(read, axis=2).max() == 0
    path = tmp_path / "colour.jpg"
    Image.fromarray(GREYS).save(path, quality=100, icc_profile=matrix_profile(P3, None))
    assert np.abs(read_picture(path, CONVERT)[..., 0].astype(int) - GREYS).max() <= 1
    alpha = np.stack([GREYS, np.full_like(GREYS, 0)], axis=2)
    Image.fromarray(alpha, "LA").save(tmp_path / "clear.png", icc_profile=grey_profile(1.0))
    assert read_picture(tmp_path / "clear.png", CONVERT).min() == 255


def test_transparency_and_palettes_keep_their_profile(tmp_path: Path) -> None:
    profile = matrix_profile(P3, None)
    solid = np.full((10, 12, 4), (200, 40, 90, 128), np.uint8)
    meant = between(solid[..., :3], P3, SRGB).clip(0, 255) * 128 / 255 + 255 * 127 / 255
    assert np.abs(read_picture(paint(tmp_path / "a.png", solid, profile), CONVERT) - meant).max() <= 2
    flat = Image.new("RGB", (12, 10), (200, 40, 90)).quantize(2)
    flat.save(tmp_path / "p.png", icc_profile=profile)
    meant = between(np.array((200, 40, 90)), P3, SRGB).clip(0, 255)
    assert np.abs(read_picture(tmp_path / "p.png", CONVERT) - meant).max() <= 1


def test_profiles_that_cannot_be_followed_are_told_at_once(tmp_path: Path) -> None:
    classes(tmp_path)
    for n in range(2):
        paint(tmp_path / "cat" / f"cat{n}.png", COLOURS + np.uint8(n + 9), b"no profile" * 30)
    paint(tmp_path / "dog" / "dog0.png", COLOURS + np.uint8(3), grey_profile(2.2))
    said = (
        r"3 pictures \S*cat0.png\" \(it is damaged, [^)]*\), \S*cat1.png\" \(it is [^)]*\), \S*dog0.png\" "
        r"\(its profile is about GRAY colours, the picture is RGB\), each of which has a colour profile that "
        r'cannot be followed; save it in sRGB, or set colour = "numbers"'
    )
    with pytest.raises(BadSpec, match=said):
        opened(tmp_path)
    assert len(opened(tmp_path, colour="numbers").items("people")) == 6
    assert len(opened(tmp_path, version=1).items("people")) == 6


def test_only_drafts_follow_profiles_unless_a_study_says_so(tmp_path: Path) -> None:
    classes(tmp_path, matrix_profile(P3, None))
    key = "cat/cat0.png"
    numbers = read_picture(tmp_path / key)
    for dataset, is_numbers in (
        (opened(tmp_path, 1), True),
        (opened(tmp_path), False),
        (opened(tmp_path, colour="numbers"), True),
        (opened(tmp_path, 1, colour="convert"), False),
    ):
        assert np.array_equal(dataset.pixels(key), numbers) == is_numbers
        assert np.array_equal(dataset.pixels_otherwise(key), numbers) != is_numbers
    before, after = opened(tmp_path, 1), opened(tmp_path)
    lines = [
        f"{path.relative_to(tmp_path)}\0people\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n"
        for path in sorted(tmp_path.rglob("*.png"))
    ]
    assert before.content_digest() == hashlib.sha256("".join(lines).encode()).hexdigest(), "as at ffe75823"
    assert after.content_digest() != before.content_digest()
    assert opened(tmp_path, colour="numbers").content_digest() == before.content_digest()


def test_what_differs_is_told_with_its_size(tmp_path: Path) -> None:
    classes(tmp_path, matrix_profile(P3, None))
    paint(tmp_path / "dog" / "dog9.png", COLOURS)
    (told,) = [line for line in opened(tmp_path).told if "profile" in line]
    assert told.startswith("6 of 7 pictures have a colour profile that is not sRGB and are converted to sRGB")
    assert "median Delta E" in told and "% of their pixels outside sRGB" in told
    (told,) = [line for line in opened(tmp_path, 1).told if "profile" in line]
    assert "are read as bare numbers, as torchvision and timm read them" in told
    assert not any("profile" in line for line in opened(classes(tmp_path / "srgb")).told)


def test_greys_of_16_bits_are_scaled_as_before_and_by_declared_levels() -> None:
    every = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    before = (every.astype(np.float64) / 257).clip(0, 255).astype(np.uint8)  # as at ffe75823
    assert np.array_equal(np.asarray(eight_bit(Image.fromarray(every))), before)
    twelve = np.asarray(eight_bit(Image.fromarray(every), 4096)).ravel()
    assert (twelve[0], twelve[2048], twelve[4095], twelve[60000]) == (0, 127, 255, 255)


@pytest.mark.parametrize(("levels", "fitting"), [(4096, 4096), (1000, 1024), (200, 256)])
def test_a_part_of_16_bits_is_read_as_declared_alone(tmp_path: Path, levels: int, fitting: int) -> None:
    classes(tmp_path, levels=levels)
    said = (
        rf"6 of 6 pictures have 16 bits and use levels 0 to {levels - 1} of 65535,.* = {fitting} .* = 65536"
    )
    with pytest.raises(BadSpec, match=said):
        opened(tmp_path)
    declared = opened(tmp_path, levels=fitting)
    assert declared.pixels("cat/cat0.png").max() == (levels - 1) * 255 // (fitting - 1)
    dark = opened(tmp_path, levels=65536)
    assert np.array_equal(dark.pixels("cat/cat0.png"), opened(tmp_path, 1).pixels("cat/cat0.png"))
    assert dark.content_digest() == opened(tmp_path, 1).content_digest() != declared.content_digest()


def test_levels_above_the_declared_ones_are_refused_with_their_pictures(tmp_path: Path) -> None:
    classes(tmp_path, levels=4096)
    said = (
        r"6 of 6 pictures of 16 bits have levels above 1023: \S*cat0.png\" \(4095\), .* and 3 more; declare"
    )
    for version in (1, DECODING):
        with pytest.raises(BadSpec, match=said):
            opened(tmp_path, version, levels=1024)
    assert opened(tmp_path, levels=4096).pixels("dog/dog0.png").max() == 255


def test_a_dark_picture_among_others_of_16_bits_is_no_fault(tmp_path: Path) -> None:
    classes(tmp_path, levels=4096)
    paint(tmp_path / "dog" / "white.png", np.full((10, 12), 65535, np.uint16))
    assert opened(tmp_path).pixels("cat/cat0.png").max() == 15


def test_drafts_read_what_phones_save(tmp_path: Path) -> None:
    """By the plug-in of the extra heic."""
    classes(tmp_path)
    path = tmp_path / "cat" / "phone.HEIC"
    Image.fromarray(COLOURS).save(path, "HEIF", quality=-1, chroma=444, matrix_coefficients=0)
    assert [len(opened(tmp_path, version).items("people")) for version in (1, DECODING)] == [6, 7]
    assert np.array_equal(opened(tmp_path).pixels("cat/phone.HEIC"), COLOURS)


def test_drafts_read_avif_and_are_told_how_to_read_heic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "DRAFT_SUFFIXES", folder.DRAFT_SUFFIXES - folder.HEIC)
    classes(tmp_path)
    Image.fromarray(COLOURS).save(tmp_path / "cat" / "new.avif")
    (tmp_path / "cat" / "phone.HEIC").write_bytes(b"1")
    assert [len(opened(tmp_path, version).items("people")) for version in (1, DECODING)] == [6, 7]
    assert (
        opened(tmp_path)
        .doubted[0]
        .endswith('in class folders; save .heic as .jpg or .png, or run pip install "legible[heic]"')
    )
    Image.fromarray(COLOURS).save(tmp_path / "dog" / "web.webp", lossless=True)
    assert np.array_equal(opened(tmp_path).pixels("dog/web.webp"), COLOURS)


def test_drafts_name_classes_in_one_form_of_unicode(tmp_path: Path) -> None:
    name = "cafe\u0301"
    for n in range(2):
        paint(tmp_path / name / f"{n}.png", COLOURS + np.uint8(n))
        paint(tmp_path / "dog" / f"{n}.png", COLOURS + np.uint8(5 + n))
    component = Component("folder", {"path": ".", "people_share": 1.0})
    before, after = (open_folder(component, tmp_path, version) for version in (1, DECODING))
    assert (before.labels, after.labels) == ((name, "dog"), ("caf\u00e9", "dog"))
    assert [item.key for item in before.files] == [item.key for item in after.files]
    assert before.content_digest() != after.content_digest()
