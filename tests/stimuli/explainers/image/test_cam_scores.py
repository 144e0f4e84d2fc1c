"""ScoreCam and AblationCam: against pytorch-grad-cam, closed forms, and trying every channel by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stimuli.planner.network import Network, Precision
from stimuli.planner.values import Subject
from stimuli.types import Layout
from tests.stimuli.cam_networks import (
    deep_net,
    enlarged_by_torch,
    half_pixel,
    library_map,
    library_scaled,
    residual_net,
    scaled,
    steeper,
)
from tests.stimuli.tiny import Tiny, convolutional_net, explained, maps_of, pictures, pooled_net, token_net

pytestmark = pytest.mark.pure

SAME = 6e-6


def likely(net: Tiny, count: int = 3, layer: str = "") -> list[Subject]:
    """A few pictures, each with the label that the network names; its logit is above 0."""
    x = pictures(count)
    targets = net.module(x).argmax(1).tolist()
    return [Subject(targets[at], f"image-{at}", 7, layer, image) for at, image in enumerate(x)]


def by_hand(net: Tiny, subject: Subject, layer: str) -> Tensor:
    """Falls of the logit (C,) when a channel of the layer is set to 0 in the running network."""
    module, channels = net.layer_module(layer), net.layouts[layer].channels
    prefix = net.layouts[layer].prefix
    target = subject.target
    base, falls = float(net.module(subject.pixels[None])[0, target]), []
    for channel in range(channels):

        def without(_module: nn.Module, _inputs: object, output: Tensor, channel: int = channel) -> Tensor:
            changed = output.clone()
            if output.ndim == 4:
                changed[:, channel] = 0
            else:
                changed[:, prefix:, channel] = 0
            return changed

        hook = module.register_forward_hook(without)
        falls.append(base - float(net.module(subject.pixels[None])[0, target]))
        hook.remove()
    return torch.tensor(falls)


def activation_of(net: Tiny, subject: Subject, layer: str) -> Tensor:
    outputs: list[Tensor] = []
    hook = net.layer_module(layer).register_forward_hook(
        lambda _m, _i, output: outputs.append(output.clone())
    )
    net.module(subject.pixels[None])
    hook.remove()
    layout = net.layouts[layer]
    if layout.kind == "maps":
        return outputs[0][0]
    return outputs[0][0, layout.prefix :].T.reshape(layout.channels, layout.height, layout.width)


# AblationCam


def test_it_needs_no_trials_before_pooling_and_a_linear_layer() -> None:
    net = pooled_net()
    network = Network(net, rows=4)
    before = network.bill.copy()
    subjects = likely(net)
    done = explained(net, subjects, "ablation_cam", network=network)
    bill = network.bill.since(before)
    assert all(done[at, "ablation_cam"].result.checks == {"closed_form": 1.0} for at in range(3))
    assert (bill.forwards, bill.backwards, bill.tails) == (3, 3, 3 * (8 + 10))
    for at, subject in enumerate(subjects):
        expected = library_map("AblationCAM", net, subject.pixels, subject.target)
        np.testing.assert_allclose(scaled(done[at, "ablation_cam"].result.values), expected, atol=5e-5)


@pytest.mark.parametrize("layer", ["0", "0.2"])
def test_it_falls_as_far_as_when_every_channel_is_tried(layer: str) -> None:
    """Closed form behind the last layer, tails behind the first: both are what the running network does."""
    net = pooled_net()
    for subject, attribution in zip(
        likely(net), maps_of("ablation_cam", net, likely(net), layer=layer), strict=True
    ):
        falls = by_hand(net, subject, layer)
        coarse = (falls[:, None, None] * activation_of(net, subject, layer)).sum(0).relu().numpy()
        assert attribution.max() == pytest.approx(enlarged_by_torch(coarse).max(), rel=1e-3)
        np.testing.assert_allclose(scaled(attribution), library_scaled(coarse), atol=5e-5)


@pytest.mark.parametrize("make", [deep_net, residual_net, convolutional_net, token_net])
def test_it_tries_channels_where_the_logit_is_not_linear(make: Callable[[], Tiny]) -> None:
    net = make()
    layer = {"tokens": "blocks.0"}.get(
        net.layouts[net.layer].kind, "1" if make is residual_net else net.layer
    )
    subjects = likely(net, 2, layer)
    done = explained(net, subjects, "ablation_cam")
    for at, subject in enumerate(subjects):
        attribution = done[at, "ablation_cam"].result
        is_linear = make is convolutional_net  # pooling, then a linear layer, though not a global pooling
        assert attribution.checks == {"closed_form": float(is_linear)}
        falls = by_hand(net, subject, layer)
        coarse = (falls[:, None, None] * activation_of(net, subject, layer)).sum(0).relu().numpy()
        np.testing.assert_allclose(attribution.values, enlarged_by_torch(coarse), atol=1e-4 * coarse.max())


@pytest.mark.parametrize("make", [deep_net, residual_net])
def test_it_ablates_as_the_library_does(make: Callable[[], Tiny]) -> None:
    """If the smallest activation is 0; otherwise the library subtracts 1e7 and does not leave it out."""
    net = make()
    subjects = likely(net)
    for subject, attribution in zip(subjects, maps_of("ablation_cam", net, subjects), strict=True):
        expected = library_map("AblationCAM", net, subject.pixels, subject.target)
        np.testing.assert_allclose(scaled(attribution), expected, atol=5e-5)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_it_keeps_its_closed_form_when_scores_are_rounded(precision: Precision) -> None:
    """Falls of single channels would drown in rounding; those by the gradient are exact in any precision."""
    net = pooled_net()
    exact = maps_of("ablation_cam", net, likely(net))
    done = explained(net, likely(net), "ablation_cam", network=Network(net, precision=precision, rows=4))
    for at, values in enumerate(exact):
        assert done[at, "ablation_cam"].result.checks == {"closed_form": 1.0}
        np.testing.assert_allclose(done[at, "ablation_cam"].result.values, values, rtol=1e-6)


def test_it_does_not_turn_over_where_the_logit_is_negative() -> None:
    """A constant added to every logit changes no fall; dividing by the logit would change the map's sign."""
    net, low = pooled_net(), pooled_net()
    low.layer_module("3").get_parameter("bias").data -= 100.0
    plain, lowered = (maps_of("ablation_cam", each, likely(net)) for each in (net, low))
    assert plain.max() > 0
    np.testing.assert_allclose(lowered, plain, atol=1e-3 * plain.max())


