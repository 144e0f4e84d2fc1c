"""A second study_check asks the model nothing (and the first does), and leaves no explanation behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowd.study_check.dry_run import dry_run
from experiments.study_files.load import load_study
from stimuli.predictors.base import TorchPredictor
from stimuli.store import open_store
from tests.world import silent, write_study

pytestmark = pytest.mark.django_db


def test_a_second_check_asks_the_model_nothing(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls = write_study(tmp_path / "study"), list[int]()
    real = TorchPredictor.logits

    def counted(self: TorchPredictor, views: object, batch: int = 64) -> object:
        calls.append(1)
        return real(self, views, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(TorchPredictor, "logits", counted)
    store = open_store(str(store_folder))
    first = dry_run(load_study(path), path.parent, store, silent)
    assert calls
    calls.clear()
    second = dry_run(load_study(path), path.parent, store, silent)
    assert calls == []
    assert (second.surveyed, second.plans, second.blind) == (first.surveyed, first.plans, first.blind)
    rooms = {key.partition("/")[0] for key in store.keys("")}
    assert {"surveys", "predictors"} <= rooms and not rooms & {"maps", "pictures"}
