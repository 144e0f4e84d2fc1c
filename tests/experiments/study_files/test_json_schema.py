"""The JSON Schema of study.toml: what the reader takes it takes, and planted mistakes both refuse."""

from __future__ import annotations

import json
import shutil
import tomllib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from jsonschema import Draft7Validator

from experiments.errors import InvalidStudy
from experiments.study_files.json_schema import schema_text, study_schema
from experiments.study_files.load import STUDIES_DIR, load_study
from stimuli.datasets import DATASET_PARAMS, DATASETS
from stimuli.explainers import EXPLAINERS
from stimuli.predictors import PREDICTOR_PARAMS, PREDICTORS
from tests.services import ROOT

pytestmark = pytest.mark.pure
SCHEMA = Draft7Validator(study_schema())
SHIPPED = sorted(STUDIES_DIR.glob("*/study.toml"))
EXTENSION = """
slug = "later"
title = "Later"
extends = "wolf-or-husky"
[[conditions]]
name = "rise"
role = "method"
explainer = { name = "rise" }
"""
PLANTED = {
    'downsampling = "none"': ('downsampling = "average"', "stimuli/predictor/downsampling"),
    "sead = 2022": ("seed = 2022", ""),
    "seed = -1": ("seed = 2022", "seed"),
    'paradigm = "meta"': ('paradigm = "meta_predictor"', "paradigm"),
    "blocks = 0": ("blocks = 3", "design/blocks"),
    "blcks = 3": ("blocks = 3", "design"),
    'balance = "even"': ('balance = "prediction_x_correct"', "stimuli/balance"),
    'scenario = "biased", size = 3': ('scenario = "biased"', "stimuli/dataset"),
    "count = 7": ("count = 160", "stimuli/dataset/count"),
    'count = "160"': ("count = 160", "stimuli/dataset/count"),
    'name = "synthetics"': ('name = "synthetic"', "stimuli/dataset/name"),
    'name = "trained_cn"': ('name = "trained_cnn"', "stimuli/predictor/name"),
    'name = "gradcam"': ('name = "grad_cam" }', "conditions/6/explainer/name"),
    "baseline = 2.5": ("baseline = 0.5", "conditions/4/explainer/baseline"),
    'role = "kontrol"': ('role = "control"', "conditions/1/role"),
    'debrief = ["debrief.md"]': ('debrief = "debrief.md"', "texts/debrief"),
    "instructed = -2": ("instructed = 2", "checks/instructed"),
    "quiz_attempts = 2": ("quiz_attempts_max = 2", "screening"),
    "quiz_attempts_max = 2.5": ("quiz_attempts_max = 2", "screening/quiz_attempts_max"),
    "total_minutes = [1.5]": ("total_minutes = [1.5, 30]", "screening/total_minutes"),
    "screened_share = 1.2": ("screened_share = 1.0", "policy/screened_share"),
    "minimum_age = 12": ("minimum_age = 18", "ethics/minimum_age"),
    'currency = "usd"': ('currency = "USD"', "reward/currency"),
    'contrasts = "scheffe"': ('contrasts = "dunnett"', "preregistration/contrasts"),
    'kind = "texts"': ('kind = "text"', "questions/2/kind"),
}
"""What is written in place of what, and where the schema complains."""


def complaints(tables: dict[str, Any]) -> set[str]:
    return {"/".join(map(str, error.absolute_path)) for error in SCHEMA.iter_errors(tables)}


def test_it_is_a_schema_and_the_published_one() -> None:
    """`study_schema --out docs/study.schema.json` writes it again."""
    Draft7Validator.check_schema(SCHEMA.schema)
    assert (ROOT / "docs" / "study.schema.json").read_text() == schema_text()
    assert json.loads(schema_text()) == SCHEMA.schema


@pytest.mark.parametrize("file", SHIPPED, ids=[file.parent.name for file in SHIPPED])
def test_every_shipped_study_is_in_order(file: Path) -> None:
    assert complaints(tomllib.loads(file.read_text())) == set()


@pytest.mark.parametrize("written", PLANTED)
def test_a_planted_mistake_is_refused_by_the_schema_and_by_the_reader(tmp_path: Path, written: str) -> None:
    shutil.copytree(STUDIES_DIR / "wolf-or-husky", tmp_path / "mine")
    path = tmp_path / "mine" / "study.toml"
    before, place = PLANTED[written]
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, f"{written} }}" if before.endswith("}") else written, 1))
    assert place in complaints(tomllib.loads(path.read_text()))
    with pytest.raises(InvalidStudy):
        load_study(path)


def test_it_knows_the_parameters_of_predictors() -> None:
    tables = tomllib.loads((STUDIES_DIR / "wolf-or-husky" / "study.toml").read_text())
    tables["stimuli"]["predictor"] = {
        "name": "torch_image", "weights": "a.pt2", "labels": ["a", "b"], "input_px": 64, "mean": [0.47],
    }  # fmt: skip
    assert complaints(tables) == {"stimuli/predictor/mean"}
    tables["stimuli"]["predictor"]["mean"] = [0.47, 0.47, 0.47]
    assert complaints(tables) == set()


@pytest.mark.parametrize(
    ("table", "params"), [(DATASETS, DATASET_PARAMS), (PREDICTORS, PREDICTOR_PARAMS)], ids=["data", "models"]
)
def test_every_dataset_and_predictor_of_the_core_says_what_it_takes(table: Any, params: Any) -> None:
    assert [name for name in table if table.origin(name) is None] == list(params)


def test_an_extension_has_few_tables_of_its_own() -> None:
    assert complaints(tomllib.loads(EXTENSION)) == set()
    assert complaints(tomllib.loads(f"seed = 3\n{EXTENSION}")) == {""}
    assert complaints(tomllib.loads(EXTENSION.replace('extends = "wolf-or-husky"', ""))) == {""}


def test_a_package_may_offer_what_it_does_not_know() -> None:
    tables = tomllib.loads(EXTENSION)
    tables["conditions"][0]["explainer"] = {"name": "some-package:any", "strength": 3}
    assert complaints(tables) == set()
    with EXPLAINERS.added("unlisted", EXPLAINERS.load("rise")):
        assert "explainer.unlisted" in study_schema()["$defs"], "it is made from the table"


def test_the_command_writes_it_and_says_how_an_editor_takes_it(tmp_path: Path) -> None:
    out = StringIO()
    call_command("study_schema", "--out", str(tmp_path / "s.json"), stdout=out)
    assert "#:schema ./s.json" in out.getvalue() and (tmp_path / "s.json").read_text() == schema_text()
    printed = StringIO()
    call_command("study_schema", stdout=printed)
    assert json.loads(printed.getvalue()) == SCHEMA.schema
    with pytest.raises(CommandError, match="name another file"):
        call_command("study_schema", "--out", str(tmp_path))
