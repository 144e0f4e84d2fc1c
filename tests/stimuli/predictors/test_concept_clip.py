"""CLIP's concepts: similarities compared with the library's own, heads with scikit-learn."""

from __future__ import annotations

import shutil
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from tokenizers import Tokenizer

from stimuli.datasets import ContentDataset, open_dataset
from stimuli.errors import BadSpec
from stimuli.explainers import open_explainer
from stimuli.explainers.concepts.head_methods import FAR
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors import open_predictor, restore, training_key_of
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.concepts.head_interface import LinearHead, QdaHead
from stimuli.spec import Component
from stimuli.training import hold_out
from stimuli.types import ConceptAttribution, PixelAttribution, Pixels
from tests.stimuli.hub_models import MEAN, SIDE, STD, rewrite, save_clip

pytestmark = pytest.mark.pure
CONCEPTS = ("cat", "dog", "owl in wild", "photo")
Study = tuple[Path, Any, ContentDataset]
Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A model folder, and two classes of noise that lean to red and to blue."""
    folder = tmp_path_factory.mktemp("study")
    model = save_clip(folder / "net")
    for place, label in enumerate(("left", "right")):
        (folder / "images" / label).mkdir(parents=True)
        for number in range(30):
            picture = np.random.default_rng([place, number]).integers(0, 140, (SIDE, SIDE, 3), dtype=np.uint8)
            picture[..., 2 * place] += 100
            Image.fromarray(picture).save(folder / "images" / label / f"{number}.png")
    return folder, model, open_dataset(Component("folder", {"path": "images", "people_share": 0.2}), folder)


def load(study: Study, **params: object) -> TorchPredictor:
    settings = {"folder": "net", "concepts": list(CONCEPTS), **params}
    made = open_predictor(Component("clip_concepts", settings), study[0], study[2])
    assert isinstance(made, TorchPredictor)
    return made


def shown(study: Study) -> list[Pixels]:
    return [study[2].pixels(item.key) for item in study[2].items("people")]


def cosines(study: Study, prompt: str = "a photo of {}.") -> Floats:
    """The library's own logits for pictures and prompts together, without their scale."""
    folder, model, _ = study
    words = Tokenizer.from_file(str(folder / "net" / "tokenizer.json"))
    words.enable_padding(pad_id=0)
    encoded = words.encode_batch([prompt.format(concept) for concept in CONCEPTS])
    scaled = np.stack(shown(study)).transpose(0, 3, 1, 2).astype(np.float32) / 255
    mean, std = (np.array(values, np.float32)[None, :, None, None] for values in (MEAN, STD))
    with torch.no_grad():
        logits = model(
            input_ids=torch.tensor([encoding.ids for encoding in encoded]),
            attention_mask=torch.tensor([encoding.attention_mask for encoding in encoded]),
            pixel_values=torch.from_numpy((scaled - mean) / std),
        ).logits_per_image
        return np.asarray((logits / model.logit_scale.exp()).double().numpy())


def values_of(predictor: TorchPredictor, pictures: list[Pixels]) -> Floats:
    outputs: list[Floats] = []
    hook = predictor.concept_module().register_forward_hook(
        lambda _module, _inputs, output: outputs.append(output.detach().double().numpy())
    )
    try:
        predictor.logits([predictor.view(picture) for picture in pictures])
    finally:
        hook.remove()
    return np.concatenate(outputs)


@pytest.mark.parametrize("prompt", ["a photo of {}.", "{}"])
def test_it_takes_the_cosines_of_picture_and_prompts(study: Study, prompt: str) -> None:
    expected = cosines(study, prompt)
    assert np.ptp(expected, axis=1).min() > 1e-3
    np.testing.assert_allclose(values_of(load(study, prompt=prompt), shown(study)), expected, atol=2e-6)


