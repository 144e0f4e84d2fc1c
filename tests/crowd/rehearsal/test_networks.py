"""The network that the demo brings along is the one that the shipped study's recipe gives."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from crowd.rehearsal import networks
from crowd.rehearsal.demo.defaults import USUAL
from experiments.study_files.load import find_study, load_study, material_folder
from stimuli.datasets import open_dataset
from stimuli.predictors import open_predictor, restore, training_key_of
from stimuli.predictors.files.packing import MAGIC
from stimuli.spec import Component
from stimuli.store import MemoryStore

pytestmark = pytest.mark.pure
FILES = sorted(networks.FOLDER.glob("*.bin"))


@cache
def recipe() -> tuple[Component, Component, Any]:
    """The dataset and predictor of the usual study, and the opened dataset."""
    path = find_study(USUAL, ())
    ((dataset, predictor),) = load_study(path).stimuli.sources.values()
    return (
        dataset.component(),
        predictor.component(),
        open_dataset(dataset.component(), material_folder(path)),
    )


def test_it_lies_where_the_trained_network_of_the_usual_study_is_looked_for() -> None:
    dataset, predictor, opened = recipe()
    key = training_key_of(predictor, dataset, opened.content_digest(), networks.FOLDER)
    assert [file.stem for file in FILES] == [key]
    store = MemoryStore()
    networks.lay_in(store)
    assert list(store.keys()) == [f"trained/{key}.bin"]


def test_it_is_small_and_no_pickle() -> None:
    for file in FILES:
        written = file.read_bytes()
        assert written.startswith(MAGIC) and len(written) < 100_000
        assert restore(written).dump() == written


def test_a_changed_recipe_has_another_name() -> None:
    dataset, predictor, opened = recipe()
    other = Component(predictor.name, {**predictor.params, "epochs": 5})
    key = training_key_of(other, dataset, opened.content_digest(), networks.FOLDER)
    assert key not in {file.stem for file in FILES}


@pytest.mark.long(stays="test_it_lies_where_the_trained_network_of_the_usual_study_is_looked_for")
def test_it_answers_as_the_network_that_is_trained_on_the_spot() -> None:
    """Weights may differ in their last bits between processors, so an answer on the edge may too."""
    dataset, predictor, opened = recipe()
    shipped: Any = restore(FILES[0].read_bytes())
    trained: Any = open_predictor(predictor, networks.FOLDER, opened)
    views = [shipped.view(opened.pixels(item.key)) for item in opened.items("people")]
    ours, theirs = shipped.logits(views), trained.logits(views)
    assert shipped.labels == trained.labels
    assert np.mean(ours.argmax(axis=1) == theirs.argmax(axis=1)) >= 0.95
    assert np.median(np.abs(ours - theirs)) < 0.1
