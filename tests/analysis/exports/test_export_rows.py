"""Unusual rows are exported unchanged: every script, formulas, no rows; a failed export leaves no file."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections import Counter
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from django.core.management import CommandError, call_command
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analysis import exports
from analysis.columns import TABLES, names
from analysis.exports import manifest
from analysis.exports.base import ExportError
from analysis.exports.delimited import read, write
from analysis.exports.study_export import Request, choose_sessions, definition_text, export_study
from analysis.frames import Frames, Tables, frame
from analysis.models import Release
from analysis.spreadsheet_cells import escape_cell, unescape_cell
from analysis.tables.response_reader import read_frames
from experiments.models import Response, Session, Study
from stimuli.spec import content_key
from tests.analysis.stored import cast, opened, sitting
from tests.tables import overridden

pure = pytest.mark.pure
ODD = (
    "\N{SNOWMAN} naïve — «quoted» \N{HEBREW LETTER ALEF}\N{ARABIC LETTER BEH} 漢字 \N{GRINNING FACE}",
    '=HYPERLINK("http://x","y")',
    "\ufeff=1",
    "line one\r\nline two\nline three",
    "a,b;c\td",
    "NA",
    "null",
    "0012",
    "1e5",
    "\N{LINE SEPARATOR}",
)
cells = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


def is_plain(text: str) -> bool:
    """Digits with a sign at most and a point within: what every program reads as a number."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    whole, point, rest = digits.partition(".")
    return all(part.isascii() and part.isdigit() for part in ((whole, rest) if point else (whole,)))


@pure
@given(cells | st.text("0123456789+-.='", max_size=6))
@example("'")
@example("-2")
@example("-2+3")
@example("+1.5\n")
@example("-\u0662")
@example("\N{ZERO WIDTH SPACE}=1")
@example("\u3000=1")
@example("\u2003=1")
@example("\x85=1")
@example("\u2060=1")
@example("\x0b=1")
@example("\x1f=1")
@example("\ufe66" + "1")
def test_it_guards_any_text_and_gives_it_back(text: str) -> None:
    cell = escape_cell(text)
    assert unescape_cell(cell) == text
    if is_plain(text):
        assert cell == text
        return
    # What a spreadsheet may drop or fold before it reads the first character.
    shown = [c for c in unicodedata.normalize("NFKC", cell) if c.isprintable() and not c.isspace()]
    assert "".join(shown)[:1] not in {*"=+-@"} and cell[:1] not in {*"\t\r\n"}


