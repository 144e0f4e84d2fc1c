"""Looks that know nothing of the picture, and a decoder that is fair on a handful of pictures."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from stimuli.errors import ShapeMismatch
from stimuli.quality import look_decodability
from stimuli.quality.look_decodability import LOOKS, decode, looks_of
from stimuli.types import Plane

pytestmark = pytest.mark.pure
SIDE, PICTURES = 48, 20
LIMIT = 0.60
"""A lower limit above it is a leak."""
Floats = NDArray[np.float64]
Pairs = tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]


def looks_by_name(field: NDArray[np.floating]) -> dict[str, float]:
    return dict(zip(LOOKS, looks_of(field.astype(np.float32)), strict=True))


def test_it_describes_a_board_by_hand() -> None:
    """Squares of one place, half of them 1: every step is 1, half the places are above one half."""
    board = np.indices((32, 32)).sum(0) % 2
    decoded = looks_by_name(board.astype(float))
    wanted = {"mean": 0.5, "maximum": 1.0, "spread": 0.5, "above_half": 0.5, "edges": 1.0, "below_zero": 0.0}
    assert {name: decoded[name] for name in wanted} == pytest.approx(wanted)
    assert decoded["entropy"] == pytest.approx(np.log(2))
    assert looks_by_name(2.0 * board - 1)["below_zero"] == 0.5


def test_it_says_nothing_of_an_empty_field() -> None:
    decoded = looks_by_name(np.zeros((16, 24)))
    assert decoded.pop("bytes") > 0
    assert not any(decoded.values())


def test_it_sees_a_mark_in_each_corner_and_nowhere_else() -> None:
    field = np.zeros((32, 32), np.float32)
    field[10:20, 10:20] = 1
    assert not any(looks_of(field)[9:])
    for row, column in product((0, -1), (0, -1)):
        spotted = field.copy()
        spotted[row, column] = 0.8
        np.testing.assert_allclose(looks_of(spotted)[9:], [0.8, 0.2], atol=1e-7)


def test_it_takes_no_slope_for_a_mark() -> None:
    """A field that rises evenly towards a corner: the corner is above its surroundings by two steps only."""
    ramp = np.add.outer(np.arange(32), np.arange(32)) / 62
    decoded = looks_by_name(ramp)
    assert decoded["corner_peak"] == pytest.approx(2 / 62, abs=1e-6)
    assert decoded["corner_mean"] == pytest.approx(8 / 3 / 62, abs=1e-6)


@pytest.mark.parametrize("power", [0.0, -1.0, -2.5])
def test_it_finds_the_slope_that_a_field_was_made_with(power: float) -> None:
    """A field of exact amplitudes f^(power/2) and random phases, those of white noise."""
    noise = np.fft.fft2(np.random.default_rng(1).standard_normal((64, 64)))
    frequency = np.hypot(np.fft.fftfreq(64)[:, None], np.fft.fftfreq(64)[None])
    frequency[0, 0] = 1
    field = np.fft.ifft2(noise / np.abs(noise) * frequency ** (power / 2)).real
    assert looks_by_name(field)["slope"] == pytest.approx(power, abs=0.07)


def pairs(count: int, features: int, shift: float = 0.0, seed: int = 0) -> Pairs:
    """Two rows per picture, their features drawn about the picture's own; `shift` sets the kinds apart."""
    draws = np.random.default_rng([seed, count])
    rows = np.repeat(5 * draws.standard_normal((count, features)), 2, axis=0)
    kinds = np.tile(np.array([False, True]), count)
    rows += draws.standard_normal(rows.shape)
    rows[kinds, 0] += shift
    return rows, kinds, np.repeat(np.arange(count), 2)


def naive_auc(features: Floats, signs: Floats) -> float:
    """Leave each picture out, fit the ridge to the others, ask."""
    raw = features[1::2] - features[::2]
    bounded = raw / (np.abs(raw) + np.abs(raw).mean(0))
    right = []
    for out in range(len(raw)):
        others = np.arange(len(raw)) != out
        x = bounded[others]
        ridge = look_decodability.RIDGE * len(raw) * np.eye(x.shape[1])
        weights = np.linalg.solve(x.T @ x + ridge, x.T @ signs[others])
        right.append(signs[out] * (bounded[out] @ weights) > 0)
    return float(np.mean(right))


@pytest.mark.parametrize("shift", [0.0, 0.7, 3.0])
def test_it_is_the_leave_one_picture_out_of_a_loop(shift: float) -> None:
    features, kinds, groups = pairs(15, 4, shift)
    assert decode(features, kinds, groups, 1).auc == pytest.approx(naive_auc(features, np.ones(15)))


def test_it_is_right_half_of_the_time_on_average_over_all_exchanges() -> None:
    """Exact, also with six pictures: an AUC of pooled folds would lie well below one half here."""
    features, _, _ = pairs(6, 3, shift=1.0)
    every = [naive_auc(features, np.array(signs)) for signs in product((-1.0, 1.0), repeat=6)]
    assert np.mean(every) == pytest.approx(0.5, abs=1e-12)


def test_it_has_the_p_of_all_exchanges() -> None:
    features, kinds, groups = pairs(10, 3, shift=1.2)
    decoded = decode(features, kinds, groups, 1)
    every = [naive_auc(features, np.array(signs)) for signs in product((-1.0, 1.0), repeat=10)]
    exact = float(np.mean(np.array(every) >= decoded.auc - 1e-12))
    assert decoded.p == pytest.approx(
        exact, abs=4 * (exact * (1 - exact) / look_decodability.RESAMPLES) ** 0.5 + 0.002
    )


