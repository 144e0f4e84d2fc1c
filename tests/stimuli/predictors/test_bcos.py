"""B-cos: layers against loops over patches, explanations against their definition, training and archives."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stimuli.datasets.synthetic.cue_scenarios import open_synthetic
from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import open_explainer
from stimuli.planner.values import Subject
from stimuli.predictors import open_predictor, restore
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.files.weights import pack_weights
from stimuli.predictors.image.bcos_layers import (
    BcosConv2d,
    SixChannels,
    SquareNorm2d,
    bcos_network,
    scales_still,
)
from stimuli.predictors.image.trained_bcos import train_bcos, training_key
from stimuli.predictors.parameters import TrainedBcosParams
from stimuli.spec import Component
from tests.stimuli.tiny import SIDE, Tiny, explained, maps_of, pictures, pooled_net, seeded, subjects_of

pytestmark = pytest.mark.pure


def bcos_net(b: float = 2.0, max_out: int = 2) -> Tiny:
    module = seeded(bcos_network(3, 4, b, max_out))
    for part in module.modules():
        if isinstance(part, SquareNorm2d):
            part.running_square.copy_(torch.linspace(0.05, 0.3, len(part.running_square)))
    return Tiny(module, ("a", "b", "c", "d"))


def naive_layer(layer: BcosConv2d, x: Tensor) -> NDArray[np.float64]:
    """(channels, h, w) for one picture, by the definition: w.x |cos(x, w)|^(B-1), a patch at a time."""
    weight = layer.weight.detach().double().numpy()
    weight = weight / np.sqrt((weight**2).sum((1, 2, 3), keepdims=True))
    pad, side = layer.padding, weight.shape[-1]
    padded = np.pad(x.double().numpy(), ((0, 0), (pad, pad), (pad, pad)))
    places = range(0, padded.shape[1] - side + 1, layer.stride)
    outputs = np.zeros((layer.outside, len(places), len(places)))
    for i, top in enumerate(places):
        for j, left in enumerate(places):
            patch = padded[:, top : top + side, left : left + side]
            linear = (weight * patch).sum((1, 2, 3)).reshape(layer.outside, layer.max_out).max(1)
            cosine = np.abs(linear) / max(np.sqrt((patch**2).sum()), 1e-12)
            outputs[:, i, j] = linear * cosine ** (layer.b - 1)
    return outputs


@pytest.mark.parametrize(("b", "max_out"), [(1.0, 1), (2.0, 1), (2.0, 3), (2.5, 2)])
def test_it_computes_a_layer_as_defined(b: float, max_out: int) -> None:
    layer = cast("BcosConv2d", seeded(BcosConv2d(6, 4, kernel=3, stride=2, b=b, max_out=max_out)))
    x = torch.randn(1, 6, 9, 9, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(layer(x)[0].numpy(), naive_layer(layer, x[0]), atol=1e-5)


def test_it_does_not_care_for_the_length_of_a_weight() -> None:
    layer = cast("BcosConv2d", seeded(BcosConv2d(3, 4, kernel=3)))
    before = layer(pictures(1))
    layer.weight.mul_(7)
    torch.testing.assert_close(layer(pictures(1)), before)


def test_it_normalises_by_the_root_mean_square_and_adds_nothing() -> None:
    norm = SquareNorm2d(3, momentum=1.0)
    norm.weight.data = torch.tensor([1.0, 2.0, -1.0])
    x = 3 + torch.randn(8, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    expected = x / x.square().mean((0, 2, 3), keepdim=True).sqrt() * norm.weight.view(1, -1, 1, 1)
    torch.testing.assert_close(norm(x), expected)
    torch.testing.assert_close(norm.eval()(x), expected)
    assert not norm(torch.zeros(1, 3, 2, 2)).any()


def by_definition(net: Tiny, x: Tensor, target: int) -> tuple[Tensor, Tensor]:
    """W(x) and the coded picture, (6, H, W), with every layer written out and its scale taken as a number."""
    coded = torch.cat([x, 1 - x])[None].requires_grad_()
    flow = coded
    for part in net.module.modules():
        if isinstance(part, BcosConv2d):
            weight = functional.normalize(part.weight.flatten(1), dim=1).view_as(part.weight)
            linear = functional.conv2d(flow, weight, stride=part.stride, padding=part.padding)
            linear = torch.stack(torch.split(linear, part.max_out, 1)).amax(2).transpose(0, 1)
            patches = functional.unfold(flow, part.weight.shape[-1], stride=part.stride, padding=part.padding)
            length = patches.norm(dim=1).view(1, 1, *linear.shape[2:])
            flow = linear * ((linear.abs() / length) ** (part.b - 1)).detach()
        elif isinstance(part, SquareNorm2d):
            flow = flow / (part.running_square + 1e-6).sqrt()[:, None, None] * part.weight[:, None, None]
    return torch.autograd.grad(flow.mean((2, 3))[0, target], coded)[0][0], coded[0].detach()


@pytest.mark.parametrize(("b", "max_out"), [(2.0, 1), (2.0, 2), (1.5, 2)])
def test_it_shares_the_logit_out_exactly(b: float, max_out: int) -> None:
    net, x = bcos_net(b, max_out), pictures(2)
    done = explained(net, subjects_of(x), Component("bcos"))
    for at in range(2):
        matrix, coded = by_definition(net, x[at], at)
        result = done[at, "bcos"].result
        expected = (matrix * coded).sum(0).numpy()
        np.testing.assert_allclose(result.values, expected, atol=6e-5 * np.abs(expected).max())
        logit = float(net.module(x[at : at + 1])[0, at])
        assert float(result.values.sum(dtype=np.float64)) == pytest.approx(logit, rel=1e-5)
        assert result.checks["completeness_gap"] < 1e-5 and result.signed


def test_it_draws_positive_parts_or_lengths() -> None:
    net, x = bcos_net(), pictures(1)
    whole = maps_of("bcos", net, subjects_of(x))[0]
    positive = maps_of("bcos", net, subjects_of(x), drawn="positive")[0]
    np.testing.assert_array_equal(positive, whole.clip(min=0))
    matrix, coded = by_definition(net, x[0], 0)
    lengths = np.where((matrix * coded).sum(0) < 0, 0, matrix.square().sum(0).sqrt())
    alpha = maps_of("bcos", net, subjects_of(x), drawn="alpha", smooth_px=1)[0]
    np.testing.assert_allclose(alpha, lengths, atol=1e-5 * lengths.max())
    padded = np.pad(lengths, 2)
    expected = sum(padded[i : i + SIDE, j : j + SIDE] for i in range(5) for j in range(5)) / 25
    smooth = maps_of("bcos", net, subjects_of(x), drawn="alpha", smooth_px=4)[0]
    np.testing.assert_allclose(smooth, expected, atol=1e-5 * lengths.max())


def test_it_gives_the_plain_gradient_back() -> None:
    net, x = bcos_net(), pictures(1).requires_grad_()
    before = torch.autograd.grad(net.module(x)[0, 0], x)[0]
    with pytest.raises(RuntimeError, match="stop"), scales_still(net.module):
        still = torch.autograd.grad(net.module(x)[0, 0], x)[0]
        raise RuntimeError("stop")
    assert not torch.allclose(still, before, rtol=1e-3)
    torch.testing.assert_close(torch.autograd.grad(net.module(x)[0, 0], x)[0], before)


@pytest.mark.parametrize(
    "module",
    [
        nn.Sequential(SixChannels(), nn.Conv2d(6, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Sequential(SixChannels(), BcosConv2d(6, 4, kernel=3), nn.ReLU(), nn.Flatten()),
        nn.Sequential(BcosConv2d(3, 4, kernel=3), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        pooled_net().module,
    ],
)
def test_it_refuses_networks_with_other_layers(module: nn.Module) -> None:
    with pytest.raises(NotApplicable, match="B-cos layers alone.*trained_bcos"):
        open_explainer(Component("bcos")).require(Tiny(module, ("a", "b", "c", "d")), "")


def tinted(count: int = 120) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[str]]:
    """Noise that is redder or bluer in one quarter only."""
    rng = np.random.default_rng(0)
    targets = np.arange(count) % 2
    views = rng.integers(40, 150, (count, 32, 32, 3))
    for view, target in zip(views, targets, strict=True):
        view[:16, :16, 2 if target else 0] += 90
    return views.astype(np.uint8), targets.astype(np.int64), [str(n) for n in range(count)]


PARAMS = TrainedBcosParams(epochs=16, width=3, input_px=32, learning_rate=0.02)


def test_it_learns_and_points_at_what_it_learned() -> None:
    views, targets, groups = tinted()
    network, told = train_bcos(views, targets, groups, 2, PARAMS, lambda *_: None)
    assert told["held_out_accuracy"] >= 0.9 and (told["held_out_count"], told["trained_count"]) == (24, 96)
    net = Tiny(network.requires_grad_(False), ("red", "blue"), input_px=32)
    x = torch.from_numpy(views[:6].transpose(0, 3, 1, 2) / 255).float()
    subjects = [Subject(int(targets[at]), str(at), 1, image=x[at]) for at in range(6)]
    maps = maps_of("bcos", net, subjects, drawn="positive")
    quarter = maps[:, :16, :16].mean((1, 2))
    assert (quarter > 2 * maps[:, 16:, 16:].mean((1, 2))).all()


def test_it_trains_the_same_network_twice_and_leaves_global_state_alone() -> None:
    before = torch.get_rng_state()
    short = [PARAMS.model_copy(update={"epochs": 1, "seed": seed}) for seed in (0, 0, 1)]
    first, second, other = (
        pack_weights(train_bcos(*tinted(), 2, params, lambda *_: None)[0]) for params in short
    )
    assert first == second != other
    assert torch.equal(torch.get_rng_state(), before)


def test_it_comes_back_from_its_archive_and_is_explained_again() -> None:
    data = Component("synthetic", {"scenario": "biased", "count": 8, "model_count": 24})
    dataset = open_synthetic(data, Path())
    component = Component("trained_bcos", {"epochs": 1, "width": 2, "input_px": 32, "train_items": 24})
    predictor = cast("TorchPredictor", open_predictor(component, Path(), dataset))
    again = cast("TorchPredictor", restore(predictor.dump()))
    assert again.key == predictor.key and again.architecture["kind"] == "bcos"
    views = [predictor.view(dataset.pixels(item.key)) for item in dataset.items("people")[:2]]
    np.testing.assert_array_equal(again.logits(views), predictor.logits(views))
    done = explained(again, subjects_of(again.inputs(views)), Component("bcos"), Component("grad_cam"))
    assert all(outcome.error is None for outcome in done.values())
    for at in range(2):
        total = float(done[at, "bcos"].result.values.sum(dtype=np.float64))
        assert total == pytest.approx(float(predictor.logits(views)[at, at]), rel=1e-4)
    assert training_key(component, data, "x", Path()) != training_key(component, data, "y", Path())


def test_it_names_its_limits() -> None:
    with pytest.raises(BadSpec, match="'trained_bcos', parameter 'b' is 9.0, but must lie between 1 and 4"):
        training_key(Component("trained_bcos", {"b": 9.0}), Component("synthetic"), "x", Path())
