"""Two pictures side by side: untouched, of one size, with captions that say nothing."""

import numpy as np
import pytest
from numpy.typing import NDArray

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.parked.pair import PAGE, PairSpec, pair
from stimuli.parked.perturb import input_pair, overlay_pair
from stimuli.recipe import RenderSpec
from stimuli.render.heatmap import overlay
from stimuli.types import Pixels
from tests.stimuli.material import strengths

pytestmark = pytest.mark.pure


def picture(seed: int, height: int = 90, width: int = 120) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def dark(picture: Pixels) -> NDArray[np.bool_]:
    return np.asarray((picture < 100).all(2), np.bool_)


def test_it_sets_both_pictures_beside_each_other_as_they_are() -> None:
    left, right = picture(1), picture(2)
    drawn = pair(left, right, PairSpec(gap_share=0.1, left="", right=""))
    assert drawn.together.shape == (90, 252, 3)
    np.testing.assert_array_equal(drawn.together[:, :120], left)
    np.testing.assert_array_equal(drawn.together[:, 132:], right)
    assert (drawn.together[:, 120:132] == PAGE).all()
    np.testing.assert_array_equal(drawn.left, left)
    np.testing.assert_array_equal(drawn.right, right)


def test_it_writes_each_caption_below_the_middle_of_its_picture() -> None:
    drawn = pair(picture(1), picture(2), PairSpec(left="H", right="H"))
    below = dark(drawn.together[90:])
    middle = np.average(np.arange(120.0), weights=below[:, :120].sum(0))
    assert abs(middle - 59.5) < 1.5
    np.testing.assert_array_equal(below[:, :120], below[:, -120:])
    assert not below[0].any() and not below[-1].any()
    np.testing.assert_array_equal(drawn.together[:90, :120], picture(1))


def test_it_keeps_long_captions_inside() -> None:
    drawn = pair(picture(1), picture(2), PairSpec(left="before the change of everything at once", right="b"))
    below = dark(drawn.together[90:])
    assert below[:, :120].any() and not below[:, 120:127].any()


def test_it_refuses_pictures_of_two_sizes() -> None:
    with pytest.raises(ShapeMismatch, match="only equal sizes"):
        pair(picture(1), picture(2, 91))


@pytest.mark.parametrize(
    ("wrong", "message"), [({"gap_share": 0.6}, "between 0 and 0.5"), ({"left": "a\tb"}, "control")]
)
def test_it_refuses_other_recipes(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        pair(picture(1), picture(2), PairSpec(**wrong))  # type: ignore[arg-type]


def test_it_pairs_pictures_and_explanations() -> None:
    view, other = picture(1), picture(2)
    values = np.linspace(0, 1, 90 * 120, dtype=np.float32).reshape(90, 120)
    made, turned = strengths(values), strengths(values[::-1])
    spec = RenderSpec(colormap="magma")
    pictures, maps = input_pair(view, other), overlay_pair(view, made, other, turned, spec)
    np.testing.assert_array_equal(pictures.left, view)
    np.testing.assert_array_equal(pictures.right, other)
    np.testing.assert_array_equal(maps.left, overlay(view, made, spec))
    np.testing.assert_array_equal(maps.right, overlay(other, turned, spec))
    assert pictures.together.shape == maps.together.shape
