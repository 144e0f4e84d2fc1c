"""Explanations made elsewhere: read as they were written, drawn as our own are, and stored whole."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from stimuli import pipeline
from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.explainers.recorded.base import ItemView
from stimuli.explainers.recorded.tables import token_spans
from stimuli.pipeline import Bench, RenderedStimulus, StimulusFailure, attempt
from stimuli.recheck import recheck
from stimuli.render import png
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import PredictedItem, Source, prepare, spec_for, store_recordings, survey
from stimuli.store import LocalStore, Store, files
from stimuli.types import (
    ConceptAttribution,
    PictureExplanation,
    PixelAttribution,
    TextExplanation,
    TokenAttribution,
)
from tests.stimuli.material import DATASET, SIDE, render, specs_for, toy_source

pytestmark = pytest.mark.pure
INTEGRATED = Component("integrated_gradients", {"steps": 4, "baseline": 0.7})
Maps = Mapping[str, NDArray[np.float32]]


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Every test restores predictors from its own store."""
    yield
    pipeline._restored.clear()


@dataclass
class World:
    """A study's folder, its store, and what the toy model says of the six pictures."""

    folder: Path
    store: Store
    source: Source
    items: dict[str, PredictedItem]

    def record(self, path: str, **params: object) -> dict[str, Component]:
        component = Component("recorded", {"path": path, **params})
        return store_recordings(component, self.folder, self.items, self.items, self.store)

    def specs(self, named: Mapping[str, Component], recipe: RenderSpec | None = None) -> list[StimulusSpec]:
        recipe = recipe or RenderSpec()
        return [spec_for(self.items[key], self.source, named[key], recipe, 1) for key in self.items]

    def read(self, path: str, **params: object) -> list[object]:
        """What is stored of each item, in their order."""
        named = self.record(path, **params)
        return [files.read_recorded(self.store, str(named[key].params["digest"])) for key in self.items]

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def table(self, name: str, *rows: tuple[object, ...]) -> None:
        with (self.folder / name).open("w", newline="", encoding="utf-8") as stream:
            csv.writer(stream).writerows(rows)


@pytest.fixture
def world(tmp_path: Path) -> World:
    store = LocalStore(tmp_path / "store")
    source, items = toy_source(tmp_path, store)
    return World(tmp_path, store, source, {item.key: item for item in items})


def maps_of(world: World, method: Component) -> dict[str, NDArray[np.float32]]:
    """Our own maps, by item key."""
    specs = specs_for(world.source, list(world.items.values()), method)
    list(render(specs, world.store))
    made = (files.read_attribution(world.store, spec.attribution_key) for spec in specs)
    return {key: rendered.values for key, rendered in zip(world.items, made, strict=True)}  # type: ignore[union-attr]


def folder_of(world: World, maps: Maps, name: str = "maps", ending: str = ".npy") -> str:
    for key, values in maps.items():
        path = world.folder / name / f"{key}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if ending == ".npy":
            np.save(path, values)
        else:
            np.savez(path, values)
    return name


def noise(world: World, low: float = -1, side: int = SIDE) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(5)
    return {key: rng.uniform(low, 1, (side, side)).astype(np.float32) for key in world.items}


def one_archive(world: World, maps: Maps) -> str:
    np.savez_compressed(world.folder / "maps.npz", **maps)  # type: ignore[arg-type]
    return "maps.npz"


