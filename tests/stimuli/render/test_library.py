"""The library: docs/library.md as it stands, and the same bits as a study."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from packaging.requirements import Requirement
from scipy.stats import spearmanr
from torch import nn

import stimuli
from stimuli import draw, explain, measure, open_model, sheet
from stimuli.datasets import open_dataset
from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch, StimulusError
from stimuli.explainers import bind_to_items
from stimuli.explainers.targets import Target
from stimuli.library.explanations import Explanations
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.predictors import restore, training_key_of
from stimuli.predictors.base import TorchPredictor
from stimuli.registry import normalise_name
from stimuli.render import png
from stimuli.render.attribution_field import drawn_field
from stimuli.render.heatmap import palette
from stimuli.render.recipe import RenderSpec
from stimuli.render.sheet import CELL_PX, GAP_PX, NAME_PX, contact_sheet
from stimuli.spec import Component
from stimuli.spec_derivation import prepare, spec_for, survey
from stimuli.store import LocalStore
from stimuli.store.files import read_attribution
from stimuli.types import PixelAttribution, Pixels
from tests.stimuli.hub_models import save_classifier
from tests.stimuli.profiled import paint

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / "library.md").read_text(), re.M | re.S)
SERVERS = {
    *("django", "djangorestframework", "celery", "kombu", "redis", "gunicorn", "whitenoise", "boto3"),
    *("psycopg2-binary", "psycopg", "drf-spectacular", "httpx", "moto", "pytest"),
}
ALONE = """
import importlib.abc, importlib.metadata, json, sys
absent = set(json.loads(sys.argv[1]))

class Alone(importlib.abc.MetaPathFinder):
    finders = tuple(sys.meta_path)

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            return None
        found = (finder.find_spec(name, path, target) for finder in self.finders)
        return next((spec for spec in found if spec is not None), None)

    def find_distributions(self, context):
        return importlib.metadata.MetadataPathFinder.find_distributions(context)

