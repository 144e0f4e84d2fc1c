"""The only place that runs image networks: memory, padding, precision, and that no state remains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stimuli.errors import NotApplicable, ShapeMismatch, StimulusError
from stimuli.planner.network import CPU_BYTES, CPU_ROWS, CPU_TENSOR, Network
from stimuli.planner.values import ExplainedNumber, Trace
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from tests.stimuli.tiny import Tiny, convolutional_net, linear_net, pictures, pooled_net, seeded, token_net

pytestmark = pytest.mark.pure
WHOLE = Trace(layers=("0",), gradients=True, input_gradient=True)


class Narrow(nn.Module):
    """A network on a device whose memory holds `most` pictures; notes the sizes of its batches."""

    def __init__(self, inner: nn.Module, most: int, error: Callable[[], RuntimeError]) -> None:
        super().__init__()
        self.inner = inner
        self.most = most
        self.error = error
        self.sizes: list[int] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self.sizes.append(len(inputs))
        logits: Tensor = self.inner(inputs)
        if len(inputs) > self.most:
            raise self.error()
        return logits


def out_of_memory() -> RuntimeError:
    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def no_allocation() -> RuntimeError:
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory"
    )


def narrow(
    most: int, rows: int, error: Callable[[], RuntimeError] = out_of_memory
) -> tuple[Network, Narrow, Tiny]:
    """The narrow network, its module, and the same predictor with room enough."""
    net = convolutional_net()
    module = Narrow(net.module, most, error)
    layouts = {f"inner.{name}": layout for name, layout in net.layouts.items()}
    return Network(replace(net, module=module, layer="inner.0", layouts=layouts), rows=rows), module, net


def logits_of(*targets: int) -> list[ExplainedNumber]:
    return [ExplainedNumber(target) for target in targets]


@pytest.mark.parametrize("error", [out_of_memory, no_allocation])
def test_it_halves_its_rows_for_good_when_memory_runs_out(error: Callable[[], RuntimeError]) -> None:
    network, module, net = narrow(5, 16, error)
    x = pictures(14)
    logits = network.logits(x)
    np.testing.assert_allclose(logits, net.module(x), atol=1e-6)
    assert module.sizes == [16, 8, 4, 4, 4, 2]
    assert network.rows == 4
    network.logits(x[:4])
    assert module.sizes[6:] == [4]
    assert network.bill.forwards == 18


def test_it_halves_its_rows_in_every_kind_of_pass() -> None:
    x, targets = pictures(7), logits_of(0, 1, 2, 3, 0, 1, 2)
    ask = Trace(layers=("inner.0",), gradients=True, input_gradient=True)
    roomy = Network(convolutional_net(), rows=8)
    expected = roomy.trace(x, targets, WHOLE)

    network, _, _ = narrow(3, 8)
    for traced, other in zip(network.trace(x, targets, ask), expected, strict=True):
        np.testing.assert_allclose(traced.logits, other.logits, atol=1e-6)
        np.testing.assert_allclose(traced.gradients["inner.0"], other.gradients["0"], atol=1e-6)
        assert traced.input_gradient is not None and other.input_gradient is not None
        np.testing.assert_allclose(traced.input_gradient, other.input_gradient, atol=1e-6)
    assert network.rows == 2 and network.bill.backwards == 7

    network, _, _ = narrow(3, 8)
    np.testing.assert_allclose(network.gradients(x, targets), roomy.gradients(x, targets), atol=1e-6)
    assert network.rows == 2

    activation = expected[0].activations["0"]
    outputs = torch.stack([activation * share for share in torch.linspace(0, 1, 7)])
    network, _, _ = narrow(3, 8)
    logits = network.layer_logits("inner.0", outputs, activation, x[0])
    np.testing.assert_allclose(logits, roomy.layer_logits("0", outputs, activation, x[0]), atol=1e-5)


def test_it_says_when_not_even_one_picture_fits() -> None:
    network, module, _ = narrow(0, 4)
    with pytest.raises(StimulusError, match="one picture does not fit into memory: use a smaller network"):
        network.logits(pictures(3))
    assert module.sizes == [4, 2, 1]


def test_it_hands_other_errors_on() -> None:
    network, module, _ = narrow(3, 8, lambda: RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        network.logits(pictures(4))
    assert module.sizes == [4] and network.rows == 8


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (64, {1: 2, 2: 2, 3: 4, 4: 4, 5: 8, 7: 8, 8: 8, 9: 16, 33: 64, 64: 64}),
        (6, {1: 2, 3: 4, 5: 6, 6: 6}),
        (1, {1: 1}),
    ],
)
def test_it_pads_to_few_sizes(rows: int, sizes: dict[int, int]) -> None:
    for count, size in sizes.items():
        network, module, net = narrow(64, rows)
        x = pictures(count)
        logits = network.logits(x)
        assert module.sizes == [size]
        assert (network.bill.forwards, network.bill.padded) == (count, size - count)
        np.testing.assert_allclose(logits, net.module(x), atol=1e-6)


@pytest.mark.parametrize("make", [linear_net, convolutional_net, pooled_net, token_net])
def test_it_gives_a_picture_the_same_numbers_beside_any_others(make: Callable[[], Tiny]) -> None:
    network, x = Network(make(), rows=8), pictures(8)
    targets = logits_of(*(place % 3 for place in range(8)))
    turned = list(range(8))[::-1]
    logits, gradients = network.logits(x), network.gradients(x, targets)
    assert torch.equal(network.logits(x[turned])[turned], logits)
    assert torch.equal(network.gradients(x[turned], targets[::-1])[turned], gradients)
    alone = torch.cat([network.logits(x[at : at + 1]) for at in range(8)])
    np.testing.assert_allclose(alone, logits, atol=1e-6)


def wide_net() -> Tiny:
    """Enough products that a shorter mantissa shows."""
    module = nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=2),
        nn.Softplus(),
        nn.AdaptiveAvgPool2d(6),
        nn.Flatten(),
        nn.Linear(1152, 4),
    )
    return Tiny(seeded(module), ("a", "b", "c", "d"))


def test_it_stays_close_in_bfloat16() -> None:
    """Products of eight bits, sums of 24: one part in 256 each, 2 % of the largest value in all."""
    x, targets = pictures(6), logits_of(0, 1, 2, 3, 0, 1)
    exact, short = Network(wide_net(), rows=8), Network(wide_net(), precision="bfloat16", rows=8)
    for plain, reduced in (
        (exact.logits(x), short.logits(x)),
        (exact.gradients(x, targets), short.gradients(x, targets)),
    ):
        assert reduced.dtype == torch.float32
        gap = float((plain - reduced).abs().max() / plain.abs().max())
        assert 1e-6 < gap < 0.02


def test_it_traces_in_single_precision_with_copies_of_any_precision() -> None:
    x = pictures(3)
    asks = Trace(layers=("0",), gradients=True, input_gradient=True)
    plain = Network(wide_net(), rows=4)
    net = replace(wide_net(), layouts=convolutional_net().layouts)
    [first, *_] = Network(net, precision="bfloat16", rows=4).trace(x, logits_of(0, 1, 2), asks)
    np.testing.assert_array_equal(
        first.logits, plain.trace(x, logits_of(0, 1, 2), Trace(input_gradient=True))[0].logits
    )


def test_it_names_pictures_of_another_precision_differently() -> None:
    spec = StimulusSpec("i" * 64, "p" * 64, "0", 0, Component("saliency"), 2, 1, RenderSpec())
    keys = {
        replace(spec, precision=precision).attribution_key for precision in ("float32", "tf32", "bfloat16")
    }
    assert len(keys) == 3


def test_it_is_exact_where_the_processor_has_no_other_products() -> None:
    x = pictures(4)
    assert torch.equal(
        Network(wide_net(), precision="tf32", rows=4).logits(x), Network(wide_net(), rows=4).logits(x)
    )
    with pytest.raises(StimulusError, match="'float16' is not known: use one of float32, tf32, bfloat16"):
        Network(wide_net(), precision="float16")  # type: ignore[arg-type]


class Spare(nn.Module):
    """Per picture of 512 pixels each of `layers` steps keeps 1 MiB per channel, and nothing else is kept."""

    def __init__(self, layers: int, channels: int = 1) -> None:
        super().__init__()
        self.layers, self.channels = layers, channels
        self.table = nn.Embedding(1_000_000, 32)  # 122 MiB that no pass keeps
        self.head = nn.Linear(channels, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        maps = inputs.mean(1, keepdim=True).repeat(1, self.channels, 1, 1)
        for _ in range(self.layers):
            maps = nn.functional.softplus(maps)
        logits: Tensor = self.head(maps.mean((2, 3)))
        return logits


def test_it_takes_as_many_rows_as_memory_holds() -> None:
    fits = max(rows for rows in (2, 4, 8, 16, 32, 64) if rows * (60 << 20) <= CPU_BYTES)
    assert Network(Tiny(seeded(Spare(60)), ("a", "b"), input_px=512)).rows == fits == 16
    assert Network(linear_net()).rows == CPU_ROWS
    assert Network(linear_net(), rows=3).rows == 3


def test_it_keeps_each_tensor_of_a_batch_small_enough_to_be_used_again() -> None:
    fits = max(rows for rows in (2, 4, 8, 16, 32, 64) if rows * (5 << 20) < CPU_TENSOR)
    assert Network(Tiny(seeded(Spare(2, 5)), ("a", "b"), input_px=512)).rows == fits == 4
    assert Network(Tiny(seeded(Spare(1, 60)), ("a", "b"), input_px=512)).rows == 2


def state_of(module: nn.Module) -> dict[str, Any]:
    return {
        "training": [part.training for part in module.modules()],
        "requires_grad": [parameter.requires_grad for parameter in module.parameters()],
        "hooks": [
            (len(part._forward_hooks), len(part._forward_pre_hooks), len(part._backward_hooks))
            for part in module.modules()
        ],
        "grad": [parameter.grad for parameter in module.parameters()],
        "values": [tensor.clone().tolist() for tensor in module.state_dict().values()],
        "random": torch.get_rng_state().tolist(),
        "products": (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32),
        "gradients": torch.is_grad_enabled(),
    }


@pytest.mark.parametrize(
    ("make", "precision"), list(product((convolutional_net, pooled_net, token_net), ("float32", "bfloat16")))
)
def test_it_leaves_the_network_as_it_was(make: Callable[[], Tiny], precision: Any) -> None:
    net, x = make(), pictures(3)
    before = state_of(net.module)
    network = Network(net, precision=precision)
    layers = tuple(net.layouts)
    [first, *_] = network.trace(
        x, logits_of(0, 1, 2), Trace(layers, gradients=True, input_gradient=True, biases=True)
    )
    network.logits(x), network.gradients(x, logits_of(0, 1, 2))
    raw = first.raw.get(net.layer, first.activations[net.layer])
    network.layer_logits(net.layer, first.activations[net.layer][None], raw, x[0])
    assert state_of(net.module) == before


def test_it_takes_its_hooks_away_when_a_pass_fails() -> None:
    network, module, _ = narrow(0, 4, lambda: RuntimeError("broken"))
    before = state_of(module)["hooks"]
    with pytest.raises(RuntimeError, match="broken"):
        network.trace(pictures(2), logits_of(0, 1), Trace(("inner.0",), gradients=True, biases=True))
    with pytest.raises(NotApplicable, match="has no concepts; use a concept predictor"):
        network.trace(pictures(2), logits_of(0, 1), Trace(("inner.0",), concepts=True))
    with pytest.raises(RuntimeError, match="broken"):
        network.layer_logits("inner.0", torch.zeros(2, 8, 12, 12), torch.zeros(8, 12, 12), pictures(1)[0])
    assert state_of(module)["hooks"] == before


def test_it_replaces_a_layer_and_keeps_the_class_token() -> None:
    """The output itself put back gives the network's own logits; zeros those of a pass by hand."""
    net = token_net()
    network, x = Network(net, rows=4), pictures(1)
    [traced] = network.trace(x, logits_of(0), Trace(("blocks.1.first",)))
    activation, raw = traced.activations["blocks.1.first"], traced.raw["blocks.1.first"]
    changed = torch.stack([activation, torch.zeros_like(activation)])
    logits = network.layer_logits("blocks.1.first", changed, raw, x[0])
    np.testing.assert_allclose(logits[0], net.module(x)[0], atol=1e-6)

    module: Any = net.module
    with torch.no_grad():
        cells = module.patches(x).flatten(2).transpose(1, 2)
        tokens = module.blocks[0](torch.cat([module.first_token, cells], 1) + module.places)
        seen = module.blocks[1].first(tokens)
        seen[:, 1:] = 0
        tokens = tokens + module.blocks[1].attention(seen, seen, seen, need_weights=False)[0]
        tokens = tokens + module.blocks[1].mixer(module.blocks[1].second(tokens))
        expected = module.head(module.last(tokens)[:, 0])
    np.testing.assert_allclose(logits[1:], expected, atol=1e-5)


