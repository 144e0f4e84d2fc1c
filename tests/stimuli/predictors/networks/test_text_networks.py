"""Networks of texts: proved before they are taken, with one logit for two labels, and what configs say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
import transformers
from numpy.typing import NDArray

from stimuli.datasets.lines import open_lines
from stimuli.errors import BadSpec, ShapeMismatch, StimulusError
from stimuli.planner.values import ExplainedNumber
from stimuli.predictors import open_predictor, restore
from stimuli.predictors.text.base import TextPredictor
from stimuli.spec import Component
from tests.stimuli.predictors.test_text_predictors import MIXED, model_folder, texts_file, transformer

pytestmark = pytest.mark.pure


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def test_it_takes_one_logit_for_two_labels(tmp_path: Path) -> None:
    """As of pictures: the softmax of what comes of it is the sigmoid of the library's logit."""
    place = model_folder(tmp_path, classifies=True, count=1)
    data = open_lines(texts_file(tmp_path), tmp_path)
    labels = ["bad", "good"]
    component = Component("transformers_text", {"path": "model", "labels": labels})
    net = open_predictor(component, tmp_path, data)
    assert isinstance(net, TextPredictor) and net.labels == tuple(labels)
    theirs = transformers.BertForSequenceClassification.from_pretrained(place).train(False)
    for text in MIXED:
        with torch.inference_mode():
            logit = theirs(input_ids=torch.tensor([net.network.tokens(text).ids])).logits.item()
        assert softmax(net.text_logits([text]))[0, 1] == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6)
    back = restore(net.dump())
    assert isinstance(back, TextPredictor)
    np.testing.assert_array_equal(back.text_logits(MIXED), net.text_logits(MIXED))
    trace = net.text_gradient("the cat sat", ExplainedNumber(1))
    assert np.isfinite(trace.gradients).all() and trace.gradients.any()
    three = Component("transformers_text", {"path": "model", "labels": ["a", "b", "c"]})
    with pytest.raises(ShapeMismatch, match="3 labels are given"):
        open_predictor(three, tmp_path, data)


def test_it_reads_weights_that_were_saved_inside_a_wrapper(tmp_path: Path) -> None:
    plain = transformer(tmp_path)
    file = tmp_path / "model" / "model.safetensors"
    state = safetensors.torch.load_file(file)
    safetensors.torch.save_file({f"module.{name}": value for name, value in state.items()}, file)
    data = open_lines(texts_file(tmp_path), tmp_path)
    assert open_predictor(Component("transformers_text", {"path": "model"}), tmp_path, data).key == plain.key


def test_it_reads_the_problem_that_a_model_was_trained_for(tmp_path: Path) -> None:
    place = model_folder(tmp_path, classifies=True)
    data = open_lines(texts_file(tmp_path), tmp_path)
    config = json.loads((place / "config.json").read_text())
    for problem in ("single_label_classification", "multi_label_classification", "regression"):
        (place / "config.json").write_text(json.dumps({**config, "problem_type": problem}))
        component = Component("transformers_text", {"path": "model"})
        if problem == "regression":
            with pytest.raises(BadSpec, match="regression.* are measures, not logits of classes"):
                open_predictor(component, tmp_path, data)
        else:
            told = open_predictor(component, tmp_path, data).provenance
            assert told.get("problem_type") == (problem if problem.startswith("multi") else None)


@pytest.mark.parametrize("kind", ["dropout", "batch", "KeyError"])
def test_it_proves_a_network_of_texts_too(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the networks of pictures: test_network_proof.py."""

    def forward(_network: object, embeddings: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if kind == "KeyError":
            raise KeyError("logits")
        pooled = (embeddings * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        logits = pooled[:, :3] * torch.arange(1, 4)
        return torch.nn.functional.dropout(logits, 0.5) if kind == "dropout" else logits - logits.mean(0)

    net = transformer(tmp_path)
    archive = net.dump()
    monkeypatch.setattr("stimuli.predictors.text.text_encoders.TextNetwork.forward", forward)
    said = {
        "dropout": "gives other answers at every run: for the same text .*keeps the pictures that are stored",
        "batch": "gives another answer when other rows stand in the batch: for the same text",
        "KeyError": r"does not take 3 texts \(KeyError: 'logits'\); use a BERT-like model",
    }
    with pytest.raises(StimulusError, match=said[kind]):
        restore(archive)
