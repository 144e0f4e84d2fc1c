"""For a report only the columns that it reads are held, and it says the same as from all of them."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from django.core.management import call_command

from analysis.columns import names
from analysis.exports import report_from_package
from analysis.exports.study_export import Request, export_study
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports import READ, REPORTERS, held_for
from analysis.reports.meta_predictor import report
from analysis.reports.report import Report
from analysis.reports.report_assembly import report_of_origin
from analysis.stored_reports import refresh
from analysis.stored_reports.departures import report_facts
from analysis.tables.response_reader import read_frames
from tests.analysis.exports.test_packages import SHORT, STUDIES, alike, study_of, without_time
from tests.analysis.stored import full, opened

pytestmark = pytest.mark.django_db
MORE = pytest.mark.long(stays="test_a_report_of_the_held_columns_is_that_of_all")


@pytest.mark.usefixtures("undrawn", "few_draws", "without_odds")
@pytest.mark.parametrize(
    "paradigm", [pytest.param(name, marks=[] if name in SHORT else [MORE]) for name in STUDIES]
)
def test_a_report_of_the_held_columns_is_that_of_all(paradigm: str, tmp_path: Path) -> None:
    """A reporter that reads another column of `trials` fails here; so does one that asks whether it is
    there."""
    study = study_of(paradigm, tmp_path)
    whole, held = read_frames(study), read_frames(study, held=held_for(paradigm))
    extra = [column.name for column in whole.extra]
    assert tuple(whole.trials.columns) == names("trials", whole.extra)
    assert sorted(held.trials.columns) == sorted([*READ, *extra])
    pd.testing.assert_frame_equal(held.trials, whole.trials[list(held.trials.columns)])
    pd.testing.assert_frame_equal(held.participants, whole.participants)
    facts = report_facts(study)
    of_whole, of_held = (report_of_origin(frames, facts, paradigm, "human", "") for frames in (whole, held))
    assert alike(without_time(of_held.json()), without_time(of_whole.json()))


def test_the_declared_columns_are_columns_of_trials() -> None:
    assert set(READ) < set(names("trials")) and len(set(READ)) == len(READ)
    assert all(held_for(paradigm) == READ for paradigm in STUDIES)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The columns of `trials` in every report that is made."""
    columns: list[list[str]] = []

    def noting(frames: Frames, *arguments: Any) -> Report:
        columns.append(list(frames.trials.columns))
        return report_of_origin(frames, *arguments)

    monkeypatch.setattr(refresh, "report_of_origin", noting)
    monkeypatch.setattr(report_from_package, "report_of_origin", noting)
    yield columns


@pytest.mark.usefixtures("undrawn", "few_draws")
def test_the_command_holds_them_alone_from_rows_and_from_a_package(
    tmp_path: Path, seen: list[list[str]]
) -> None:
    study = opened()
    full(study)
    call_command("report", study.slug, stdout=StringIO())
    export_study(study, tmp_path / "package", Request())
    seen[1:] = []
    call_command("report", "--from", str(tmp_path / "package"), stdout=StringIO())
    assert len(seen) == 2 and seen[0] == seen[1] and sorted(seen[0]) == sorted(READ)


def test_a_reporter_from_elsewhere_finds_every_column(seen: list[list[str]]) -> None:
    """It may read any; one of ours that reads a column that it does not declare fails."""
    study = opened()
    full(study)

    def curious(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
        assert len(frames.trials["image_px"]) > 0
        return report.report(frames, definition, made_at=made_at)

    with REPORTERS.added("curious", curious):
        call_command("report", study.slug, "--reporter", "curious", stdout=StringIO())
        assert tuple(seen[0]) == names("trials")
        with pytest.raises(KeyError, match="image_px"):
            report_of_origin(read_frames(study, held=READ), report_facts(study), "curious", "human", "")
