"""Guided backpropagation against a rectifier written by hand; refused if captum would have no effect."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from stimuli.errors import NotApplicable
from stimuli.explainers import open_explainer
from stimuli.explainers.hook_requirements import calls_of
from stimuli.spec import Component
from tests.stimuli.tiny import Tiny, linear_net, maps_of, pictures, pooled_net, seeded, subjects_of, token_net

pytestmark = pytest.mark.pure


class Rectify(torch.autograd.Function):
    """ReLU whose backward pass lets only what is positive both ways through."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        positive: Tensor = x.clamp(min=0)
        return positive

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        guided: Tensor = gradients[0].clamp(min=0) * (x > 0)
        return guided


class Rectifier(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = Rectify.apply(x)  # type: ignore[no-untyped-call]
        return outputs


class Twice(nn.Module):
    """One rectifier, used after two convolutions."""

    def __init__(self, bend: nn.Module) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
        self.bend, self.head = bend, nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.bend(self.second(self.bend(self.first(x)))).mean((2, 3)))
        return logits


class Bare(Twice):
    """The same with functions in place of modules."""

    def __init__(self, bend: Any) -> None:
        super().__init__(nn.ReLU())
        self.function = bend

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.function(self.second(self.function(self.first(x)))).mean((2, 3)))
        return logits


def by_hand(module: nn.Module, x: Tensor, targets: list[int]) -> Tensor:
    guided = copy.deepcopy(module)
    for part in list(guided.modules()):
        for name, child in part.named_children():
            if isinstance(child, nn.ReLU):
                setattr(part, name, Rectifier())
    x = x.clone().requires_grad_()
    logits = guided(x)
    chosen = logits[torch.arange(len(x)), targets].sum()
    return torch.autograd.grad(chosen, x)[0].mean(1)


def twice(bend: nn.Module) -> Tiny:
    return Tiny(seeded(Twice(bend)), ("a", "b", "c"))


@pytest.mark.parametrize("net", [pooled_net(), twice(nn.ReLU()), twice(nn.ReLU(inplace=True))])
def test_it_is_the_gradient_through_rectifiers_written_by_hand(net: Tiny) -> None:
    x = pictures(3)
    maps = maps_of("guided_backprop", net, subjects_of(x))
    # By now the weights lie in memory as the planner wants them, which decides how sums are rounded.
    expected = torch.cat([by_hand(net.module, x[at : at + 1], [at]) for at in range(3)])
    np.testing.assert_array_equal(maps, expected.numpy())
    assert not np.allclose(maps, maps_of("captum", net, subjects_of(x), method="Saliency"))


@pytest.mark.parametrize(
    "net",
    [
        linear_net(),
        token_net(),
        twice(nn.GELU()),
        twice(nn.ReLU6()),
        Tiny(seeded(Bare(functional.relu)), ("a", "b", "c")),
        Tiny(seeded(Bare(functional.gelu)), ("a", "b", "c")),
        Tiny(seeded(nn.Sequential(nn.ReLU(), Bare(torch.relu_))), ("a", "b", "c")),
    ],
)
@pytest.mark.parametrize(
    "component", [Component("guided_backprop"), Component("captum", {"method": "GuidedBackprop"})]
)
def test_it_refuses_networks_whose_rectifiers_it_would_miss(net: Tiny, component: Component) -> None:
    with pytest.raises(NotApplicable, match="acts at ReLU modules.*Use a network"):
        open_explainer(component).require(net, "")


def test_it_counts_rectifiers_by_what_they_are() -> None:
    assert calls_of(pooled_net()).relus == 2
    reused = calls_of(twice(nn.ReLU()))
    assert (reused.relus, reused.functions, reused.reused) == (2, 0, ("bend",))
    bare = calls_of(Tiny(seeded(Bare(functional.relu)), ("a", "b", "c")))
    assert (bare.relus, bare.functions, bare.reused) == (0, 2, ())
    assert calls_of(twice(nn.LeakyReLU())).others == 2
