"""The small networks that are trained on the spot: seconds on two cores, repeatable by seed.

The same seed and pictures give the same weights on one machine, under every load and number of threads;
another processor may round differently, which is why a trained predictor is kept by content and not trained
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stimuli.errors import BadSpec
from stimuli.predictors.parameters import Downsampling
from stimuli.types import Pixels

TRAINING_VERSION = 1
BATCH = 32
JUDGED_AT_ONCE = 64
HELD_OUT_SHARE = 0.2
MIN_RECALL = 0.4
CHECKS_PER_EPOCH = 4
LABEL_SMOOTHING = 0.05
NORM_MOMENTUM = 0.25
"""Training is short: PyTorch's 0.1 would leave the running statistics behind the weights."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a small network is trained.

    `target_accuracy` (low, high), shares 0-1, asks for a deliberately weak network: after the first epoch,
    training stops at the first check whose held-out accuracy lies within, with every class recalled at least
    MIN_RECALL of the time. `downsampling`: see `small_network`. `mirrored`: half the steps, drawn by seed,
    see their pictures mirrored, left for right.
    """

    seed: int
    epochs: int
    width: int
    learning_rate: float
    target_accuracy: tuple[float, float] | None = None
    downsampling: Downsampling = "stride"
    mirrored: bool = True


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A trained network, with its accuracy on pictures that it was not trained on."""

    network: nn.Module
    held_out_accuracy: float
    held_out_count: int
    trained_count: int
    steps: int


