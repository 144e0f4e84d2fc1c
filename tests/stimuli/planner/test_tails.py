"""The part of a network behind a layer, against the whole network with that layer's output replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stimuli.planner.asks import LayerScores
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.tails import Tail, cut
from stimuli.planner.values import Subject, Trace
from stimuli.types import Layout
from tests.stimuli.cam_networks import LABELS, deep_net, exported, residual_net
from tests.stimuli.tiny import Tiny, convolutional_net, pictures, pooled_net, seeded, token_net

pytestmark = pytest.mark.pure

CPU = torch.device("cpu")


def replaced(net: Tiny, layer: str, outputs: Tensor, picture: Tensor) -> Tensor:
    """Logits of the whole network for one picture, with the outputs of a layer replaced."""
    hook = net.layer_module(layer).register_forward_hook(lambda *_: outputs.clone())
    try:
        logits: Tensor = net.module(picture.expand(len(outputs), -1, -1, -1))
        return logits
    finally:
        hook.remove()


def past(tail: Tail, picture: Tensor) -> list[Tensor]:
    """The values that go around the layer for one picture, which runs in a batch with another."""
    beside = torch.stack([picture, torch.zeros_like(picture)])
    return [values[:1] for values in tail.around(beside)]


def outputs_of(net: Tiny, layer: str, count: int) -> Tensor:
    outputs: list[Tensor] = []
    hook = net.layer_module(layer).register_forward_hook(
        lambda _m, _i, output: outputs.append(output.clone())
    )
    net.module(pictures(count))
    hook.remove()
    return outputs[0]


THROUGH = [
    (convolutional_net, "0.0"),
    (pooled_net, "0"),
    (pooled_net, "0.2"),
    (deep_net, "0.1"),
    (residual_net, "1"),
    (token_net, "blocks.0"),
]
AROUND = [
    (residual_net, "1.first"),
    (residual_net, "2.second"),
    (token_net, "blocks.1.first"),
]
CASES = THROUGH + AROUND


@pytest.mark.long(stays="test_it_keeps_what_a_network_reads_of_the_picture_again")
@pytest.mark.parametrize(("make", "layer"), CASES)
def test_it_says_what_the_network_says_behind_the_layer(make: Callable[[], Tiny], layer: str) -> None:
    net = make()
    tail = cut(net, layer, CPU)
    assert tail is not None
    draws = torch.Generator().manual_seed(6)
    for count in (1, 2, 7):
        outputs = outputs_of(net, layer, count)
        changed = outputs * torch.rand(outputs.shape, generator=draws) * 3 - 0.5
        picture = pictures(8)[7]
        torch.testing.assert_close(
            tail(changed.contiguous(), past(tail, picture)),
            replaced(net, layer, changed, picture),
            atol=1e-5,
            rtol=1e-5,
        )


@pytest.mark.long(stays="test_it_cuts_an_exported_program")
@pytest.mark.parametrize(("make", "layer"), THROUGH)
def test_it_needs_nothing_else_where_everything_goes_through_the_layer(
    make: Callable[[], Tiny], layer: str
) -> None:
    tail = cut(make(), layer, CPU)
    assert tail is not None and tail.past is None


def test_it_cuts_no_layer_that_runs_twice() -> None:
    assert cut(residual_net(), "1.bend", CPU) is None


class Deciding(nn.Module):
    """Looks at a value to choose its next step."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.last = nn.Linear(4, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.first(inputs)
        if hidden.sum() > 0:
            hidden = hidden.relu()
        logits: Tensor = self.last(hidden.mean((2, 3)))
        return logits


def test_it_cuts_no_network_that_cannot_be_exported() -> None:
    net = Tiny(seeded(Deciding()), ("a", "b"), "first", {"first": Layout("maps", 4, 22, 22)})
    assert cut(net, "first", CPU) is None


