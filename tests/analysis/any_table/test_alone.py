"""Statistics for any table could be published by themselves: installed without anything of studies."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.stats import f_oneway

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("analysis/stats", "analysis/any_table")
READER = ("stimuli/__init__.py", "stimuli/errors.py", "stimuli/table_reader.py")
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "any-table"
version = "0"
[tool.setuptools.packages.find]
include = ["analysis*", "stimuli"]
"""
PROGRAM = """
import json, sys
from pathlib import Path
from analysis.any_table.analyse import AnalysisPlan, analyse
from analysis.any_table.table import Roles, read_table, tidy
results = analyse(tidy(read_table(Path(sys.argv[1])), Roles("points", between=("arm",))), AnalysisPlan())
(anova,) = [table for table in results.tables if table.key == "anova"]
ours = sorted({name.split(".")[0] for name in sys.modules} & {"experiments", "crowd", "django"})
ours += sorted(name for name in sys.modules if name.startswith("stimuli"))
rooms = sorted(name for name in sys.modules if name.startswith("analysis.") and name.count(".") == 1)
print(json.dumps([anova.rows[0], ours, rooms]))
"""
POINTS = {"a": (51, 48, 57, 60, 49), "b": (62, 58, 66, 61, 70), "c": (55, 52, 63, 58, 54)}


def test_they_are_installed_alone(tmp_path: Path) -> None:
    project, site = tmp_path / "project", tmp_path / "site"
    for part in PARTS:
        shutil.copytree(ROOT / part, project / part)
    (project / "stimuli").mkdir()
    for part in READER:
        shutil.copy(ROOT / part, project / part)
    (project / "analysis" / "__init__.py").touch()
    (project / "pyproject.toml").write_text(PROJECT)
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run([*install, "--target", str(site), str(project)], check=True, capture_output=True)
    table = tmp_path / "table.csv"
    rows = [f"{arm},{points}" for arm, all_points in POINTS.items() for points in all_points]
    table.write_text("\n".join(["arm,points", *rows]))
    command = [
        sys.executable,
        "-S",
        "-c",
        f"import sys; sys.path[:0] = {[str(site), *libraries()]!r}\n{PROGRAM}",
    ]
    run = subprocess.run([*command, str(table)], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    row, ours, rooms = json.loads(run.stdout.splitlines()[-1])
    assert ours == ["stimuli", "stimuli.errors", "stimuli.table_reader"], "nothing of studies"
    assert rooms == ["analysis.any_table", "analysis.stats"]
    expected = f_oneway(*POINTS.values())
    assert row["f"] == pytest.approx(expected.statistic) and row["p"] == pytest.approx(expected.pvalue)


def libraries() -> list[str]:
    """Where installed packages lie; -S leaves out what installs this checkout beside them."""
    return [path for path in sys.path if path.endswith("site-packages")]