sys.path.insert(0, sys.argv[2])
sys.meta_path[:] = [Alone()]
"""
"""Makes everything absent that the library does not ask for."""
KEPT = """
import numpy as np
maps = {{f"{{method}}/{number}": each for method, each in result.maps.items()}}
np.savez("maps{number}.npz", **maps)
"""


@cache
def asked_for() -> frozenset[str]:
    """The distributions that an install without extras brings, by what those installed here declare."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names: set[str] = set()
    open_: list[tuple[str, frozenset[str]]] = []

    def take(lines: Sequence[str], extras: frozenset[str]) -> None:
        for line in lines:
            wanted = Requirement(line)
            marker = wanted.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
                open_.append((normalise_name(wanted.name), frozenset(wanted.extras)))

    take(project["dependencies"], frozenset())
    seen = set()
    while open_:
        name, extras = open_.pop()
        if (name, extras) not in seen:
            seen.add((name, extras))
            try:
                take(metadata.requires(name) or [], extras)
            except metadata.PackageNotFoundError:
                continue  # asked for on other machines
            names.add(name)
    return frozenset(names)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the page was followed; only what the library asks for is installed there."""
    folder = tmp_path_factory.mktemp("notebook")
    owners = metadata.packages_distributions()
    absent = {m for m, names in owners.items() if not {normalise_name(name) for name in names} & asked_for()}
    absent = absent - {"stimuli"} | {"experiments", "analysis", "crowd"}
    cells = [block + (KEPT.format(number=at) if at in (1, 2) else "") for at, block in enumerate(BLOCKS)]
    closing = (
        'table.to_csv("table.csv"); open("model.bin", "wb").write(model.dump())\n'
        'open("seen.json", "w").write(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))\n'
        "assert sheet(result)._repr_png_().startswith(b'\\x89PNG')\n"
    )
    (folder / "page.py").write_text(ALONE + "\n".join(cells) + closing)
    command = [sys.executable, "page.py", json.dumps(sorted(absent)), str(ROOT)]
    # The settings of the server set it for the tests; a notebook has no settings.
    env = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "MKL runs in mode" not in done.stderr
    return folder


def test_it_installs_no_server() -> None:
    assert {"torch", "pydantic", "pandas"} <= asked_for()
    assert not asked_for() & SERVERS


def test_it_follows_its_page_with_nothing_else_installed(page: Path) -> None:
    seen = set(json.loads((page / "seen.json").read_text()))
    assert "torch" in seen and not seen & {"django", "celery", "rest_framework", "psycopg2", "boto3"}
    assert (page / "sheet.png").read_bytes().startswith(b"\x89PNG")
    table = pd.read_csv(page / "table.csv")
    assert len(table) == 6 * 3 * 3 and table["value"].notna().all()
    scores = table.groupby("metric")["scores"].unique().map(list).to_dict()
    assert scores == {
        "deletion": ["method"],
        "deletion_drawn": ["drawn"],
        "method_similarity": ["drawn"],
    }


def test_importing_the_package_imports_nothing() -> None:
    code = "import sys; before = set(sys.modules); import stimuli; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} <= {"stimuli", *sys.stdlib_module_names}
    with pytest.raises(AttributeError, match="has no attribute 'explian'"):
        stimuli.explian  # noqa: B018


class Study:
    """A study's own way from files to stored stimuli: `prepare`, `survey`, `spec_for`, `attempt`."""

    def __init__(self, page: Path, folder: Path) -> None:
        dataset, predictor = component("folder", path="textures"), component("trained_cnn", input_px=64)
        self.store = LocalStore(folder / "store")
        content = open_dataset(dataset, page).content_digest()
        # Training again would take longer, and prove nothing about maps.
        trained = training_key_of(predictor, dataset, content, page)
        self.store.put(f"trained/{trained}.bin", (page / "model.bin").read_bytes())
        self.source = prepare(dataset, predictor, page, self.store)
        shown = {path.name for path in (page / "pictures").iterdir()}
        self.items = sorted(
            (item for item in survey(self.source, self.store) if Path(item.key).name in shown),
            key=lambda item: Path(item.key).name,
        )

    def rendered(
        self,
        explainer: Component,
        seed: int = 0,
        target: Target = Target(),  # noqa: B008
        recipe: RenderSpec = RenderSpec(),  # noqa: B008
        metrics: Sequence[Component] = (),
    ) -> list[RenderedStimulus]:
        specs = [
            spec_for(item, self.source, each, recipe, seed, target=target)
            for item, each in zip(self.items, bind_to_items(explainer, self.items, seed), strict=True)
        ]
        asked = {spec.picture_key: metrics for spec in specs}
        made = {
            done.spec.picture_key: done
            for done in attempt(specs, Bench(self.store), asked)
            if isinstance(done, RenderedStimulus)
        }
        return [made[spec.picture_key] for spec in specs]

    def maps(self, explainer: Component, seed: int = 0, target: Target = Target()) -> NDArray[np.float32]:  # noqa: B008
        keys = [done.spec.attribution_key for done in self.rendered(explainer, seed, target)]
        return np.stack([values_of(read_attribution(self.store, key)) for key in keys])


def component(name: str, **params: Any) -> Component:
    return Component(name, params)


def values_of(made: object) -> NDArray[np.float32]:
    assert isinstance(made, PixelAttribution)
    return made.values


