from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stimuli.colour_vision.light import LUMINANCE, decoded, to_lab
from stimuli.colour_vision.machado import AXES, contrast, matrix
from stimuli.datasets import open_dataset
from stimuli.datasets.plates.colours import (
    EYES,
    LEAST_CONTRAST,
    MIDDLE_LIGHTNESS,
    MOST_CONTRAST,
    direction,
    lit,
    task_pair,
)
from stimuli.datasets.plates.digits import typical_first
from stimuli.datasets.plates.drawing import DISC_RADIUS
from stimuli.datasets.plates.packing import GAP, LEAST_SHRUNK, RADII, pack_dots
from stimuli.datasets.plates.plates import PlatesDataset, open_plates
from stimuli.errors import BadSpec
from stimuli.spec import Component
from stimuli.spec_derivation import prepare, region_of, survey
from stimuli.store import MemoryStore
from stimuli.store.files import read_region

pytestmark = pytest.mark.pure
SMALL = {"size_px": 96, "count": 40, "model_count": 80, "known": 10, "blank": 10, "tuning": 10}


def plates(**params: Any) -> PlatesDataset:
    return open_plates(Component("plates", {**SMALL, **params}), Path())


@pytest.fixture(scope="module")
def small() -> PlatesDataset:
    return plates()


def keys_of(dataset: PlatesDataset, use: str) -> list[str]:
    return [item.key for item in dataset.items("people") if item.use == use]


def test_it_has_as_many_plates_of_each_use_as_asked(small: PlatesDataset) -> None:
    uses = Counter(item.use for item in small.items("people"))
    assert uses == {"task": 40, "known": 10, "blank": 10, "tuning": 10}
    assert len(small.items("model")) == 80
    assert Counter(item.use for item in small.items("model")) == {"task": 72, "known": 8}


def test_every_digit_is_asked_about_equally_often(small: PlatesDataset) -> None:
    assert small.labels == tuple("0123456789")
    for use, times in (("task", 4), ("known", 1), ("tuning", 1)):
        truths = Counter(item.truth for item in small.items("people") if item.use == use)
        assert truths == dict.fromkeys(small.labels, times)
    assert {item.truth for item in small.items("people") if item.use == "blank"} == {""}


def test_no_handwritten_digit_is_drawn_twice_for_people_or_for_them_and_the_model(
    small: PlatesDataset,
) -> None:
    people = [item.group for item in small.items("people")]
    model = {item.group for item in small.items("model")}
    assert len(set(people)) == len(people) == 70
    assert not model & set(people)
    many = plates(model_count=4000)
    groups = [item.group for item in many.items("model")]
    assert len(set(groups)) == 1797 - 70 and not set(groups) & {i.group for i in many.items("people")}


def test_a_plate_says_the_digit_that_its_source_is_labelled_with(small: PlatesDataset) -> None:
    """scikit-learn's own reader is the witness of names and labels."""
    from sklearn.datasets import load_digits

    bundle = load_digits()
    for item in [*small.items("people"), *small.items("model")]:
        index = int(item.group.removeprefix("digit-"))
        assert item.truth in ("", str(bundle.target[index]))
        grey = small.digits.ink[small.plans[item.key].source] * (16 / 255)
        assert np.array_equal(np.rint(grey), bundle.images[index])


def test_it_draws_the_same_bytes_for_the_same_seed_and_others_for_another(small: PlatesDataset) -> None:
    pack_dots.cache_clear()
    again, other = plates(), plates(seed=1)
    for key in (keys_of(small, "task")[3], keys_of(small, "blank")[1], small.items("model")[5].key):
        assert small.pixels(key).tobytes() == again.pixels(key).tobytes()
        assert small.pixels(key).tobytes() != other.pixels(key).tobytes()
    assert small.content_digest() == again.content_digest() != other.content_digest()


def test_its_digest_covers_every_parameter(small: PlatesDataset) -> None:
    changes = ({"jitter": 14.0}, {"severity": 0.5}, {"axis": "protan"}, {"digits": [1, 2]}, {"blank": 9})
    digests = {plates(**change).content_digest() for change in changes}
    assert len(digests | {small.content_digest()}) == 6