@pytest.mark.parametrize("head", ["linear", "qda"])
def test_it_decides_by_the_head_on_its_values(study: Study, head: str) -> None:
    predictor = load(study, head=head)
    assert predictor.bottleneck is not None
    assert isinstance(predictor.bottleneck.head, LinearHead if head == "linear" else QdaHead)
    logits = predictor.logits([predictor.view(picture) for picture in shown(study)])
    expected = predictor.bottleneck.head.logits(values_of(predictor, shown(study)))
    np.testing.assert_allclose(logits, expected, rtol=2e-3, atol=2e-3)
    assert (predictor.bottleneck.kind, predictor.bottleneck.label) == ("clip", "")
    assert predictor.bottleneck.notes["held_out_accuracy"] >= 0.8


def test_it_fits_the_linear_head_as_scikit_learn_does(study: Study) -> None:
    """For two classes with twice the C, on the standardised values of what was not held out."""
    import sklearn.linear_model as linear_model

    bottleneck = load(study).bottleneck
    assert bottleneck is not None and isinstance(bottleneck.head, LinearHead)
    items = study[2].items("model")
    truths = np.array([study[2].labels.index(item.truth) for item in items])
    apart = hold_out(truths, [item.group for item in items], np.random.default_rng([0, 11]))
    samples, targets = bottleneck.samples, truths[~apart]
    scaled = (samples - samples.mean(0)) / samples.std(0)
    theirs = linear_model.LogisticRegression(C=2.0, tol=1e-8, max_iter=10000).fit(scaled, targets)
    weights = (bottleneck.head.weights[1] - bottleneck.head.weights[0]) * samples.std(0)
    np.testing.assert_allclose(weights, theirs.coef_[0], atol=5e-3)


@pytest.mark.parametrize("head", ["linear", "qda"])
def test_it_comes_back_to_the_bit_without_folder_and_tokenizer(study: Study, head: str) -> None:
    predictor = load(study, head=head)
    archive = predictor.dump()
    assert b"text_model" not in archive and b"token_embedding" not in archive
    back = restore(archive)
    assert isinstance(back, TorchPredictor) and back.bottleneck and predictor.bottleneck
    assert back.key == predictor.key and back.dump() == archive == load(study, head=head).dump()
    views = [predictor.view(picture) for picture in shown(study)]
    np.testing.assert_array_equal(back.logits(views), predictor.logits(views))
    np.testing.assert_array_equal(back.bottleneck.samples, predictor.bottleneck.samples)
    assert back.bottleneck.concepts == CONCEPTS


def explained(predictor: TorchPredictor, study: Study, method: str) -> list[Any]:
    inputs = predictor.inputs([predictor.view(picture) for picture in shown(study)[:3]])
    targets = predictor.module(inputs).argmax(dim=1).tolist()
    explainer = open_explainer(Component(method))
    explainer.require(predictor, predictor.layer)
    subjects = [
        Subject(target, f"k{at}", 1, predictor.layer, pixels)
        for at, (target, pixels) in enumerate(zip(targets, inputs, strict=True))
    ]
    jobs = [
        Job(at, subject, partial(explainer.explain, predictor, subject))
        for at, subject in enumerate(subjects)
    ]
    done = {outcome.name: outcome for outcome in drive(jobs, Network(predictor, rows=4))}
    assert all(outcome.error is None for outcome in done.values())
    return [(subjects[at].target, done[at].result) for at in range(len(subjects))]


def test_it_explains_the_linear_head_by_weights_and_similarities(study: Study) -> None:
    predictor = load(study)
    assert predictor.bottleneck is not None and isinstance(predictor.bottleneck.head, LinearHead)
    for (target, attribution), values in zip(
        explained(predictor, study, "clip_linear"), cosines(study), strict=False
    ):
        assert isinstance(attribution, ConceptAttribution) and attribution.concepts == CONCEPTS
        np.testing.assert_allclose(
            attribution.values, predictor.bottleneck.head.weights[target] * values, rtol=1e-3
        )