class Remembering(nn.Module):
    """Reads the picture again at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.last = nn.Linear(7, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = torch.cat([self.first(inputs).relu().mean((2, 3)), inputs.mean((2, 3))], 1)
        logits: Tensor = self.last(hidden)
        return logits


def test_it_keeps_what_a_network_reads_of_the_picture_again() -> None:
    net = Tiny(seeded(Remembering()), ("a", "b"), "first", {"first": Layout("maps", 4, 22, 22)})
    tail = cut(net, "first", CPU)
    assert tail is not None
    outputs, picture = outputs_of(net, "first", 3), pictures(1)[0]
    torch.testing.assert_close(tail(outputs, past(tail, picture)), replaced(net, "first", outputs, picture))


class Turned(nn.Module):
    """Reads the picture again with its axes exchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.last = nn.Linear(7, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        turned = inputs.mean((2, 3)).T
        logits: Tensor = self.last(torch.cat([self.first(inputs).relu().mean((2, 3)).T, turned]).T)
        return logits


def test_it_cuts_no_network_around_which_goes_what_is_not_by_pictures() -> None:
    net = Tiny(seeded(Turned()), ("a", "b"), "first", {"first": Layout("maps", 4, 22, 22)})
    assert cut(net, "first", CPU) is None


def test_it_cuts_an_exported_program() -> None:
    plain = pooled_net()
    net = Tiny(nn.Sequential(exported(plain.module)), LABELS, "0.0")
    tail = cut(net, "0.0", CPU)
    assert tail is not None
    outputs = outputs_of(plain, "0", 3)
    torch.testing.assert_close(tail(outputs), plain.module(pictures(3)))


def test_it_does_not_write_into_what_it_is_given() -> None:
    net = deep_net()
    tail = cut(net, "0.1", CPU)
    assert tail is not None
    outputs = outputs_of(net, "0.1", 2)
    before = outputs.clone()
    tail(outputs)
    assert outputs.equal(before)


def test_it_shares_the_weights_and_leaves_the_network_as_it_was() -> None:
    net = deep_net()
    before = {name: value.clone() for name, value in net.module.state_dict().items()}
    tail = cut(net, "0", CPU)
    assert tail is not None
    places = {weights.data_ptr() for weights in net.module.parameters()}
    assert {weights.data_ptr() for weights in tail.behind.parameters()} <= places
    assert all(value.equal(before[name]) for name, value in net.module.state_dict().items())
    for part in net.module.modules():
        assert not part.training
        assert not part._forward_hooks


class Scaled:
    """A layer's output times 0, 1, 2, ..."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def make(self, activation: Tensor, places: Sequence[int]) -> Tensor:
        return activation * torch.tensor(places).view(-1, 1, 1, 1)


@pytest.mark.long(stays="test_it_keeps_a_layer_that_scores_wait_for_while_others_trace")
@pytest.mark.parametrize(("make", "layer"), CASES)
def test_it_serves_the_planner(make: Callable[[], Tiny], layer: str) -> None:
    """Scores behind a layer run through the tail alone, and are those of the whole network. What goes around
    the layer takes one more pass of each picture.
    """
    net = make()
    subjects = [Subject(1, f"image {at}", 7, layer, picture) for at, picture in enumerate(pictures(2))]

    def asking():  # type: ignore[no-untyped-def]
        yield Trace(layers=(layer,))
        return (yield LayerScores(layer, Scaled(5)))

    network = Network(net, rows=4)
    done = {
        outcome.name: outcome
        for outcome in drive([Job(subject.key, subject, asking) for subject in subjects], network)
    }
    assert network.bill.tails == 2 * 5
    assert network.bill.forwards == 2 * (1 + ((make, layer) in AROUND))
    for at, subject in enumerate(subjects):
        output = outputs_of(net, layer, 2)[at : at + 1]
        changed = output * torch.arange(5.0).view(-1, *[1] * (output.ndim - 1))
        if net.layouts[layer].prefix:
            changed[:, 0] = output[:, 0]
        expected = replaced(net, layer, changed, subject.pixels)[:, 1]
        np.testing.assert_allclose(done[subject.key].result, expected, atol=1e-5)


def test_it_keeps_a_layer_that_scores_wait_for_while_others_trace() -> None:
    """A second trace of the same picture does not take away what the first one kept."""
    net = deep_net()
    subject = Subject(1, "image", 7, "0", pictures(1)[0])

    def scoring():  # type: ignore[no-untyped-def]
        yield Trace(layers=("0",))
        return (yield LayerScores("0", Scaled(3)))

    def tracing():  # type: ignore[no-untyped-def]
        yield Trace(layers=("0.1",))
        yield Trace(layers=("0.1",), gradients=True)
        return "traced"

    jobs = [Job(name, subject, start) for name, start in (("scores", scoring), ("trace", tracing))]
    done = {outcome.name: outcome for outcome in drive(jobs, Network(net, rows=4))}
    assert done["trace"].result == "traced"
    assert done["scores"].error is None
    assert len(done["scores"].result) == 3