def test_dots_lie_in_the_disc_and_do_not_overlap(small: PlatesDataset) -> None:
    dots = small.painted(keys_of(small, "task")[0]).dots
    assert len(dots.radii) > 500
    assert (np.hypot(*dots.middles.T) + dots.radii <= 1).all()
    away = np.linalg.norm(dots.middles[:, None] - dots.middles[None], axis=2)
    np.fill_diagonal(away, np.inf)
    assert (away - dots.radii[:, None] - dots.radii[None]).min() >= GAP - 1e-9
    shares = dots.radii[:, None] / np.array(RADII)
    assert ((shares <= 1) & (shares >= LEAST_SHRUNK)).any(axis=1).all()


def test_a_packing_leaves_no_room_for_another_dot() -> None:
    dots = pack_dots(0, 3)
    places = np.random.default_rng(0).uniform(-1, 1, (4000, 2))
    away = np.linalg.norm(places[:, None] - dots.middles[None], axis=2) - dots.radii - GAP
    free = np.minimum(away.min(axis=1), 1 - np.hypot(*places.T) - GAP)
    assert free.max() < RADII[-1] + 0.01


def test_figure_and_ground_are_equally_light_in_every_plate_but_the_known(small: PlatesDataset) -> None:
    def gap(key: str) -> float:
        painted = small.painted(key)
        lightness = to_lab(painted.colours)[:, 0]
        return float(lightness[painted.is_figure].mean() - lightness[~painted.is_figure].mean())

    known = [gap(key) for key in keys_of(small, "known")]
    tasks = [gap(key) for key in keys_of(small, "task")]
    assert np.mean(known) == pytest.approx(-30, abs=1.5) and max(known) < -24
    assert np.mean(tasks) == pytest.approx(0, abs=0.5)


def test_known_plates_are_read_by_all_eyes(small: PlatesDataset) -> None:
    for key in keys_of(small, "known"):
        painted = small.painted(key)
        figure, ground = painted.colours[painted.is_figure], painted.colours[~painted.is_figure]
        assert min(contrast(figure, ground, axis, s / 10) for axis in AXES for s in range(11)) > MOST_CONTRAST


def test_the_pixels_of_a_plate_have_the_contrast_of_its_colours() -> None:
    """Measured on the finished picture, within the dots, from the planted figure."""
    dataset = plates(size_px=400, axis="deutan")
    key = keys_of(dataset, "task")[0]
    painted, pixels = dataset.painted(key), decoded(dataset.pixels(key))
    columns, rows = np.rint((painted.dots.middles.T * DISC_RADIUS + 0.5) * 400 - 0.5).astype(int)
    middles = pixels[rows, columns]
    figure, ground = middles[painted.is_figure], middles[~painted.is_figure]
    for severity in (0.0, 0.6):
        expected = dataset.colours.contrast("deutan", severity)
        assert contrast(figure, ground, "deutan", severity) == pytest.approx(expected, rel=0.1)
    inside = dataset.mask(key)[rows, columns]
    assert (inside == painted.is_figure).mean() > 0.99


def test_blank_plates_have_the_dots_of_a_figure_and_no_figure(small: PlatesDataset) -> None:
    key = keys_of(small, "blank")[0]
    painted = small.painted(key)
    assert not small.mask(key).any()
    assert region_of(small, key, lambda pixels: pixels) is not None
    assert 0.05 < painted.is_figure.mean() < 0.3
    spread = painted.dots.middles[painted.is_figure].std(axis=0)
    assert (spread > 0.4).all()  # of a disc .5, of a digit .2 to .3


def test_either_colour_is_the_figures_about_as_often(small: PlatesDataset) -> None:
    reddish = [
        painted.colours[painted.is_figure][0, 0] > painted.colours[painted.is_figure][0, 1]
        for painted in (small.painted(item.key) for item in small.items("model"))
    ]
    assert 25 <= sum(reddish) <= 55  # of 80; a fair coin leaves this range once in a thousand


@pytest.mark.parametrize("line", EYES)
def test_its_colours_are_equally_light_and_on_the_line_that_such_eyes_confuse(line: Any) -> None:
    chosen = task_pair(line, 0.6, 15.0)
    lights = np.array([chosen.figure, chosen.ground]) @ LUMINANCE
    assert lights == pytest.approx(((MIDDLE_LIGHTNESS + 16) / 116) ** 3, rel=1e-9)
    worst = max(np.linalg.norm(matrix(axis, 1.0) @ direction(line)) for axis in EYES[line])
    others = []
    for turn in np.linspace(0, np.pi, 181)[:-1]:  # every direction of equal luminance, a degree apart
        plane = np.linalg.svd(LUMINANCE[None])[2][1:]
        there = np.cos(turn) * plane[0] + np.sin(turn) * plane[1]
        grey = np.full(3, ((MIDDLE_LIGHTNESS + 16) / 116) ** 3)
        ends = grey + 0.01 * there, grey - 0.01 * there
        others.append(max(contrast(*ends, axis, 1.0) for axis in EYES[line]) / contrast(*ends))
    grey = np.full(3, ((MIDDLE_LIGHTNESS + 16) / 116) ** 3)
    ours = grey + 0.01 * direction(line), grey - 0.01 * direction(line)
    left = max(contrast(*ours, axis, 1.0) for axis in EYES[line]) / contrast(*ours)
    assert left <= min(others) * 1.001 and worst < 1


