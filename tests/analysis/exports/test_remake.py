"""An export describes each picture completely: the picture can be made again from it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from analysis.columns import TABLES
from analysis.exports.study_export import LEFT_OUT, PICTURES
from analysis.spreadsheet_cells import unescape_cell
from analysis.tables.response_reader import read_frames
from analysis.tables.stimuli import spec_of, stimulus_rows
from experiments.models import Prediction, Study
from stimuli.models import Stimulus
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.predictors import restore
from stimuli.render.recipe import RenderSpec
from stimuli.spec import RENDERER_VERSION, Component, StimulusSpec, content_key
from stimuli.store import Store, open_store
from stimuli.store.files import predictor_file, view_file
from tests.analysis import stored
from tests.analysis.exports.test_plans import digest_of
from tests.analysis.exports.test_plans import rows_of as plans_of
from tests.world import Person, opened_study, write_study

pytestmark = pytest.mark.django_db
RECIPE = ("recipe", "viridis", "magma")


@pytest.fixture
def package(db: None, shared: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The export of a study of margins whose control draws at random, so that its seed matters; made once."""
    if "package" not in shared:
        folder = tmp_path_factory.mktemp("remake")
        path = write_study(folder / "study", slots=2)
        drawn = '{ name = "rise", masks = 16, output = "logit" }'
        text = path.read_text().replace('{ name = "bottom_up_saliency" }', drawn)
        path.write_text(text.replace("[[cond", '[explained]\noperator = "margin"\n[[cond', 1))
        study = opened_study(path)
        Person("ada").take_part()
        Study.objects.filter(pk=study.pk).update(state="closed")
        call_command("export", study.slug, "--out", str(folder / "out"))
        shared["package"] = folder / "out"
    return shared["package"]


@pytest.fixture(scope="module")
def shared() -> dict[str, Path]:
    return {}


def rows_of(package: Path) -> list[dict[str, str]]:
    """The table as read with the csv module alone."""
    with (package / "stimuli.csv").open(newline="", encoding="utf-8") as handle:
        return [{name: unescape_cell(cell) for name, cell in row.items()} for row in csv.DictReader(handle)]


def stranger_s_store(folder: Path, row: dict[str, str]) -> Store:
    """A store that holds the model, the item and the picture of it that people saw, as the row names them,
    and nothing else."""
    theirs, ours = open_store(str(folder)), open_store(settings.STORAGE_URL)
    seen = json.loads(row["recipe"])["canvas"]["picture"]
    for file in (predictor_file(row["predictor_key"]), view_file(row["image_key"]), view_file(seen)):
        theirs.put(file, ours.get(file))
    return theirs


@pytest.mark.parametrize("condition", ["control", "saliency"])
def test_it_makes_an_explanation_again_from_its_row_alone(
    package: Path, tmp_path: Path, condition: str
) -> None:
    row = next(row for row in rows_of(package) if row["condition"] == condition)
    (made,) = attempt([spec_of(row)], Bench(stranger_s_store(tmp_path / "theirs", row)))
    assert isinstance(made, RenderedStimulus)
    assert made.drawn.picture_digest == row["picture_digest"]
    assert spec_of(row).attribution_key == row["attribution_key"]
    assert spec_of(row).picture_key == row["stimulus_key"]


@pytest.mark.parametrize(
    ("column", "old", "new"),
    [("seed", "11", "12"), ("target", "1", "0"), ("against", "0", "1"), RECIPE],
)
def test_it_needs_every_one_of_these_cells(
    package: Path, tmp_path: Path, column: str, old: str, new: str
) -> None:
    row = next(r for r in rows_of(package) if r["condition"] == "control" and r["target"] == "1")
    assert old in row[column]
    spec = spec_of(row | {column: row[column].replace(old, new)})
    (made,) = attempt([spec], Bench(stranger_s_store(tmp_path / "theirs", row)))
    assert isinstance(made, RenderedStimulus)
    assert made.drawn.picture_digest != row["picture_digest"]


def test_it_names_the_model_by_digest_name_and_labels(package: Path) -> None:
    (key,) = {row["predictor_key"] for row in rows_of(package)}
    model = restore(open_store(settings.STORAGE_URL).get(predictor_file(key)))
    assert model.key == key
    (text,) = {row["predictor"] for row in rows_of(package)}
    named = json.loads(text)
    assert (named["name"], named["input_px"], named["labels"]) == ("toy", 32, list(model.labels))
    assert named["provenance"] == dict(model.provenance)


def test_it_gives_the_baseline_no_map(package: Path) -> None:
    by_role: dict[str, list[dict[str, str]]] = {}
    for row in rows_of(package):
        by_role.setdefault(row["role"], []).append(row)
    for row in by_role["baseline"]:
        assert row["attribution_key"] == row["explainer"] == row["explainer_version"] == row["layer"] == ""
        assert row["stimulus_key"] and row["picture_digest"]
    for row in by_role["method"] + by_role["control"]:
        assert len(row["attribution_key"]) == 64 and row["explainer_version"]


def test_it_names_what_its_digests_stand_for(package: Path) -> None:
    """Each digest in the package is of a file in it, of the definition, or named as left out."""
    manifest = json.loads((package / "manifest.json").read_text())
    definition = json.loads((package / "definition.json").read_text())
    assert content_key(definition) == manifest["study_digest"]
    rules = {
        name: {key: value for key, value in rule.items() if value is not None}
        for name, rule in definition["screening"].items()
    }
    known = {
        *(entry["sha256"] for entry in manifest["files"]),
        *(manifest["study_digest"], manifest["digest"], content_key(rules)),
        digest_of(plans_of(package)),
    }
    assert manifest["left_out"] == [*LEFT_OUT, PICTURES]
    excused = {place for entry in manifest["left_out"] for place in entry["named_in"]}
    unnamed = set()
    for table in TABLES:
        with (package / f"{table}.csv").open(newline="", encoding="utf-8") as handle:
            for row in csv.DictReader(handle):
                unnamed |= {
                    f"{table}.{k}" for k, cell in row.items() if is_digest(cell) and cell not in known
                }
    unnamed |= {f"manifest.{k}" for k, v in manifest.items() if is_digest(v) and v not in known}
    assert unnamed <= excused
    # Every excuse is needed, except one.
    assert excused - unnamed == {"manifest.previous"}, "this is the first export"


