"""An export can be read back exactly, opened safely, and checked."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from analysis.exports import delimited, get_exporter, manifest
from analysis.exports.base import ExportError
from analysis.exports.delimited import read
from analysis.exports.study_export import Request, export_study
from analysis.models import Release
from analysis.spreadsheet_cells import escape_cell, unescape_cell
from analysis.tables.response_reader import read_frames
from experiments.models import Study
from stimuli.errors import UnknownName
from tests.analysis.stored import cast, opened, sitting

pytestmark = pytest.mark.django_db
HOSTILE = [
    "=1+1",
    "+1+1",
    "-2+3",
    "-1e5",
    "+",
    "-",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "  =1",
    "'=1",
    "'",
    "''",
    "\uff1d1",
    "a,=1",
    'x"y',
    "é\n=2",
    "",
]


@pytest.fixture
def study() -> Study:
    return opened()


@pytest.fixture
def folder(study: Study, tmp_path: Path) -> Path:
    cast(study)
    export_study(study, tmp_path / "out", Request())
    return tmp_path / "out"


@pytest.mark.parametrize("text", HOSTILE)
def test_it_guards_cells_and_loses_nothing(text: str) -> None:
    cell = escape_cell(text)
    assert unescape_cell(cell) == text
    assert cell.strip()[:1] not in {*"=+-@", "\uff1d"}


@pytest.mark.parametrize("text", ["-2", "-1", "0", "+1.5", "-0.25", "2"])
def test_it_leaves_a_plain_number_as_it_is(text: str) -> None:
    assert escape_cell(text) == unescape_cell(text) == text


@pytest.mark.parametrize("rows", [delimited.READ_ROWS, 7])
def test_it_reads_back_what_it_wrote(
    study: Study, folder: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one part, and in many."""
    monkeypatch.setattr(delimited, "READ_ROWS", rows)
    frames = read_frames(study)
    for table, frame in frames.tables.items():
        pd.testing.assert_frame_equal(read(folder / f"{table}.csv", table), frame)


def test_it_keeps_a_spreadsheet_from_evaluating_free_text(folder: Path) -> None:
    text = (folder / "participants.csv").read_bytes().decode()
    rows = list(csv.DictReader(StringIO(text, newline="")))
    assert rows[0]["comment"] == "'=HYPERLINK(1) \"nice\", 'ok'\nbye"
    assert not any(cell[:1] in set("=+@\t\r") for row in rows for cell in row.values())


def test_it_describes_every_column(folder: Path) -> None:
    book = json.loads((folder / "codebook.json").read_text())
    described = {(entry["table"], entry["column"]) for entry in book["columns"]}
    for table in ("trials", "participants", "stimuli"):
        with (folder / f"{table}.csv").open(newline="") as handle:
            assert {(table, name) for name in next(csv.reader(handle))} == {
                d for d in described if d[0] == table
            }
    assert "apostrophe" in book["note"]


def test_it_verifies_what_it_wrote(folder: Path) -> None:
    out = StringIO()
    call_command("verify", str(folder), stdout=out)
    assert "as they were exported" in out.getvalue() and "issued it" in out.getvalue()


def tampered(folder: Path, how: str) -> None:
    trials = folder / "trials.csv"
    if how == "same size":
        data = bytearray(trials.read_bytes())
        data[-5] ^= 1
        trials.write_bytes(bytes(data))
    elif how == "longer":
        trials.write_bytes(trials.read_bytes() + b"x")
    elif how == "missing":
        trials.unlink()
    elif how == "extra":
        (folder / "more.csv").write_text("x")
    else:
        text = (folder / "manifest.json").read_text()
        (folder / "manifest.json").write_text(text.replace('"cleaned": false', '"cleaned": true'))


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("same size", "trials.csv: its content was changed"),
        ("longer", "trials.csv: has"),
        ("missing", "trials.csv: the manifest lists it"),
        ("extra", "more.csv: stands in the folder"),
        ("manifest", "manifest.json: its digest does not fit"),
    ],
)
def test_it_notices_tampering(folder: Path, how: str, words: str) -> None:
    tampered(folder, how)
    with pytest.raises(CommandError, match=words):
        call_command("verify", str(folder))


def test_it_does_not_follow_a_manifest_out_of_its_folder(folder: Path) -> None:
    content = json.loads((folder / "manifest.json").read_text())
    content["files"][0]["name"] = "../../etc/passwd"
    (folder / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ExportError, match="not a manifest"):
        manifest.check(folder)


def test_it_says_when_it_did_not_issue_the_export(folder: Path) -> None:
    Release.objects.all().delete()
    out = StringIO()
    call_command("verify", str(folder), stdout=out)
    assert "no record" in out.getvalue()


def test_it_chains_exports(study: Study, tmp_path: Path) -> None:
    cast(study)
    first = export_study(study, tmp_path / "a", Request())
    second = export_study(study, tmp_path / "b", Request())
    assert (first["previous"], second["previous"]) == (None, first["digest"])
    assert first["study_digest"] == study.digest
    assert first["removed"] == {"sittings": 0, "responses": 0}


def test_it_keeps_those_who_passed_of_one_origin(study: Study, tmp_path: Path) -> None:
    cast(study)
    sitting(study, "sim", condition="control", origin="simulated")
    for origin, count in (("", 1), ("simulated", 1)):
        made = tmp_path / (origin or "human")
        content = export_study(study, made, Request(cleaned=True, origin=origin))
        people = read(made / "participants.csv", "participants")
        assert content["origins"] == [origin or "human"]
        assert list(people["status"]) == ["passed"] * count
        assert set(read(made / "trials.csv", "trials")["session"]) == set(people["session"])


def test_it_never_overwrites(study: Study, folder: Path) -> None:
    with pytest.raises(CommandError, match="not empty"):
        call_command("export", study.slug, "--out", str(folder), "--unseal-as", "Grace", "--reason", "a test")


def test_it_keeps_a_sealed_study_until_a_named_person_answers_for_it(study: Study, tmp_path: Path) -> None:
    cast(study)
    with pytest.raises(CommandError, match="Sealed until the stopping rule is met.*--unseal-as NAME"):
        call_command("export", study.slug, "--out", str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()
    call_command(
        "export", study.slug, "--out", str(tmp_path / "x"), "--unseal-as", "Grace", "--reason", "audit"
    )
    study.refresh_from_db()
    assert (study.unsealed_by, study.unsealed_reason) == ("Grace", "audit")


def test_it_keeps_a_sealed_pilot_too(study: Study, tmp_path: Path) -> None:
    sitting(study, "early", condition="control", origin="pilot")
    with pytest.raises(CommandError, match="--unseal-as NAME"):
        call_command("export", study.slug, "--out", str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_it_names_what_is_wrong(study: Study, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no study 'nobody'"):
        call_command("export", "nobody", "--out", str(tmp_path / "x"))
    with pytest.raises(CommandError, match="No session has the origin 'human'"):
        call_command("export", study.slug, "--out", str(tmp_path / "x"), "--cleaned")
    with pytest.raises(UnknownName, match="there is no format of an export 'xlsx': known are csv"):
        get_exporter("xlsx")
    with pytest.raises(CommandError, match="no manifest"):
        call_command("verify", str(tmp_path))
    assert not (tmp_path / "x").exists()
