"""The package holds every plan: their digest can be computed from `plans.csv` alone."""

from __future__ import annotations

import csv
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from analysis.exports.delimited import read
from analysis.exports.study_export import Request, export_study
from analysis.spreadsheet_cells import unescape_cell
from experiments.models import Study, Trial
from experiments.opening.opening import plan_pilot
from stimuli.spec import content_key
from tests.analysis.stored import cast, opened

pytestmark = pytest.mark.django_db


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "plans.csv").open(newline="", encoding="utf-8") as handle:
        return [{name: unescape_cell(cell) for name, cell in row.items()} for row in csv.DictReader(handle)]


def digest_of(rows: list[dict[str, str]]) -> str:
    """SHA-256 over the digests of the plans, each of its canonical JSON."""
    plans = groupby((row for row in rows if row["pilot"] == "0"), key=lambda row: row["slot"])
    return content_key([content_key(plan_of(list(trials))) for _, trials in plans])


def plan_of(rows: list[dict[str, str]]) -> dict[str, Any]:
    first = rows[0]
    return {
        "ordinal": int(first["slot"]),
        "lane": first["lane"],
        "arm": first["arm"],
        "condition": first["slot_condition"] or None,
        "matched": int(first["plan"]) if first["plan"] else None,
        "trials": [trial_of(row) for row in rows],
    }


def trial_of(row: dict[str, str]) -> dict[str, Any]:
    as_json = {name: json.loads(row[name]) for name in ("choices", "reservoir", "others", "extra")}
    return {
        **{name: row[name] for name in ("phase", "kind", "condition", "expected", "variant", "check")},
        **as_json,
        "position": int(row["trial_index"]),
        "block": int(row["block"]),
        "item": row["item"] or None,
        "explained": row["explained"] == "1",
        "label": row["label"] or None,
        "right": row["right"] or None,
    }


def test_it_leads_to_the_digest_that_was_fixed_at_the_opening(tmp_path: Path) -> None:
    study = opened()
    plan_pilot(study, 3, lambda what, done, total: None)
    manifest = export_study(study, tmp_path / "out", Request())
    rows = rows_of(tmp_path / "out")
    assert len(rows) == Trial.objects.count() and {row["pilot"] for row in rows} == {"0", "1"}
    assert digest_of(rows) == study.plan_digest == manifest["plan_digest"]
    other = next(row for row in rows if row["item"])
    other["item"] = "item-47" if other["item"] != "item-47" else "item-46"
    assert digest_of(rows) != study.plan_digest


def test_it_tells_the_truth_about_the_item_of_each_answer(tmp_path: Path) -> None:
    study: Study = opened()
    cast(study)
    export_study(study, tmp_path / "out", Request())
    trials = read(tmp_path / "out" / "trials.csv", "trials")
    truths = dict(study.items.values_list("key", "truth")) | {"": ""}
    assert [truths[item] for item in trials["item"]] == list(trials["truth"])
    planned = read(tmp_path / "out" / "plans.csv", "plans").set_index(["slot", "trial_index"])["item"]
    for row in trials.to_dict("records"):
        assert planned[row["slot"], row["trial_index"]] == row["item"]
