"""The drawn field: what of a map is shown, in which order it is computed, and which recipes are refused."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.stats import spearmanr

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch
from stimuli.render.attribution_field import check_recipe, cut_away, drawn_field, field_of, strength
from stimuli.render.recipe import PRESETS, RenderSpec, Sign
from stimuli.spec import canonical_json
from stimuli.types import PixelAttribution

pytestmark = pytest.mark.pure
SIGNS: tuple[Sign, ...] = ("positive", "magnitude", "diverging", "signed_range")
DIVERGING = RenderSpec(sign="diverging", colormap="PuOr_r")


def recipe(sign: Sign, **other: object) -> RenderSpec:
    palette = "PuOr_r" if sign == "diverging" else "viridis"
    return RenderSpec(sign=sign, colormap=palette, clip_low=0, clip_high=100, **other)  # type: ignore[arg-type]


def ramp(low: float = -1, high: float = 3) -> NDArray[np.float32]:
    return np.linspace(low, high, 600, dtype=np.float32).reshape(20, 30)


def test_it_shows_what_the_sign_names() -> None:
    values = ramp()
    shown = {sign: field_of(values, recipe(sign)) for sign in SIGNS}
    np.testing.assert_allclose(shown["positive"], np.maximum(values, 0) / 3, atol=1e-6)
    sizes = np.abs(values)
    np.testing.assert_allclose(
        shown["magnitude"], (sizes - sizes.min()) / (sizes.max() - sizes.min()), atol=1e-6
    )
    np.testing.assert_allclose(shown["diverging"], values / 3, atol=1e-6)
    np.testing.assert_allclose(shown["signed_range"], (values + 1) / 4, atol=1e-6)
    np.testing.assert_allclose(strength(shown["diverging"]), np.abs(values) / 3, atol=1e-6)


@pytest.mark.parametrize(("sign", "alike"), [*product(SIGNS, repeat=2)])
def test_it_ranks_exactly_the_values_that_the_sign_names(sign: Sign, alike: Sign) -> None:
    """The order of a field is that of its own values, and another one where the signs differ."""
    rng = np.random.default_rng(3)
    values = rng.standard_normal((20, 30)).astype(np.float32)
    named = {"positive": np.maximum(values, 0), "magnitude": np.abs(values)}
    order = spearmanr(field_of(values, recipe(sign)).ravel(), named.get(alike, values).ravel()).statistic
    same = sign == alike or {sign, alike} == {"diverging", "signed_range"}
    assert (order > 0.999999) == same


def test_it_cuts_at_the_percentiles() -> None:
    values = np.arange(1000, dtype=np.float32).reshape(20, 50)
    scaled = field_of(values, RenderSpec(clip_low=10, clip_high=90)).ravel()
    assert (scaled[:100] == 0).all() and (scaled[900:] == 1).all()
    assert scaled[500] == pytest.approx((500 - 99.9) / (899.1 - 99.9), abs=1e-5)


def test_it_smooths_before_it_takes_the_sign() -> None:
    """Evidence for and against in one place cancels: a checkerboard of both sides says nothing."""
    board = (np.indices((40, 40)).sum(0) % 2 * 2 - 1).astype(np.float32)
    board[:, 20:] = 0.5
    for sign in SIGNS:
        smooth = recipe(sign, smooth_px=4.0)
        exact = gaussian_filter(board.astype(np.float64), 4.0, mode="mirror")
        np.testing.assert_allclose(
            field_of(board, smooth), field_of(exact.astype(np.float32), recipe(sign)), atol=1e-5
        )
    assert field_of(board, recipe("positive", smooth_px=4.0))[:, :8].max() < 0.05
    assert field_of(board, recipe("positive"))[:, :8].max() == 1


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_it_does_not_depend_on_the_scale_of_a_map(scale: float, sign: Sign) -> None:
    np.testing.assert_allclose(
        field_of(ramp() * np.float32(scale), recipe(sign)), field_of(ramp(), recipe(sign)), atol=1e-5
    )


@pytest.mark.parametrize("sign", SIGNS)
@given(values=arrays(np.float32, (6, 7), elements=st.floats(-1e6, 1e6, width=32)))
def test_it_stays_within_its_limits(sign: Sign, values: NDArray[np.float32]) -> None:
    field = field_of(values, recipe(sign))
    assert field.dtype == np.float32 and field.shape == values.shape
    assert (-1 if sign == "diverging" else 0) <= field.min() and field.max() <= 1
    if sign == "diverging":
        assert (np.sign(field) * np.sign(values) >= 0).all(), "no evidence changes sides"


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("value", [0.0, 3.7, -2.0])
def test_it_says_nothing_of_a_constant_map(value: float, sign: Sign) -> None:
    assert not field_of(np.full((20, 30), value, np.float32), recipe(sign)).any()


def test_it_keeps_a_few_strong_points_among_zeros() -> None:
    values = np.zeros((100, 100), np.float32)
    values[50, 50] = 2
    for spec in (RenderSpec(), DIVERGING):
        field = field_of(values, spec)
        assert field[50, 50] == 1 and field.sum() == 1


def test_it_says_how_much_was_cut_away() -> None:
    values = np.array([[3, -1], [-1, 0]], np.float32)
    assert cut_away(values, RenderSpec()) == pytest.approx(2 / 5)
    assert cut_away(values, RenderSpec(sign="magnitude")) == 0
    assert cut_away(np.zeros((2, 2), np.float32), RenderSpec()) == 0


def test_it_asks_how_a_method_without_a_sign_is_drawn_on_two_sides() -> None:
    unsigned = PixelAttribution(np.abs(ramp()), signed=False)
    with pytest.raises(NotApplicable, match='unsigned to "for"'):
        drawn_field(unsigned, DIVERGING)
    told = RenderSpec(sign="diverging", colormap="PuOr_r", unsigned="for")
    assert drawn_field(unsigned, told).min() >= 0
    assert drawn_field(PixelAttribution(ramp(), signed=True), DIVERGING).min() < 0


def test_it_refuses_maps_that_are_not_finite() -> None:
    values = ramp()
    values[0, 0] = np.nan
    with pytest.raises(ShapeMismatch, match="not finite"):
        field_of(values, RenderSpec())


@pytest.mark.parametrize(
    ("given_keys", "message"),
    [
        ({"colormap": "hot"}, "'hot' is not known: use one of viridis"),
        ({"alpha": 0.0}, "above 0 and at most 1"),
        ({"clip_low": 99.0}, "the low one below the high one"),
        ({"clip_high": 101.0}, "between 0 and 100"),
        ({"tile_px": 8}, "between 16 and 512"),
        ({"smooth_px": -1.0}, "between 0 and 64"),
        ({"top_share": 1.0}, "between 0 and 1"),
        ({"sign": "diverging"}, "a diverging recipe takes PuOr_r"),
        ({"colormap": "PuOr_r"}, "no other recipe does"),
        ({"sign": "diverging", "colormap": "PuOr_r", "style": "mask"}, "one side only"),
    ],
)
def test_it_refuses_recipes_that_cannot_be_drawn(given_keys: dict[str, object], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        check_recipe(RenderSpec(**given_keys))  # type: ignore[arg-type]


def test_it_keeps_the_form_of_recipes_from_before_the_signs() -> None:
    """As commit f38355e wrote them into its keys."""
    before = {
        "colormap": "viridis",
        "alpha": 0.7,
        "clip_low": 1.0,
        "clip_high": 99.0,
        "absolute": True,
        "tile_px": 112,
    }
    for absolute, sign in ((True, "magnitude"), (False, "signed_range")):
        read = RenderSpec.from_json({**before, "absolute": absolute})
        assert (read.sign, read.opacity) == (sign, "rising")
        assert canonical_json(read.as_json()) == canonical_json({**before, "absolute": absolute})
    assert RenderSpec.from_json(RenderSpec().as_json()) == RenderSpec()


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_drawn_and_says_where_it_is_from(name: str) -> None:
    preset = PRESETS[name]
    check_recipe(RenderSpec(**preset.values))
    assert preset.source and "as in the paper" not in preset.source
    assert not set(preset.must_say) & set(preset.values)