WRITERS: dict[str, Callable[[World, Maps], str]] = {
    "npy": folder_of,
    "npz": lambda world, maps: folder_of(world, maps, ending=".npz"),
    "archive": one_archive,
    "double": lambda world, maps: folder_of(world, {k: m.astype(np.float64) for k, m in maps.items()}),
    "by columns": lambda world, maps: folder_of(world, {k: np.asfortranarray(m) for k, m in maps.items()}),
}
RECIPES = {
    "positive": RenderSpec(),
    "diverging": RenderSpec(sign="diverging", colormap="PuOr_r"),
    "contour": RenderSpec(style="contour", sign="magnitude", base="grey"),
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("writer", WRITERS)
def test_it_draws_a_saved_map_of_ours_to_the_byte(world: World, writer: str, recipe: str) -> None:
    maps = maps_of(world, INTEGRATED)
    assert all((values < 0).any() for values in maps.values())
    render_spec = RECIPES[recipe]
    ours = [spec_for(i, world.source, INTEGRATED, render_spec, 1) for i in world.items.values()]
    theirs = world.specs(world.record(WRITERS[writer](world, maps)), render_spec)
    for rendered, other in zip(render(ours, world.store), render(theirs, world.store), strict=True):
        assert rendered.spec.picture_key != other.spec.picture_key
        assert rendered.drawn.picture_digest == other.drawn.picture_digest
        for mine, its in (
            (rendered.drawn.explanation_file, other.drawn.explanation_file),
            (rendered.drawn.explanation_tile_file, other.drawn.explanation_tile_file),
        ):
            assert mine and its and mine != its
            assert world.store.get(mine) == world.store.get(its)


def test_it_needs_nothing_but_the_store_to_render(world: World, tmp_path: Path) -> None:
    specs = world.specs(world.record(folder_of(world, noise(world))))
    elsewhere = LocalStore(tmp_path / "elsewhere")
    shutil.copytree(tmp_path / "store", elsewhere.root)
    shutil.rmtree(world.folder / "maps")
    made = list(attempt(specs, Bench(elsewhere)))
    assert len(made) == 6 and all(isinstance(rendered, RenderedStimulus) for rendered in made)


def test_it_reads_grey_pictures_as_shares_of_white(world: World) -> None:
    rng = np.random.default_rng(2)
    levels = {"8": (np.uint8, 255), "16": (np.uint16, 65535)}
    for name, (kind, white) in levels.items():
        drawn = {key: rng.integers(0, white + 1, (SIDE, SIDE)).astype(kind) for key in world.items}
        for key, grey in drawn.items():
            path = world.folder / name / f"{key}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(grey).save(path)
        for key, made in zip(drawn, world.read(name), strict=True):
            assert isinstance(made, PixelAttribution) and not made.signed
            naive = [[int(level) / white for level in row] for row in drawn[key]]
            np.testing.assert_array_equal(made.values, np.array(naive).astype(np.float32))


def bilinear(coarse: NDArray[np.float32], side: int) -> NDArray[np.float64]:
    """Half-pixel centres, edges repeated: by the definition, one value at a time."""
    rows, columns = coarse.shape
    fine = np.zeros((side, side))
    for y in range(side):
        for x in range(side):
            v, u = (y + 0.5) * rows / side - 0.5, (x + 0.5) * columns / side - 0.5
            top, left = int(np.floor(v)), int(np.floor(u))
            for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
                share = (1 - abs(v - top - dy)) * (1 - abs(u - left - dx))
                row, column = np.clip(top + dy, 0, rows - 1), np.clip(left + dx, 0, columns - 1)
                fine[y, x] += share * coarse[row, column]
    return fine


def test_it_enlarges_a_coarse_grid_only_if_the_study_says_so(world: World) -> None:
    rng = np.random.default_rng(3)
    coarse = {key: rng.normal(size=(7, 5)).astype(np.float32) for key in world.items}
    path = folder_of(world, coarse)
    with pytest.raises(BadSpec, match=r"7 x 5 values .* 32 x 32 pixels: say resize = true"):
        world.record(path)
    for key, made in zip(world.items, world.read(path, resize=True), strict=True):
        assert isinstance(made, PixelAttribution)
        np.testing.assert_allclose(made.values, bilinear(coarse[key], SIDE), atol=1e-5)


def test_it_names_contents_and_not_places(world: World) -> None:
    maps = noise(world)
    first = world.specs(world.record(folder_of(world, maps)))
    moved = world.specs(world.record(folder_of(world, maps, "other", ".npz")))
    assert [spec.attribution_key for spec in first] == [spec.attribution_key for spec in moved]
    key = next(iter(maps))
    maps[key] = maps[key].copy()
    maps[key][3, 4] = np.nextafter(maps[key][3, 4], np.float32(2))
    changed = world.specs(world.record(folder_of(world, maps, "changed")))
    apart = [
        rendered.picture_key != other.picture_key and rendered.attribution_key != other.attribution_key
        for rendered, other in zip(first, changed, strict=True)
    ]
    assert apart == [True, False, False, False, False, False]
    assert all("maps" not in json.dumps(spec.as_json()) for spec in first)
    assert all(StimulusSpec.from_json(spec.as_json()) == spec for spec in first)


def test_it_gives_all_maps_of_a_condition_one_sign(world: World) -> None:
    positive, key = noise(world, low=0), next(iter(world.items))
    path = folder_of(world, positive)
    assert [made.signed for made in world.read(path)] == [False] * 6  # type: ignore[attr-defined]
    assert [made.signed for made in world.read(path, signed=True)] == [True] * 6  # type: ignore[attr-defined]
    positive[key] = -positive[key]
    path = folder_of(world, positive, "one")
    assert [made.signed for made in world.read(path)] == [True] * 6  # type: ignore[attr-defined]
    with pytest.raises(BadSpec, match=f'map of "{key}" has values below 0'):
        world.record(path, signed=False)


def write_every_form(world: World) -> dict[str, str]:
    """One file of each form for pictures: its name by the kind of explanation."""
    (world.folder / "shots").mkdir()
    for place in range(3):
        picture = np.full((20 + 10 * place, 30, 3), 60 * place, np.uint8)
        Image.fromarray(picture).save(world.folder / "shots" / f"{place}.png")
    keys = list(world.items)
    world.table(
        "weights.csv",
        ("item", "concept", "value"),
        *((key, *row) for key in keys for row in (("ears", 0.5), ("snow", -1.25), ("tail", 0))),
    )
    world.table(
        "near.csv",
        ("item", "picture", "caption"),
        *((key, f"shots/{place}.png", f"number {place}") for key in keys for place in range(3)),
    )
    reasons = [(key, f"Because of “{at}”.") for at, key in enumerate(keys)]
    world.table("why.csv", ("item", "sentence"), *reasons)
    return {"concept": "weights.csv", "pictures": "near.csv", "sentence": "why.csv"} | {
        "image": folder_of(world, noise(world))
    }


def test_it_reads_tables_as_they_were_written(world: World) -> None:
    names = write_every_form(world)
    for weights in world.read(names["concept"]):
        assert isinstance(weights, ConceptAttribution) and weights.concepts == ("ears", "snow", "tail")
        np.testing.assert_array_equal(weights.values, np.array([0.5, -1.25, 0], np.float32))
    for near in world.read(names["pictures"]):
        assert isinstance(near, PictureExplanation)
        assert near.captions == ("number 0", "number 1", "number 2")
        assert [picture.shape for picture in near.pictures] == [(20, 30, 3), (30, 30, 3), (40, 30, 3)]
        assert [int(picture.max()) for picture in near.pictures] == [0, 60, 120]
    told = world.read(names["sentence"])
    assert told == [TextExplanation(f"Because of “{at}”.") for at in range(6)]
    for at, key in enumerate(world.items):
        path = world.folder / "texts" / f"{key}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"  Because of\n“{at}”.\n", encoding="utf-8")
    assert world.read("texts") == told


def test_it_draws_every_form_and_finds_it_again(world: World) -> None:
    for kind, name in write_every_form(world).items():
        specs = world.specs(world.record(name))
        assert {spec.explainer.params["kind"] for spec in specs if spec.explainer} == {kind}
        made = list(render(specs, world.store))
        assert [rendered.drawn.said for rendered in made][:1] == [
            {
                "concept": "snow −100%, ears +40%, tail 0%",
                "pictures": "number 0; number 1; number 2",
                "sentence": "Because of “0”.",
            }.get(kind, "")
        ]
        for rendered in made:
            picture = png.decode(world.store.get(str(rendered.drawn.explanation_file)))
            tile = png.decode(world.store.get(str(rendered.drawn.explanation_tile_file)))
            assert picture.shape == ((32, 32, 3) if kind == "image" else (640, 640, 3))
            assert tile.shape == (224, 224, 3)
        again = list(recheck(specs, world.store))
        assert [(rendered.difference, rendered.error) for rendered in again] == [(0.0, "")] * 6


def test_it_places_pictures_in_their_order(world: World) -> None:
    from stimuli.render.picture_explanation import draw_panels

    colours = [(200, 30, 30), (30, 200, 30), (30, 30, 200), (200, 200, 30)]
    pictures = tuple(np.full((10, 10, 3), colour, np.uint8) for colour in colours)
    panel = draw_panels(PictureExplanation(pictures, ("a", "b", "", "d")))
    centres = [tuple(int(level) for level in panel[y, x]) for y in (140, 460) for x in (160, 480)]
    assert centres == colours
    alone = draw_panels(PictureExplanation(pictures[:1], ("",)))
    assert (alone[20:620, 20:620] == colours[0]).all() and (alone[:5] == 255).all()


@pytest.mark.parametrize("change", [{"target": 1}, {"seed": 2}, {"predictor_key": ""}, {"layer": "other"}])
def test_it_does_not_stand_for_another_answer_model_or_seed(world: World, change: dict[str, object]) -> None:
    """What asks for an explanation of the other answer must hear that there is none, not see the same one."""
    [spec, *_] = world.specs(world.record(folder_of(world, noise(world))))
    if "target" in change:
        change = {"target": 1 - spec.target}
    if "predictor_key" in change:
        other = Component("toy", {"kind": "linear", "input_px": SIDE})
        change = {"predictor_key": prepare(DATASET, other, world.folder, world.store).predictor_key}
    [made] = attempt([replace(spec, **change)], Bench(world.store))  # type: ignore[arg-type]
    assert isinstance(made, StimulusFailure) and "recorded for one answer, model and seed" in made.error
    [made] = attempt([replace(spec, render=RenderSpec(alpha=0.3))], Bench(world.store))
    assert isinstance(made, RenderedStimulus)


@pytest.mark.parametrize("metric", ["sparsity", "entropy", "deletion", "jpeg_complexity"])
def test_a_metric_of_weights_says_that_it_does_not_apply(world: World, metric: str) -> None:
    names = write_every_form(world)
    for kind in ("pictures", "sentence"):
        [spec, *_] = world.specs(world.record(names[kind]))
        [made] = attempt([spec], Bench(world.store), {spec.picture_key: [Component(metric)]})
        assert isinstance(made, RenderedStimulus)
        [number] = made.numbers
        assert number.measured is None and f"{metric} scores weights" in number.error


def test_it_marks_words_as_ours_are_marked(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    dataset = Component("sentences", {"task": "tense", "count": 12, "model_count": 40})
    source = prepare(dataset, Component("trained_text", {"epochs": 1}), tmp_path, store)
    items = {item.key: item for item in survey(source, store)[:3]}
    world = World(tmp_path, store, source, items)
    lime = Component("lime_text", {"samples": 60})
    ours = [spec_for(item, source, lime, RenderSpec(), 1) for item in items.values()]
    spans = {}
    for key, rendered in zip(items, render(ours, store), strict=True):
        text = files.read_text(store, rendered.spec.image_key)
        made = files.read_attribution(store, rendered.spec.attribution_key)
        assert isinstance(made, TokenAttribution)
        spans[key] = [
            {"start": start, "end": end, "weight": float(value), "text": text[start:end]}
            for (start, end), value in zip(made.spans, made.values, strict=True)
        ]
    world.write("spans.json", json.dumps(spans))
    for rendered, other in zip(
        render(ours, store), render(world.specs(world.record("spans.json")), store), strict=True
    ):
        mine, its = (str(made.drawn.explanation_file) for made in (rendered, other))
        assert mine != its and store.get(mine) == store.get(its)
    # A rationale stands beside a text as a picture.
    world.table("why.csv", ("item", "sentence"), *((key, "It speaks of the past.") for key in items))
    for rendered in render(world.specs(world.record("why.csv")), store):
        assert rendered.drawn.image_file.endswith(".json") and rendered.drawn.width_px == 640
        assert str(rendered.drawn.explanation_file).endswith(".png")
        assert rendered.drawn.said == "It speaks of the past."
    world.table("weights.csv", ("item", "concept", "value"), *((key, "past", 1) for key in items))
    with pytest.raises(BadSpec, match="concept weights, but the items are texts, which take token"):
        world.record("weights.csv")
    key = next(iter(items))
    piece = spans[key][0]["text"]
    for wrong, match in (
        (
            [{"start": 0, "end": 4000, "weight": 1}],
            r"1 span outside a text of 89 characters: \(0, 4000\); count",
        ),
        ([{"start": True, "end": 2, "weight": 1}], r"outside a text of .*: \(True, 2\)"),
        ([{"start": 0, "end": 1, "weight": 1e39}], r"weight is no finite number: \(0, 1\) \(1e\+39\)"),
        ([{"start": 0, "end": 1, "weight": "1"}], "weight is no finite number"),
        ([{"start": 0, "end": 2, "weight": 1}, {"start": 1, "end": 3, "weight": 1}], "add up the weights"),
        (
            [{"start": 3, "end": 5, "weight": 1}, {"start": 0, "end": 2, "weight": 1}],
            "in the order of the text",
        ),
        (
            [{"start": 0, "end": 1}],
            r"1 span with other keys than start, end, weight.*: the 1. \(end, start\)",
        ),
        ([{"start": 0, "end": 2, "weight": 1, "text": f"{piece}x"}], "another text than the item's"),
        ({"0": 1}, "a list of"),
    ):
        world.write("spans.json", json.dumps(spans | {key: wrong}))
        with pytest.raises(BadSpec, match=match):
            world.record("spans.json")


def test_it_names_files_that_hold_no_spans(tmp_path: Path) -> None:
    for raw, match in (
        ('{"a": [], "a": []}', "'a' is given twice"),
        ('{"a": [{"start": 0, "end": 1, "weight": NaN}]}', "NaN is no number"),
        ("[]", "no JSON object"),
        ("[" * 100_000, "cannot be read"),
        ("{", "cannot be read"),
    ):
        (tmp_path / "spans.json").write_text(raw)
        with pytest.raises(BadSpec, match=match):
            token_spans(tmp_path / "spans.json")


def test_it_refuses_a_stored_file_with_another_content(world: World) -> None:
    named = world.record(folder_of(world, noise(world)))
    digests = [str(component.params["digest"]) for component in named.values()]
    first, second = (files.recorded_file(digest) for digest in digests[:2])
    root = world.folder / "store"
    shutil.copyfile(root / first, root / second)
    with pytest.raises(ShapeMismatch, match="another content than its name says"):
        files.read_recorded(world.store, digests[1])


def test_offsets_of_a_byte_level_tokenizer_are_refused_once_and_read_as_the_message_says(
    tmp_path: Path,
) -> None:
    """As GPT-2's tokenizer cuts "I am \U0001f600 happy": marks of start and end, a lone space, four bytes."""
    places = [(0, 0), (0, 1), (2, 4), (5, 5), (5, 6), (5, 6), (5, 6), (5, 6), (7, 12), (0, 0)]
    weights = [0.25, 0.5, 0.75, 0.0, 0.125, 0.25, 0.125, 0.5, 1.0, 0.25]
    view = ItemView(text="I am \U0001f600 happy")

    def read(spans: Iterable[tuple[tuple[int, int], float]]) -> TokenAttribution:
        rows = [{"start": start, "end": end, "weight": weight} for (start, end), weight in spans]
        (tmp_path / "spans.json").write_text(json.dumps({"a": rows}))
        made = token_spans(tmp_path / "spans.json")["a"](view)
        assert isinstance(made, TokenAttribution)
        return made

    with pytest.raises(BadSpec) as refused:
        read(zip(places, weights, strict=True))
    assert str(refused.value) == (
        'recorded "spans.json", item "a" has 3 spans without characters: (0, 0), (5, 5), (0, 0); leave out '
        "the marks of start and end, and tokens of no width; and 3 spans with characters of the one in front "
        "of it: (5, 6), (5, 6), (5, 6); add up the weights of tokens that share characters"
    )
    sums: dict[tuple[int, int], float] = {}
    for (start, end), weight in zip(places, weights, strict=True):
        if start < end:
            sums[start, end] = sums.get((start, end), 0.0) + weight
    made = read(sums.items())
    assert made.spans == ((0, 1), (2, 4), (5, 6), (7, 12))
    assert made.values.tolist() == [0.5, 0.75, 1.0, 1.0]
