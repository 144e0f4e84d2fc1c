"""Batch, order, retry and bystanders cannot change a map; a call leaves no trace on the network."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from stimuli.explainers import EXPLAINERS, Batch, passes
from tests.stimuli.tiny import batch_of, convolutional_net, maps_of, pictures

pytestmark = pytest.mark.pure
every_method = pytest.mark.parametrize("name", sorted(EXPLAINERS))


@every_method
def test_it_gives_an_image_the_same_map_alone_and_in_a_batch(name: str) -> None:
    net, inputs = convolutional_net(), pictures(5)
    together = maps_of(name, net, batch_of(inputs))
    for i in range(5):
        np.testing.assert_array_equal(
            maps_of(name, net, batch_of(inputs[i : i + 1], first=i))[0], together[i]
        )


@every_method
def test_it_does_not_depend_on_the_order_of_a_batch(name: str) -> None:
    net, batch = convolutional_net(), batch_of(pictures(4))
    turned = Batch(batch.inputs.flip(0), batch.targets[::-1], batch.keys[::-1], batch.seeds[::-1])
    np.testing.assert_array_equal(maps_of(name, net, turned)[::-1], maps_of(name, net, batch))


@every_method
def test_it_returns_one_float32_map_per_image(name: str) -> None:
    maps = maps_of(name, convolutional_net(), batch_of(pictures(2)))
    assert maps.shape == (2, 24, 24)
    assert maps.dtype == np.float32
    assert maps_of(name, convolutional_net(), batch_of(pictures(2)[:0])).shape == (0, 24, 24)


@every_method
def test_it_leaves_the_network_and_the_inputs_as_they_were(name: str) -> None:
    net, batch = convolutional_net(), batch_of(pictures(2))
    before = {key: value.clone() for key, value in net.module.state_dict().items()}
    inputs, stream = batch.inputs.clone(), torch.get_rng_state()
    maps_of(name, net, batch)
    assert all(torch.equal(value, before[key]) for key, value in net.module.state_dict().items())
    assert not any(part.training for part in net.module.modules())
    assert not any(part._forward_hooks or part._backward_hooks for part in net.module.modules())
    assert all(weights.grad is None for weights in net.module.parameters())
    assert torch.equal(batch.inputs, inputs) and not batch.inputs.requires_grad
    assert torch.equal(torch.get_rng_state(), stream)


@every_method
def test_it_works_where_gradients_are_switched_off(name: str) -> None:
    net, batch = convolutional_net(), batch_of(pictures(1))
    with torch.no_grad():
        quiet = maps_of(name, net, batch)
    np.testing.assert_array_equal(quiet, maps_of(name, net, batch))


@pytest.mark.parametrize("name", ["smooth_grad", "random"])
def test_it_draws_by_key_and_seed_alone(name: str) -> None:
    net, x = convolutional_net(), pictures(1)
    first = maps_of(name, net, Batch(x, [0], ["a"], [1]))
    np.testing.assert_array_equal(maps_of(name, net, Batch(x, [0], ["a"], [1])), first)
    assert not np.array_equal(maps_of(name, net, Batch(x, [0], ["b"], [1])), first)
    assert not np.array_equal(maps_of(name, net, Batch(x, [0], ["a"], [2])), first)


def test_it_does_not_let_the_size_of_a_pass_change_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    net, batch = convolutional_net(), batch_of(pictures(1))
    usual = maps_of("smooth_grad", net, batch, draws=11)
    monkeypatch.setattr(passes, "MAX_PASSES", 3)
    np.testing.assert_allclose(maps_of("smooth_grad", net, batch, draws=11), usual, atol=1e-6)


def test_it_checks_explainers_without_torch() -> None:
    code = (
        "import sys; from stimuli.explainers import *; from stimuli.spec import Component\n"
        "import stimuli.pipeline\n"
        "[check_explainer(Component(name)) for name in EXPLAINERS]\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
