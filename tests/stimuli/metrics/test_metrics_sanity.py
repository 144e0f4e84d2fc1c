"""Randomised weights and other seeds, measured through the pipeline on maps that are known."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from captum.metrics import sensitivity_max
from numpy.typing import NDArray
from scipy.stats import spearmanr

from stimuli import pipeline
from stimuli.errors import NotApplicable
from stimuli.explainers import is_seeded
from stimuli.explainers.donor_maps import noise_in, noise_of, noisy_key, randomised_key
from stimuli.metrics import open_metric
from stimuli.metrics.base import MetricValue, Scoring
from stimuli.metrics.sanity_and_stability import (
    LogitRandomisation,
    MaxSensitivity,
    ParameterRandomisation,
    Stability,
    alike,
)
from stimuli.pipeline import Bench, Order, explain, scorings
from stimuli.predictors import restore
from stimuli.predictors.base import TorchPredictor
from stimuli.render.attribution_field import field_of
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import spec_for
from stimuli.store import LocalStore, files
from stimuli.types import PixelAttribution, Plane
from tests.stimuli.explainers.test_placebos import World, world
from tests.stimuli.material import render, toy_source, values_of

pytestmark = pytest.mark.pure
__all__ = ["world"]
GRADIENT = Component("gradient_x_input")
SALIENCY, SMOOTH = Component("saliency"), Component("smooth_grad", {"draws": 3})


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    yield
    pipeline._restored.clear()


def spec(world: World, method: Component, seed: int = 5, at: int = 2) -> StimulusSpec:
    return spec_for(world[1][at], world[0], method, RenderSpec(), seed)


def number(world: World, method: Component, metric: str, at: int = 2, **params: object) -> MetricValue:
    asked = spec(world, method, at=at)
    [made] = explain([Order((asked,), scorings([Component(metric, params)], asked))], Bench(world[2]))
    assert made.numbers[0].measured is not None, made.numbers[0].error
    return made.numbers[0].measured


def values(world: World, specs: Sequence[StimulusSpec]) -> list[Plane]:
    list(render(specs, world[2]))
    return [values_of(world[2], spec_.attribution_key) for spec_ in specs]


def rank_correlation(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    return float(spearmanr(first.ravel(), second.ravel()).statistic)


@pytest.mark.parametrize("layers", [0, 1])
def test_it_compares_with_the_map_of_the_randomised_network(world: World, layers: int) -> None:
    asked = spec(world, SALIENCY)
    permuted = replace(asked, predictor_key=randomised_key(asked.predictor_key, layers, 9))
    plain, other = values(world, [asked, permuted])
    measured = number(world, SALIENCY, "parameter_randomisation", layers=layers, seed=9)
    assert measured.value == pytest.approx(rank_correlation(plain, other), abs=1e-6)
    assert abs(measured.value) < 0.95


def test_it_compares_the_drawn_fields(world: World) -> None:
    asked = spec(world, Component("gradient_x_input"))
    permuted = replace(asked, predictor_key=randomised_key(asked.predictor_key, 0, 0))
    plain, other = values(world, [asked, permuted])
    drawn = [field_of(plane, RenderSpec()) for plane in (plain, other)]
    measured = number(world, Component("gradient_x_input"), "parameter_randomisation_drawn")
    assert measured.value == pytest.approx(rank_correlation(*drawn), abs=1e-6)
    assert measured.value != pytest.approx(rank_correlation(plain, other), abs=1e-3)


@pytest.mark.parametrize("name", ["bottom_up_saliency", "spectral_residual"])
def test_it_finds_what_does_not_depend_on_the_network(world: World, name: str) -> None:
    assert number(world, Component(name), "parameter_randomisation").value == pytest.approx(1)


def test_it_compares_all_pairs_of_seeds(world: World) -> None:
    planes = values(world, [spec(world, SMOOTH, seed) for seed in (5, 6, 7)])
    pairs = [rank_correlation(planes[a], planes[b]) for a, b in ((0, 1), (0, 2), (1, 2))]
    measured = number(world, SMOOTH, "stability", runs=3)
    assert measured.value == pytest.approx(np.mean(pairs), abs=1e-6)
    assert measured.details == {"runs": 3, "lowest": pytest.approx(min(pairs), abs=1e-6)}
    fields = [field_of(plane, RenderSpec()) for plane in planes[:2]]
    drawn = number(world, SMOOTH, "stability_drawn", runs=2)
    assert drawn.value == pytest.approx(rank_correlation(*fields), abs=1e-6)


def test_it_has_captums_largest_sensitivity(world: World) -> None:
    """Captum's own maximum over the same noise, of a gradient times input by autograd."""
    source, items, store = world
    asked = spec(world, GRADIENT)
    network = restore(store.get(files.predictor_file(source.predictor_key)))
    assert isinstance(network, TorchPredictor)
    x = network.inputs([files.read_view(store, asked.image_key)])
    shape = tuple(x.shape[1:])
    noises = [noise_of(asked.image_key, 5, draw, 0.05, shape) for draw in range(3)]

    def alone(given: torch.Tensor | tuple[torch.Tensor]) -> torch.Tensor:
        return given if isinstance(given, torch.Tensor) else given[0]

    def made(images: torch.Tensor | tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        point = alone(images).detach().requires_grad_()
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(network.module(point)[:, asked.target].sum(), point)
        return ((slope * point).detach().mean(1),)

    expected = sensitivity_max(
        made, x, lambda given, radius: alone(given) + torch.from_numpy(np.stack(noises)), 0.05, 3
    )
    measured = number(world, GRADIENT, "max_sensitivity", draws=3, radius=0.05)
    assert measured.value == pytest.approx(float(expected), rel=1e-3) and measured.value > 0.001
    assert measured.value == max(measured.details["changes"]) and len(measured.details["changes"]) == 3


def test_it_draws_noise_within_the_radius_and_names_it_in_the_key() -> None:
    noise = noise_of("ab", 1, 0, 0.5, (3, 40, 40))
    assert -0.5 <= noise.min() < -0.49 and 0.49 < noise.max() <= 0.5 and abs(noise.mean()) < 0.02
    others = [noise_of("ab", 1, 1, 0.5, (3, 40, 40)), noise_of("ab", 2, 0, 0.5, (3, 40, 40))]
    assert all((other != noise).mean() > 0.99 for other in others)
    assert noise_in(noisy_key("ab12", 0.05, 7)) == ("ab12", (7, 0.05))
    assert noise_in("ab12") == ("ab12", None)


def test_a_map_that_does_not_ask_the_network_changes_with_the_picture_alone(world: World) -> None:
    """Spectral residuals see the noise; an empty map has no size to be a share of."""
    assert number(world, Component("spectral_residual"), "max_sensitivity", draws=2).value > 0
    asked = spec(world, Component("none"))
    [made] = explain([Order((asked,), scorings([Component("max_sensitivity")], asked))], Bench(world[2]))
    assert "0 everywhere" in made.numbers[0].error


def test_it_does_not_run_again_what_draws_nothing(world: World) -> None:
    values(world, [spec(world, SALIENCY)])
    before = list(world[2].keys("maps/"))
    measured = number(world, SALIENCY, "stability", runs=5)
    assert (measured.value, measured.details["runs"]) == (1.0, 1)
    assert list(world[2].keys("maps/")) == before


def test_it_knows_which_methods_draw() -> None:
    assert is_seeded(SMOOTH) and is_seeded(Component("random")) and not is_seeded(SALIENCY)
    assert is_seeded(Component("other_item", {"of": "rise"})) and not is_seeded(Component("other_item"))


def test_it_says_why_there_is_no_number(tmp_path: Path) -> None:
    """The toy's network has no weights; its maps are made all the same, and the other metric is measured."""
    store = LocalStore(tmp_path / "store")
    source, items = toy_source(tmp_path, store)
    asked = spec_for(items[0], source, SALIENCY, RenderSpec(), 5)
    metrics = (Scoring(Component("parameter_randomisation")), Scoring(Component("stability")))
    [made] = explain([Order((asked,), metrics)], Bench(store))
    assert made.attribution is not None and not made.error
    assert "0 layers with weights" in made.numbers[0].error and made.numbers[1].measured


def test_it_has_the_random_logit_test_of_quantus(world: World) -> None:
    """Theirs draws another class too, which of two is the other one; maps by autograd."""
    quantus: Any = import_module("quantus")
    source, items, store = world
    asked = [spec(world, GRADIENT, at=at) for at in (0, 2, 8)]
    network = restore(store.get(files.predictor_file(source.predictor_key)))
    assert isinstance(network, TorchPredictor)
    x = network.inputs([files.read_view(store, item.image_key) for item in asked])
    targets = np.array([item.target for item in asked])

    def made(model: Any, inputs: Any, targets: Any, **_others: object) -> NDArray[np.float32]:
        point = torch.as_tensor(inputs, dtype=torch.float32).requires_grad_()
        with torch.enable_grad():
            picked = network.module(point).gather(1, torch.as_tensor(targets)[:, None])
            (slope,) = torch.autograd.grad(picked.sum(), point)
        return np.asarray((slope * point).detach().mean(1, keepdim=True).numpy(), np.float32)

    similarity = quantus.similarity_func.correlation_spearman
    quiet = {"disable_warnings": True, "display_progressbar": False, "return_aggregate": False}
    test = quantus.RandomLogit(similarity, num_classes=2, abs=False, normalise=False, **quiet)
    given = {"x_batch": x.numpy(), "y_batch": targets, "a_batch": made(None, x, targets)}
    expected = test(network.module, **given, device="cpu", explain_func=made, channel_first=True)
    values = [number(world, GRADIENT, "logit_randomisation", at=at, labels=2).value for at in (0, 2, 8)]
    assert values == pytest.approx(expected, abs=1e-3)


def test_it_draws_every_other_class_and_never_the_explained_one(world: World) -> None:
    metric = open_metric(Component("logit_randomisation", {"labels": 5}))
    assert isinstance(metric, LogitRandomisation)
    asked = replace(spec(world, SALIENCY), target=2)
    drawn = [metric.lenders(replace(asked, seed=seed))["other"] for seed in range(200)]
    counts = Counter(lender.target for lender in drawn)
    assert set(counts) == {0, 1, 3, 4} and min(counts.values()) > 25  # 50 each, give or take 6
    margin = metric.lenders(replace(asked, operator="margin", against=0))["other"]
    assert margin.against == 2
    with pytest.raises(NotApplicable, match="set labels to the number of the model's classes"):
        open_metric(Component("logit_randomisation")).lenders(asked)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["parameter_randomisation", "stability", "max_sensitivity"])
@pytest.mark.parametrize("method", [None, Component("lime_text"), Component("rise_cbm")])
def test_it_refuses_what_is_no_map(world: World, name: str, method: Component | None) -> None:
    metric = open_metric(Component(name))
    assert isinstance(metric, ParameterRandomisation | Stability | MaxSensitivity)
    with pytest.raises(NotApplicable, match="maps of pictures"):
        metric.lenders(replace(spec(world, SALIENCY), explainer=method))


def test_it_compares_maps_without_structure() -> None:
    flat, other = (PixelAttribution(np.full((4, 4), value, np.float32), False) for value in (0, 3))
    shaped = PixelAttribution(np.arange(16, dtype=np.float32).reshape(4, 4), False)
    assert (alike(flat, other), alike(flat, shaped)) == (1.0, 0.0)
    assert alike(shaped, shaped) == pytest.approx(1)
