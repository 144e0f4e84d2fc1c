"""Files for a paper: tables that other readers read back, and figures with the values that they show."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.any_table.result_tables import Table
from analysis.reports.base import Data
from analysis.reports.output.files import write_report
from analysis.reports.output.markdown_latex import (
    data_csv,
    latex,
    mark_coordinates,
    table_csv,
    table_latex,
    table_markdown,
)
from tests.analysis.reports.test_reports import usual

pytestmark = pytest.mark.pure
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
TABLE = Table(
    "t_1",
    "A & B",
    ("Condition", "50 %", "p"),
    (("under_score", f"{MINUS}1.5", ".012"), ("=SUM(A1)", DASH, "< .001"), ("a | b", "[0.1, 0.2]", ".5")),
    "A $ note #1",
)
UNESCAPE = {
    r"\textbackslash{}": "\\",
    r"\textasciitilde{}": "~",
    r"\textasciicircum{}": "^",
    r"\textless{}": "<",
    r"\textgreater{}": ">",
    **{f"\\{letter}": letter for letter in "{}&%$#_"},
}


def test_it_writes_csv_that_pandas_reads_as_numbers() -> None:
    read = pd.read_csv(io.StringIO(table_csv(TABLE)))
    assert list(read.columns) == ["Condition", "50 %", "p"]
    assert table_csv(TABLE).splitlines()[1] == "under_score,-1.5,.012"
    assert read["Condition"].tolist() == ["under_score", "'=SUM(A1)", "a | b"]
    assert pd.isna(read["50 %"][1])


def test_it_writes_every_digit_of_a_figure() -> None:
    rows = (("a", 1 / 3, None), ("b", 2.0, 4))
    _, *lines = csv.reader(io.StringIO(data_csv(Data(("c", "x", "y"), rows))))
    assert [float(line[1]) for line in lines] == [1 / 3, 2.0]
    assert [line[2] for line in lines] == ["", "4"]


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_it_escapes_what_latex_would_read(text: str) -> None:
    escaped = latex(text).removeprefix("{}" if text.split() and text.split()[0][0] == "[" else "")
    pattern = "|".join(re.escape(key) for key in sorted(UNESCAPE, key=len, reverse=True))
    bare = re.sub(pattern, "", escaped)
    assert not set(bare) & set("\\{}&%$#_~^")
    assert re.sub(pattern, lambda match: UNESCAPE[match[0]], escaped) == " ".join(text.split())


def test_it_writes_a_latex_table_with_as_many_cells_as_columns() -> None:
    lines = table_latex(TABLE).splitlines()
    assert [line for line in lines if line.startswith("\\") and "rule" in line] == [
        r"\toprule",
        r"\midrule",
        r"\bottomrule",
    ]
    rows = [line for line in lines if line.endswith(r"\\")]
    assert [len(re.findall(r"(?<!\\)&", row)) for row in rows] == [2] * 4
    assert r"under\_score & $-$1.5 & .012 \\" in rows
    assert r"\begin{tabular}{lrr}" in lines and r"\caption{A \& B}" in lines


def test_it_writes_a_markdown_table_whose_bars_are_columns() -> None:
    lines = [line for line in table_markdown(TABLE).splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in lines] == [4] * 5
    assert lines[1] == "| --- | ---: | ---: |"
    assert r"a \| b" in lines[-1]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """The folder of the usual report, and the names that writing it returned."""
    folder = tmp_path_factory.mktemp("report")
    return folder, set(write_report(usual(), folder))


def test_it_writes_each_table_and_each_figure_of_a_report(written: tuple[Path, set[str]]) -> None:
    report, (folder, names) = usual(), written
    assert names == {str(path.relative_to(folder)) for path in folder.rglob("*.*")}
    assert {"tables/table_1.csv", "tables/table_1.md", "tables/table_1.tex"} <= names
    assert {f"tables/{key}.csv" for key in report.tables()} <= names
    for figure in (figure for section in report.sections for figure in section.figures):
        assert {f"figures/{figure.key}.{form}" for form in ("svg", "pdf", "csv")} <= names
        assert figure.data is not None and figure.data.rows, figure.key
    assert (folder / "figures" / "utility.svg").read_text().startswith("<?xml")


def test_it_puts_the_numbers_of_report_json_into_table_1(written: tuple[Path, set[str]]) -> None:
    report, (folder, _) = usual(), written
    table = pd.read_csv(folder / "tables" / "table_1.csv").set_index("Condition")
    for row in report.json()["conditions"]:
        printed = table.loc[row["label"]]
        shares = [printed[f"%, Block {block + 1}"] for block in range(3)]
        assert shares == pytest.approx([100 * a for a in row["accuracy"]], abs=0.051)
        if row["role"] != "baseline":
            assert printed["Utility"] == pytest.approx(row["utility"], abs=0.0051)
            ratios = [printed[f"Utility, Block {block + 1}"] for block in range(3)]
            assert ratios == pytest.approx(row["utility_k"], abs=0.0051)


def test_it_gives_every_mark_of_a_figure_in_its_data() -> None:
    """What is drawn in percent stands in the data as a share."""
    report = usual()
    shown = {figure.key: figure for section in report.sections for figure in section.figures}
    for key, scale in (("utility", 1), ("accuracy", 100), ("blocks", 100), ("utility_k", 1)):
        figure = shown[key]
        assert figure.data is not None
        told = np.array([scale * v for row in figure.data.rows for v in row if isinstance(v, float)])
        axis = "y" if key in ("blocks", "utility_k") else "x"
        for axes in figure.draw().axes:
            lines = [
                line for line in axes.lines if line.get_marker() in ("o", ".") or line.get_linewidth() > 1.1
            ]
            for line in lines:
                values = np.atleast_1d(line.get_xdata() if axis == "x" else line.get_ydata())
                near = np.abs(told[:, None] - np.asarray(values, dtype=float)[None, :]).min(axis=0)
                assert near.max() < 1e-9, key


def test_it_reads_a_figure_without_data_from_its_marks() -> None:
    figure = next(f for s in usual().sections for f in s.figures if f.key == "utility")
    rows = mark_coordinates(figure.draw()).rows
    assert figure.data is not None
    points = {row[2] for row in figure.data.rows}
    assert points <= {row[2] for row in rows}