@pure
@settings(max_examples=25)
@given(st.lists(cells, min_size=4, max_size=30))
def test_it_writes_any_text_so_that_it_reads_the_same(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    people = frame("participants", [{"comment": text} for text in texts])
    write(Frames(frame("trials", []), people, frame("stimuli", [])), folder)
    assert list(read(folder / "participants.csv", "participants")["comment"]) == texts


@pure
def test_it_reads_text_as_text_and_numbers_exactly(tmp_path: Path) -> None:
    rows = [
        {"comment": text, "duration_s": number, "sitting": number_of, "touch": flag}
        for text, number, number_of, flag in zip(
            ODD,
            (0.1, 1 / 3, 1e-9, 2.0, 1e22, 0, None, 5e-324, 1.5, 7),
            range(10),
            [True, False, None] * 4,
            strict=False,
        )
    ]
    frames = Frames(frame("trials", []), frame("participants", rows), frame("stimuli", []))
    write(frames, tmp_path)
    pd.testing.assert_frame_equal(read(tmp_path / "participants.csv", "participants"), frames.participants)


@pure
def test_it_writes_flags_times_and_whole_numbers_as_the_codebook_says(tmp_path: Path) -> None:
    at = pd.Timestamp("2026-03-01T12:00:00.123456", tz="UTC")
    row = {"touch": True, "webdriver": False, "started_at": at, "sitting": 3, "task_s": 2.0}
    frames = Frames(frame("trials", []), frame("participants", [row]), frame("stimuli", []))
    write(frames, tmp_path)
    text = (tmp_path / "participants.csv").read_bytes().decode()
    (written,) = csv.DictReader(StringIO(text, newline=""))
    assert (written["touch"], written["webdriver"], written["surplus"]) == ("1", "0", "")
    assert written["started_at"] == "2026-03-01T12:00:00.123+00:00"
    assert (written["sitting"], written["task_s"]) == ("3", "2")
    assert text.endswith("\r\n") and text.count("\r\n") == 2


@pure
def test_it_refuses_a_table_with_other_columns(tmp_path: Path) -> None:
    write(Frames(*(frame(table, []) for table in ("trials", "participants", "stimuli"))), tmp_path)
    path = tmp_path / "trials.csv"
    for heads in (names("trials")[:-1], (*names("trials"), "more"), names("trials")[::-1]):
        path.write_text(",".join(heads) + "\r\n")
        with pytest.raises(ExportError, match="trials.csv: its columns are not those of 'trials'"):
            read(path, "trials")


@pytest.fixture
def study(db: None) -> Study:
    return opened()


def exported(study: Study, folder: Path, **options: object) -> dict[str, pd.DataFrame]:
    export_study(study, folder, Request(**options))  # type: ignore[arg-type]
    return {table: read(folder / f"{table}.csv", table) for table in TABLES}


def test_it_has_one_row_per_answer_sitting_and_picture(study: Study, tmp_path: Path) -> None:
    people = cast(study)
    tables = exported(study, tmp_path / "out")
    assert len(tables["trials"]) == Response.objects.count()
    assert len(tables["participants"]) == Session.objects.count() == len(people)
    assert len(tables["stimuli"]) == study.items.count() * study.conditions.count()
    stored_answers = Counter(Response.objects.values_list("session__verdict", flat=True))
    status = tables["participants"].set_index("session")["status"]
    assert Counter(tables["trials"]["session"].map(status)) == stored_answers
    assert tables["participants"]["responses"].sum() == len(tables["trials"])


def test_it_agrees_with_the_manifest_about_rows(study: Study, tmp_path: Path) -> None:
    cast(study)
    manifest = export_study(study, tmp_path / "out", Request())
    rows = {entry["name"]: entry["rows"] for entry in manifest["files"]}
    for table in TABLES:
        assert rows[f"{table}.csv"] == len(read(tmp_path / "out" / f"{table}.csv", table))
    assert set(rows) == {p.name for p in (tmp_path / "out").iterdir()} - {"manifest.json"}


def test_it_exports_a_study_without_people(study: Study, tmp_path: Path) -> None:
    tables = exported(study, tmp_path / "out")
    assert len(tables["participants"]) == len(tables["trials"]) == 0
    assert len(tables["stimuli"]) == 48 * 3
    assert manifest.check(tmp_path / "out").problems == ()
    with pytest.raises(ExportError, match="there are: none yet"):
        export_study(study, tmp_path / "clean", Request(cleaned=True))


def test_it_exports_one_person(study: Study, tmp_path: Path) -> None:
    sitting(study, "ada", condition="control", comment=ODD[0])
    tables = exported(study, tmp_path / "out")
    (row,) = tables["participants"].to_dict("records")
    assert row["comment"] == ODD[0] and row["status"] == "passed"
    assert set(tables["trials"]["session"]) == {row["session"]}


def test_it_exports_a_study_whose_people_were_all_screened(study: Study, tmp_path: Path) -> None:
    for name in "ab":
        sitting(study, name, condition="control", verdict="screened")
    assert len(exported(study, tmp_path / "raw")["participants"]) == 2
    clean = exported(study, tmp_path / "clean", cleaned=True)
    assert len(clean["participants"]) == len(clean["trials"]) == 0


def test_it_divides_the_people_by_origin_without_losing_any(study: Study, tmp_path: Path) -> None:
    cast(study)
    sitting(study, "sim", condition="control", origin="simulated")
    frames = read_frames(study)
    parts = [choose_sessions(study, Request(origin=origin))[0].frames() for origin in ("human", "simulated")]
    assert [len(part.participants) for part in parts] == [4, 1]
    for table in ("participants", "trials"):
        assert sum(len(part.tables[table]) for part in parts) == len(frames.tables[table])


def test_it_numbers_the_sittings_of_one_person(study: Study, tmp_path: Path) -> None:
    first, second = (sitting(study, name, condition="control", minutes=m) for name, m in (("a", 0), ("b", 9)))
    Session.objects.filter(pk=second.pk).update(participant=first.participant)
    people = exported(study, tmp_path / "out")["participants"]
    assert list(people["sitting"]) == [0, 1]
    assert people["participant"].nunique() == 1 and people["session"].nunique() == 2


def test_it_puts_the_definition_into_the_package(study: Study, tmp_path: Path) -> None:
    manifest = export_study(study, tmp_path / "out", Request())
    definition = json.loads((tmp_path / "out" / "definition.json").read_text(encoding="utf-8"))
    assert content_key(definition) == study.digest == manifest["study_digest"]
    assert definition["texts"] == {"consent": "c", "instructions": "i", "debrief": "d"}
    assert definition["questions"][0]["prompt"] == "How old are you?"
    assert "recruitment" not in definition and "platforms" not in definition
    assert (tmp_path / "out" / "definition.json").read_text(encoding="utf-8") == definition_text(study)


def test_it_notices_another_definition_in_the_package(study: Study, tmp_path: Path) -> None:
    export_study(study, tmp_path / "out", Request())
    path = tmp_path / "out" / "definition.json"
    path.write_text(path.read_text().replace("How old are you?", "Who are you?"))
    with pytest.raises(CommandError, match="definition.json: has"):
        call_command("verify", str(tmp_path / "out"))


def broken(tables: Tables, folder: Path) -> Mapping[str, int]:
    (folder / "half.csv").write_text("a,b\n")
    raise OSError("No space left on device")


def test_it_leaves_nothing_behind_when_it_breaks(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overridden(monkeypatch, exports.EXPORTERS, "broken", "tests.analysis.exports.test_export_rows:broken")
    with pytest.raises(OSError, match="No space left"):
        export_study(study, tmp_path / "out", Request(format="broken"))
    assert list(tmp_path.iterdir()) == []
    assert not Release.objects.exists(), "what was not written was not released"


def test_it_chains_over_a_broken_export(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = export_study(study, tmp_path / "a", Request())
    overridden(monkeypatch, exports.EXPORTERS, "broken", "tests.analysis.exports.test_export_rows:broken")
    with pytest.raises(OSError, match="No space left"):
        export_study(study, tmp_path / "b", Request(format="broken"))
    assert export_study(study, tmp_path / "b", Request())["previous"] == first["digest"]


def test_it_writes_into_an_empty_folder_that_is_there(study: Study, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export_study(study, tmp_path / "out", Request())
    assert manifest.check(tmp_path / "out").problems == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "cannot be read"),
        ("[]", "not a manifest of Legible"),
        ('{"files": [{"name": "x"}]}', "not a manifest of Legible"),
        ('{"files": [{"name": 3, "bytes": 1, "sha256": "", "rows": 0}]}', "not a manifest of Legible"),
        ('{"files": [{"name": "/etc/passwd", "bytes": 1, "sha256": "", "rows": 0}]}', "not a manifest"),
    ],
)
@pure
def test_it_refuses_a_manifest_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ExportError, match=words):
        manifest.check(tmp_path)


@pure
def test_it_names_every_problem_at_once(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(name)
    manifest.write(
        tmp_path, manifest.add_digest({"files": manifest.file_entries(tmp_path, {"a.csv": 1, "b.csv": 1})})
    )
    assert manifest.check(tmp_path).problems == ()
    (tmp_path / "a.csv").unlink()
    (tmp_path / "b.csv").write_text("c.csv")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "d.csv").write_text("")
    problems = manifest.check(tmp_path).problems
    assert [problem.split(":")[0] for problem in problems] == ["a.csv", "b.csv", "more/d.csv"]
    assert "same size, another SHA-256" in problems[1]


def test_it_exports_the_open_data_of_observers_while_people_s_are_sealed(
    study: Study, tmp_path: Path
) -> None:
    cast(study)
    sitting(study, "sim", condition="control", origin="simulated")
    call_command("export", study.slug, "--out", str(tmp_path / "sim"), "--origin", "simulated")
    assert set(read(tmp_path / "sim" / "participants.csv", "participants")["origin"]) == {"simulated"}
    with pytest.raises(CommandError, match="1 of 12 places are kept"):
        call_command("export", study.slug, "--out", str(tmp_path / "people"))
