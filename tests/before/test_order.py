"""With people in a fixed order of arrival the table is the one of f38355e, number by number."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from experiments.study_files.load import STUDIES_DIR
from tests import services
from tests.before.compare import differences, table_of
from tests.before.names import paths
from tests.before.restored import json_of, unpack

pytestmark = pytest.mark.pure  # a process and a SQLite of its own
LABELS = ("Condition", "Baseline", "Control", "Saliency", "Grad-CAM")


def run(tmp_path: Path, kind: str, study: Path) -> dict[str, Any]:
    out = tmp_path / "order.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.before.order", str(out), kind, str(study)],
        cwd=services.ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return told


@pytest.mark.full
def test_the_table_of_the_closed_form_model_is_the_same(tmp_path: Path) -> None:
    """Its predictor is a formula, so no processor makes a difference."""
    study = unpack("told", tmp_path / "told") / "studies" / "before" / "study.toml"
    before, after = json_of("order-toy"), run(tmp_path, "toy", study)
    assert after["predicted"] == before["predicted"]
    assert after["simulated"] == before["simulated"]
    assert list(differences(before["report"], after["report"])) == []
    assert table_of(after["printed"], *LABELS) == table_of(before["printed"], *LABELS)
    assert len(table_of(before["printed"], *LABELS)) == 4
    assert set(paths(before["report"])) <= set(paths(after["report"]))


@pytest.mark.full
def test_the_table_of_the_demo_is_the_same(tmp_path: Path) -> None:
    """Its network is trained on the spot, and its weights differ in their last bits between processors. With
    the weights of f38355e every number must be the same; with others, all that does not depend on pictures.
    """
    before = json_of("order-demo")
    after = run(tmp_path, "demo", STUDIES_DIR / "wolf-or-husky" / "study.toml")
    if after["predictor"]["key"] == before["predictor"]["key"]:
        assert after["predicted"] == before["predicted"]
        assert after["simulated"] == before["simulated"]
        assert list(differences(before["report"], after["report"])) == []
        assert table_of(after["printed"], *LABELS) == table_of(before["printed"], *LABELS)
        return
    # The people, their order and their traits, and which keys a report has.
    assert head_of(after["simulated"]) == head_of(before["simulated"])
    assert shape_of(after["report"]) == shape_of(before["report"])
    assert {"conditions", "anova", "tukey", "flow"} <= set(paths(after["report"]))


def head_of(simulated: str) -> list[str]:
    return [line for line in simulated.splitlines() if "lapse_share" in line or line.startswith("  people")]


def shape_of(report: dict[str, Any]) -> list[tuple[Any, ...]]:
    rows = [(row["name"], row["label"], row["role"], row["wanted"]) for row in report["conditions"]]
    return [*rows, tuple(report["study"].values()), report["origin"], report["heading"]]


@pytest.mark.parametrize("spoilt", [0.5000001, None, "gone"])
def test_the_comparison_would_notice(spoilt: object) -> None:
    before, after = json_of("order-toy")["report"], json_of("order-toy")["report"]
    assert list(differences(before, after)) == []
    if spoilt == "gone":
        del after["conditions"][1]["accuracy_mean"]
    else:
        after["conditions"][1]["accuracy_mean"] = spoilt
    [line] = differences(before, after)
    assert ".conditions[1].accuracy_mean" in line