@pytest.fixture(scope="module")
def study(page: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return Study(page, tmp_path_factory.mktemp("study"))


@pytest.fixture
def model(page: Path) -> TorchPredictor:
    restored = restore((page / "model.bin").read_bytes())
    assert isinstance(restored, TorchPredictor)
    return restored


def test_its_page_gives_the_bits_of_a_study(page: Path, study: Study) -> None:
    with np.load(page / "maps1.npz") as maps:
        assert sorted(maps) == ["grad_cam/1", "integrated_gradients/1", "occlusion/1"]
        for name in maps:
            np.testing.assert_array_equal(maps[name], study.maps(component(name.partition("/")[0])))
            assert np.ptp(maps[name], axis=(1, 2)).all(), "maps of nothing would be equal too"
    with np.load(page / "maps2.npz") as maps:
        gravel = Target("label", label="gravel")
        np.testing.assert_array_equal(maps["Grad-CAM/2"], study.maps(component("grad_cam"), 7, gravel))
        smooth = component("smooth_grad", draws=20)
        np.testing.assert_array_equal(maps["SmoothGrad/2"], study.maps(smooth, 7, gravel))


@pytest.mark.parametrize("name", ["random", "other_item", "other_class", "randomised_network", "rise"])
def test_controls_and_draws_are_those_of_a_study(
    name: str, page: Path, study: Study, model: TorchPredictor
) -> None:
    params: Mapping[str, Any] = {"masks": 200} if name == "rise" else {"of": "saliency"}
    result = explain(model, page / "pictures", [{"name": name, **params}], seed=3)
    np.testing.assert_array_equal(result.maps[name], study.maps(component(name, **params), 3))
    before = [value.clone() for value in model.module.state_dict().values()]
    again = explain(model, page / "pictures", ["saliency"])
    assert not np.array_equal(again.maps["saliency"], result.maps[name])
    after = model.module.state_dict().values()
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_it_draws_and_measures_as_a_study_does(page: Path, study: Study, model: TorchPredictor) -> None:
    recipe = {"sign": "diverging", "smooth_px": 1.0}
    result = explain(model, page / "pictures", ["integrated_gradients"])
    metrics = ["deletion", "insertion_drawn", "sparsity"]
    done = study.rendered(
        component("integrated_gradients"),
        recipe=RenderSpec(colormap="PuOr_r", alpha=0.8, sign="diverging", smooth_px=1.0),
        metrics=[component(name) for name in metrics],
    )
    drawn = draw(result, recipe)["integrated_gradients"]
    assert [png.pixel_key(picture) for picture in drawn] == [each.drawn.picture_digest for each in done]
    table = measure(result, metrics, recipe).set_index(["picture", "metric"])["value"]
    for name, each in zip(result.names, done, strict=True):
        for number in each.numbers:
            assert number.measured is not None
            assert table[name, number.metric.name] == number.measured.value


def test_it_compares_the_drawn_fields_of_methods(page: Path, model: TorchPredictor) -> None:
    result = explain(model, page / "pictures", ["grad_cam", "occlusion"])
    table = measure(result, ["method_similarity"])
    fields = [drawn_field(result.made[method][0], RenderSpec()) for method in result.methods]  # type: ignore[arg-type]
    expected = spearmanr(fields[0].ravel(), fields[1].ravel()).statistic
    assert table["value"].iloc[0] == pytest.approx(expected)
    alone = measure(explain(model, page / "pictures", ["grad_cam"]), ["method_similarity", "localisation"])
    assert alone["value"].isna().all() and (alone["reason"].str.len() > 10).all()


class Tiny(nn.Module):
    """Two answers by the left and the right half; a layer of maps in between."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4 * 16, 2)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        pooled = nn.functional.adaptive_avg_pool2d(self.body(pictures).relu(), 4)
        logits: torch.Tensor = self.head(pooled.flatten(1))
        return logits


@pytest.fixture
def network() -> Tiny:
    torch.manual_seed(0)
    return Tiny()


def arrays(count: int = 3, side: int = 40) -> list[Pixels]:
    draws = np.random.default_rng(5)
    return [draws.integers(0, 256, (side, side + 8, 3)).astype(np.uint8) for _ in range(count)]


SMALL = {"input_px": 32}


def test_it_leaves_a_torch_module_as_it_is(network: Tiny) -> None:
    result = explain(network, arrays(), ["grad_cam", "none"], preprocess=SMALL)
    assert network.training and all(weights.requires_grad for weights in network.parameters())
    assert result.names == ("0", "1", "2") and set(result.predicted) <= {"0", "1"}
    assert result.maps["grad_cam"].shape == (3, 32, 32) and not result.maps["none"].any()
    assert repr(result) == "<3 pictures explained by grad_cam, none>"


def test_it_sees_pictures_of_all_forms_alike(network: Tiny, tmp_path: Path) -> None:
    pictures = arrays()
    (tmp_path / "a" / "b").mkdir(parents=True)
    files = [tmp_path / "a" / "b" / f"{at}.png" for at in range(3)]
    for path, picture in zip(files, pictures, strict=True):
        path.write_bytes(png.encode(picture))
    ways: list[Any] = [pictures, np.stack(pictures), files, [str(path) for path in files], tmp_path / "a"]
    results = [explain(network, way, ["saliency"], preprocess=SMALL) for way in ways]
    assert results[-1].names == ("b/0.png", "b/1.png", "b/2.png")
    for result in results[1:]:
        np.testing.assert_array_equal(result.maps["saliency"], results[0].maps["saliency"])


def test_its_result_says_which_files_were_left_out(network: Tiny, tmp_path: Path) -> None:
    for name in ("0.png", "._0.png", ".ipynb_checkpoints/0.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(png.encode(arrays(1)[0]))
    result = explain(network, tmp_path, ["saliency"], preprocess=SMALL)
    assert result.names == ("0.png",)
    said = "<1 pictures explained by saliency; 3 files are not read: 2 hidden, 1 .txt; pictures are "
    assert repr(result).startswith(said)


def test_scans_of_12_bits_are_refused_until_their_levels_are_said(network: Tiny, tmp_path: Path) -> None:
    """Black is 0, and the 4,096th level is white."""
    greys = np.random.default_rng(3).integers(0, 4096, (32, 32))
    greys[0, :2] = 0, 4095
    paint(tmp_path / "deep" / "a" / "0.png", greys.astype(np.uint16))
    ways: list[Any] = [tmp_path / "deep", [tmp_path / "deep" / "a" / "0.png"]]
    for images in ways:
        with pytest.raises(
            BadSpec,
            match="1 of 1 pictures have 16 bits and use levels 0 to 4095 of 65535, .*: set levels = 4096 as "
            "an argument if that is white, or levels = 65536 if",
        ):
            explain(network, images, ["saliency"], preprocess=SMALL)
        made = explain(network, images, ["saliency"], preprocess=SMALL, levels=4096)
        np.testing.assert_array_equal(made.views[0][..., 0], np.floor(greys / 4095 * 255))
        dark = explain(network, images, ["saliency"], preprocess=SMALL, levels=65536)
        assert dark.views[0].max() == 15
    with pytest.raises(BadSpec, match=r'1 of 1 .* above 255: .*0.png" \(4095\); declare more levels as an'):
        explain(network, ways[0], ["saliency"], preprocess=SMALL, levels=256)
    with pytest.raises(BadSpec, match="levels is 12: 256 to 65536 are taken, such as 4096 for 12 bits"):
        explain(network, ways[0], ["saliency"], preprocess=SMALL, levels=12)


def test_scans_of_a_training_are_refused_until_their_levels_are_said(tmp_path: Path) -> None:
    for n in range(2):
        for label in ("cat", "dog"):
            paint(tmp_path / "deep" / label / f"{n}.png", np.full((32, 32), 4000 + n, np.uint16))
    dataset: dict[str, Any] = {"name": "folder", "path": "deep", "people_share": 1.0}
    with pytest.raises(BadSpec, match="4 of 4 pictures have 16 bits .* set levels = 4096 in the dataset's t"):
        open_model("toy", tmp_path, dataset)
    assert open_model("toy", tmp_path, {**dataset, "levels": 4096}).labels == ("cat", "dog")


def test_it_explains_what_was_asked_for(network: Tiny) -> None:
    """The gradient of a linear head: for two labels, a margin is the difference of the two maps."""
    names = ["gradient_x_input"]
    labels = ["left", "right"]
    left, right, margin = (
        explain(network, arrays(), names, preprocess=SMALL, labels=labels, target=target).maps[names[0]]
        for target in ("left", "right", Target("label", label="left", operator="margin"))
    )
    np.testing.assert_allclose(margin, left - right, atol=1e-6)
    predicted = explain(network, arrays(), names, preprocess=SMALL, labels=labels)
    chosen = [left[at] if label == "left" else right[at] for at, label in enumerate(predicted.predicted)]
    np.testing.assert_array_equal(predicted.maps[names[0]], np.stack(chosen))


def test_it_takes_a_transformers_model_with_its_folder(tmp_path: Path) -> None:
    loaded = save_classifier(tmp_path / "vit", "ViT")
    loaded.set_attn_implementation("eager")  # as a study runs it
    mine = explain(loaded, arrays(), ["grad_cam"], preprocess=tmp_path / "vit")
    opened = open_model({"name": "transformers_image", "folder": "vit"}, tmp_path)
    theirs = explain(opened, arrays(), ["grad_cam"])
    assert mine.predicted == theirs.predicted and set(mine.predicted) <= {"cat", "dog", "owl"}
    np.testing.assert_array_equal(mine.maps["grad_cam"], theirs.maps["grad_cam"])


def test_it_reads_how_a_published_model_wants_its_pictures(network: Tiny, tmp_path: Path) -> None:
    config = {
        "pretrained_cfg": {"input_size": [3, 32, 32], "crop_pct": 1.0, "mean": [0.5] * 3, "std": [0.5] * 3}
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    read = explain(network, arrays(), ["saliency"], preprocess=tmp_path / "config.json")
    given = {"input_px": 32, "resize_px": 32, "mean": [0.5] * 3, "std": [0.5] * 3}
    said = explain(network, arrays(), ["saliency"], preprocess=given)
    np.testing.assert_array_equal(read.maps["saliency"], said.maps["saliency"])


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"methods": ["grad_kam"]}, BadSpec, "did you mean 'grad_cam'"),
        ({"methods": "grad_cam"}, BadSpec, r"write \['grad_cam'\]"),
        ({"methods": ["saliency", {"name": "saliency"}]}, BadSpec, "titles if one stands twice"),
        ({"methods": [{"steps": 3}]}, BadSpec, 'has no "name"'),
        ({"methods": ["bcos", "lime_text"]}, NotApplicable, "bcos: .*; lime_text: .*explains texts"),
        ({"methods": ["recorded"]}, StimulusError, "recorded"),
        ({"images": []}, BadSpec, "there are no pictures"),
        ({"images": "/nowhere/at/all.png"}, BadSpec, "no such file or folder, .*: /nowhere/at/all.png"),
        ({"images": [np.zeros((8, 8, 3))]}, ShapeMismatch, r"float64 \(8, 8, 3\).*np.rint"),
        ({"preprocess": None}, BadSpec, "argument 'preprocess' needs parameter 'input_px'"),
        ({"preprocess": {"input": 3}}, BadSpec, "has no parameter 'input'"),
        ({"labels": ["a", "b", "c"]}, ShapeMismatch, "2 logits, but 3 labels"),
        ({"labels": "ab"}, BadSpec, "a list is taken"),
        ({"images": [np.zeros((8, 8, 3), np.uint8), "gone.png", "off.png"]}, BadSpec, ": gone.png, off.png"),
        ({"images": np.zeros((8, 8, 3), np.uint8)}, BadSpec, r"a single picture: .* \[picture\]"),
        ({"images": 3}, BadSpec, "images is 3: a folder, a list of files"),
        ({"target": "3"}, BadSpec, "one of the labels 0, 1"),
        ({"target": 1}, BadSpec, "target is 1: .* that of logit 1 is '1'"),
        ({"target": np.int64(1), "labels": ["cat", "dog"]}, BadSpec, "that of logit 1 is 'dog'"),
        ({"target": [0, 1]}, BadSpec, r"target is \[0, 1\]: .* the same for all"),
        ({"target": None}, BadSpec, "target is None: a class is named by its label"),
        ({"target": "true"}, BadSpec, "the name of its folder"),
        ({"layer": "tail"}, BadSpec, 'layer "tail" puts out no maps'),
    ],
)
def test_it_refuses_in_one_sentence(
    network: Tiny, changes: Mapping[str, Any], error: type[Exception], words: str
) -> None:
    asked: dict[str, Any] = {"images": arrays(), "methods": ["saliency"], "preprocess": SMALL, **changes}
    with pytest.raises(error, match=words):
        explain(network, asked.pop("images"), asked.pop("methods"), **asked)


def test_it_refuses_models_that_it_cannot_explain(network: Tiny, model: TorchPredictor) -> None:
    with pytest.raises(BadSpec, match="take the softmax off"):
        explain(nn.Sequential(network, nn.Softmax(1)), arrays(), ["saliency"], preprocess=SMALL)
    with pytest.raises(BadSpec, match="say them where it is opened"):
        explain(model, arrays(), ["saliency"], preprocess=SMALL)
    with pytest.raises(BadSpec, match="str is no model of pictures"):
        explain("model.pt2", arrays(), ["saliency"])  # type: ignore[arg-type]
    with pytest.raises(BadSpec, match="trained on the spot: name the pictures"):
        open_model("trained_cnn")
    broken = Tiny()
    nn.init.constant_(broken.body.weight, 1e38)
    with pytest.raises(StimulusError):
        explain(broken, arrays(), ["gradient_x_input"], preprocess=SMALL)


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"colour": "jet"}, "has no key 'colour'"),
        ({"preset": "colin-2022-figures"}, "does not say sign"),
        ({"preset": "figures"}, "colin-2022-figures"),
        ({"alpha": 2.0}, "alpha is 2.0"),
        ({"alpha": "half"}, "of another kind"),
        ({"sign": "diverging"}, "this method has no sign"),
    ],
)
def test_it_refuses_recipes_that_cannot_be_drawn(
    network: Tiny, recipe: Mapping[str, Any], words: str
) -> None:
    result: Explanations = explain(network, arrays(1), ["none"], preprocess=SMALL)
    for use in (draw, sheet):
        with pytest.raises(StimulusError, match=words):
            use(result, recipe)


def test_a_sheet_holds_every_picture_in_its_place() -> None:
    pictures = {
        name: [np.full((CELL_PX, CELL_PX, 3), 40 * at + row, np.uint8) for row in range(2)]
        for at, name in enumerate(("picture", "grad_cam", "rise"), 1)
    }
    names = [("a.png", "husky (93 %)"), ("\U0001f43a.png", "wolf (51 %)")]
    drawn = contact_sheet(pictures, names, RenderSpec())
    for column, each in enumerate(pictures.values()):
        left = NAME_PX + 2 * GAP_PX + column * (CELL_PX + GAP_PX)
        rows = np.flatnonzero((drawn[:, left + CELL_PX // 2] == each[0][0, 0]).all(1))
        assert len(rows) == CELL_PX
        for row, picture in enumerate(each):
            top = rows[0] + row * (CELL_PX + GAP_PX)
            np.testing.assert_array_equal(drawn[top : top + CELL_PX, left : left + CELL_PX], picture)
    assert (drawn[:, :NAME_PX] < 128).any() and (drawn[: 2 * GAP_PX, NAME_PX:] < 128).any()
    foot = drawn[top + CELL_PX + 1 :]
    for end in np.rint(palette("viridis"))[[0, -1]]:
        assert (foot == end).all(2).any(), "the legend shows both ends of the palette"
    with pytest.raises(ShapeMismatch, match="1 rows are named"):
        contact_sheet(pictures, names[:1], None)
    with pytest.raises(BadSpec, match="take fewer pictures"):
        contact_sheet({"picture": pictures["rise"][:1] * 900}, names[:1] * 900, None)