def test_it_depends_on_neither_order_nor_units() -> None:
    features, kinds, groups = pairs(12, 4, shift=1.0)
    decoded = decode(features, kinds, groups, 3)
    scaled = decode(features * [1e3, 1e-3, 7, 1] + 5, kinds, groups, 3)
    swapped = decode(features.reshape(12, 2, 4)[:, ::-1].reshape(24, 4), ~kinds, groups, 3)
    assert decoded == scaled == swapped
    other = decode(features, ~kinds, groups, 3)
    assert (other.auc, other.p) == (decoded.auc, decoded.p)


def test_it_tells_nothing_where_nothing_differs() -> None:
    features, kinds, groups = pairs(10, 3)
    features = np.repeat(features[::2], 2, axis=0)
    decoded = decode(features, kinds, groups, 1)
    assert (decoded.auc, decoded.low, decoded.high, decoded.p) == (0.5, 0.5, 0.5, 1.0)


def test_it_holds_the_picture_constant() -> None:
    """What differs between pictures, however much, is no leak; a single kind holds nothing constant."""
    features, kinds, groups = pairs(10, 3)
    alone = np.full((30, 3), 100.0), np.ones(30, bool), np.arange(100, 130)
    more = [np.concatenate(both) for both in ((features, alone[0]), (kinds, alone[1]), (groups, alone[2]))]
    assert decode(more[0], more[1], more[2], 1) == decode(features, kinds, groups, 1)
    with pytest.raises(ShapeMismatch, match="0 pictures have maps of both kinds, 6 are needed"):
        decode(*alone, 1)
    with pytest.raises(ShapeMismatch, match="not finite"):
        decode(features * np.nan, kinds, groups, 1)


def test_it_takes_the_same_maps_in_another_order_for_no_difference() -> None:
    draws = np.random.default_rng(2)
    maps = draws.standard_normal((20, 4))
    decoded = decode(np.concatenate([maps, np.roll(maps, 1, 0)]), np.arange(40) < 20, np.arange(40) % 20, 1)
    assert decoded.auc <= 0.5 and decoded.low < LIMIT and decoded.p > 0.5


def honest(seed: int, follows: str = "picture") -> tuple[list[Plane], NDArray[np.bool_], NDArray[np.int64]]:
    """Both answers of 20 pictures: blobs on the object, whose area (.10 or .14) and place go with the class
    of the picture (or the place with the answer: what speaks for it lies on another side of every picture);
    strength, size and place waver with each map, over smooth noise."""
    draws = np.random.default_rng([7, seed])
    down, across = np.mgrid[:SIDE, :SIDE] / SIDE
    fields = []
    for picture in range(PICTURES):
        area, column = ((0.10, 0.65), (0.14, 0.35))[picture % 2]
        middle = np.array([0.5, column]) + 0.08 * draws.standard_normal(2)
        for answer in range(2):
            row, place = middle + 0.03 * draws.standard_normal(2)
            place = (0.35, 0.65)[answer] + place - column if follows == "answer" else place
            reach = np.sqrt(area * np.exp(0.2 * draws.standard_normal()) / np.pi)
            blob = 1 / (1 + np.exp(40 * (np.hypot(down - row, across - place) - reach)))
            noise = gaussian_filter(draws.standard_normal((SIDE, SIDE)), 2.0)
            values = np.maximum(draws.uniform(0.5, 1.5) * blob + 2 * noise, 0)
            low, high = np.percentile(values, [1, 99])
            fields.append(np.clip((values - low) / (high - low), 0, 1).astype(np.float32))
    return fields, np.tile(np.array([False, True]), PICTURES), np.repeat(np.arange(PICTURES), 2)


def marked(field: Plane) -> Plane:
    """A corner mark of a sixteenth of the side."""
    changed = field.copy()
    changed[:3, :3] = 1
    return changed


def accused(seed: int, leak: str = "", follows: str = "picture") -> bool:
    fields, kinds, groups = honest(seed, follows)
    if leak == "empty":
        fields = [np.zeros_like(f) if kind else f for f, kind in zip(fields, kinds, strict=True)]
    elif leak == "mark":
        fields = [marked(f) if kind else f for f, kind in zip(fields, kinds, strict=True)]
    return decode([looks_of(field) for field in fields], kinds, groups, seed).low > LIMIT


def times(name: str, seeds: range, leak: str = "", follows: str = "picture") -> int:
    """How often maps are accused; the table of `make prove` has the line."""
    count = sum(accused(seed, leak, follows) for seed in seeds)
    print(f"{name:30} accused in {count} of {len(seeds)} seeds")
    return count


@pytest.mark.parametrize("leak", ["empty", "mark"])
def test_it_finds_a_planted_leak_in_twenty_pictures(leak: str) -> None:
    assert times(f"planted, {leak}", range(20), leak) >= 19


@pytest.mark.long(stays="test_it_finds_a_planted_leak_in_twenty_pictures")
@pytest.mark.parametrize("follows", ["picture", "answer"])
def test_it_does_not_accuse_honest_maps(follows: str) -> None:
    assert times(f"honest, follows the {follows}", range(40), follows=follows) <= 2


@pytest.mark.full
@pytest.mark.parametrize("follows", ["picture", "answer"])
def test_it_does_not_accuse_honest_maps_over_400_seeds(follows: str) -> None:
    assert times(f"honest, follows the {follows}", range(400), follows=follows) <= 20
