"""Networks that learn concepts during the test: their accuracy, what they follow, and their restoring."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from stimuli.datasets import open_dataset
from stimuli.datasets.synthetic.cue_scenarios import SyntheticDataset, open_synthetic
from stimuli.errors import BadSpec
from stimuli.explainers import open_explainer
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors import open_predictor, restore, training_key_of
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.concepts.head_interface import LinearHead
from stimuli.predictors.concepts.part_detector import heat_maps, seen_parts
from stimuli.predictors.framing import square_view
from stimuli.spec import Component
from stimuli.types import ConceptAttribution, Part, PixelAttribution, Pixels
from tests.trained import trained_once

pytestmark = pytest.mark.pure
RECIPE = {"epochs": 6, "train_items": 200, "input_px": 64, "width": 8}
NAMES = ("concept_bottleneck", "part_concepts")
CUES = {"meadow", "snow"}
Floats = NDArray[np.float64]


@cache
def scenario(count: int = 200) -> SyntheticDataset:
    params = {"scenario": "biased", "count": 48, "model_count": count, "size_px": 64}
    return open_synthetic(Component("synthetic", params), Path())


@cache
def trained(name: str) -> TorchPredictor:
    made = trained_once(name, lambda: open_predictor(Component(name, RECIPE), Path(), scenario()))
    assert isinstance(made, TorchPredictor)
    return made


def seen(predictor: TorchPredictor, pictures: list[Pixels]) -> tuple[Floats, Floats]:
    """Concept values and logits of pictures."""
    outputs: list[Floats] = []
    hook = predictor.concept_module().register_forward_hook(
        lambda _module, _inputs, output: outputs.append(output.detach().double().numpy())
    )
    try:
        logits = predictor.logits([predictor.view(picture) for picture in pictures])
    finally:
        hook.remove()
    return np.concatenate(outputs), logits.astype(np.float64)


@cache
def people(what: str = "") -> list[Pixels]:
    dataset = scenario()
    items = dataset.items("people")
    return [dataset.swap(item.key, what) if what else dataset.pixels(item.key) for item in items]


@pytest.mark.parametrize("name", NAMES)
def test_it_decides_by_the_values_of_its_concepts_alone(name: str) -> None:
    predictor = trained(name)
    assert predictor.bottleneck is not None
    values, logits = seen(predictor, people())
    np.testing.assert_allclose(predictor.bottleneck.head.logits(values), logits, atol=2e-5)
    assert (values >= 0).all() and (values <= 1).all()
    assert values.shape[1] == len(predictor.bottleneck.concepts) == predictor.bottleneck.samples.shape[1]


@pytest.mark.parametrize("name", NAMES)
def test_it_reaches_its_classes_where_the_cue_agrees(name: str) -> None:
    predictor = trained(name)
    assert predictor.bottleneck is not None
    assert predictor.bottleneck.notes["held_out_accuracy"] >= 0.95
    assert predictor.provenance["held_out_accuracy"] == predictor.bottleneck.notes["held_out_accuracy"]
    assert "in the paper" in predictor.bottleneck.label


@pytest.mark.parametrize("name", NAMES)
def test_it_follows_the_planted_background_and_not_the_animal(name: str) -> None:
    """The intervention, and through which concepts it goes."""
    predictor = trained(name)
    assert predictor.bottleneck is not None
    values, logits = seen(predictor, people())
    said = logits.argmax(axis=1)
    exchanged, after = seen(predictor, people("background"))
    assert np.mean(after.argmax(axis=1) != said) >= 0.8
    assert np.mean(seen(predictor, people("animal"))[1].argmax(axis=1) != said) <= 0.2
    moved = np.abs(exchanged - values).mean(axis=0)
    concepts = predictor.bottleneck.concepts
    planted = [concepts.index(cue) for cue in sorted(CUES)]
    assert moved[planted].min() > 0.25 > moved[concepts.index("open mouth")]


def test_it_weighs_the_planted_concepts_most() -> None:
    head = bottleneck_head("concept_bottleneck")
    concepts = trained("concept_bottleneck").bottleneck
    assert concepts is not None
    order = np.argsort(-np.abs(head.weights[0]))
    assert {concepts.concepts[place] for place in order[:2]} == CUES
    snow = head.weights[:, concepts.concepts.index("snow")]
    assert snow[1] > 0 > snow[0]  # it speaks for the wolf


def bottleneck_head(name: str) -> LinearHead:
    bottleneck = trained(name).bottleneck
    assert bottleneck is not None and isinstance(bottleneck.head, LinearHead)
    return bottleneck.head


@pytest.mark.parametrize("name", NAMES)
def test_it_comes_back_to_the_bit(name: str) -> None:
    predictor = trained(name)
    back = restore(predictor.dump())
    assert isinstance(back, TorchPredictor) and back.bottleneck and predictor.bottleneck
    assert back.key == predictor.key and back.dump() == predictor.dump()
    for restored, other in zip(seen(back, people()), seen(predictor, people()), strict=True):
        np.testing.assert_array_equal(restored, other)
    np.testing.assert_array_equal(back.bottleneck.samples, predictor.bottleneck.samples)
    assert back.bottleneck.concepts == predictor.bottleneck.concepts
    assert dict(back.bottleneck.notes) == dict(predictor.bottleneck.notes)
    assert (back.bottleneck.kind, back.bottleneck.label) == (
        predictor.bottleneck.kind,
        predictor.bottleneck.label,
    )


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_the_same_from_the_same_pictures(name: str) -> None:
    short = Component(name, {**RECIPE, "epochs": 1, "train_items": 40})
    first, second = (open_predictor(short, Path(), scenario(40)) for _ in range(2))
    assert first.key == second.key
    other = open_predictor(Component(name, {**short.params, "seed": 1}), Path(), scenario(40))
    assert other.key != first.key


@pytest.mark.parametrize("name", NAMES)
def test_it_names_its_training_beforehand(name: str) -> None:
    data = Component("synthetic", {"scenario": "biased"})

    def key(digest: str = "d", **params: object) -> str | None:
        return training_key_of(Component(name, params), data, digest, Path())

    assert key() == key(epochs=8) and len(key() or "") == 64
    assert len({key(), key(epochs=9), key("e"), key(penalty=0.5)}) == 4
    assert training_key_of(Component(NAMES[0]), data, "d", Path()) != training_key_of(
        Component(NAMES[1]), data, "d", Path()
    )


def explanations(name: str, method: str, count: int, rows: int, first: int = 0) -> list[object]:
    predictor = trained(name)
    views = predictor.inputs([predictor.view(picture) for picture in people()[first : first + count]])
    jobs = [
        Job(at, subject, partial(open_explainer(Component(method)).explain, predictor, subject))
        for at, subject in enumerate(
            Subject(at % 2, f"item-{first + at}", 3, predictor.layer, view) for at, view in enumerate(views)
        )
    ]
    done = {outcome.name: outcome for outcome in drive(jobs, Network(predictor, rows=rows))}
    assert all(outcome.error is None for outcome in done.values())
    return [done[at].result for at in range(count)]


@pytest.mark.parametrize("method", ["x_nesyl", "lime_cbm", "shap_cbm", "rise_cbm"])
def test_it_explains_a_picture_alone_as_in_company(method: str) -> None:
    together = explanations("concept_bottleneck", method, 6, 4)
    alone = [explanations("concept_bottleneck", method, 1, 1, first=at)[0] for at in (0, 4)]
    for single, other in zip(alone, (together[0], together[4]), strict=True):
        assert isinstance(single, ConceptAttribution) and isinstance(other, ConceptAttribution)
        scale = np.abs(other.values).max()
        np.testing.assert_allclose(single.values, other.values, atol=1e-4 * scale)
        assert "in the paper" in single.label


@pytest.mark.parametrize("name", NAMES)
def test_it_lets_methods_for_pictures_explain_it_too(name: str) -> None:
    for method in ("saliency", "grad_cam"):
        (attribution,) = explanations(name, method, 1, 2)
        assert isinstance(attribution, PixelAttribution) and attribution.values.any()


def test_it_finds_parts_where_they_are() -> None:
    """The heat of the landscape is higher in its boxes than beside them."""
    predictor, dataset = trained("part_concepts"), scenario()
    assert predictor.bottleneck is not None
    layout = predictor.layouts["heat"]
    outputs: list[torch.Tensor] = []
    hook = predictor.layer_module("heat").register_forward_hook(lambda _m, _i, output: outputs.append(output))
    items = dataset.items("people")[:16]
    predictor.logits([predictor.view(dataset.pixels(item.key)) for item in items])
    hook.remove()
    heat = outputs[0].numpy()
    apart = []
    for item, maps in zip(items, heat, strict=True):
        for part in dataset.parts(item.key):
            if part.concept in CUES:
                place = predictor.bottleneck.concepts.index(part.concept)
                cover = heat_maps([part], [part.concept], layout.height, layout.width)[0] > 0.5
                both = heat_maps(
                    [box for box in dataset.parts(item.key) if box.concept == part.concept],
                    [part.concept],
                    layout.height,
                    layout.width,
                )[0]
                apart.append(maps[place][cover].mean() - maps[place][both == 0].mean())
    assert np.mean(np.array(apart) > 0) > 0.8


def test_it_covers_cells_by_the_share_that_boxes_do() -> None:
    """Against counting on a fine grid."""
    parts = [Part("a", 0.1, 0.2, 0.55, 0.4), Part("a", 0.5, 0.3, 0.9, 1.0), Part("b", 0, 0, 1, 1)]
    fine = np.zeros((2, 400, 500))
    for part in parts:
        rows = slice(round(part.top * 400), round(part.bottom * 400))
        fine["ab".index(part.concept), rows, round(part.left * 500) : round(part.right * 500)] = 1
    expected = fine.reshape(2, 4, 100, 5, 100).mean(axis=(2, 4))
    maps = heat_maps(parts, ("a", "b"), 4, 5)
    overlapping = np.zeros((2, 4, 5), bool)
    overlapping[0, 1, 2] = True  # both boxes reach into it: the larger cover counts
    np.testing.assert_allclose(maps[~overlapping], expected[~overlapping], atol=1e-6)
    assert 0 < maps[0, 1, 2] <= expected[0, 1, 2]


@pytest.mark.parametrize("size", [(40, 20), (20, 40), (32, 32), (35, 20)])
def test_it_moves_boxes_into_the_square_view(size: tuple[int, int]) -> None:
    """A white box on black, resized and cropped as pictures are, lies where the moved box is."""
    height, width = size
    picture = np.zeros((height, width, 3), np.uint8)
    rows, columns = slice(height // 4, height // 2), slice(width // 2, width * 3 // 4)
    picture[rows, columns] = 255
    part = Part("a", columns.start / width, rows.start / height, columns.stop / width, rows.stop / height)
    bright = square_view(np.asarray(picture), 80)[..., 0] > 128
    (moved,) = seen_parts([part], height, width)
    places = np.flatnonzero(bright.any(axis=0)), np.flatnonzero(bright.any(axis=1))
    edges = [places[0][0], places[1][0], places[0][-1] + 1, places[1][-1] + 1]
    box = np.array([moved.left, moved.top, moved.right, moved.bottom]) * 80
    np.testing.assert_allclose(edges, box, atol=1.5)
    assert seen_parts([Part("a", 0, 0, 0.05, 0.05)], 20, 40) == []


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Path]:
    for place, label in enumerate(("cat", "dog")):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(6):
            picture = np.random.default_rng([place, number]).integers(0, 255, (40, 48, 3), dtype=np.uint8)
            Image.fromarray(picture).save(tmp_path / "images" / label / f"{number}.png")
    yield tmp_path


def test_it_learns_from_files_beside_the_pictures(plain: Path) -> None:
    lines = [f"{label}/{number}.png,{number % 2}" for label in ("cat", "dog") for number in range(6)]
    text = "image,concept,value\n" + "\n".join(line.replace(",", ",fur,") for line in lines)
    (plain / "images" / "concepts.csv").write_text(text)
    (plain / "images" / "parts.csv").write_text(
        "image,concept,left,top,right,bottom\n"
        + "\n".join(f"{label}/{n}.png,ear,0,0,20,20" for label in ("cat", "dog") for n in range(6))
    )
    dataset = open_dataset(Component("folder", {"path": "images", "people_share": 0.2}), plain)
    for name, concepts in zip(NAMES, (("ear", "fur"), ("ear",)), strict=True):
        params = {"epochs": 1, "width": 2, "input_px": 32}
        made = open_predictor(Component(name, params), plain, dataset)
        assert isinstance(made, TorchPredictor) and made.bottleneck is not None
        assert made.bottleneck.concepts == concepts


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("concept_bottleneck", "names no concepts; put concepts.csv"),
        ("part_concepts", r"no part is marked in the 10 pictures.*put parts.csv"),
    ],
)
def test_it_says_what_is_missing(plain: Path, name: str, words: str) -> None:
    dataset = open_dataset(Component("folder", {"path": "images", "people_share": 0.2}), plain)
    with pytest.raises(BadSpec, match=words):
        open_predictor(Component(name, {"epochs": 1, "width": 2, "input_px": 32}), plain, dataset)