def test_it_bills_what_it_ran() -> None:
    network, x = Network(convolutional_net(), rows=4), pictures(3)
    ticks = iter(range(100))
    network.bill.clock = lambda: float(next(ticks))
    network.trace(x, logits_of(0, 1, 2), WHOLE)
    before = network.bill.copy()
    assert (before.forwards, before.backwards, before.padded, before.calls) == (3, 3, 1, 1)
    network.logits(x[:2])
    network.own(lambda: network.module(x), forwards=3)
    since = network.bill.since(before)
    assert (since.forwards, since.backwards, since.padded, since.calls) == (5, 0, 0, 2)
    assert since.network_s == 2.0  # two calls, one tick each


def test_it_says_when_a_network_no_longer_returns_logits() -> None:
    class Odd(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            return inputs

    with pytest.raises(ShapeMismatch, match="no longer returns logits"):
        Network(Tiny(Odd(), ("a", "b")), rows=2).logits(pictures(1))


def test_it_rounds_nothing_where_single_precision_is_asked_for() -> None:
    """The switches that a CUDA device obeys, read inside the pass; they can be read anywhere."""
    network = Network(convolutional_net(), rows=2)
    network.device = torch.device("cuda")  # only its kind is looked at
    before = torch.backends.cudnn.allow_tf32
    with network._exact():
        assert not torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32
        assert torch.backends.cudnn.deterministic
    assert torch.backends.cudnn.allow_tf32 == before
