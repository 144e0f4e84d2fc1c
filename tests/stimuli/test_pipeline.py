"""From a folder of pictures to stored stimuli: what was seen, what was computed, what is kept."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stimuli import pipeline
from stimuli.errors import BadSpec, NotApplicable, StimulusError
from stimuli.explainers.gradient import Saliency
from stimuli.pipeline import (
    Failed,
    PredictedItem,
    Rendered,
    Source,
    attempt,
    prepare,
    render,
    spec_for,
    survey,
)
from stimuli.render import heatmap, png
from stimuli.spec import Component, RenderSpec
from stimuli.store import LocalStore
from tests.stimuli import material
from tests.stimuli.material import GRADIENT_X_INPUT, SALIENCY, SIDE, specs_for, toy_source

pytestmark = pytest.mark.pure


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def world(tmp_path: Path, store: LocalStore) -> tuple[Source, list[PredictedItem]]:
    return toy_source(tmp_path, store)


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Every test restores predictors from its own store."""
    yield
    pipeline._restored.clear()


def test_it_says_what_the_predictor_answers(world: tuple[Source, list[PredictedItem]]) -> None:
    _, items = world
    assert (
        [item.predicted for item in items] == [item.truth for item in items] == ["left"] * 3 + ["right"] * 3
    )
    for item in items:
        powers = np.exp(item.logits)
        assert item.index == int(np.argmax(item.logits))
        assert item.confidence == pytest.approx(powers.max() / powers.sum())
        assert (item.width_px, item.height_px) == (SIDE, SIDE)


