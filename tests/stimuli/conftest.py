"""One trained network per planted scenario, shared by all tests and workers of the run."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from stimuli.datasets.synthetic.cue_scenarios import SyntheticDataset, open_synthetic
from stimuli.planner import network
from stimuli.planner.tails import Tail, cut
from stimuli.predictors import open_predictor
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.interface import ImagePredictor
from stimuli.spec import Component
from tests.trained import trained_once

AVERAGED = {"downsampling": "average", "width": 8}
"""As the shipped studies ask for, with fewer and smaller pictures."""
RECIPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "lookalike": ({"model_count": 240, "size_px": 64}, {"epochs": 4, "train_items": 240, "input_px": 64}),
    "strategy": (
        {"model_count": 480, "size_px": 112},
        {"width": 8, "epochs": 12, "input_px": 112, "learning_rate": 0.005},
    ),
    "biased averaged": (
        {"model_count": 160, "size_px": 64},
        {**AVERAGED, "epochs": 4, "input_px": 64, "learning_rate": 0.005},
    ),
    "imperceptible averaged": (
        {"model_count": 240, "size_px": 64},
        {**AVERAGED, "epochs": 8, "input_px": 64, "learning_rate": 0.005},
    ),
}
PICTURES = 48


@dataclass(frozen=True)
class Planted:
    """A scenario with its trained network and what it says about the items for people."""

    dataset: SyntheticDataset
    predictor: TorchPredictor

    def answers(self) -> NDArray[np.int64]:
        return self._judge([self.dataset.pixels(item.key) for item in self.dataset.items("people")])

    def answers_after(self, what: str) -> NDArray[np.int64]:
        return self._judge([self.dataset.swap(item.key, what) for item in self.dataset.items("people")])

    def truths(self) -> NDArray[np.int64]:
        labels = self.dataset.labels
        return np.array([labels.index(item.truth) for item in self.dataset.items("people")])

    def _judge(self, pictures: list[NDArray[np.uint8]]) -> NDArray[np.int64]:
        views = [self.predictor.view(picture) for picture in pictures]
        return np.asarray(self.predictor.logits(views).argmax(axis=1), dtype=np.int64)


@cache
def _plant(name: str) -> Planted:
    dataset_params, predictor_params = RECIPES[name]
    scenario = name.split()[0]
    dataset = open_synthetic(
        Component("synthetic", {"scenario": scenario, "count": PICTURES, **dataset_params}), Path()
    )
    component = Component("trained_cnn", predictor_params)
    predictor = trained_once(
        f"planted-{name.replace(' ', '-')}", lambda: open_predictor(component, Path(), dataset)
    )
    assert isinstance(predictor, TorchPredictor)
    return Planted(dataset, predictor)


@pytest.fixture(scope="session")
def planted() -> Callable[[str], Planted]:
    return _plant


@pytest.fixture
def uncompiled_shap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package shap runs as the Python that it is written in: on small inputs its compiler takes longer
    than all the rest."""
    monkeypatch.setattr("numba.typed.List", list)
    for name, module in list(sys.modules.items()):
        # Its link functions are compared with one another, also as defaults that cannot be replaced.
        if name.partition(".")[0] != "shap" or name == "shap.links":
            continue
        for attribute, compiled in list(vars(module).items()):
            if hasattr(compiled, "py_func"):
                monkeypatch.setattr(module, attribute, compiled.py_func)


SMALL_NETS = ("torch.nn.", "tests.stimuli.tiny")
"""Where classes are at home of whose networks the printed form and the weights say everything."""


@pytest.fixture(scope="session", autouse=True)
def cut_once() -> Iterator[None]:
    """Equal small networks are cut at a layer once in a process: exporting one takes longer than to explain
    it. What cutting does is tested in test_tails.py."""
    made: dict[str, tuple[torch.nn.Module, Tail | None]] = {}

    def remembered(predictor: ImagePredictor, layer: str, device: torch.device) -> Tail | None:
        module = predictor.module
        if not all(type(part).__module__.startswith(SMALL_NETS) for part in module.modules()):
            return cut(predictor, layer, device)
        key = content_of(module, layer, predictor.input_px, device)
        # The tail has the weights of the network that it was cut from, which a test may have changed since.
        if key not in made or content_of(made[key][0], layer, predictor.input_px, device) != key:
            made[key] = (module, cut(predictor, layer, device))
        return made[key][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "cut", remembered)
        yield


def content_of(module: torch.nn.Module, *more: object) -> str:
    """A digest of all that a small network computes with."""
    digest = hashlib.sha256(repr((module, module.training, *more)).encode())
    for part in module.modules():
        digest.update(repr((type(part), len(part._forward_hooks), len(part._forward_pre_hooks))).encode())
    for name, values in module.state_dict().items():
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        digest.update(values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
