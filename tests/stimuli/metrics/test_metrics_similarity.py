"""Which methods show the same, as maps and as drawn pictures."""

import math

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from scipy.stats import pearsonr, spearmanr
from skimage.color import rgb2lab

from stimuli.errors import NotApplicable, ShapeMismatch
from stimuli.metrics import open_set_metric
from stimuli.metrics.base import Entry, MetricValue
from stimuli.metrics.method_similarity import SEEN_LEVELS, near_identical, structural_similarity
from stimuli.render.heatmap import overlay
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.types import Pixels, Plane
from tests.stimuli.material import strengths
from tests.stimuli.tiny import Shown, maps_of, pictures, pooled_net, subjects_of

pytestmark = pytest.mark.pure

SIDE = 64


def draws(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def smooth(seed: int, side: int = SIDE) -> Plane:
    return gaussian_filter(draws(seed).standard_normal((side, side)), 4).astype(np.float32)  # type: ignore[no-any-return]


def view(seed: int = 0, side: int = SIDE) -> Pixels:
    return draws(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)


def entry(condition: str, values: Plane, item: str = "i", label: str = "a") -> Entry:
    return Shown(item, condition, label, view(side=len(values)), values)


def alike(*entries: Entry, **params: object) -> list[MetricValue]:
    return list(open_set_metric(Component("method_similarity", params)).measure(entries))


def test_it_joins_pictures_that_differ_by_rounding() -> None:
    base, other = view(1), view(2)
    nudged = np.clip(base.astype(int) + draws(3).integers(-1, 2, base.shape), 0, 255).astype(np.uint8)
    assert near_identical({"x": base, "b": nudged, "other": other}) == [("b", "x")]
    assert near_identical({"x": base, "other": other}) == []
    assert near_identical({"x": base}) == near_identical({}) == []


def test_it_ignores_the_order_of_conditions() -> None:
    shown = {name: view(seed // 2) for seed, name in enumerate("fedcba")}
    pairs = near_identical(shown)
    assert pairs == near_identical(dict(reversed(shown.items()))) == [("a", "b"), ("c", "d"), ("e", "f")]


def test_it_has_a_limit_of_one_just_noticeable_difference() -> None:
    """Six levels of grey are about 2.3 units of lightness by another library's CIELAB."""
    greys = np.arange(20, 250, dtype=np.uint8)
    lightness = rgb2lab(np.repeat(greys[:, None, None], 3, 2))[:, 0, 0]
    steps = lightness[int(SEEN_LEVELS) :] - lightness[: -int(SEEN_LEVELS)]
    assert steps.mean() == pytest.approx(2.3, abs=0.1)
    assert steps.max() < 3.1


def test_it_keeps_pictures_apart_by_a_veil_that_can_be_seen() -> None:
    base = np.full((SIDE, SIDE, 3), 100, np.uint8)
    assert near_identical({"a": base, "b": base + 2}) == [("a", "b")]
    assert near_identical({"a": base, "b": base + 3}) == []
    tinted = base.copy()
    tinted[..., 2] += 3  # one colour is enough
    assert near_identical({"a": base, "b": tinted}) == []


def test_it_keeps_pictures_apart_by_a_small_spot_that_moved() -> None:
    first = np.full((224, 224, 3), 100, np.uint8)
    second = first.copy()
    first[20:30, 20:30] = 180
    second[190:200, 190:200] = 180
    apart = np.abs(first.astype(int) - second)
    assert apart.mean() < 2 and (apart > 6).mean() < 0.01  # by these two alone they would be one
    assert near_identical({"a": first, "b": second}) == []


def test_it_takes_scattered_pixels_for_noise() -> None:
    first = np.full((224, 224, 3), 100, np.uint8)
    second = first.copy()
    second[::40, ::40] = 140
    assert near_identical({"a": first, "b": second}) == [("a", "b")]


def test_it_has_only_near_pairs_in_a_group() -> None:
    """A chain of small steps is no group: its ends look different."""
    chain = {f"{at}": np.full((SIDE, SIDE, 3), 100 + at, np.uint8) for at in range(6)}
    groups = near_identical(chain)
    for group in groups:
        ends = [int(name) for name in group]
        assert max(ends) - min(ends) <= 2
    assert sorted(name for group in groups for name in group) == sorted(chain)


def test_it_never_misses_a_near_pair_by_its_coarse_look() -> None:
    """Any two pictures whose mean difference is within the limit are found, at any size."""
    for seed in range(20):
        rng = draws(seed)
        base = rng.integers(20, 200, (int(rng.integers(17, 70)), int(rng.integers(17, 70)), 3)).astype(
            np.uint8
        )
        assert near_identical({"a": base, "b": base + 2}) == [("a", "b")]


def test_it_finds_that_three_methods_draw_one_picture() -> None:
    """Grad-CAM, HiRes-CAM and XGrad-CAM coincide before average pooling and a linear layer."""
    net, subjects = pooled_net(), subjects_of(pictures(2))
    names = ("grad_cam", "hires_cam", "saliency", "xgrad_cam")
    maps = {name: maps_of(name, net, subjects)[1] for name in names}
    same = [("grad_cam", "hires_cam", "xgrad_cam")]
    base = (subjects[1].pixels.numpy().transpose(1, 2, 0) * 255).astype(np.uint8)
    assert (
        near_identical({name: overlay(base, strengths(made), RenderSpec()) for name, made in maps.items()})
        == same
    )


def test_it_refuses_other_sizes() -> None:
    with pytest.raises(ShapeMismatch, match="only pictures of one size"):
        near_identical({"a": view(side=20), "b": view(side=21)})
    with pytest.raises(ShapeMismatch, match="only pictures of one size"):
        alike(entry("a", smooth(1, 20)), entry("b", smooth(1, 21)))


@pytest.mark.parametrize("correlation", ["spearman", "pearson"])
def test_it_finds_the_closest_condition(correlation: str) -> None:
    first, third = smooth(1), smooth(3)
    second = first + 0.5 * smooth(2)
    numbers = alike(entry("c", third), entry("a", first), entry("b", second), correlation=correlation)
    witness = spearmanr if correlation == "spearman" else pearsonr
    pairs = {
        name: witness(left.ravel(), right.ravel()).statistic
        for name, left, right in (("ab", first, second), ("ac", first, third), ("bc", second, third))
    }
    assert numbers[1].value == pytest.approx(pairs["ab"], abs=1e-6)
    assert [numbers[1].details["closest"], numbers[2].details["closest"]] == ["b", "a"]
    assert numbers[0].value == pytest.approx(max(pairs["ac"], pairs["bc"]), abs=1e-6)


def test_it_compares_within_an_item_only() -> None:
    entries = [entry(c, smooth(at), item) for at, (item, c) in enumerate((i, c) for i in "xy" for c in "ab")]
    together, apart = alike(*entries), [*alike(*entries[:2]), *alike(*entries[2:])]
    assert together == apart
    assert alike(*entries[::-1]) == together[::-1]


def test_it_has_limits_for_equal_and_flat_maps() -> None:
    values, flat = smooth(1), np.zeros((SIDE, SIDE), np.float32)
    same = alike(entry("a", values), entry("b", 3 * values))
    assert [number.value for number in same] == pytest.approx([1, 1])
    assert same[0].details["ssim"] == pytest.approx(1)
    assert [number.value for number in alike(entry("a", values), entry("b", flat))] == [0, 0]
    assert [number.value for number in alike(entry("a", flat), entry("b", flat + 1))] == [1, 1]


def test_it_goes_by_name_for_equally_close_conditions() -> None:
    values = smooth(1)
    numbers = alike(entry("c", values), entry("b", values), entry("a", values))
    assert [number.details["closest"] for number in numbers] == ["a", "a", "b"]


def test_it_has_no_number_for_a_lonely_condition() -> None:
    (number,) = alike(entry("a", smooth(1)))
    assert math.isnan(number.value) and "no other condition" in number.details["undefined"]
    with pytest.raises(NotApplicable, match="two maps of one condition"):
        alike(entry("a", smooth(1)), entry("a", smooth(2)))


def test_it_follows_the_definition_of_structural_similarity() -> None:
    """Naive: every window of 11 x 11 inside the map, weighted by a Gaussian of sigma 1.5."""
    first, second = smooth(1, 20), smooth(2, 20)
    x, y = ((v.astype(float) - v.min()) / (v.max() - v.min()) for v in (first, second))
    at = np.arange(-5, 6)
    weights = np.exp(-(at[:, None] ** 2 + at[None] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    similarities = []
    for top in range(10):
        for left in range(10):
            a, b = x[top : top + 11, left : left + 11], y[top : top + 11, left : left + 11]
            ma, mb = (weights * a).sum(), (weights * b).sum()
            va, vb = (weights * (a - ma) ** 2).sum(), (weights * (b - mb) ** 2).sum()
            both = (weights * (a - ma) * (b - mb)).sum()
            similarities.append(
                (2 * ma * mb + 0.01**2) * (2 * both + 0.03**2)
                / ((ma**2 + mb**2 + 0.01**2) * (va + vb + 0.03**2))
            )  # fmt: skip
    assert structural_similarity(first, second) == pytest.approx(np.mean(similarities), abs=1e-5)
    assert structural_similarity(smooth(1, 10), smooth(2, 10)) is None
