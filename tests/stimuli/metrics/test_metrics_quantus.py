"""Our numbers against Quantus (development only), on the same pictures, maps and draws."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from stimuli.metrics.fidelity.faithfulness import random_subsets
from stimuli.planner.imputing import impute_pixels
from stimuli.spec import Component
from stimuli.types import PixelAttribution
from tests.stimuli.measuring import measured, pixel_maps
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, pictures, subjects_of

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("ignore")]

quantus: Any = import_module("quantus")  # its names are not declared for type checkers
QUIET = {
    "disable_warnings": True,
    "display_progressbar": False,
    "return_aggregate": False,
    "normalise": False,
}


def world() -> tuple[Tiny, list[Any], list[Any], dict[str, Any]]:
    """A network, three subjects with their maps, and the same for Quantus."""
    net, inputs, maps = convolutional_net(), pictures(3), pixel_maps(3, SIDE)
    subjects = subjects_of(inputs)
    theirs = {
        "model": net.module,
        "x_batch": inputs.numpy().astype(np.float32),
        "y_batch": np.array([subject.target for subject in subjects]),
        "a_batch": np.stack([made.values for made in maps])[:, None],
        "device": "cpu",
        "channel_first": True,
    }
    return net, subjects, maps, theirs


def ours(net: Tiny, subjects: list[Any], maps: list[Any], name: str, **params: object) -> list[Any]:
    component = Component(name, params)
    return measured(net, [(s, m, component) for s, m in zip(subjects, maps, strict=True)])


def test_it_deletes_as_their_pixel_flipping() -> None:
    """Theirs has no state before the first step, counts scalars, and calls the image's minimum black."""
    net, subjects, maps, theirs = world()
    theirs["a_batch"] = np.repeat(theirs["a_batch"], 3, axis=1)
    step = SIDE * SIDE // 12
    order = np.stack([np.argsort(-made.values.ravel(), kind="stable") for made in maps])
    # Their order runs over scalars: the three of a pixel get neighbouring ranks.
    ranks = np.empty((3, SIDE * SIDE))
    np.put_along_axis(ranks, order, np.arange(SIDE * SIDE)[None].repeat(3, 0), 1)
    theirs["a_batch"] = np.stack([-3 * ranks - channel for channel in range(3)], 1).reshape(3, 3, SIDE, SIDE)
    flipping = quantus.PixelFlipping(features_in_step=3 * step, perturb_baseline=0.0, abs=False, **QUIET)
    curves = np.array(flipping(**theirs, softmax=True))
    numbers = ours(net, subjects, maps, "deletion", pixels_per_step=step)
    assert np.array([number.details["curve"][1:] for number in numbers]) == pytest.approx(curves, abs=2e-7)
    # Their area has unit steps and begins at the first change; it is the trapezoid of NumPy.
    first = np.array([sum(number.details["curve"][:2]) / 2 for number in numbers])
    areas = np.trapezoid(curves, axis=1)
    assert [number.value for number in numbers] == pytest.approx((areas + first) / 12, abs=1e-6)


def test_it_has_their_sparseness() -> None:
    net, subjects, maps, theirs = world()
    expected = quantus.Sparseness(abs=True, **QUIET)(**theirs)
    values = [number.value for number in ours(net, subjects, maps, "sparsity")]
    assert values == pytest.approx(expected, abs=1e-6)  # they add 1e-7 to every value


def test_it_has_their_complexity() -> None:
    net, subjects, maps, theirs = world()
    expected = quantus.Complexity(abs=True, **QUIET)(**theirs)
    values = [number.value for number in ours(net, subjects, maps, "entropy")]
    assert values == pytest.approx(expected, abs=1e-5)


def test_it_has_their_faithfulness_correlation_on_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    net, subjects, maps, theirs = world()
    bank = random_subsets(7, 3 * SIDE * SIDE, 224, 40)
    draws = iter(np.repeat(bank, len(subjects), axis=0))  # run-major: each run is drawn for every picture
    monkeypatch.setattr(np.random, "choice", lambda *_args, **_kwargs: next(draws))
    metric = quantus.FaithfulnessCorrelation(
        nr_runs=40, subset_size=224, perturb_baseline=0.0, abs=False, **QUIET
    )
    expected = metric(**theirs, softmax=False)
    assert next(draws, None) is None
    values = [number.value for number in ours(net, subjects, maps, "faithfulness_correlation", runs=40)]
    assert values == pytest.approx(expected, abs=1e-4)
    assert torch.tensor(values).abs().max() > 0.01


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_it_fills_in_as_their_imputation(share: float) -> None:
    picture = np.random.default_rng(3).random((3, 20, 20))
    hidden = np.random.default_rng(4).random((20, 20)) < share
    impute = import_module("quantus.functions.perturb_func").noisy_linear_imputation
    theirs = impute(picture, np.flatnonzero(hidden), noise=0.0)
    np.testing.assert_allclose(impute_pixels(picture, hidden), theirs, atol=1e-9)


@pytest.mark.parametrize(
    ("share", "theirs"),
    [
        ("mass", "RelevanceMassAccuracy"),
        ("rank", "RelevanceRankAccuracy"),
        ("top", "TopKIntersection"),
        ("point", "PointingGame"),
    ],
)
def test_it_localises_as_they_do(share: str, theirs: str) -> None:
    net, subjects, maps, given = world()
    regions = np.random.default_rng(8).random((3, SIDE, SIDE)) < 0.3
    fields = [PixelAttribution(np.abs(made.values), False) for made in maps]
    given |= {"s_batch": regions[:, None], "a_batch": np.stack([made.values for made in fields])[:, None]}
    settings = {"k": 40} if share == "top" else {}
    expected = getattr(quantus, theirs)(abs=False, **settings, **QUIET)(**given)
    beside = [replace(subject, region=region) for subject, region in zip(subjects, regions, strict=True)]
    params = {"top_share": 40 / SIDE**2} if share == "top" else {}
    values = [number.value for number in ours(net, beside, fields, "localisation", share=share, **params)]
    assert values == pytest.approx([float(value) for value in expected], abs=1e-6)
