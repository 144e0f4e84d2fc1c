"""A trained scorer as a file, and a training that was killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from safetensors import safe_open

from stimuli.errors import BadRatings, BadSpec
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.scorer_file import LIMITS, EncoderCard, ScorerCard, load, save
from stimuli.preference.training import STATE_FILE, Keeping
from tests.stimuli.preferring import ENCODER, QUICK, card, fit_and_save, preference

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[3]


def written(path: Path, **others: Any) -> PreferenceScorer:
    X, y = preference()
    scorer = PreferenceScorer(**{**QUICK, "epochs": 3, **others}).fit(X, y)
    save(path, scorer, card(scorer))
    return scorer


def test_it_predicts_the_same_from_its_file(tmp_path: Path) -> None:
    X, y = preference()
    path = tmp_path / "deep" / "scorer.safetensors"
    scorer = written(path)
    saved = load(path)
    assert saved.predict(X, ENCODER).tobytes() == scorer.predict(X).tobytes()
    assert saved.card == card(scorer)
    one_column = PreferenceScorer(**QUICK).fit(X, y[:, 0])
    save(path, one_column, card(one_column))
    assert load(path).predict(X, ENCODER).shape == (len(X),)


def test_it_writes_the_same_bytes_by_the_same_seed(tmp_path: Path) -> None:
    """T19."""
    first, second, other = (tmp_path / f"{name}.safetensors" for name in ("a", "b", "c"))
    written(first)
    written(second, n_jobs=1)
    written(other, seed=1)
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()
    assert first.with_suffix(".json").read_bytes() == second.with_suffix(".json").read_bytes()


def test_it_carries_its_card_where_people_read_it(tmp_path: Path) -> None:
    path = tmp_path / "scorer.safetensors"
    written(path)
    told = json.loads(path.with_suffix(".json").read_text())
    assert set(told) == {
        "data", "split", "target", "label", "labels", "inputs", "encoder", "heads", "parameters", "scores",
        "licence", "limits",
    }  # fmt: skip
    assert told["limits"] == LIMITS
    assert {name: told["parameters"][name] for name in ("mse", "rank", "similarity")} == {
        "mse": 10.0, "rank": 0.01, "similarity": 0.01,
    }  # fmt: skip
    with safe_open(path, "numpy") as file:
        assert json.loads(file.metadata()["card"])["card"]["card"] == told
        assert file.get_tensor("weights.0").shape == (3, 9, 24)


def test_it_says_which_label_stood_beside_the_picture(tmp_path: Path) -> None:
    """T11: in the published files it is read off the file's name."""
    scorer = written(tmp_path / "scorer.safetensors")
    for label in ("truth", "predicted", "none"):
        path = tmp_path / f"{label}.safetensors"
        save(path, scorer, card(scorer, label=label))
        assert load(path).card.label == label
    with pytest.raises(ValidationError, match="label"):
        card(scorer, label="file name")
    with pytest.raises(ValidationError, match="label"):
        ScorerCard(**{name: value for name, value in card(scorer).model_dump().items() if name != "label"})


def test_it_refuses_the_embeddings_of_another_encoder(tmp_path: Path) -> None:
    """T19: also if they are as wide."""
    path = tmp_path / "scorer.safetensors"
    written(path)
    X, _ = preference()
    other = EncoderCard(name="clip", digest="b" * 64, size=9)
    with pytest.raises(BadRatings, match=r"of the encoder 'clip' \(digest bbbbbbbbbbbb….*'filters'.*embed"):
        load(path).predict(X, other)
    with pytest.raises(BadRatings, match="X has 5 features"):
        load(path).predict(X[:, :5], ENCODER)


CUT, CHANGED = ("cut", "cut in its header", "empty", "picture"), ("weight", "score", "digest")


