from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from stimuli.datasets import open_dataset
from stimuli.datasets.photographs import cut
from stimuli.errors import BadSpec
from stimuli.predictors import open_predictor, restore
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.files.weights import pack_weights
from stimuli.predictors.image.trained_cnn import training_key
from stimuli.quality.field_faults import lattice_energy
from stimuli.spec import Component
from stimuli.training import Recipe, small_network, train

pytestmark = pytest.mark.pure
STUDY = Path(__file__).parents[3] / "experiments" / "studies" / "grass-or-gravel" / "study.toml"
WEAK = Component.from_json(tomllib.loads(STUDY.read_text())["stimuli"]["predictor"])
"""The network of the shipped study itself, so that the file and this test cannot drift apart."""


def tinted(count: int = 80) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[str]]:
    """Reddish and bluish noise: a task that takes one look."""
    rng = np.random.default_rng(0)
    targets = np.arange(count) % 2
    pictures = rng.integers(0, 150, (count, 32, 32, 3))
    pictures[np.arange(count), :, :, np.where(targets, 0, 2)] += 90
    return pictures.astype(np.uint8), targets.astype(np.int64), [str(n) for n in range(count)]


def test_it_learns_what_is_plain_and_says_how_well() -> None:
    seen: list[tuple[int, int]] = []
    trained = train(*tinted(), 2, Recipe(0, 6, 4, 0.02), lambda done, total: seen.append((done, total)))
    assert trained.held_out_accuracy >= 0.9
    assert (trained.held_out_count, trained.trained_count) == (16, 64)
    assert seen[-1] == (12, 12)


def test_it_trains_the_same_network_twice_and_leaves_global_state_alone() -> None:
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first, second, other = (
        pack_weights(train(*tinted(), 2, Recipe(seed, 2, 4, 0.02), lambda *_: None).network)
        for seed in (0, 0, 1)
    )
    assert first == second != other
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()


@pytest.mark.parametrize(("mirrored", "least", "most"), [(True, 0.0, 0.8), (False, 0.95, 1.0)])
def test_it_tells_mirror_images_apart_only_if_it_is_not_trained_on_them(
    mirrored: bool, least: float, most: float
) -> None:
    """A bar that rises, or the same bar mirrored."""
    rng = np.random.default_rng(3)
    pictures = rng.integers(0, 60, (200, 32, 32, 3)).astype(np.uint8)
    targets = np.arange(200) % 2
    for picture, target in zip(pictures, targets, strict=True):
        for step in range(20):
            column = 6 + step
            picture[25 - step, column if target else 31 - column] = 255
    recipe = Recipe(0, 10, 4, 0.02, mirrored=mirrored)
    trained = train(pictures, targets, [str(n) for n in range(200)], 2, recipe, lambda *_: None)
    assert least <= trained.held_out_accuracy <= most


def test_it_says_when_no_network_is_as_weak_as_asked() -> None:
    with pytest.raises(BadSpec, match=r"held-out accuracy of 0\.10 to 0\.20 .*lowest .*; change width"):
        train(*tinted(), 2, Recipe(0, 3, 4, 0.02, (0.1, 0.2)), lambda *_: None)


def test_it_needs_more_than_one_group_of_a_class() -> None:
    pictures, targets, _ = tinted(20)
    with pytest.raises(BadSpec, match=r"1 group\(s\).*at least 2 are needed"):
        train(pictures, targets, ["one"] * 20, 2, Recipe(0, 1, 4, 0.02), lambda *_: None)


def test_it_names_what_training_would_give_without_training() -> None:
    predictor, dataset = Component("trained_cnn", {"seed": 1}), Component("synthetic", {"scenario": "biased"})
    key = training_key(predictor, dataset, "digest", Path())
    assert key == training_key(Component("trained_cnn", {"seed": 1, "epochs": 8}), dataset, "digest", Path())
    assert key != training_key(Component("trained_cnn", {"seed": 2}), dataset, "digest", Path())
    assert key != training_key(predictor, dataset, "other digest", Path())


