"""A predictor is asked about the same data once, and its kept answers are what it said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.text.base import TextPredictor
from stimuli.spec import Component
from stimuli.spec_derivation import prepare, survey
from stimuli.store import LocalStore
from tests.stimuli import material
from tests.stimuli.test_pipeline_kinds import READER, SENTENCES

pytestmark = pytest.mark.pure
TRAINED = Component("trained_cnn", {"epochs": 1, "width": 2, "input_px": 32, "train_items": 8})
BIASED = Component("synthetic", {"scenario": "biased", "count": 16, "model_count": 32, "size_px": 64})
FOLDER = Component("folder", {"path": "images", "people_share": 1.0})
KINDS = {
    "pictures": (material.DATASET, material.PREDICTOR),
    "regions": (BIASED, TRAINED),
    "texts": (SENTENCES, READER),
}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each call of a predictor was about."""
    calls: list[int] = []
    for kind, name in ((TorchPredictor, "logits"), (TextPredictor, "text_logits")):
        real = getattr(kind, name)

        def counted(
            self: object, items: object, *more: object, real: object = real, **options: object
        ) -> object:
            calls.append(len(items))  # type: ignore[arg-type]
            return real(self, items, *more, **options)  # type: ignore[operator]

        monkeypatch.setattr(kind, name, counted)
    return calls


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_second_survey_asks_nothing_and_says_the_same(
    tmp_path: Path, store: LocalStore, asked: list[int], kind: str
) -> None:
    material.write_images(tmp_path)
    first = survey(prepare(*KINDS[kind], tmp_path, store), store)
    assert sum(asked) >= len(first) > 0
    before = {key: store.get(key) for key in store.keys("")}
    source = prepare(*KINDS[kind], tmp_path, store)
    asked.clear()
    assert survey(source, store) == first, "to the last bit of each logit"
    assert asked == [] and {key: store.get(key) for key in store.keys("")} == before


def test_other_data_are_asked_about(tmp_path: Path, store: LocalStore, asked: list[int]) -> None:
    material.write_images(tmp_path)
    first = survey(prepare(FOLDER, material.PREDICTOR, tmp_path, store), store)
    picture = next((tmp_path / "images").rglob("*.png"))
    shutil.copy(picture, picture.with_name("another.png"))
    picture.unlink()
    asked.clear()
    second = survey(prepare(FOLDER, material.PREDICTOR, tmp_path, store), store)
    assert sum(asked) == len(second) == len(first)
    assert {item.key for item in second} != {item.key for item in first}


def test_a_view_that_is_gone_is_made_again(tmp_path: Path, store: LocalStore, asked: list[int]) -> None:
    material.write_images(tmp_path)
    source = prepare(material.DATASET, material.PREDICTOR, tmp_path, store)
    first = survey(source, store)
    shutil.rmtree(tmp_path / "store" / "views")
    asked.clear()
    assert survey(source, store) == first and sum(asked) == len(first)
    assert any(key.startswith("views/") for key in store.keys(""))
