"""Controls: bottom-up saliency finds what stands out, the permuted map keeps values and loses places."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from skimage import data
from torch import nn

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import open_explainer
from stimuli.explainers.itti_koch import bottom_up_map
from stimuli.planner.asks import Subject
from stimuli.spec import Component
from tests.stimuli.tiny import Tiny, convolutional_net, linear_net, maps_of, pictures, subjects_of

pytestmark = pytest.mark.pure
GREY = 0.5


def scene(side: int = 160) -> NDArray[np.float32]:
    return np.full((side, side, 3), GREY, np.float32)


def peak(picture: NDArray[np.float32]) -> tuple[int, int]:
    row, column = np.unravel_index(bottom_up_map(picture).argmax(), picture.shape[:2])
    return int(row), int(column)


def bars(upright: bool) -> NDArray[np.float32]:
    return np.full((14, 4) if upright else (4, 14), 1.0, np.float32)


def test_it_finds_the_one_bright_spot() -> None:
    picture = scene()
    picture[90:106, 40:56] = 1.0
    assert np.hypot(*np.subtract(peak(picture), (98, 48))) < 14


def test_it_finds_the_one_spot_of_another_colour() -> None:
    picture = scene()
    for row in range(16, 150, 32):
        for column in range(16, 150, 32):
            picture[row : row + 8, column : column + 8] = (0.2, 0.7, 0.2)
    picture[80:88, 112:120] = (0.7, 0.2, 0.2)
    assert np.hypot(*np.subtract(peak(picture), (84, 116))) < 14


def test_it_finds_the_one_bar_that_is_turned() -> None:
    picture = scene()
    for row in range(12, 150, 32):
        for column in range(12, 150, 32):
            bar = bars(upright=(row, column) != (76, 108))
            picture[row : row + bar.shape[0], column : column + bar.shape[1]] = bar[..., None]
    assert np.hypot(*np.subtract(peak(picture), (78, 115))) < 20


def test_it_says_nothing_where_nothing_stands_out() -> None:
    assert not bottom_up_map(scene()).any()
    assert not bottom_up_map(np.zeros((40, 40, 3), np.float32)).any()


def test_it_turns_with_the_picture() -> None:
    cat = data.chelsea()  # type: ignore[no-untyped-call]
    picture = (cat[:160, 100:260] / 255).astype(np.float32)
    mirrored = bottom_up_map(picture[:, ::-1].copy())[:, ::-1]
    assert np.corrcoef(mirrored.ravel(), bottom_up_map(picture).ravel())[0, 1] > 0.97


@pytest.mark.parametrize("shape", [(8, 8), (33, 57), (224, 224), (160, 40)])
def test_it_maps_pictures_of_any_size(shape: tuple[int, int]) -> None:
    picture = np.random.default_rng(1).random((*shape, 3), dtype=np.float32)
    found = bottom_up_map(picture)
    assert found.shape == shape and found.dtype == np.float32
    assert found.min() == 0 and found.max() == pytest.approx(1)


def test_it_never_asks_the_network() -> None:
    subjects = subjects_of(pictures(2))
    found = maps_of("bottom_up_saliency", linear_net(), subjects)
    np.testing.assert_array_equal(found, maps_of("bottom_up_saliency", convolutional_net(), subjects))


def test_it_permutes_the_pixels_of_another_map() -> None:
    net, subjects = convolutional_net(), subjects_of(pictures(2))
    source = maps_of("integrated_gradients", net, subjects)
    permuted = maps_of("random", net, subjects, of="integrated_gradients")
    np.testing.assert_array_equal(np.sort(permuted.reshape(2, -1)), np.sort(source.reshape(2, -1)))
    assert abs(np.corrcoef(permuted.ravel(), source.ravel())[0, 1]) < 0.15


@pytest.mark.parametrize("name", ["random", "permuted"])
def test_it_refuses_to_permute_what_cannot_be_had(name: str) -> None:
    with pytest.raises(BadSpec, match="cannot permute 'random'"):
        open_explainer(Component(name, {"of": "random"}))
    with pytest.raises(BadSpec, match="no explainer 'salience'"):
        open_explainer(Component(name, {"of": "salience"}))
    with pytest.raises(NotApplicable, match="GradCam"):
        open_explainer(Component(name, {"of": "grad_cam"})).require(linear_net(), "")


def test_it_marks_nothing_without_a_map() -> None:
    assert not maps_of("none", linear_net(), subjects_of(pictures(2))).any()


class Countdown(nn.Module):
    """The gradient at pixel i is i + 1: every pixel of a saliency map can be told from all others."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.arange(1.0, 1 + x[0, 0].numel()).view(x.shape[2:])
        return (x * weights).sum((1, 2, 3))[:, None]


def test_it_moves_whole_tiles() -> None:
    net = Tiny(Countdown(), ("a",))
    found = maps_of("permuted", net, [Subject(0, "a", 1, image=pictures(1)[0])], tiles=4)[0].astype(int)
    places = np.arange(1, 1 + 24 * 24).reshape(24, 24)
    tiles = {places[r : r + 6, c : c + 6].tobytes() for r in range(0, 24, 6) for c in range(0, 24, 6)}
    moved = [found[r : r + 6, c : c + 6].tobytes() for r in range(0, 24, 6) for c in range(0, 24, 6)]
    assert set(moved) == tiles and len(set(moved)) == 16
    assert not np.array_equal(found, places)


def test_it_leaves_what_does_not_fill_a_tile_in_place() -> None:
    net = Tiny(Countdown(), ("a",))
    found = maps_of("permuted", net, [Subject(0, "a", 1, image=pictures(1)[0])], tiles=5)[0].astype(int)
    places = np.arange(1, 1 + 24 * 24).reshape(24, 24)
    np.testing.assert_array_equal(found[20:], places[20:])
    np.testing.assert_array_equal(found[:, 20:], places[:, 20:])
    assert sorted(found.ravel().tolist()) == sorted(places.ravel().tolist())
    assert not np.array_equal(found[:20, :20], places[:20, :20])