def test_it_keeps_the_names_of_networks_trained_before_there_was_a_choice() -> None:
    """Written by the code of commit fe53a8d."""
    biased, folder = (
        Component("synthetic", {"scenario": "biased"}),
        Component("folder", {"path": "photographs"}),
    )
    weak = {"width": 3, "target_accuracy": [0.6, 0.8]}
    assert training_key(Component("trained_cnn", {"seed": 1}), biased, "digest", Path()) == (
        "cd01bc65a59d6c053dc8cd3b2a01225603a08d1021090084604dda57f42f5f8e"
    )
    assert training_key(Component("trained_cnn", weak), folder, "digest", Path()) == (
        "8b5390c2e2e3664492fc0b1e71304b1e1a77888e180a2c9d3583bd2c4e9a9b09"
    )
    before, *same, averaged, unmirrored = (
        training_key(Component("trained_cnn", {"seed": 1, **params}), biased, "digest", Path())
        for params in (
            {},
            {"downsampling": "stride"},
            {"mirrored": True},
            {"downsampling": "average"},
            {"mirrored": False},
        )
    )
    assert same == [before, before]
    assert len({before, averaged, unmirrored}) == 3


def test_all_pixels_weigh_the_same_where_means_halve_a_map() -> None:
    """The closed form: each pixel is in 2 x 2 means of 4 x 4. Steps of a convolution leave pixels unequal."""
    features = small_network(4, 2, "average").get_submodule("features")
    mean = list(features.get_submodule("0").children())[-1]
    values = torch.rand(1, 2, 24, 24, requires_grad=True)
    (slope,) = torch.autograd.grad(mean(values).sum(), values)
    assert torch.allclose(slope[..., 3:-3, 3:-3], torch.tensor(4 / 16))
    assert mean(values).shape == (1, 2, 12, 12) and features(torch.rand(1, 3, 64, 64)).shape[2:] == (8, 8)


@pytest.mark.parametrize("seed", range(5))
def test_its_gradients_have_no_grid(seed: int) -> None:
    """Before any training: what the architecture alone leaves in a map."""
    energies = {}
    for downsampling in ("stride", "average"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = small_network(8, 2, downsampling).eval()
            picture = torch.rand(1, 3, 160, 160, requires_grad=True)
            (slope,) = torch.autograd.grad(network(picture)[0, 0], picture)
        energies[downsampling] = lattice_energy(slope[0].mean(0).numpy())
    assert energies["average"] < 0.02 < 0.1 < energies["stride"]


def test_it_is_restored_from_its_archive() -> None:
    dataset = open_dataset(
        Component("synthetic", {"scenario": "biased", "count": 8, "model_count": 16, "size_px": 64}), Path()
    )
    params = {"downsampling": "average", "width": 4, "epochs": 1, "input_px": 64}
    predictor = open_predictor(Component("trained_cnn", params), Path(), dataset)
    assert isinstance(predictor, TorchPredictor)
    again = restore(predictor.dump())
    assert isinstance(again, TorchPredictor)
    view = predictor.view(dataset.pixels(dataset.items("people")[0].key))
    assert again.key == predictor.key
    assert np.array_equal(again.logits([view]), predictor.logits([view]))


def test_it_refuses_a_range_that_is_none() -> None:
    with pytest.raises(BadSpec, match="low < high"):
        training_key(
            Component("trained_cnn", {"target_accuracy": [0.8, 0.6]}), Component("folder"), "", Path()
        )


@pytest.mark.long(stays="test_it_says_when_no_network_is_as_weak_as_asked")
def test_it_is_weak_on_real_photographs_as_asked(tmp_path: Path) -> None:
    cut(tmp_path)
    dataset = open_dataset(Component("folder", {"path": "."}), tmp_path)
    predictor = open_predictor(WEAK, tmp_path, dataset)
    assert isinstance(predictor, TorchPredictor)
    assert 0.6 <= predictor.provenance["held_out_accuracy"] <= 0.8
    items = dataset.items("people")
    answers = predictor.logits([predictor.view(dataset.pixels(item.key)) for item in items]).argmax(axis=1)
    truths = np.array([dataset.labels.index(item.truth) for item in items])
    cells = [
        np.sum((answers == label) & ((answers == truths) == right))
        for label in (0, 1)
        for right in (True, False)
    ]
    assert min(cells) >= 12  # a session takes 9 of each
    assert restore(predictor.dump()).key == predictor.key