def test_it_does_not_take_a_straight_stretch_for_a_line() -> None:
    """Close to the picture the network is linear; leaving channels out goes further than that."""
    net = deep_net()
    net.layer_module("2.0").get_parameter("bias").data += 0.5
    done = explained(net, likely(net, 1), "ablation_cam")
    assert done[0, "ablation_cam"].result.checks == {"closed_form": 0.0}


class Gelu(nn.Module):
    """2048 positive channels, global average pooling, GELU, one linear layer: bent, but gently."""

    def __init__(self) -> None:
        super().__init__()
        draws = torch.Generator().manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 2048, 3, stride=8), nn.ReLU())
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.bend = nn.GELU()
        self.head = nn.Linear(2048, 20)
        for weights in self.parameters():
            weights.data = torch.randn(weights.shape, generator=draws)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.bend(self.pool(self.features(x) * 0.4)))
        return logits


def bent_net() -> Tiny:
    module = Gelu().eval().requires_grad_(requires_grad=False)
    labels = tuple(f"label {at}" for at in range(20))
    return Tiny(module, labels, "features", {"features": Layout("maps", 2048, 3, 3)})


def test_it_does_not_take_a_gentle_bend_for_a_line() -> None:
    """The errors of a group of channels may cancel; the error of a single channel does not."""
    net, x = bent_net(), pictures(1)[0]
    subjects = [Subject(target, f"image-{target}", 7, "", x) for target in range(6)]
    done = explained(net, subjects, "ablation_cam", rows=256)
    assert [done[at, "ablation_cam"].result.checks for at in range(6)] == [{"closed_form": 0.0}] * 6
    activation = activation_of(net, subjects[0], "features")
    means = 0.4 * activation.mean((1, 2)).double()
    bent = means * (1 + torch.erf(means / 2**0.5)) / 2
    for at, subject in enumerate(subjects):
        falls = net.layer_module("head").get_parameter("weight")[subject.target].double() * bent
        coarse = (falls[:, None, None] * activation).sum(0).relu().numpy()
        values = done[at, "ablation_cam"].result.values
        np.testing.assert_allclose(values, enlarged_by_torch(coarse), atol=2e-3 * max(coarse.max(), 1e-6))


