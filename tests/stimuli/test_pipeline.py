"""From a folder of pictures to stored stimuli: what was seen, what was computed, what is kept."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from stimuli import pipeline
from stimuli.errors import BadSpec, StimulusError
from stimuli.explainers.gradients.pixel_gradients import Saliency
from stimuli.pipeline import Bench, RenderedStimulus, StimulusFailure, attempt
from stimuli.planner.asks import Steps
from stimuli.predictors.base import TorchPredictor
from stimuli.render import heatmap, png
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.spec_derivation import PredictedItem, Source, inapplicable, prepare, spec_for, survey
from stimuli.store import LocalStore, files
from stimuli.types import PixelAttribution
from tests.stimuli import material
from tests.stimuli.material import (
    GRADIENT_X_INPUT,
    SALIENCY,
    SIDE,
    render,
    specs_for,
    strengths,
    toy_source,
    values_of,
)

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
    stored = png.decode(store.get(files.view_file(items[0].image_key)))
    # By hand: shorter side of 48 x 40 to 32 pixels, then the middle.
    file = Image.open(tmp_path / "images" / "left" / "0.png").resize((38, 32), Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(stored, np.asarray(file.crop((3, 0, 35, 32))))
    assert isinstance(source.predictor, TorchPredictor)
    logits = source.predictor.logits([stored])[0]
    np.testing.assert_allclose(logits, np.array(items[0].logits), rtol=1e-6)


def test_it_keeps_the_predictor_in_the_store(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, _ = world
    archive = store.get(files.predictor_file(source.predictor_key))
    assert archive == source.predictor.dump()


def test_it_renders_each_condition_with_all_its_files(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    made = list(render(specs_for(*world, None, SALIENCY), store))
    assert len(made) == 12
    for rendered in made:
        drawn = rendered.drawn
        files = [drawn.image_file, drawn.image_tile_file, drawn.explanation_file, drawn.explanation_tile_file]
        sizes = [png.decode(store.get(file)).shape[:2] for file in files if file]
        assert sizes == [(SIDE, SIDE), (224, 224)] * (2 if rendered.spec.explainer else 1)
        assert (drawn.width_px, drawn.height_px) == (SIDE, SIDE)
        assert (drawn.tile_width_px, drawn.tile_height_px) == (224, 224)


def test_it_draws_the_map_on_the_view(world: tuple[Source, list[PredictedItem]], store: LocalStore) -> None:
    source, items = world
    [rendered] = render(specs_for(source, items[:1], GRADIENT_X_INPUT), store)
    view = png.decode(store.get(rendered.drawn.image_file))
    # The explained logit is the mean of quadrant `index`, so gradient x input is its brightness, else 0.
    values = np.zeros((SIDE, SIDE), np.float32)
    values[:16, :16] = view[:16, :16].mean(2)
    assert items[0].index == 0 and rendered.drawn.explanation_file
    drawn = png.decode(store.get(rendered.drawn.explanation_file)).astype(int)
    assert (
        np.abs(drawn - heatmap.overlay(view, PixelAttribution(values, signed=True), RenderSpec())).max() <= 1
    )


def test_it_keeps_the_raw_map(world: tuple[Source, list[PredictedItem]], store: LocalStore) -> None:
    source, items = world
    [spec] = specs_for(source, items[:1], SALIENCY)
    list(render([spec], store))
    values = values_of(store, spec.attribution_key)
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
        if key.startswith(("views/", "predictors/", "surveys/")):
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

    monkeypatch.setattr(Saliency, "explain", refuse)
    assert list(render(specs, store)) == first
    paler = [replace(spec, render=RenderSpec(alpha=0.3)) for spec in specs]
    assert {rendered.drawn.explanation_file for rendered in render(paler, store)}.isdisjoint(
        rendered.drawn.explanation_file for rendered in first
    )


def test_it_draws_from_the_map_that_was_stored_first(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, items = world
    [spec] = specs_for(source, items[:1], SALIENCY)
    rival = np.linspace(0, 1, SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    honest = Saliency.explain

    def overtaken(self: Saliency, *args: Any) -> Steps:
        made = yield from honest(self, *args)
        # Another process finishes between the computation and the storing.
        rivals = PixelAttribution(rival, signed=False)
        store.put(files.map_file(spec.attribution_key), files.write_attribution(rivals))
        return made

    monkeypatch.setattr(Saliency, "explain", overtaken)
    [rendered] = render([spec], store)
    view = png.decode(store.get(rendered.drawn.image_file))
    assert rendered.drawn.picture_digest == png.pixel_key(
        heatmap.overlay(view, strengths(rival), RenderSpec())
    )


def test_it_tells_pictures_that_look_alike(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, items = world
    alike = Component("integrated_gradients", {"steps": 2}), Component("integrated_gradients", {"steps": 3})
    specs = specs_for(source, items[:1], *alike, SALIENCY)
    made = {rendered.spec.picture_key: rendered for rendered in render(specs, store)}
    first, second, other = (made[spec.picture_key] for spec in specs)
    assert first.drawn.explanation_file != second.drawn.explanation_file
    assert first.drawn.picture_digest == second.drawn.picture_digest != other.drawn.picture_digest


def test_it_goes_on_after_a_stimulus_that_cannot_be_made(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    specs = specs_for(*world, SALIENCY)
    lost = replace(specs[2], image_key="0" * 64)
    results = list(attempt([*specs[:2], lost, *specs[3:]], Bench(store)))
    failed = [result for result in results if isinstance(result, StimulusFailure)]
    assert [failure.spec for failure in failed] == [lost] and "build_stimuli" in failed[0].error
    made = {result.spec.picture_key for result in results if isinstance(result, RenderedStimulus)}
    assert made == {spec.picture_key for spec in specs} - {specs[2].picture_key}
    with pytest.raises(StimulusError, match="build_stimuli"):
        list(render([lost], store))


def test_it_refuses_a_view_that_was_changed(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, items = world
    path = store.root / files.view_file(items[0].image_key)
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
    (store.root / files.predictor_file(source.predictor_key)).unlink()
    assert len(list(render(specs_for(source, items, None), store))) == 6
    with pytest.raises(StimulusError, match="predictors/"):
        list(render(specs_for(source, items, SALIENCY), store))


def test_it_refuses_bad_wishes_before_anything_is_made(world: tuple[Source, list[PredictedItem]]) -> None:
    source, items = world
    with pytest.raises(BadSpec):
        spec_for(items[0], source, Component("salience"), RenderSpec(), 1)
    assert "'x'" in str(inapplicable(source, Component("grad_cam", {"layer": "x"})))
    assert "explains texts" in str(inapplicable(source, Component("lime_text")))
    assert inapplicable(source, SALIENCY) is None
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
        *(("rendering stimuli", done, 12) for done in range(1, 13)),
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
    restored = [key for key, _, _ in pipeline._restored]
    assert len(restored) == 2 and source.predictor_key in restored


def test_it_measures_beside_the_method(world: tuple[Source, list[PredictedItem]], store: LocalStore) -> None:
    source, items = world
    [spec] = specs_for(source, items[:1], SALIENCY)
    wanted = (Component("sparsity"), Component("deletion", {"steps": 4, "score": "logit"}))
    [result] = attempt([spec], Bench(store), {spec.picture_key: wanted})
    assert isinstance(result, RenderedStimulus) and [number.error for number in result.numbers] == ["", ""]
    sparsity, deletion = (number.measured for number in result.numbers)
    assert sparsity is not None and deletion is not None
    # One quarter of the pixels holds everything, in equal parts: Gini = 1 - 1/4 exactly.
    assert sparsity.value == pytest.approx(0.75, abs=1e-3)
    view = png.decode(store.get(result.drawn.image_file)) / 255
    quarter = view[:16, :16].mean() * 10
    # The first quarter of the steps deletes all that counts; the flat ties are taken row by row.
    curve = deletion.details["curve"]
    assert curve[0] == pytest.approx(quarter, rel=1e-5) and curve[1:] == pytest.approx([0] * 4, abs=1e-6)


def test_it_keeps_the_explanation_when_a_metric_fails(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, items = world
    [spec] = specs_for(source, items[:1], SALIENCY)

    def refuse(*_: object) -> object:
        raise StimulusError("no number for this one")
        yield

    monkeypatch.setattr("stimuli.metrics.complexity.Sparsity.measure", refuse)
    [result] = attempt([spec], Bench(store), {spec.picture_key: (Component("sparsity"),)})
    assert isinstance(result, RenderedStimulus) and result.drawn.explanation_file
    assert [(n.measured, n.error) for n in result.numbers] == [(None, "no number for this one")]


def test_it_lets_a_broken_method_fail_alone(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def burst(*_: object) -> object:
        raise IndexError("out of range")
        yield

    monkeypatch.setattr("stimuli.explainers.gradients.pixel_gradients.GradientXInput.explain", burst)
    results = list(attempt(specs_for(*world, SALIENCY, GRADIENT_X_INPUT), Bench(store)))
    failed = [result for result in results if isinstance(result, StimulusFailure)]
    assert len(results) == 12 and len(failed) == 6
    assert {failure.error for failure in failed} == {"IndexError: out of range"}
    assert all(failure.spec.explainer == GRADIENT_X_INPUT for failure in failed)


def test_it_shares_passes_between_methods_of_one_picture(
    world: tuple[Source, list[PredictedItem]], store: LocalStore
) -> None:
    source, items = world
    methods = [SALIENCY, GRADIENT_X_INPUT, Component("integrated_gradients", {"steps": 5})]
    list(render(specs_for(source, items, *methods), store))
    [runner] = pipeline._restored.values()
    assert runner.network is not None
    bill = runner.network.bill
    # Per picture: one shared trace, four more points of the way, and the flat picture's score.
    assert (bill.forwards, bill.backwards) == (6 * (1 + 4 + 1), 6 * (1 + 4))


def test_it_skips_nothing_when_memory_runs_out(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window shrinks in the middle of the work; every item is still asked for once."""
    source, items = world
    specs = [replace(spec, seed=seed) for seed in range(4) for spec in specs_for(source, items, SALIENCY)]
    list(render(specs[:1], store))
    [runner] = pipeline._restored.values()
    assert runner.network is not None
    network = runner.network
    network.rows = 16
    honest, is_full = type(network)._trace, [True]

    def crowded(self: Any, images: Any, *rest: Any) -> Any:
        if is_full.pop() if is_full else False:
            raise torch.OutOfMemoryError("no room")
        return honest(self, images, *rest)

    monkeypatch.setattr(type(network), "_trace", crowded)
    made = list(render(specs, store))
    assert network.rows == 8 and len(made) == len({item.spec.picture_key for item in made}) == len(specs)