def test_it_explains_distributions_by_distances_that_change_the_answer(study: Study) -> None:
    predictor = load(study, head="qda")
    assert predictor.bottleneck is not None
    head = predictor.bottleneck.head
    changed = 0
    for (target, attribution), values in zip(
        explained(predictor, study, "clip_qda"), values_of(predictor, shown(study)[:3]), strict=True
    ):
        assert attribution.order == "ascending"
        for place, distance in enumerate(attribution.values):
            if distance < FAR:
                moves = np.zeros((4, len(values)))
                moves[:, place] = np.array([1.001, -1.001, 0.999, -0.999]) * distance
                said = head.logits(values + moves).argmax(axis=1)
                assert (said[:2] != target).any() and (said[2:] == target).all()
                changed += 1
    assert changed >= 3


@pytest.mark.parametrize("head", ["linear", "qda"])
def test_it_lets_methods_for_pictures_explain_it_too(study: Study, head: str) -> None:
    predictor = load(study, head=head)
    for method in ("saliency", "grad_cam"):
        for _, attribution in explained(predictor, study, method):
            assert isinstance(attribution, PixelAttribution) and attribution.values.any()


def test_it_names_its_fit_by_the_files_of_the_model(study: Study, tmp_path: Path) -> None:
    shutil.copytree(study[0] / "net", tmp_path / "net")
    data = Component("folder", {"path": "images"})

    @cache
    def key(folder: Path, head: str = "linear", digest: str = "d") -> str | None:
        return training_key_of(
            Component("clip_concepts", {"folder": "net", "head": head}), data, digest, folder
        )

    assert key(study[0]) == key(tmp_path) != key(tmp_path, "qda")
    assert key(tmp_path, digest="e") != key(tmp_path)
    before = key(tmp_path)
    rewrite(tmp_path / "net", "preprocessor_config.json", image_mean=[0.1, 0.1, 0.1])
    key.cache_clear()
    assert key(tmp_path) != before


def test_it_asks_the_dataset_for_concepts_where_none_are_given(study: Study, tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match="without concepts of its own: this dataset names no concepts"):
        load(study, concepts=[])
    shutil.copytree(study[0], tmp_path / "study")
    (tmp_path / "study" / "images" / "concepts.csv").write_text(
        "image,concept,value\nleft/0.png,owl,1\nleft/0.png,cat,1\n"
    )
    dataset = open_dataset(Component("folder", {"path": "images", "people_share": 0.2}), tmp_path / "study")
    made = load((tmp_path / "study", study[1], dataset), concepts=[])
    assert made.bottleneck is not None and made.bottleneck.concepts == ("cat", "owl")


def test_it_says_that_siglip_is_not_the_papers(study: Study, tmp_path: Path) -> None:
    save_clip(tmp_path / "net", form="siglip")
    made = load((tmp_path, None, study[2]))
    assert made.bottleneck is not None and "in the paper: CLIP" in made.bottleneck.label


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"prompt": "a photo"}, "write {} once"),
        ({"concepts": ["cat", "cat"]}, "every concept needs a name of its own"),
        ({"concepts": ["cat", " "]}, "every concept needs a name of its own"),
        ({"head": "tree"}, "'head' is 'tree', but must be one of linear, qda"),
        ({"folder": "elsewhere"}, "there is no such folder"),
        ({"fit_items": 4}, "'fit_items' is 4, but must lie between 8 and 20000"),
    ],
)
def test_it_refuses_what_makes_no_sense(study: Study, params: dict[str, object], words: str) -> None:
    with pytest.raises(BadSpec, match=words):
        load(study, **params)


def test_it_says_from_which_precision_the_weights_were_cast(study: Study, tmp_path: Path) -> None:
    for name in ("net", "images"):
        shutil.copytree(study[0] / name, tmp_path / name)
    save_clip(tmp_path / "net").half().save_pretrained(tmp_path / "net")
    made = load((tmp_path, *study[1:]))
    assert made.provenance["cast_from"] == "float16" and "cast_from" not in load(study).provenance
