"""Controls: bottom-up saliency finds what differs from the rest; the permuted map keeps values only."""

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from skimage import data
from torch import nn

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import check_explainer, open_explainer
from stimuli.explainers.controls.itti_koch import bottom_up_map
from stimuli.explainers.controls.methods import _derangement
from stimuli.planner.values import Subject
from stimuli.spec import Component, content_key
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
    values = bottom_up_map(picture)
    assert values.shape == shape and values.dtype == np.float32
    assert values.min() == 0 and values.max() == pytest.approx(1)


def test_it_never_asks_the_network() -> None:
    subjects = subjects_of(pictures(2))
    maps = maps_of("bottom_up_saliency", linear_net(), subjects)
    np.testing.assert_array_equal(maps, maps_of("bottom_up_saliency", convolutional_net(), subjects))


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


def countdown(seed: int, tiles: int) -> NDArray[np.int64]:
    """The permuted map of pixels that are numbered from 1, (24, 24)."""
    subject = Subject(0, "a", seed, image=pictures(1)[0])
    values = maps_of("permuted", Tiny(Countdown(), ("a",)), [subject], tiles=tiles)[0]
    return np.asarray(values, np.int64)


@pytest.mark.parametrize(("tiles", "used"), [(2, 2), (3, 3), (4, 4), (5, 4), (7, 6), (11, 8), (64, 24)])
def test_it_moves_every_tile_and_keeps_it_whole(tiles: int, used: int) -> None:
    """Also if `tiles` does not divide the side: then the largest smaller number that does is used."""
    places, side = np.arange(1, 1 + 24 * 24).reshape(24, 24), 24 // used
    corners = [np.s_[r : r + side, c : c + side] for r in range(0, 24, side) for c in range(0, 24, side)]
    whole = {places[at].tobytes() for at in corners}
    layouts = set()
    for seed in range(60 if tiles < 8 else 5):
        moved = countdown(seed, tiles=tiles)
        assert not (moved == places).any()
        assert {moved[at].tobytes() for at in corners} == whole
        np.testing.assert_array_equal(np.sort(moved.ravel()), places.ravel())
        layouts.add(moved.tobytes())
    assert len(layouts) == (9 if tiles == 2 else 60 if tiles < 8 else 5)


def test_it_draws_every_derangement_equally_often() -> None:
    """Four things have nine permutations that leave none in place."""
    rng = np.random.default_rng(0)
    drawn = Counter(tuple(_derangement(rng, 4).tolist()) for _ in range(9000))
    assert len(drawn) == 9
    assert all(abs(number - 1000) < 5 * 1000**0.5 for number in drawn.values())


def test_it_refuses_sides_that_no_number_of_tiles_divides() -> None:
    method = open_explainer(Component("permuted", {"tiles": 8}))
    method.require(linear_net(24), "")
    with pytest.raises(NotApplicable, match="2 to 8 divides both sides.*31 x 31.*tiles to 31 or more"):
        method.require(linear_net(31), "")
    with pytest.raises(NotApplicable, match="67 x 67 pixels.*input_px to a multiple of 8"):
        method.require(linear_net(67), "")


@pytest.mark.parametrize("name", ["random", "permuted"])
def test_it_permutes_the_map_of_the_method_as_it_is_set(name: str) -> None:
    net, subjects = convolutional_net(), subjects_of(pictures(1))
    params: dict[str, Any] = {"patch_share": 0.5, "stride_share": 0.25}
    source = maps_of("occlusion", net, subjects, **params)[0]
    control = maps_of(name, net, subjects, of="occlusion", parameters=json.dumps(params))[0]
    np.testing.assert_array_equal(np.sort(control.ravel()), np.sort(source.ravel()))
    default = maps_of(name, net, subjects, of="occlusion")[0]
    assert not np.array_equal(np.sort(default.ravel()), np.sort(source.ravel()))


@pytest.mark.parametrize("name", ["random", "permuted"])
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("", "is no JSON object.*of 'occlusion'"),
        ("[1]", "is no JSON object"),
        ("{patch_share: 1}", "is no JSON object"),
        ("[" * 100_000, "is no JSON object"),
        ('{"patch": 1}', "explainer .*, the method that it permutes.*'patch' .*did you mean 'patch_px'"),
        ('{"patch_share": 7}', "must lie between 0.01 and 1.0"),
        ('{"patch_share": NaN}', "must lie between 0.01 and 1.0"),
        ('{"name": "saliency"}', "no parameter 'name'"),
    ],
)
def test_it_refuses_parameters_that_the_method_does_not_have(
    name: str, parameters: str, message: str
) -> None:
    with pytest.raises(BadSpec, match=message):
        open_explainer(Component(name, {"of": "occlusion", "parameters": parameters}))


@pytest.mark.parametrize(
    ("name", "of", "spellings"),
    [
        ("random", "smooth_grad", ['{"draws": 9}', ' {"draws":9 , "sigma": 0.2}']),
        ("permuted", "grad_cam", ["{}", '{"layer": ""}']),
        ("random_text", "lime_text", ['{"top": 3}', "{}", '{"samples":500,"top":3}']),
    ],
)
def test_it_has_one_content_key_for_one_setting(name: str, of: str, spellings: list[str]) -> None:
    """Every parameter of the method inside is written out, however it was asked for."""
    keys = {
        content_key(asdict(check_explainer(Component(name, {"of": of, "parameters": parameters}))))
        for parameters in spellings
    }
    assert len(keys) == 1
    whole = json.loads(str(check_explainer(Component(name, {"of": of})).params["parameters"]))
    assert whole == dict(check_explainer(Component(of)).params)