def test_it_keeps_other_metrics_when_one_is_broken(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, items = world
    specs = specs_for(source, items, SALIENCY)

    def burst(*_: object) -> object:
        raise IndexError("bug in a metric")
        yield

    monkeypatch.setattr("stimuli.metrics.complexity.Entropy.measure", burst)
    wanted = {spec.picture_key: (Component("entropy"), Component("sparsity")) for spec in specs}
    made = list(attempt(specs, Bench(store), wanted))
    for result in made:
        assert isinstance(result, RenderedStimulus)
        entropy, sparsity = result.numbers
        assert entropy.measured is None and entropy.error == "IndexError: bug in a metric"
        assert sparsity.measured is not None and sparsity.error == ""
    [runner] = pipeline._restored.values()
    assert runner.network is not None and runner.network.bill.forwards == len(specs)  # nothing ran twice


def test_it_names_a_damaged_map(world: tuple[Source, list[PredictedItem]], store: LocalStore) -> None:
    source, items = world
    specs = specs_for(source, items, SALIENCY)
    list(render(specs, store))
    path = store.root / files.map_file(specs[0].attribution_key)
    path.write_bytes(path.read_bytes()[:40])
    results = list(attempt(specs, Bench(store)))
    failed = [result for result in results if isinstance(result, StimulusFailure)]
    assert len(failed) == 1 and len(results) == len(specs) and path.name in failed[0].error


def test_it_stores_no_map_that_is_not_finite(
    world: tuple[Source, list[PredictedItem]], store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored is permanent, so a temporary error must not be stored."""
    source, items = world
    specs = specs_for(source, items[:1], Component("occlusion", {"patch_share": 0.5, "stride_share": 0.5}))

    def overflowing(self: Any, copies: Any) -> Any:
        return torch.full((len(copies), 2), float("nan"))

    with monkeypatch.context() as patch:
        patch.setattr("stimuli.planner.network.Network.logits", overflowing)
        [failed] = attempt(specs, Bench(store))
        assert isinstance(failed, StimulusFailure) and "not finite" in failed.error
    [made] = attempt(specs, Bench(store))
    assert isinstance(made, RenderedStimulus)
