"""Many small networks ("heads": questions times seeds) trained side by side by batched products.

A head draws its first weights and its batches by its own seed, takes its own rows and stops by its own
validation, so that it becomes the same, up to rounding, in every company. Threads share the heads and not the
sums: the result does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stimuli.errors import BadRatings
from stimuli.preference.losses import LossWeights, Similarity, loss
from stimuli.preference.prediction_agreement import HIGHEST, LOWEST, Floats, kappa, mse

Output = Literal["linear", "relu"]
OUTPUTS: tuple[Output, ...] = get_args(Output)
Rows = NDArray[np.int64]
Arrays = dict[str, NDArray[np.generic]]
JUDGED_AT_ONCE = 4096
FIRST_OUTPUT = 0.5
"""The first bias of the output, in the middle of the scale: near 0 a head with "relu" could be born dead."""
STILL = 1e-6
"""A column that spreads by less than this share of its mean is constant but for rounding."""
MOMENTS = ("exp_avg", "exp_avg_sq")
"""What Adam keeps of each weight, by torch's names."""


@dataclass(frozen=True, slots=True)
class ScorerRecipe:
    """How heads are trained: the parameters of PreferenceScorer, explained there."""

    hidden: tuple[int, ...]
    weights: LossWeights
    similarity_over: Similarity
    output: Output
    standardise: bool
    learning_rate: float
    weight_decay: float
    batch: int
    epochs: int
    check_every: int
    patience: int | None


@dataclass(frozen=True, slots=True)
class RatedHead:
    """What a head learns from: `rows` (r,) of the embeddings with their `ratings` (r,), 1..5, and `held_rows`
    (v,) of the embeddings for validation with theirs; the latter are empty without validation.
    """

    seed: int
    rows: Rows
    ratings: Floats
    held_rows: Rows
    held_ratings: Floats


def forward(
    weights: Sequence[Tensor], views: tuple[Tensor, Tensor], inputs: Tensor, output: Output
) -> Tensor:
    """Shares of the scale, float32 (H, B): 0 = rating 1, 1 = rating 5, and not cut to that.

    `inputs` (H, B, D) are altered in place. `weights`: by layer (H, in, out) and (H, 1, out); `views`: what
    is taken from the embeddings and what they are multiplied by, each (H, 1, D).
    """
    inner = inputs.sub_(views[0]).mul_(views[1])
    for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
        inner = torch.relu(torch.bmm(inner, weight) + bias)
    # No product of matrices: one with a single column is rounded differently alone and in company.
    last = (inner * weights[-2].transpose(1, 2)).sum(dim=2) + weights[-1][:, 0]
    return torch.relu(last) if output == "relu" else last