def spoil(data: bytes, how: str) -> bytes:
    if how == "cut":
        return data[:-7]
    if how == "cut in its header":
        return data[:20]
    if how == "weight":
        return data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]
    if how == "score":
        return data.replace(b'\\"kappa\\":0.5', b'\\"kappa\\":0.9')
    if how == "digest":
        return data.replace(b"a" * 64, b"b" * 64)
    return {"empty": b"", "picture": b"\x89PNG" + bytes(60)}[how]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        *((how, "is cut off, or no file of this kind") for how in CUT),
        *((how, "was changed after it was written: its digest is") for how in CHANGED),
    ],
)
def test_it_refuses_a_file_that_was_cut_or_changed(tmp_path: Path, how: str, said: str) -> None:
    path = tmp_path / "scorer.safetensors"
    written(path)
    whole = path.read_bytes()
    path.write_bytes(spoil(whole, how))
    assert path.read_bytes() != whole
    with pytest.raises(BadSpec, match=f"{said}.*fit the scorer again"):
        load(path)


def test_it_refuses_to_save_and_load_what_is_no_scorer(tmp_path: Path) -> None:
    path = tmp_path / "scorer.safetensors"
    scorer = written(path)
    with pytest.raises(BadSpec, match="is not there: give the file"):
        load(tmp_path / "none.safetensors")
    with pytest.raises(BadRatings, match="ending in .safetensors"):
        save(tmp_path / "scorer.pkl", scorer, card(scorer))
    with pytest.raises(BadRatings, match="not fitted"):
        save(path, PreferenceScorer(), card(scorer))
    with pytest.raises(BadRatings, match="other parameters"):
        save(path, scorer, card(scorer, parameters={"seed": 1}))
    with pytest.raises(BadRatings, match="names 1 heads and the scorer has 3"):
        save(path, scorer, card(scorer, heads=card(scorer).heads[:1]))
    keep = Keeping(tmp_path, 1)
    PreferenceScorer(**{**QUICK, "epochs": 1}).fit(*preference(), keeping=keep)
    with pytest.raises(BadSpec, match="has a card that cannot be read"):
        load(keep.file)


def kill_after_the_fifth_epoch(folder: Path) -> None:
    program = (
        "from pathlib import Path\nfrom tests.stimuli.preferring import fit_and_save, stop_after_the_fifth\n"
        f"fit_and_save(Path({str(folder)!r}), stop_after_the_fifth)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(5)]
        process.send_signal(signal.SIGKILL)
    assert said == [1, 2, 3, 4, 5] and process.returncode == -signal.SIGKILL


def test_it_goes_on_after_a_kill_to_the_same_bytes(tmp_path: Path) -> None:
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    kill_after_the_fifth_epoch(broken)
    assert not (broken / "scorer.safetensors").exists()
    told: dict[str, list[int]] = {"whole": [], "broken": [], "again": []}
    bytes_of_whole = fit_and_save(whole, lambda done, total: told["whole"].append(done))
    assert fit_and_save(broken, lambda done, total: told["broken"].append(done)) == bytes_of_whole
    assert told["whole"][:6] == [1, 2, 3, 4, 5, 6]
    assert told["broken"] == told["whole"][4:]  # the state of the fourth epoch was the last to be kept
    assert fit_and_save(whole, lambda done, total: told["again"].append(done)) == bytes_of_whole
    assert told["again"] == []


def test_it_refuses_the_state_of_another_training(tmp_path: Path) -> None:
    X, y = preference()
    keep = Keeping(tmp_path, 1)

    def fit(**others: Any) -> PreferenceScorer:
        return PreferenceScorer(**{**QUICK, "epochs": 2, **others}).fit(X, y, keeping=keep)

    whole = fit().predict(X)
    assert (fit(n_jobs=1).predict(X) == whole).all()
    with pytest.raises(BadSpec, match="is the state of another training .*give another folder, or delete it"):
        fit(seed=1)
    y[0, 0] = 6 - y[0, 0] if y[0, 0] != 3 else 1
    with pytest.raises(BadSpec, match="is the state of another training"):
        fit()
    state = tmp_path / STATE_FILE
    state.write_bytes(state.read_bytes()[:-1])
    with pytest.raises(BadSpec, match="is cut off.*delete it, and the training begins anew"):
        fit()
    state.unlink()
    assert np.isfinite(fit().predict(X)).all()