def small_network(width: int, classes: int, downsampling: Downsampling = "stride") -> nn.Module:
    """Four convolutions, global average pooling, one linear layer; `features` puts out maps of 1/8 of the
    input.

    Takes float32 (N, 3, H, W), returns logits (N, classes). Few channels while the maps are large is what
    makes pictures large enough for people affordable. The weights are PyTorch's own initial ones.

    The first three stages halve the maps. "stride" does so by convolutions that step over every other pixel,
    which leave a grid of dots in every map of gradients; "average" by convolutions that step over none, each
    followed by a mean over 4 x 4 that steps by 2, so that all pixels weigh the same [Zhang 2019].
    """
    sizes = (3, max(1, width // 2), 2 * width, 3 * width, 4 * width)
    stage = _stage if downsampling == "stride" else _averaged_stage
    features = nn.Sequential(
        stage(sizes[0], sizes[1], kernel=5, stride=2),
        stage(sizes[1], sizes[2], kernel=3, stride=2),
        stage(sizes[2], sizes[3], kernel=3, stride=2),
        _stage(sizes[3], sizes[4], kernel=3, stride=1),
    )
    network = nn.Sequential()
    network.add_module("features", features)
    network.add_module("pool", nn.AdaptiveAvgPool2d(1))
    network.add_module("flat", nn.Flatten())
    network.add_module("head", nn.Linear(sizes[4], classes))
    return network


def _stage(inside: int, outside: int, *, kernel: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inside, outside, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(outside, momentum=NORM_MOMENTUM),
        nn.ReLU(),
    )


def _averaged_stage(inside: int, outside: int, *, kernel: int, stride: int) -> nn.Sequential:
    """Overlapping means: their frequency response is zero at the periods of two and four pixels."""
    mean = nn.AvgPool2d(2 * stride, stride=stride, padding=stride // 2, count_include_pad=False)
    return _stage(inside, outside, kernel=kernel, stride=1).append(mean)


def train(
    views: Pixels,
    targets: NDArray[np.int64],
    groups: Sequence[str],
    classes: int,
    recipe: Recipe,
    progress: Callable[[int, int], None],
) -> TrainedNetwork:
    """Train a small network on uint8 (N, H, W, 3) and class indices (N,); a fifth is held out, by whole
    groups.

    `progress` gets steps done and steps in all. Raises BadSpec when a class has too few pictures, or when
    no check lies within `target_accuracy`, naming what was reached.
    """
    rng = np.random.default_rng([recipe.seed, 11])
    held_out = hold_out(targets, groups, rng)
    inputs = (
        torch.from_numpy(np.ascontiguousarray(views.transpose(0, 3, 1, 2)))
        .float()
        .div_(255)
        .sub_(0.5)
        .div_(0.25)
    )
    labels = torch.from_numpy(targets)
    kept, shown = torch.from_numpy(np.flatnonzero(held_out)), np.flatnonzero(~held_out)
    with repeatable(recipe.seed):
        network = small_network(recipe.width, classes, recipe.downsampling)
        steps = _fit(network, (inputs, labels), (shown, kept), rng, recipe, progress)
    accuracy, _recall = _judge(network, inputs[kept], labels[kept])
    return TrainedNetwork(network.eval(), accuracy, len(kept), len(shown), steps)


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """Own random numbers, deterministic kernels and one thread, for sums depend on how they are split.

    These networks are so small that a second thread gains little.
    """
    deterministic, threads = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            torch.use_deterministic_algorithms(deterministic)


def hold_out(
    targets: NDArray[np.int64], groups: Sequence[str], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Per class a fifth of the groups, at least one and never all."""
    held_out = np.zeros(len(targets), dtype=bool)
    names = np.asarray(groups)
    for target in np.unique(targets):
        class_groups = np.unique(names[targets == target])
        if len(class_groups) < 2:
            raise BadSpec(
                f"class {int(target)} has {len(class_groups)} group(s) of pictures for training, at least 2 "
                "are needed; add pictures or lower people_share"
            )
        count = min(max(1, round(HELD_OUT_SHARE * len(class_groups))), len(class_groups) - 1)
        held_out |= (targets == target) & np.isin(names, rng.permutation(class_groups)[:count])
    return held_out


def _fit(
    network: nn.Module,
    data: tuple[Tensor, Tensor],
    sides: tuple[NDArray[np.int64], Tensor],
    rng: np.random.Generator,
    recipe: Recipe,
    progress: Callable[[int, int], None],
) -> int:
    """Optimise in place; returns the number of steps taken."""
    (inputs, labels), (shown, kept) = data, sides
    per_epoch = -(-len(shown) // BATCH)
    total = recipe.epochs * per_epoch
    check_every = max(1, per_epoch // CHECKS_PER_EPOCH)
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.learning_rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.learning_rate, total_steps=total)
    reached: list[float] = []
    step = 0
    for _epoch in range(recipe.epochs):
        for chosen in np.array_split(rng.permutation(shown), per_epoch):
            mirrored = rng.random() < 0.5 and recipe.mirrored
            _step(network, optimiser, inputs[chosen], labels[chosen], mirrored=mirrored)
            schedule.step()
            step += 1
            progress(step, total)
            if recipe.target_accuracy and step >= per_epoch and step % check_every == 0:
                _centre(network, inputs[shown], labels[shown])
                accuracy, recall = _judge(network, inputs[kept], labels[kept])
                reached.append(accuracy)
                if (
                    recipe.target_accuracy[0] <= accuracy <= recipe.target_accuracy[1]
                    and recall >= MIN_RECALL
                ):
                    progress(total, total)
                    return step
    if recipe.target_accuracy:
        low, high = recipe.target_accuracy
        raise BadSpec(
            f"no network with a held-out accuracy of {low:.2f} to {high:.2f} was met in "
            f"{recipe.epochs} epochs "
            f"(lowest {min(reached):.2f}, highest {max(reached):.2f}); change width, learning_rate, "
            "seed or the range"
        )
    return step


def _step(
    network: nn.Module, optimiser: torch.optim.Optimizer, inputs: Tensor, labels: Tensor, *, mirrored: bool
) -> None:
    network.train()
    outputs = network(inputs.flip(3) if mirrored else inputs)
    loss = functional.cross_entropy(outputs, labels, label_smoothing=LABEL_SMOOTHING)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()


def _parts(inputs: Tensor) -> Iterator[Tensor]:
    return (inputs[start : start + JUDGED_AT_ONCE] for start in range(0, len(inputs), JUDGED_AT_ONCE))


def _centre(network: nn.Module, inputs: Tensor, labels: Tensor) -> None:
    """Shift the last bias so that no class is favoured: else a weak network errs to one side only.

    A study that balances its items needs wrong answers of every kind.
    """
    network.eval()
    with torch.no_grad():
        logits = torch.cat([network(part) for part in _parts(inputs)])
        middles = [logits[labels == target].median(dim=0).values for target in torch.unique(labels)]
        network.get_submodule("head").bias.sub_(torch.stack(middles).mean(dim=0))  # type: ignore[operator]


def _judge(network: nn.Module, inputs: Tensor, labels: Tensor) -> tuple[float, float]:
    """Accuracy, and the lowest recall of any class; shares 0-1."""
    network.eval()
    with torch.no_grad():
        right = torch.cat([network(part).argmax(1) for part in _parts(inputs)]) == labels
    recalls = [float(right[labels == target].float().mean()) for target in torch.unique(labels)]
    return float(right.float().mean()), min(recalls)
