"""Parquet holds what the CSV holds, with its types, and is written part by part."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError, call_command

from analysis import frames
from analysis.columns import TABLES
from analysis.exports import manifest, parquet
from analysis.exports.base import ExportError
from analysis.exports.delimited import read
from analysis.exports.study_export import Request, export_study
from analysis.frames import DTYPES
from experiments.models import Study
from tests.analysis.stored import cast, opened
from tests.services import ROOT

NO_LIBRARY = """
import pathlib, sys
sys.modules["pyarrow"] = None
from analysis.exports.base import ExportError
from analysis.exports.parquet import read, write
from analysis.frames import Frames, frame
folder = pathlib.Path(sys.argv[1])
empty = Frames(*(frame(name, []) for name in ("trials", "participants", "stimuli")))
for call in (lambda: write(empty, folder), lambda: read(folder / "trials.parquet", "trials")):
    try:
        call()
    except ExportError as error:
        print(error)
"""


@pytest.fixture
def study(db: None) -> Study:
    study = opened()
    cast(study)
    return study


@pytest.mark.long(stays="test_it_is_a_whole_package")
@pytest.mark.usefixtures("undrawn", "few_draws")
def test_it_says_the_same_as_the_csv_with_the_same_types(study: Study, tmp_path: Path) -> None:
    for name in ("csv", "parquet"):
        export_study(study, tmp_path / name, Request(format=name))
    for table in TABLES:
        written = pd.read_parquet(tmp_path / "parquet" / f"{table}.parquet")
        is_same(written, read(tmp_path / "csv" / f"{table}.csv", table), table)


def is_same(written: pd.DataFrame, of_csv: pd.DataFrame, table: str) -> None:
    assert {name: str(written[name].dtype) for name in written} == {
        column.name: DTYPES[column.dtype] for column in TABLES[table]
    }
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
    monkeypatch.setattr(frames.parts, "__defaults__", ((), 10, ()))
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
    assert said.stdout.count("Parquet needs the package pyarrow") == 2, "to write and to read"
    assert said.stdout.count("or export as csv") == 2


def test_it_reads_back_the_frame_that_was_written_in_parts(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames.parts, "__defaults__", ((), 10, ()))
    for name in ("csv", "parquet"):
        export_study(study, tmp_path / name, Request(format=name))
    for table in TABLES:
        of_csv = read(tmp_path / "csv" / f"{table}.csv", table)
        of_parquet = parquet.read(tmp_path / "parquet" / f"{table}.parquet", table)
        # Gates and events are of the export's own seconds; both formats have whole milliseconds.
        pd.testing.assert_frame_equal(of_parquet, of_csv)


@pytest.fixture
def package(study: Study, tmp_path: Path) -> Path:
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    export_study(study, tmp_path / "package", Request(format="parquet"))
    return tmp_path / "package"


def sealed_again(package: Path, table: pa.Table | bytes) -> None:
    """Another table of trials, with a manifest that fits it."""
    path = package / "trials.parquet"
    if isinstance(table, bytes):
        path.write_bytes(table)
    else:
        pq.write_table(table, path)
    content = json.loads((package / "manifest.json").read_text())
    rows = {entry["name"]: entry["rows"] for entry in content["files"]}
    told = {key: value for key, value in content.items() if key != "digest"}
    manifest.write(package, manifest.add_digest({**told, "files": manifest.file_entries(package, rows)}))


def report_of(package: Path) -> str:
    out = StringIO()
    call_command("report", "--from", str(package), stdout=out)
    return out.getvalue()


def test_no_report_is_made_from_a_changed_file(package: Path) -> None:
    assert "Grad-CAM" in report_of(package)
    path = package / "trials.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"wolf", b"wolv", 1))
    with pytest.raises(CommandError, match=r"trials.parquet: its content was changed[^\0]*No report is made"):
        report_of(package)
    for broken in (b"item,response", b"", whole[:-9], whole[: len(whole) // 2]):
        sealed_again(package, broken)
        with pytest.raises(CommandError, match=r"^trials.parquet: cannot be read as Parquet \(.*export the"):
            report_of(package)


def test_a_column_that_is_missing_or_of_another_type_is_named(package: Path) -> None:
    table = pq.read_table(package / "trials.parquet")
    sealed_again(package, table.drop_columns(["rt_ms"]))
    with pytest.raises(CommandError, match=r"trials.parquet: its columns are not .*: 'rt_ms' is missing\.$"):
        report_of(package)
    sealed_again(package, table.append_column("more", pa.array([1] * table.num_rows)))
    with pytest.raises(CommandError, match=r"'more' does not belong\.$"):
        report_of(package)
    sealed_again(package, table.select(table.column_names[::-1]))
    with pytest.raises(CommandError, match=r"they stand in another order\.$"):
        report_of(package)
    for column, kind, said in (
        ("rt_ms", pa.string(), "holds string, and the codebook says integer"),
        ("matches_model", pa.int64(), "holds int64, and the codebook says number"),
        ("late", pa.int8(), "holds int8, and the codebook says flag"),
    ):
        at = table.column_names.index(column)
        sealed_again(package, table.set_column(at, column, table[column].cast(kind)))
        with pytest.raises(CommandError, match=rf"trials.parquet: the column '{column}' {said}; export the"):
            report_of(package)


def test_a_file_of_another_writer_reads_the_same(package: Path) -> None:
    """Without pandas' notes, with the wide texts of other libraries."""
    before = report_of(package)
    table = pq.read_table(package / "trials.parquet").replace_schema_metadata(None)
    wide = [pa.large_string() if pa.types.is_string(kind) else kind for kind in table.schema.types]
    sealed_again(package, table.cast(pa.schema(list(zip(table.column_names, wide, strict=True)))))
    assert report_of(package) == before


def test_the_readme_says_where_scripts_are(package: Path) -> None:
    text = (package / "README.md").read_text()
    assert "report --from FOLDER" in text and "a package of the format csv or psychds has them" in text
    assert not (package / "analysis.py").exists()
    with pytest.raises(ExportError, match="README.md: cannot be read as Parquet"):
        parquet.read(package / "README.md", "trials")
