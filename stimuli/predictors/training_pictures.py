"""What networks are trained on, pictures of the dataset's model split, how, and the key of a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.datasets.parallel_reading import side_by_side
from stimuli.errors import BadSpec
from stimuli.predictors.framing import square_view
from stimuli.spec import Component, content_key
from stimuli.types import Dataset, Item, Pixels, Progress

BATCH = 32
MEMBERS_MIN = 4
"""Pictures per class: a fifth is held out, by whole groups."""


@dataclass(frozen=True, slots=True)
class Examples:
    """`views` uint8 (N, H, W, 3), `targets` class indices (N,), `groups` N names of what belongs together."""

    views: Pixels
    targets: NDArray[np.int64]
    groups: list[str]


def training_key_of(
    settings: Mapping[str, Any], dataset: Component, content_digest: str, version: int
) -> str:
    """Names what a training gives: its settings, the dataset and its content, the version of the training."""
    return content_key(
        {
            "predictor": dict(settings),
            "dataset": dataset.as_json(),
            "content": content_digest,
            "version": version,
        }
    )


def read_examples(
    dataset: Dataset, seed: int, most: int, input_px: int, predictor: str, progress: Progress
) -> Examples:
    """The chosen pictures as squares of `input_px` pixels. BadSpec: see `choose_items`."""
    items = choose_items(dataset, seed, most, predictor)
    views = read_views(dataset, items, input_px, progress)
    targets = np.array([dataset.labels.index(item.truth) for item in items], dtype=np.int64)
    return Examples(views, targets, [item.group for item in items])


def read_views(dataset: Dataset, items: Sequence[Item], input_px: int, progress: Progress) -> Pixels:
    """The pictures as squares, uint8 (N, input_px, input_px, 3)."""
    views = np.empty((len(items), input_px, input_px, 3), dtype=np.uint8)
    seen = side_by_side(lambda item: square_view(dataset.pixels(item.key), input_px), items)
    for index, view in enumerate(seen):
        views[index] = view
        progress("reading pictures for training", index + 1, len(items))
    return views


def choose_items(dataset: Dataset, seed: int, most: int, predictor: str) -> list[Item]:
    """At most `most` pictures, classes in equal shares, drawn by seed, in the dataset's order. BadSpec for a
    class of fewer than MEMBERS_MIN; `predictor` is whose name it gives.
    """
    rng = np.random.default_rng([seed, 7])
    items = dataset.items("model")
    chosen: set[str] = set()
    for label in dataset.labels:
        members = [item.key for item in items if item.truth == label]
        if len(members) < MEMBERS_MIN:
            raise BadSpec(
                f'predictor {predictor}: class "{label}" has {len(members)} picture(s) for training, at '
                f"least {MEMBERS_MIN} are needed; add pictures or lower people_share"
            )
        share = max(MEMBERS_MIN, most // len(dataset.labels))
        chosen.update(str(key) for key in rng.permutation(members)[:share])
    return [item for item in items if item.key in chosen]


@dataclass(frozen=True, eq=False)
class Learning:
    """A network, what it is to put out, (N, ...), how far it is from that, and how fast it learns."""

    network: nn.Module
    wanted: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    epochs: int
    learning_rate: float
    weight_decay: float = 1e-2


def learn(
    learning: Learning, inputs: Tensor, shown: NDArray[np.int64], rng: np.random.Generator, progress: Progress
) -> int:
    """Fit the network in place to what is wanted of the pictures `shown`; returns the number of steps.

    Pictures are mirrored by the batch, and maps with them. Same pictures and generator, same weights.
    """
    network, wanted = learning.network, learning.wanted
    per_epoch = -(-len(shown) // BATCH)
    total = learning.epochs * per_epoch
    rate = learning.learning_rate
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=learning.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=total)
    network.train()
    step = 0
    for _epoch in range(learning.epochs):
        for chosen in np.array_split(rng.permutation(shown), per_epoch):
            x, y = inputs[chosen], wanted[chosen]
            if rng.random() < 0.5:
                x, y = x.flip(3), y.flip(3) if y.ndim == 4 else y
            loss = learning.loss(network(x), y)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            step += 1
            progress("training the network", step, total)
    network.eval()
    return step
