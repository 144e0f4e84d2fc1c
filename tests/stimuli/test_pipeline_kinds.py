"""Texts, concepts and reduced precision go the same way as maps: from components to stored files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stimuli import pipeline
from stimuli.errors import BadSpec
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.render import png
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.spec_derivation import inapplicable, prepare, spec_for, survey
from stimuli.store import LocalStore, files
from stimuli.types import ConceptAttribution, TokenAttribution
from tests.stimuli.material import SIDE, render, specs_for, toy_source, values_of, write_images

pytestmark = pytest.mark.pure
SENTENCES = Component("sentences", {"task": "tense", "count": 40, "model_count": 160})
READER = Component("trained_text", {"epochs": 4})


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Every test restores predictors from its own store."""
    yield
    pipeline._restored.clear()


def test_it_renders_texts_as_pieces_with_shades(tmp_path: Path, store: LocalStore) -> None:
    source = prepare(SENTENCES, READER, tmp_path, store)
    items = survey(source, store)[:3]
    methods = [
        None,
        *(Component(name) for name in ("lime_text", "input_gradient_text", "random_text")),
    ]
    specs = [spec_for(item, source, method, RenderSpec(), 3) for item in items for method in methods]
    made = {rendered.spec.picture_key: rendered for rendered in render(specs, store)}
    for spec in specs:
        drawn = made[spec.picture_key].drawn
        text = files.read_text(store, spec.image_key)
        assert drawn.image_file == files.text_file(spec.image_key) and drawn.width_px == 0
        assert (drawn.explanation_file is None) == (spec.explainer is None)
        if drawn.explanation_file is not None and spec.explainer is not None:
            document = json.loads(store.get(drawn.explanation_file))
            # Nothing but pieces and greys: no class, no probability, no sign.
            assert set(document) == {"tokens"} and all(
                set(p) == {"text", "shade"} for p in document["tokens"]
            )
            assert "".join(piece["text"] for piece in document["tokens"]) == text
            shades = [piece["shade"] for piece in document["tokens"]]
            assert min(shades) >= 0 and max(shades) <= 1
            raw = files.read_attribution(store, spec.attribution_key)
            assert isinstance(raw, TokenAttribution)
            if spec.explainer.name != "input_gradient_text":
                assert 1 <= np.count_nonzero(raw.values) <= 3
    assert {made[spec.picture_key].provenance["device"] for spec in specs} == {"cpu"}


def test_it_gives_the_control_the_text_s_own_greys(tmp_path: Path, store: LocalStore) -> None:
    source = prepare(SENTENCES, READER, tmp_path, store)
    for item in survey(source, store)[:4]:
        specs = [
            spec_for(item, source, Component(name), RenderSpec(), 3) for name in ("lime_text", "random_text")
        ]
        list(render(specs, store))
        lime, control = (np.abs(values_of(store, spec.attribution_key)) for spec in specs)
        np.testing.assert_array_equal(np.sort(lime[lime > 0]), np.sort(control[control > 0]))


def test_it_refuses_a_dataset_that_does_not_fit_its_predictor(tmp_path: Path, store: LocalStore) -> None:
    write_images(tmp_path)
    pictures = Component("folder", {"path": "images", "people_share": 1.0})
    with pytest.raises(BadSpec):
        prepare(SENTENCES, Component("toy", {"kind": "linear", "input_px": SIDE}), tmp_path, store)
    with pytest.raises(BadSpec):
        prepare(pictures, READER, tmp_path, store)


def test_it_draws_concepts_as_bars_and_sentences(tmp_path: Path, store: LocalStore) -> None:
    dataset = Component("synthetic", {"scenario": "biased", "count": 8, "model_count": 80, "size_px": 64})
    predictor = Component("concept_bottleneck", {"input_px": 64, "epochs": 2})
    source = prepare(dataset, predictor, tmp_path, store)
    items = survey(source, store)[:2]
    assert inapplicable(source, Component("lime_cbm")) is None
    assert "clip_concepts" in str(inapplicable(source, Component("clip_linear")))
    shap = Component("shap_cbm")
    recipes = [RenderSpec(concept_form=form) for form in ("bars", "names", "reasons")]
    specs = [spec_for(item, source, shap, recipe, 3) for item in items for recipe in recipes]
    made = {rendered.spec.picture_key: rendered for rendered in render(specs, store)}
    assert len({rendered.drawn.picture_digest for rendered in made.values()}) == len(specs)
    assert len({spec.attribution_key for spec in specs}) == len(items)  # one attribution, three recipes
    for spec in specs:
        drawn = made[spec.picture_key].drawn
        assert drawn.explanation_file and drawn.explanation_tile_file
        picture = png.decode(store.get(drawn.explanation_file))
        assert picture.shape[0] == picture.shape[1]
        raw = files.read_attribution(store, spec.attribution_key)
        assert isinstance(raw, ConceptAttribution) and raw.checks["efficiency_gap"] < 1e-6
    # The same network explained by a map, in the same drive.
    both = [spec_for(items[0], source, Component(name), RenderSpec(), 3) for name in ("saliency", "rise_cbm")]
    assert len(list(render(both, store))) == 2


def test_it_keeps_older_keys_when_recipes_and_precisions_join(tmp_path: Path, store: LocalStore) -> None:
    source, items = toy_source(tmp_path, store)
    [spec] = specs_for(source, items[:1], Component("saliency"))
    assert "concept_form" not in spec.render.as_json() and type(spec).from_json(spec.as_json()) == spec
    other = replace(spec, render=replace(spec.render, concept_form="reasons"))
    assert other.attribution_key == spec.attribution_key and other.picture_key != spec.picture_key
    assert type(spec).from_json(other.as_json()) == other


def test_it_keeps_precisions_apart(tmp_path: Path, store: LocalStore) -> None:
    source, items = toy_source(tmp_path, store)
    occlusion = Component("occlusion", {"patch_share": 0.25, "stride_share": 0.25})
    exact, rough = (
        spec_for(items[0], source, occlusion, RenderSpec(), 1, precision)
        for precision in ("float32", "bfloat16")
    )
    assert exact.attribution_key != rough.attribution_key
    made = list(attempt([exact, rough], Bench(store)))
    assert all(isinstance(result, RenderedStimulus) for result in made)
    first, second = (values_of(store, spec.attribution_key) for spec in (exact, rough))
    assert np.abs(first).max() > 0
    np.testing.assert_allclose(second, first, atol=0.02 * np.abs(first).max())
