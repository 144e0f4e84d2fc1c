"""Parquet holds what the CSV holds, with its types, and is written part by part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from analysis import frames
from analysis.columns import TABLES
from analysis.exports import manifest
from analysis.exports.delimited import read
from analysis.exports.release import Request, export_study
from analysis.frames import DTYPES
from experiments.models import Study
from tests.analysis.stored import cast, opened
from tests.services import ROOT

NO_LIBRARY = """
import pathlib, sys
sys.modules["pyarrow"] = None
from analysis.exports.base import ExportError
from analysis.exports.parquet import write
from analysis.frames import Frames, frame
try:
    empty = (frame(name, []) for name in ("trials", "participants", "stimuli"))
    write(Frames(*empty), pathlib.Path(sys.argv[1]))
except ExportError as error:
    print(error)
"""


@pytest.fixture
def study(db: None) -> Study:
    study = opened()
    cast(study)
    return study


@pytest.mark.parametrize("table", TABLES)
def test_it_says_the_same_as_the_csv_with_the_same_types(study: Study, tmp_path: Path, table: str) -> None:
    for name in ("csv", "parquet"):
        export_study(study, tmp_path / name, Request(format=name))
    written = pd.read_parquet(tmp_path / "parquet" / f"{table}.parquet")
    assert {name: str(written[name].dtype) for name in written} == {
        column.name: DTYPES[column.dtype] for column in TABLES[table]
    }
    of_csv = read(tmp_path / "csv" / f"{table}.csv", table)
    for name in of_csv:
        if DTYPES["time"] == str(of_csv[name].dtype):
            # The CSV has whole milliseconds.
            assert ((written[name] - of_csv[name]).abs().dropna() < pd.Timedelta(milliseconds=1)).all()
            assert list(written[name].isna()) == list(of_csv[name].isna())
        else:
            assert written[name].tolist() == of_csv[name].tolist() or written[name].equals(of_csv[name]), name


def test_it_is_a_whole_package(study: Study, tmp_path: Path) -> None:
    content = export_study(study, tmp_path / "out", Request(format="parquet", public=True))
    rows = {entry["name"]: entry["rows"] for entry in content["files"]}
    assert {f"{table}.parquet" for table in TABLES} < set(rows) and "codebook.csv" in rows
    assert rows["trials.parquet"] == pq.read_metadata(tmp_path / "out" / "trials.parquet").num_rows
    assert manifest.check(tmp_path / "out").problems == ()
    people = pd.read_parquet(tmp_path / "out" / "participants.parquet")
    assert people["started_at"].isna().all() and (people["comment"] == "").all()


def test_it_writes_a_group_of_rows_per_part(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames.parts, "__defaults__", ((), 10))
    export_study(study, tmp_path / "out", Request(format="parquet"))
    written = pq.read_metadata(tmp_path / "out" / "trials.parquet")
    assert written.num_row_groups == -(-written.num_rows // 10) > 2


def test_it_says_what_to_install_where_the_library_is_missing(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", NO_LIBRARY, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Parquet needs the package pyarrow" in said.stdout and "or export as csv" in said.stdout
