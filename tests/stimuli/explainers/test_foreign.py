"""The adapter gives what captum gives, seeded, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import captum.attr
import numpy as np
import pytest
import torch
from torch import nn

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import check_explainer, open_explainer
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.spec import Component
from tests.stimuli.tiny import (
    SIDE,
    Tiny,
    convolutional_net,
    explained,
    linear_net,
    maps_of,
    pictures,
    pooled_net,
    seeded,
    subjects_of,
    token_net,
)

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("ignore")]


def numpy_stream() -> list[int]:
    state: Any = np.random.get_state()
    return [int(word) for word in state[1]]


def refused(net: Tiny, match: str, **params: object) -> None:
    with pytest.raises(NotApplicable, match=match):
        open_explainer(Component("captum", params)).require(net, "")


@pytest.mark.parametrize(
    ("method", "arguments", "direct"),
    [
        ("Saliency", '{"abs": false}', {"abs": False}),
        ("IntegratedGradients", '{"n_steps": 9, "baselines": 0.5}', {"n_steps": 9, "baselines": 0.5}),
        ("DeepLift", "{}", {}),
        (
            "Occlusion",
            '{"sliding_window_shapes": [3, 6, 6], "strides": [3, 3, 3]}',
            {"sliding_window_shapes": (3, 6, 6), "strides": (3, 3, 3)},
        ),
    ],
)
def test_it_gives_what_captum_gives(method: str, arguments: str, direct: dict[str, Any]) -> None:
    net, x = pooled_net(), pictures(2)
    made = getattr(captum.attr, method)(net.module)
    expected = torch.cat([made.attribute(x[at : at + 1], target=at, **direct) for at in range(2)])
    maps = maps_of("captum", net, subjects_of(x), method=method, arguments=arguments)
    np.testing.assert_allclose(
        maps, expected.mean(1).detach().numpy(), atol=2e-6 if method == "Occlusion" else 1e-8
    )


def test_it_reads_layers_and_enlarges_their_maps() -> None:
    net, x = pooled_net(), pictures(1)
    layer = net.layer_module("0")
    coarse = captum.attr.LayerGradCam(net.module, layer).attribute(x, 0, relu_attributions=True)
    expected = nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")[0, 0]
    arguments = '{"relu_attributions": true}'
    maps = maps_of("captum", net, subjects_of(x), method="LayerGradCam", arguments=arguments)
    np.testing.assert_allclose(maps[0], expected.detach().numpy(), atol=1e-8)
    np.testing.assert_allclose(maps, maps_of("grad_cam", net, subjects_of(x)), atol=1e-7)


def test_it_brings_tokens_to_their_grid() -> None:
    net, x = token_net(), pictures(1)
    layer = net.layer_module("blocks.0")
    tokens = captum.attr.LayerGradientXActivation(net.module, layer).attribute(x, 0)
    coarse = tokens[:, 1:].sum(2).reshape(1, 1, 6, 6).detach()
    expected = nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")[0, 0]
    params: dict[str, Any] = {"method": "LayerGradientXActivation", "layer": "blocks.0", "channels": "sum"}
    maps = maps_of("captum", net, subjects_of(x), **params)
    np.testing.assert_allclose(maps[0], expected.numpy(), atol=1e-7)


def test_it_hides_squares_as_a_whole() -> None:
    net, x = linear_net(), pictures(1)
    weights = net.layer_module("1").get_parameter("weight")[0].reshape(3, SIDE, SIDE)
    squares = (weights * x[0]).sum(0).reshape(4, 6, 4, 6).sum((1, 3))
    expected = squares.repeat_interleave(6, 0).repeat_interleave(6, 1).numpy()
    for method in ("FeatureAblation", "ShapleyValueSampling"):
        values = maps_of("captum", net, subjects_of(x), method=method, parts=4)[0]
        np.testing.assert_allclose(values, expected, atol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {"method": "GradientShap", "arguments": '{"n_samples": 6, "stdevs": 0.2}'},
        {"method": "ShapleyValueSampling", "parts": 3, "arguments": '{"n_samples": 3}'},
        {
            "method": "Saliency",
            "noise_tunnel": True,
            "arguments": '{"nt_samples": 4, "stdevs": 0.2, "abs": false}',
        },
    ],
)
def test_it_seeds_what_draws(params: dict[str, Any]) -> None:
    net, x = convolutional_net(), pictures(1)[0]
    subjects = [Subject(0, key, seed, image=x) for key, seed in (("a", 1), ("b", 1), ("a", 2))]
    streams = torch.get_rng_state(), numpy_stream()
    first = maps_of("captum", net, subjects, **params)
    again = maps_of("captum", net, subjects[::-1], **params)[::-1]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[0], first[2])
    assert torch.equal(torch.get_rng_state(), streams[0])
    assert numpy_stream() == streams[1]


def test_it_takes_everything_away_that_a_method_hung_on_the_network() -> None:
    plain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 3, 1))
    net = Tiny(seeded(nn.Sequential(*plain, nn.AvgPool2d(1), Squeeze())), ("a", "b", "c"))
    before = {path: dict(vars(part)) for path, part in net.module.named_modules()}
    weights = {key: value.clone() for key, value in net.module.state_dict().items()}
    done = explained(net, subjects_of(pictures(1)), Component("captum", {"method": "LRP"}))[0, "captum"]
    assert isinstance(done.error, NotApplicable) and "Squeeze" in str(done.error)
    for path, part in net.module.named_modules():
        assert vars(part) == before[path]
        assert not part._forward_hooks and not part._forward_pre_hooks
    assert all(torch.equal(value, weights[key]) for key, value in net.module.state_dict().items())


class Squeeze(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, :, 0, 0]


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 3, 3)
        self.bend = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.bend(self.second(self.bend(self.first(x)))).mean((2, 3))
        return logits


def test_it_refuses_methods_that_are_wrong_on_reused_modules() -> None:
    net = Tiny(seeded(Twice()), ("a", "b", "c"))
    for method in ("DeepLift", "DeepLiftShap", "LRP"):
        refused(net, "'bend' is called more than once.*integrated_gradients", method=method)
    open_explainer(Component("captum", {"method": "Saliency"})).require(net, "")
    open_explainer(Component("captum", {"method": "DeepLift"})).require(pooled_net(), "")


def test_it_refuses_what_captum_does_not_have_or_cannot_do_here() -> None:
    net = pooled_net()
    refused(net, r"no method 'Salience' \(did you mean 'Saliency'\?\)", method="Salience")
    refused(net, "no method 'Attribution'", method="Attribution")
    refused(net, "set noise_tunnel = true", method="NoiseTunnel")
    refused(net, "explains a neuron", method="NeuronGradient")
    refused(net, "each is explained alone", method="FeaturePermutation")
    refused(net, "set parts, such as 8", method="FeatureAblation")
    refused(net, "all orders of 64 parts", method="ShapleyValues", parts=8)
    refused(
        net, "'steps' from a text: it takes .*n_steps", method="IntegratedGradients", arguments='{"steps": 3}'
    )
    refused(net, "reads layer 'block9'.*name one of 0.2, 0", method="LayerGradCam", layer="block9")
    refused(linear_net(), "name one of none", method="LayerGradCam")


def test_it_says_in_one_sentence_what_captum_says() -> None:
    with pytest.raises(
        NotApplicable, match="captum's Occlusion cannot explain this network: .*sliding_window"
    ):
        maps_of("captum", pooled_net(), subjects_of(pictures(1)), method="Occlusion")
    with pytest.raises(NotApplicable, match=r"shape \(1, 1, 12\), which is no map"):
        maps_of("captum", token_net(), subjects_of(pictures(1)), method="LayerGradCam")


def test_it_reads_its_arguments_as_one_json_object() -> None:
    loose, tight = ('{ "n_steps":7,"baselines" : 0.5}', '{"baselines":0.5,"n_steps":7}')
    full = check_explainer(Component("captum", {"arguments": loose}))
    assert full.params["arguments"] == tight
    for wrong in ("n_steps=7", "[1, 2]", '{"n_steps": NaN}'):
        with pytest.raises(BadSpec, match="no JSON object"):
            check_explainer(Component("captum", {"arguments": wrong}))


def test_it_puts_its_passes_on_the_bill() -> None:
    net = pooled_net()
    network = Network(net, rows=4)
    params = {"method": "IntegratedGradients", "arguments": '{"n_steps": 20}'}
    assert explained(net, subjects_of(pictures(1)), Component("captum", params), network=network)
    assert network.bill.forwards == 20