def is_digest(cell: object) -> bool:
    return isinstance(cell, str) and len(cell) == 64 and set(cell) <= set("0123456789abcdef")


def layered(study: Study, change: Callable[[StimulusSpec], StimulusSpec]) -> dict[str, object]:
    """The row of one stimulus after its spec was changed."""
    stimulus = Stimulus.objects.filter(renderings__condition__name="grad_cam").order_by("pk").first()
    assert stimulus is not None
    spec = change(StimulusSpec.from_json(stimulus.spec))
    Stimulus.objects.filter(pk=stimulus.pk).update(spec=spec.as_json(), key=spec.picture_key)
    table = read_frames(study).stimuli
    (row,) = table[table["stimulus_key"] == spec.picture_key].to_dict("records")
    return dict(row)


@pytest.mark.parametrize(
    ("params", "layer"),
    [({"layer": ""}, "features"), ({"layer": "features.2"}, "features.2"), ({"steps": 5}, "")],
)
def test_it_tells_the_layer_that_was_read(params: dict[str, object], layer: str) -> None:
    def change(spec: StimulusSpec) -> StimulusSpec:
        return replace(spec, layer="features", explainer=Component("grad_cam", params))

    row = layered(stored.opened(), change)
    assert (row["predictor_layer"], row["layer"]) == ("features", layer)


def test_it_tells_the_package_that_offered_the_method() -> None:
    """Distribution and version are a part of the key: without them a row would not name its picture."""
    study, offered = stored.opened(), "legible-toy-methods==1.0"
    row = layered(study, lambda spec: replace(spec, packages=(offered,)))
    assert row["packages"] == f'["{offered}"]'
    text = {name: "" if cell is None else str(cell) for name, cell in row.items()}
    assert spec_of(text).picture_key == row["stimulus_key"]
    assert spec_of({**text, "packages": ""}).picture_key != row["stimulus_key"]
    later = {"packages", "operator", "against"}
    older = spec_of({name: cell for name, cell in text.items() if name not in later})
    assert (older.packages, older.operator, older.against) == ((), "logit", None)


def test_it_tells_which_renderer_drew_and_refuses_another(monkeypatch: pytest.MonkeyPatch) -> None:
    study = stored.opened()
    row = {k: str(v) for k, v in read_frames(study).stimuli.iloc[1].to_dict().items()}
    assert json.loads(row["recipe"]) == {**RenderSpec().as_json(), "renderer": RENDERER_VERSION}
    monkeypatch.setattr("analysis.tables.stimuli.RENDERER_VERSION", RENDERER_VERSION + 1)
    later = {k: str(v) for k, v in read_frames(study).stimuli.iloc[1].to_dict().items()}
    assert later["recipe"] == row["recipe"], "an older picture keeps the version that drew it"
    with pytest.raises(ValueError, match=f"drawn by version {RENDERER_VERSION} of the renderer"):
        spec_of(later)


def test_it_names_no_model_that_it_does_not_know() -> None:
    study = stored.opened()
    Study.objects.filter(pk=study.pk).update(predictor={"key": "f" * 64, "labels": ["a", "b"]})
    study.refresh_from_db()
    cells = next(iter(stimulus_rows(study, {c.pk: (c.name, c.role) for c in study.conditions.all()})))
    frame = read_frames(study).stimuli
    assert set(frame["predictor"]) == {""} and set(frame["predictor_key"]) == {content_key("toy")}
    assert len(cells) == len(frame.columns)


def test_it_tells_several_models_apart() -> None:
    study = stored.opened()
    other = "b" * 64
    control = study.conditions.get(name="control")
    control.predictor = "small"
    control.save()
    for stimulus in Stimulus.objects.filter(renderings__condition=control):
        spec = replace(StimulusSpec.from_json(stimulus.spec), predictor_key=other)
        Stimulus.objects.filter(pk=stimulus.pk).update(spec=spec.as_json(), key=spec.picture_key)
    item = study.items.get(key="item-00")
    Prediction.objects.create(item=item, predictor="small", predicted="wolf", confidence=0.6, logits=[0, 1])
    study.definition["stimuli"] |= {
        "predictor": None,
        "predictors": {"large": {"name": "toy"}, "small": {"name": "torch_image", "weights": "s.pt2"}},
    }
    keys = {"large": content_key("toy"), "small": other}
    study.predictor = {
        "key": keys["large"],
        "several": {f"photographs/{name}": {"key": key, "labels": ["a"]} for name, key in keys.items()},
    }
    study.save()
    rows = read_frames(study).stimuli.query("item == 'item-00'").set_index("condition")
    assert json.loads(rows.loc["control", "predictor"])["weights"] == "s.pt2"
    assert json.loads(rows.loc["grad_cam", "predictor"]) == {"labels": ["a"], "name": "toy"}
    assert list(rows.loc["control", ["predictor_key", "predicted", "confidence"]]) == [other, "wolf", 0.6]
    assert rows.loc["grad_cam", "predicted"] == rows.loc["baseline", "predicted"] == "husky"