def test_it_believes_the_closed_form_of_a_wide_network() -> None:
    """The fall of one channel among 2048 is small compared with the rounding of the score, yet it counts."""
    net = bent_net()
    assert isinstance(net.module, Gelu)
    net.module.bend = nn.Identity()  # type: ignore[assignment]
    x = pictures(1)[0]
    subjects = [Subject(target, f"image-{target}", 7, "", x) for target in range(20)]
    done = explained(net, subjects, "ablation_cam", rows=256)
    assert [done[at, "ablation_cam"].result.checks for at in range(20)] == [{"closed_form": 1.0}] * 20


# ScoreCam


@pytest.mark.parametrize("make", [convolutional_net, pooled_net, deep_net, residual_net, token_net])
def test_it_weighs_masks_as_the_library_does(
    make: Callable[[], Tiny], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With half-pixel centres in the library too, which enlarges its masks corner to corner."""
    monkeypatch.setattr(torch.nn, "UpsamplingBilinear2d", half_pixel)
    net = steeper(make(), 10)
    subjects = likely(net)
    for subject, attribution in zip(subjects, maps_of("score_cam", net, subjects), strict=True):
        expected = library_map("ScoreCAM", net, subject.pixels, subject.target)
        np.testing.assert_allclose(scaled(attribution), expected, atol=5e-5)


def test_it_tries_equal_masks_once() -> None:
    """Channels that are equal, multiples of each other, or flat: one pass each; and flat ones are black."""
    net = pooled_net()
    weights, norm = net.layer_module("0.3").get_parameter("weight"), net.layer_module("0.4")
    assert isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None and norm.running_var is not None
    weights.data[1] = weights.data[0]
    for values in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
        values.data[1] = values.data[0]
    norm.weight.data[2:4], norm.bias.data[2:4] = 0.0, torch.tensor([0.0, 5.1])
    norm.bias.data[[4, 5]] = -100.0
    subject = likely(net, 1)[0]
    channels = activation_of(net, subject, "0").flatten(1)
    flat = [at for at, channel in enumerate(channels) if channel.max() - channel.min() < 1e-5]
    assert set(flat) >= {2, 3, 4, 5}
    network = Network(net, rows=4)
    before = network.bill.copy()
    (outcome,) = explained(net, [subject], "score_cam", network=network).values()
    distinct = len(channels) - len(flat) + 1 - (0 not in flat)
    assert network.bill.since(before).forwards == 1 + distinct

    masks = channels.view(-1, 12, 12)
    fine = half_pixel(size=(24, 24))(masks[None])[0]
    fine = fine - fine.amin((1, 2), keepdim=True)
    fine = fine / fine.amax((1, 2), keepdim=True).clamp(min=1e-9)
    fine[flat] = 0
    logits = net.module(subject.pixels * fine[:, None])[:, subject.target]
    coarse = (logits.softmax(0)[:, None, None] * masks).sum(0).relu().numpy()
    np.testing.assert_allclose(outcome.result.values, enlarged_by_torch(coarse), rtol=1e-4)


def test_it_weighs_all_channels_alike_where_the_network_sees_nothing() -> None:
    net = steeper(pooled_net(), 0)
    subjects = likely(net, 1)
    values = maps_of("score_cam", net, subjects)[0]
    coarse = activation_of(net, subjects[0], "0").mean(0).numpy()
    np.testing.assert_allclose(values, enlarged_by_torch(coarse), rtol=1e-5)