def predict_ratings(
    weights: Sequence[Tensor], views: tuple[Tensor, Tensor], inputs: Tensor, output: Output
) -> Floats:
    """The ratings, 1..5, float64 (H, n), that heads give the rows of `inputs` (n, D)."""
    columns = []
    with torch.no_grad():
        for head in range(len(weights[0])):
            own_weights = [weight[head : head + 1] for weight in weights]
            own_views = (views[0][head : head + 1], views[1][head : head + 1])
            parts = [
                forward(own_weights, own_views, part[None].clone(), output)[0].cpu()
                for part in torch.split(inputs, JUDGED_AT_ONCE)
            ]
            columns.append(torch.cat(parts).double().numpy())
    return np.asarray(LOWEST + (HIGHEST - LOWEST) * np.clip(np.stack(columns), 0, 1))


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Sums in one thread, for they depend on how they are split."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class HeadBlock:
    """Some heads in training, with all that their next step depends on."""

    def __init__(
        self, inputs: Tensor, held: Tensor, heads: Sequence[RatedHead], recipe: ScorerRecipe
    ) -> None:
        """`inputs` float32 (n, D) and `held` float32 (m, D), the embeddings for validation, on one device."""
        self.inputs, self.held, self.heads, self.recipe = inputs, held, heads, recipe
        shift, scale = zip(*(_view(inputs, head.rows, recipe.standardise) for head in heads), strict=True)
        self.views = torch.stack(shift)[:, None], torch.stack(scale)[:, None]
        first = [_first_weights((inputs.shape[1], *recipe.hidden, 1), head.seed) for head in heads]
        self.weights = [torch.stack(layer).to(inputs.device) for layer in zip(*first, strict=True)]
        self.best = [weight.clone() for weight in self.weights]
        self.marks = {
            "epoch": np.zeros(len(heads)),
            "kappa": np.full(len(heads), -np.inf),
            "mse": np.full(len(heads), np.inf),
            "waited": np.zeros(len(heads)),
        }
        self.history = np.empty((len(heads), 0, 3))
        # A parameter of its own for each head: one without a gradient keeps its weights and moments.
        self.parts = [[weight[head] for weight in self.weights] for head in range(len(heads))]
        self.optimiser = torch.optim.Adam(
            [part for parts in self.parts for part in parts],
            lr=recipe.learning_rate,
            weight_decay=recipe.weight_decay,
            fused=True,
        )

    @property
    def active(self) -> list[int]:
        """The heads that have not used up their patience."""
        limit = self.recipe.patience
        return [h for h, waited in enumerate(self.marks["waited"]) if limit is None or waited < limit]

    def run(self, epoch: int) -> None:
        """Train the active heads through their rows, for the `epoch`-th time from 1; check them if due.

        Raises BadRatings for a head whose weights are no longer finite.
        """
        recipe, active = self.recipe, self.active
        orders = {
            h: np.random.default_rng([self.heads[h].seed, epoch]).permutation(len(self.heads[h].rows))
            for h in active
        }
        for start in range(0, max(map(len, orders.values()), default=0), recipe.batch):
            # Heads with equally many rows in this step go together, so that none has to be filled up.
            alike: dict[int, list[int]] = {}
            for h, order in orders.items():
                if count := len(order[start : start + recipe.batch]):
                    alike.setdefault(count, []).append(h)
            self.optimiser.zero_grad(set_to_none=True)
            for members in alike.values():
                self._learn(members, [orders[h][start : start + recipe.batch] for h in members])
            self.optimiser.step()
        for h in active:
            if not all(bool(torch.isfinite(part).all()) for part in self.parts[h]):
                raise BadRatings(
                    f"a head with seed {self.heads[h].seed} has no finite weights after epoch {epoch} at "
                    f"learning_rate = {recipe.learning_rate:g}: take a smaller one, or standardise = True"
                )
        if epoch % recipe.check_every == 0 or epoch == recipe.epochs:
            self._check(active, epoch)

    def _learn(self, members: list[int], chosen: list[Rows]) -> None:
        """Lay the gradients of a batch of each member beside its weights."""
        device = self.inputs.device
        pick = slice(None) if len(members) == len(self.heads) else members
        weights = [weight[pick].detach().requires_grad_() for weight in self.weights]
        views = self.views[0][pick], self.views[1][pick]
        rows = np.stack([self.heads[h].rows[order] for h, order in zip(members, chosen, strict=True)])
        ratings = np.stack([self.heads[h].ratings[order] for h, order in zip(members, chosen, strict=True)])
        wanted = torch.from_numpy((ratings - LOWEST) / (HIGHEST - LOWEST)).float().to(device)
        shares = forward(weights, views, self.inputs[torch.from_numpy(rows).to(device)], self.recipe.output)
        losses = loss(shares, wanted, self.recipe.weights, self.recipe.similarity_over)
        gradients = torch.autograd.grad(losses.sum(), weights)
        for place, h in enumerate(members):
            for part, gradient in zip(self.parts[h], gradients, strict=True):
                part.grad = gradient[place]

    def _check(self, active: Sequence[int], epoch: int) -> None:
        """Keep the weights of the heads that are better than before, by kappa and then by MSE."""
        row = np.full((len(self.heads), 1, 3), np.nan)
        row[:, 0, 0] = epoch
        for h in active:
            head = self.heads[h]
            if len(head.held_rows):
                answers = self._answers(h)
                row[h, 0, 1:] = kappa(answers, head.held_ratings), mse(answers, head.held_ratings)
                score = row[h, 0, 1], -row[h, 0, 2]
                is_better = score > (self.marks["kappa"][h], -self.marks["mse"][h])
            else:
                is_better, score = True, (np.nan, np.nan)
            self.marks["waited"][h] = 0 if is_better else self.marks["waited"][h] + 1
            if is_better:
                self.marks["epoch"][h], self.marks["kappa"][h], self.marks["mse"][h] = (
                    epoch,
                    score[0],
                    -score[1],
                )
                for kept, weight in zip(self.best, self.weights, strict=True):
                    kept[h] = weight[h]
        self.history = np.concatenate([self.history, row], axis=1)

    def _answers(self, h: int) -> Floats:
        rows = torch.from_numpy(self.heads[h].held_rows).to(self.held.device)
        weights = [weight[h : h + 1] for weight in self.weights]
        views = self.views[0][h : h + 1], self.views[1][h : h + 1]
        answers: Floats = predict_ratings(weights, views, self.held[rows], self.recipe.output)[0]
        return answers

    def trained(self) -> Arrays:
        """By name, heads first: "shift" and "scale" (H, D) of the embeddings; "weights.N" of the best epoch,
        by layer (H, in, out) and (H, 1, out); the "epoch", from 1, and its "kappa" and "mse" in the
        validation (H,); "history" (H, checks, 3): epoch, kappa, MSE, NaN after a head stopped.
        """
        arrays: Arrays = {"shift": _array(self.views[0][:, 0]), "scale": _array(self.views[1][:, 0])}
        arrays |= {f"weights.{place}": _array(kept) for place, kept in enumerate(self.best)}
        return arrays | self.marks | {"history": self.history}

    def state(self) -> Arrays:
        """All that `restore` needs to go on to the same weights, heads first."""
        arrays = self.trained()
        arrays |= {f"now.{place}": _array(weight) for place, weight in enumerate(self.weights)}
        adam = self.optimiser.state
        for place in range(len(self.weights)):
            for kind in MOMENTS:
                arrays[f"{kind}.{place}"] = np.stack([_array(adam[part[place]][kind]) for part in self.parts])
        steps = [float(adam[parts[0]]["step"]) for parts in self.parts]
        return arrays | {"steps": np.array(steps, dtype=np.float32)}

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Go on from what `state` gave for the same heads, embeddings and recipe."""
        for place, (weight, kept) in enumerate(zip(self.weights, self.best, strict=True)):
            weight.copy_(torch.from_numpy(state[f"now.{place}"]))
            kept.copy_(torch.from_numpy(state[f"weights.{place}"]))
        self.marks = {name: state[name].astype(np.float64) for name in self.marks}
        self.history = state["history"].astype(np.float64)
        device = self.inputs.device
        for h, parts in enumerate(self.parts):
            for place, part in enumerate(parts):
                moments = {kind: torch.from_numpy(state[f"{kind}.{place}"][h]) for kind in MOMENTS}
                step = torch.tensor(float(state["steps"][h]), dtype=torch.float32)
                self.optimiser.state[part] = {
                    name: value.clone().to(device) for name, value in {"step": step, **moments}.items()
                }


def _array(tensor: Tensor) -> NDArray[np.generic]:
    return tensor.detach().cpu().contiguous().numpy().copy()


def _view(inputs: Tensor, rows: Rows, is_standard: bool) -> tuple[Tensor, Tensor]:
    """What is taken from each column, and what it is multiplied by, each float32 (D,): by a head's own rows,
    never by those that it is tested on.
    """
    if not is_standard:
        return torch.zeros_like(inputs[0]), torch.ones_like(inputs[0])
    chosen = inputs[torch.from_numpy(rows).to(inputs.device)].double()
    spread, mean = torch.std_mean(chosen, dim=0, correction=0)
    is_still = spread <= STILL * mean.abs()
    return mean.float(), torch.where(is_still, 1.0, 1 / spread).float()


def _first_weights(sizes: Sequence[int], seed: int) -> list[Tensor]:
    """By layer (in, out) and (1, out), uniform within 1 / sqrt(in) as torch.nn.Linear draws them."""
    rng = np.random.default_rng([seed, 0])
    weights = []
    for inside, outside in zip(sizes[:-1], sizes[1:], strict=True):
        for shape in ((inside, outside), (1, outside)):
            drawn = rng.uniform(-1, 1, shape) / np.sqrt(inside)
            weights.append(torch.from_numpy(drawn.astype(np.float32)))
    weights[-1] = torch.full((1, 1), FIRST_OUTPUT)
    return weights
