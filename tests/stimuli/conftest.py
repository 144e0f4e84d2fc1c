"""One trained network per planted scenario, shared by all tests and workers of the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stimuli.datasets.synthetic.scenarios import SyntheticDataset, open_synthetic
from stimuli.predictors import open_predictor
from stimuli.predictors.base import TorchPredictor
from stimuli.spec import Component
from tests.trained import trained_once

AVERAGED = {"downsampling": "average", "width": 8, "epochs": 4}
"""As the shipped studies ask for, with fewer pictures."""
RECIPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "biased": ({"count": 48, "model_count": 240}, {"epochs": 4, "train_items": 240}),
    "lookalike": ({"count": 48, "model_count": 240}, {"epochs": 4, "train_items": 240}),
    "strategy": ({"count": 48, "model_count": 600}, {"epochs": 8, "train_items": 600}),
    "biased averaged": ({"count": 48, "model_count": 240}, {**AVERAGED, "train_items": 240}),
    "strategy averaged": (
        {"count": 48, "model_count": 600, "size_px": 112},
        {**AVERAGED, "epochs": 20, "input_px": 112, "learning_rate": 0.005},
    ),
    "imperceptible averaged": (
        {"count": 48, "model_count": 600},
        {**AVERAGED, "train_items": 320, "epochs": 6},
    ),
}


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
    dataset = open_synthetic(Component("synthetic", {"scenario": scenario, **dataset_params}), Path())
    component = Component("trained_cnn", predictor_params)
    predictor = trained_once(
        f"planted-{name.replace(' ', '-')}", lambda: open_predictor(component, Path(), dataset)
    )
    assert isinstance(predictor, TorchPredictor)
    return Planted(dataset, predictor)


@pytest.fixture(scope="session")
def planted() -> Callable[[str], Planted]:
    return _plant