def test_dots_of_another_lightness_keep_their_place_on_the_line() -> None:
    """More or less light of one colour: the shares of the primaries stay."""
    chosen = task_pair("deutan", 0.6, 15.0)
    shone = lit(np.stack([chosen.figure] * 3), np.array([45.0, 60.0, 75.0]))
    assert to_lab(shone)[:, 0] == pytest.approx([45, 60, 75])
    assert shone / shone.sum(axis=1, keepdims=True) == pytest.approx(
        np.stack([chosen.figure / chosen.figure.sum()] * 3)
    )
    assert shone.max() < 1 and shone.min() > 0


@pytest.mark.parametrize("severity", [0.3, 0.5, 0.6])
@pytest.mark.parametrize("line", EYES)
def test_contrast_lies_within_its_bounds_at_the_severity_asked_for(line: Any, severity: float) -> None:
    chosen = task_pair(line, severity, 15.0)
    for axis in EYES[line]:
        assert LEAST_CONTRAST < chosen.contrast(axis, severity) < MOST_CONTRAST
        assert chosen.contrast(axis, 1.0) < LEAST_CONTRAST


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (
            {"axis": "red_green", "severity": 0.8},
            r"severity = 0\.8 .*apart even for .*choose a lower severity",
        ),
        (
            {"axis": "deutan", "severity": 0.9},
            r"severity = 0\.9 .*cannot be shown with a jitter of 15: choose",
        ),
        ({"axis": "blue"}, r"'axis' is 'blue', but must be one of protan, deutan, tritan, red_green"),
        ({"digits": [3, 3]}, r"digits = \[3, 3\]: give at least 2 different ones of 0 to 9"),
        ({"digits": [3, 11]}, r"digits"),
        ({"jitter": 1}, r"'jitter' is 1, but must lie between 5 and 20"),
        (
            {"count": 1800},
            r"take 183 different handwritten digits 0, and at least 4 .*there are 178: lower count",
        ),
        ({"path": "nowhere"}, r'there is no folder "nowhere"'),
        ({"path": "tests"}, r"none of MNIST's files: train-images-idx3-ubyte"),
    ],
)
def test_it_says_why_plates_cannot_be_drawn(params: dict[str, Any], said: str) -> None:
    with pytest.raises(BadSpec, match=said):
        open_dataset(Component("plates", {**SMALL, **params}), Path())


def test_it_has_only_the_digits_asked_for() -> None:
    two = plates(digits=[7, 1])
    assert two.labels == ("1", "7")
    assert {item.truth for item in two.items("model")} == {"1", "7"}


def test_known_plates_are_of_the_clearer_digits_of_their_label(small: PlatesDataset) -> None:
    for key in keys_of(small, "known"):
        label, source = int(small.plans[key].item.truth), small.plans[key].source
        order = typical_first(small.digits, np.flatnonzero(small.digits.labels == label))
        assert list(order).index(source) < len(order) / 4


def test_a_network_is_asked_about_every_use_and_regions_are_kept(tmp_path: Path) -> None:
    store = MemoryStore()
    predictor = Component("trained_cnn", {"epochs": 1, "width": 2, "input_px": 32, "mirrored": False})
    source = prepare(Component("plates", SMALL), predictor, tmp_path, store)
    surveyed = {item.key: item for item in survey(source, store)}
    assert surveyed.keys() == {item.key for item in source.dataset.items("people")}
    task = surveyed["people-task-00000"]
    region = read_region(store, source.regions, task.image_key)
    assert region is not None and 0.05 < region.mean() < 0.2
    blank = read_region(store, source.regions, surveyed["people-blank-00000"].image_key)
    assert blank is not None and not blank.any()


def test_it_knows_no_other_keys(small: PlatesDataset) -> None:
    with pytest.raises(BadSpec, match='no item "people-task-99999"'):
        small.pixels("people-task-99999")