def test_it_keeps_exactly_what_the_network_saw(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, tmp_path: Path
) -> None:
    source, items = world
    stored = png.decode(store.get(pipeline.view_file(items[0].image_key)))
    # By hand: shorter side of 48 x 40 to 32 pixels, then the middle.
    file = Image.open(tmp_path / "images" / "left" / "0.png").resize((38, 32), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(stored, np.asarray(file.crop((3, 0, 35, 32))))
    np.testing.assert_allclose(source.predictor.logits([stored])[0], items[0].logits, rtol=1e-6)


def test_it_keeps_the_predictor_in_the_store(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, _ = world
    archive = store.get(pipeline.predictor_file(source.predictor_key))
    assert archive == source.predictor.dump()


def test_it_renders_each_condition_with_all_its_files(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    made = list(render(specs_for(*world, None, SALIENCY), store))
    assert len(made) == 12
    for one in made:
        files = [one.image_file, one.image_tile_file, one.explanation_file, one.explanation_tile_file]
        sizes = [png.decode(store.get(file)).shape[:2] for file in files if file]
        assert sizes == [(SIDE, SIDE), (224, 224)] * (2 if one.spec.explainer else 1)
        assert (one.width_px, one.height_px, one.tile_width_px, one.tile_height_px) == (SIDE, SIDE, 224, 224)


def test_it_draws_the_map_on_the_view(world: tuple[Source, list[PredictedItem]], store: LocalStore) -> None:
    source, items = world
    [one] = render(specs_for(source, items[:1], GRADIENT_X_INPUT), store)
    view = png.decode(store.get(one.image_file))
    # The explained logit is the mean of quadrant `index`, so gradient x input is its brightness, else 0.
    values = np.zeros((SIDE, SIDE), np.float32)
    values[:16, :16] = view[:16, :16].mean(2)
    assert items[0].index == 0 and one.explanation_file
    drawn = png.decode(store.get(one.explanation_file)).astype(int)
    assert np.abs(drawn - heatmap.overlay(view, values, RenderSpec())).max() <= 1


def test_it_keeps_the_raw_map(world: tuple[Source, list[PredictedItem]], store: LocalStore) -> None:
    source, items = world
    [spec] = specs_for(source, items[:1], SALIENCY)
    list(render([spec], store))
    with np.load(io.BytesIO(store.get(pipeline.map_file(spec.attribution_key)))) as file:
        values = file["values"]
    assert values.dtype == np.float32
    expected = np.zeros((SIDE, SIDE))
    expected[:16, :16] = 10 / 3 / 256
    np.testing.assert_allclose(values, expected, rtol=1e-6)


def test_it_makes_the_same_files_again(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, tmp_path: Path
) -> None:
    specs = specs_for(*world, None, SALIENCY, Component("smooth_grad", {"draws": 4}), Component("random"))
    list(render(specs, store))
    other = LocalStore(tmp_path / "other")
    keys = list(store.keys())
    for key in keys:
        if key.startswith(("views/", "predictors/")):
            other.put(key, store.get(key))
    list(render(specs[::-1], other))
    assert list(other.keys()) == keys
    assert all(other.get(key) == store.get(key) for key in keys)


def test_it_computes_no_map_twice(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = specs_for(*world, SALIENCY)
    first = list(render(specs, store))

    def refuse(*_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(Saliency, "attribute", refuse)
    assert list(render(specs, store)) == first
    paler = [replace(spec, render=RenderSpec(alpha=0.3)) for spec in specs]
    assert {one.explanation_file for one in render(paler, store)}.isdisjoint(
        one.explanation_file for one in first
    )


def test_it_draws_from_the_map_that_was_stored_first(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, items = world
    [spec] = specs_for(source, items[:1], SALIENCY)
    rival = np.linspace(0, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    honest = pipeline._attribute

    def overtaken(*args: object) -> object:
        store.put(pipeline.map_file(spec.attribution_key), pipeline._write_map(rival))
        return honest(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(pipeline, "_attribute", overtaken)
    [one] = render([spec], store)
    view = png.decode(store.get(one.image_file))
    assert one.picture_digest == png.pixel_key(heatmap.overlay(view, rival, RenderSpec()))


def test_it_tells_pictures_that_look_alike(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, items = world
    alike = Component("integrated_gradients", {"steps": 2}), Component("integrated_gradients", {"steps": 3})
    first, second, other = render(specs_for(source, items[:1], *alike, SALIENCY), store)
    assert first.explanation_file != second.explanation_file
    assert first.picture_digest == second.picture_digest != other.picture_digest


def test_it_goes_on_after_a_stimulus_that_cannot_be_made(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    specs = specs_for(*world, SALIENCY)
    lost = replace(specs[2], image_key="0" * 64)
    results = list(attempt([*specs[:2], lost, *specs[3:]], store))
    assert [type(result) for result in results] == [Rendered, Rendered, Failed, Rendered, Rendered, Rendered]
    assert isinstance(results[2], Failed) and "build_stimuli" in results[2].error
    with pytest.raises(StimulusError, match="build_stimuli"):
        list(render([lost], store))


def test_it_refuses_a_view_that_was_changed(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, items = world
    path = store.root / pipeline.view_file(items[0].image_key)
    path.write_bytes(png.encode(np.zeros((SIDE, SIDE, 3), np.uint8)))
    with pytest.raises(StimulusError, match="other pixels than its key says"):
        list(render(specs_for(source, items[:1], SALIENCY), store))


def test_it_refuses_another_version_of_a_method(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, items = world
    old = [replace(spec, version=0) for spec in specs_for(source, items[:1], SALIENCY)]
    with pytest.raises(StimulusError, match="version 0 was asked for"):
        list(render(old, store))


def test_it_needs_the_predictor_for_maps_only(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, items = world
    (store.root / pipeline.predictor_file(source.predictor_key)).unlink()
    assert len(list(render(specs_for(source, items, None), store))) == 6
    with pytest.raises(StimulusError, match="predictors/"):
        list(render(specs_for(source, items, SALIENCY), store))


def test_it_refuses_bad_wishes_before_anything_is_made(world: tuple[Source, list[PredictedItem]]) -> None:
    source, items = world
    for explainer, error in (
        (Component("salience"), BadSpec),
        (Component("grad_cam", {"layer": "x"}), NotApplicable),
    ):
        with pytest.raises(error):
            spec_for(items[0], source, explainer, RenderSpec(), 1)
    with pytest.raises(BadSpec, match="alpha"):
        spec_for(items[0], source, None, RenderSpec(alpha=7), 1)


def test_it_gives_one_setting_one_key(world: tuple[Source, list[PredictedItem]]) -> None:
    source, items = world
    short, full = Component("smooth_grad"), Component("smooth_grad", {"sigma": 0.2, "draws": 50})
    [a], [b] = (specs_for(source, items[:1], explainer) for explainer in (short, full))
    assert a.picture_key == b.picture_key


def test_it_shows_progress_to_the_end(tmp_path: Path, store: LocalStore) -> None:
    seen: list[tuple[str, int, int]] = []
    material.write_images(tmp_path)
    source = prepare(material.DATASET, material.PREDICTOR, tmp_path, store)
    items = survey(source, store, lambda *step: seen.append(step))
    list(render(specs_for(source, items, None, SALIENCY), store, lambda *step: seen.append(step)))
    assert seen == [
        ("asking the predictor", 6, 6),
        ("rendering stimuli", 6, 12),
        ("rendering stimuli", 12, 12),
    ]


def test_it_trains_once(tmp_path: Path, store: LocalStore) -> None:
    material.write_images(tmp_path, per_class=12)
    wishes = Component("trained_cnn", {"epochs": 1, "width": 2, "input_px": 32, "train_items": 16})
    dataset = Component("folder", {"path": "images", "people_share": 0.4})
    steps: list[str] = []
    first = prepare(dataset, wishes, tmp_path, store, lambda what, *_: steps.append(what))
    assert "training the network" in steps
    steps.clear()
    second = prepare(dataset, wishes, tmp_path, store, lambda what, *_: steps.append(what))
    assert steps == [] and second.predictor_key == first.predictor_key


def test_it_restores_few_predictors_at_a_time(tmp_path: Path, store: LocalStore) -> None:
    material.write_images(tmp_path)
    for gain in (1.0, 2.0, 3.0):
        predictor = Component("toy", {"kind": "quadrant", "input_px": SIDE, "gain": gain})
        source = prepare(material.DATASET, predictor, tmp_path, store)
        list(render(specs_for(source, survey(source, store)[:1], SALIENCY), store))
    assert len(pipeline._restored) == 2 and source.predictor_key in pipeline._restored
