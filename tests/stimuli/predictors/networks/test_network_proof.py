"""A network that is taken answers alike in every run and batch; others are refused with two answers."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from stimuli.errors import BadSpec, ShapeMismatch, StimulusError
from stimuli.predictors import restore
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import PictureSettings
from stimuli.predictors.network_proof import TOLERANCE, Unrepeatable
from stimuli.spec import JsonValue
from tests.stimuli.predictors.test_predictors import opened
from tests.stimuli.tiny import SIDE, seeded

pytestmark = pytest.mark.pure
Middle = Callable[[Tensor], Tensor]


class Between(nn.Module):
    """Convolutions and a head, with `middle` between them: float (N, 8) to (N, 8)."""

    def __init__(self, middle: Middle, classes: int = 3) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.middle = middle
        self.head = nn.Linear(8, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        logits: Tensor = self.head(self.middle(self.features(pictures).mean((2, 3))))
        return logits


def assembled(network: nn.Module, labels: tuple[str, ...] = ("a", "b", "c")) -> TorchPredictor:
    return assemble(
        BuiltNetwork(seeded(network)),
        PictureSettings(SIDE),
        labels=labels,
        layer="",
        architecture={"kind": "none"},
        payload=b"",
        provenance={},
    )


def dropped_paths(rate: float) -> Middle:
    """Stochastic depth: the whole step falls out for the whole batch."""
    return lambda values: values + 3 * values * float(torch.rand(()) >= rate)


def counting() -> Middle:
    runs: list[int] = []

    def middle(values: Tensor) -> Tensor:
        runs.append(1)
        return values * len(runs)

    return middle


def own_generator() -> Middle:
    draws = torch.Generator().manual_seed(0)
    return lambda values: values + torch.randn(values.shape, generator=draws)


RANDOM: dict[str, Middle] = {
    "dropout": lambda values: functional.dropout(values, 0.5),
    "dropout of channels": lambda values: functional.dropout1d(values[None], 0.3)[0],
    "alpha dropout": lambda values: functional.alpha_dropout(values, 0.2, training=True),
    "a little noise": lambda values: values + 1e-5 * torch.randn_like(values),
    "noise": lambda values: values + 0.1 * torch.randn_like(values),
    "a rare drop": dropped_paths(1e-4),
    "stochastic depth": dropped_paths(0.2),
    "leaky": lambda values: functional.rrelu(values - 0.1, training=True),
    "sampling": lambda values: torch.bernoulli(values.sigmoid()),
    "Gumbel": lambda values: functional.gumbel_softmax(values, hard=True),
    "multinomial": lambda values: values * torch.multinomial(values.softmax(1), 1),
    "shuffled": lambda values: values[:, torch.randperm(8)],
    "Python's stochastic depth": lambda values: values * (1 + (random.random() < 0.2)),
    "Python's": lambda values: values * (1 + random.random()),
    "numpy's": lambda values: values * (1 + float(np.random.rand())),  # noqa: NPY002
    "a generator of its own": own_generator(),
    "a count": counting(),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_a_network_that_is_random_is_refused_with_two_answers(kind: str) -> None:
    network = Between(RANDOM[kind])
    state, others = torch.get_rng_state(), random.getstate()
    with pytest.raises(
        Unrepeatable, match=r"gives other answers at every run: for the same picture"
    ) as raised:
        assembled(network)
    numbers = re.findall(r"\(([-\d., e]+)\)", str(raised.value))
    assert len(numbers) == 2, "two answers of three labels are shown"
    assert numbers[0] != numbers[1] or kind == "a little noise"
    assert all(len(each.split(", ")) == 3 for each in numbers)
    assert torch.equal(torch.get_rng_state(), state) and random.getstate() == others
    assert "functional.dropout(x, p, training=self.training)" in str(raised.value)


def test_its_remedy_is_one() -> None:
    class Mended(Between):
        def forward(self, pictures: Tensor) -> Tensor:
            pooled = self.features(pictures).mean((2, 3))
            logits: Tensor = self.head(functional.dropout(pooled, 0.5, training=self.training))
            return logits

    assembled(Mended(torch.relu))


def test_a_program_that_was_exported_in_training_mode_is_refused(tmp_path: Path) -> None:
    """As deepchem 5092 and torch.export of a network without eval(): dropout, and statistics of the batch."""
    layers = {"dropout": nn.Dropout(0.5), "BatchNorm": nn.BatchNorm1d(8)}
    said = {"dropout": "gives other answers at every run", "BatchNorm": "when other rows stand in the batch"}
    for kind, layer in layers.items():
        network = seeded(Between(torch.relu))
        network.head = nn.Sequential(layer, nn.Linear(8, 2))
        for mode in (True, False):
            network.train(mode)
            shapes = ({0: torch.export.Dim("batch")},)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                program = torch.export.export(network, (torch.rand(2, 3, SIDE, SIDE),), dynamic_shapes=shapes)
                torch.export.save(program, tmp_path / "model.pt2")
            params: dict[str, JsonValue] = {"weights": "model.pt2", "input_px": SIDE, "labels": ["a", "b"]}
            if mode:
                with pytest.raises(Unrepeatable, match=said[kind]):
                    opened("torch_image", tmp_path, **params)
            else:
                opened("torch_image", tmp_path, **params)


BATCH: dict[str, Middle] = {
    "BatchNorm": nn.BatchNorm1d(8, track_running_stats=False),
    "in training mode": lambda values: functional.batch_norm(values, None, None, training=True),
    "scaled by the largest": lambda values: values / values.abs().max(),
    "its neighbour": lambda values: values + values.roll(1, 0),
}


@pytest.mark.parametrize("kind", BATCH)
def test_a_network_that_reads_its_batch_is_refused(kind: str) -> None:
    with pytest.raises(Unrepeatable, match=r"when other rows stand in the batch.* track_running_stats=True"):
        assembled(Between(BATCH[kind]))


def test_random_numbers_without_effect_are_taken() -> None:
    """As layers of transformers draw whether they are dropped, and then ask whether they are trained."""

    def middle(values: Tensor) -> Tensor:
        dropped = random.random() < 0.5, functional.dropout(values, 0.5)
        return values[: len(values) * len(dropped)]

    assembled(Between(middle))


@given(rate=st.sampled_from([0.0, 1e-6, 0.3, 1.0]), kind=st.sampled_from(["depth", "noise", "mean"]))
@settings(max_examples=25, deadline=None)
def test_any_two_calls_of_a_network_that_is_taken_agree(rate: float, kind: str) -> None:
    """In every company, with every draw: else it is refused."""
    middles: dict[str, Middle] = {
        "depth": dropped_paths(rate),
        "noise": lambda values: values + rate * torch.randn_like(values),
        "mean": lambda values: values + rate * values.mean(0),
    }
    try:
        predictor = assembled(Between(middles[kind]))
    except Unrepeatable:
        assert rate > 0
        return
    views = np.random.default_rng(0).integers(0, 256, (7, SIDE, SIDE, 3), dtype=np.uint8)
    first = predictor.logits(views)
    for batch in (7, 3, 1):
        apart = np.abs(predictor.logits(views, batch) - first).max()
        assert apart <= TOLERANCE * np.abs(first).max()


def test_a_study_that_has_one_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """A predictor of a study that was opened before is not drawn from as if nothing were."""
    old = opened("toy", input_px=SIDE)
    forward = "stimuli.predictors.image.toy.Quadrant.forward"
    monkeypatch.setattr(forward, lambda _network, pictures: torch.rand(len(pictures), 2))
    with pytest.raises(Unrepeatable, match="keeps the pictures that are stored, but none is drawn again"):
        restore(old.dump())


class Raising(Between):
    def __init__(self, error: Exception) -> None:
        super().__init__(torch.relu)
        self.error = error

    def forward(self, pictures: Tensor) -> Tensor:
        raise self.error


class Strange(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("logits"), "KeyError: 'logits'"),
        (IndexError(), "IndexError"),
        (AttributeError("no part"), "AttributeError: no part"),
        (NotImplementedError(), "NotImplementedError"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (Strange("lost\nand more"), "Strange: lost"),
        (StopIteration(), "StopIteration"),
    ],
)
def test_what_a_network_raises_becomes_a_sentence(error: Exception, said: str) -> None:
    words = re.escape(f"does not take a batch of 3 pictures of 3 x {SIDE} x {SIDE} ({said}); check input_px")
    with pytest.raises(ShapeMismatch, match=words):
        assembled(Raising(error))


def test_what_it_raises_later_does_too() -> None:
    """At pictures of people, which no proof can foresee."""

    def middle(values: Tensor) -> Tensor:
        if bool((values > 100).any()):
            raise LookupError("too bright")
        return values

    class Scaled(Between):
        def forward(self, pictures: Tensor) -> Tensor:
            logits: Tensor = self.head(self.middle(pictures.mean((2, 3)).repeat(1, 3)[:, :8] * 101))
            return logits

    predictor = assembled(Scaled(middle))
    views = np.full((2, SIDE, SIDE, 3), 255, np.uint8)
    with pytest.raises(ShapeMismatch, match=r"2 pictures of .* \(LookupError: too bright\)"):
        predictor.logits(views)


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), MemoryError()])
def test_errors_of_the_system_are_left_alone(error: Exception) -> None:
    with pytest.raises(type(error)):
        assembled(Raising(error))


def test_a_network_that_squeezes_its_batch_away_is_named() -> None:
    class Squeezing(Between):
        def forward(self, pictures: Tensor) -> Tensor:
            logits: Tensor = super().forward(pictures)
            return logits.squeeze()

    with pytest.raises(ShapeMismatch, match=r"returns \(3,\) for 1 pictures; .*a squeeze\(\) loses that row"):
        assembled(Squeezing(torch.relu))
    single = assembled(Squeezing(torch.relu, classes=1), ("a", "b"))  # one logit of one picture has no shape
    views = np.zeros((1, SIDE, SIDE, 3), np.uint8)
    assert single.logits(views).shape == (1, 2)


def test_a_network_that_runs_without_gradients_alone_says_so() -> None:
    class Choosy(Between):
        def forward(self, pictures: Tensor) -> Tensor:
            if torch.is_grad_enabled():
                raise RuntimeError("not now")
            return super().forward(pictures)

    assert assembled(Choosy(torch.relu)).no_gradient == "it does not run with gradients (not now)"


def test_refusals_are_of_one_kind() -> None:
    assert issubclass(Unrepeatable, BadSpec) and issubclass(BadSpec, StimulusError)
