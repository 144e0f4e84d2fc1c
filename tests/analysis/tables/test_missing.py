"""Why a cell is empty is told by one of four codes, and numbers stay numbers for every program."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from analysis.exports.delimited import read
from analysis.exports.study_export import Request, export_study
from analysis.tables.missing_codes import CODES, PAGE, code_of
from experiments.models import Gate, Response, Session, Study
from experiments.sessions.lifecycle import withdraw
from tests.analysis.stored import opened, sitting

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    return opened()


def exported(study: Study, folder: Path, table: str = "participants") -> pd.DataFrame:
    export_study(study, folder, Request())
    return read(folder / f"{table}.csv", table)


def row_of(study: Study, folder: Path) -> dict[str, object]:
    (row,) = exported(study, folder).to_dict("records")
    return {str(name): cell for name, cell in row.items()}


def test_it_tells_what_does_not_apply(study: Study, tmp_path: Path) -> None:
    sitting(study, "ada", condition="control")
    row = row_of(study, tmp_path / "out")
    for column in ("simulated_kind", "excluded_reason", "px_per_mm", "distance_mm"):
        assert code_of(row, column) == "not_applicable"
    assert code_of(row, "condition") is code_of(row, "width_px") is code_of(row, "surplus") is None


def test_it_tells_what_was_not_reached(study: Study, tmp_path: Path) -> None:
    sitting(study, "dee", verdict="declined")
    row = row_of(study, tmp_path / "out")
    for column in ("condition", "slot", "claimed_at", "task_s", "answers", "refresh_hz"):
        assert code_of(row, column) == "not_reached", column
    sitting(study, "eve", condition="control", verdict="", answers=3, minutes=9)
    running = exported(study, tmp_path / "running").to_dict("records")[1]
    codes = {column: code_of({str(k): v for k, v in running.items()}, column) for column in running}
    late = {"finished_at", "duration_s", "task_s", "verdict_at", "rules_digest", "comment"}
    assert {column for column, code in codes.items() if code == "not_reached"} == late


def test_it_tells_what_was_not_recorded(study: Study, tmp_path: Path) -> None:
    ada = sitting(study, "ada", condition="control")
    row = row_of(study, tmp_path / "out")
    assert code_of(row, "webdriver") == code_of(row, "pixel_ratio") == "not_recorded"
    assert code_of(row, "refresh_hz") == "not_recorded"
    trials = read(tmp_path / "out" / "trials.csv", "trials").to_dict("records")
    first = {str(name): cell for name, cell in trials[0].items()}
    told = [column for column in PAGE if code_of(first, column) == "not_recorded"]
    assert told == [
        "onset_ms",
        "image_px",
        "pixel_ratio",
        "frames",
        "dropped_frames",
        "refresh_ms",
        "hidden_count",
    ]
    assert code_of(first, "scored_index") == code_of(first, "keys") == "not_applicable"
    Response.objects.filter(session=ada).update(context={"input": "touch", "frames": 0})
    (again, *_) = exported(study, tmp_path / "touch", "trials").to_dict("records")
    assert code_of({str(k): v for k, v in again.items()}, "frames") is None
    assert code_of({str(k): v for k, v in again.items()}, "side") == "not_recorded"


@pytest.mark.parametrize(
    ("stored", "code"), [(None, "not_reached"), ({"px_per_mm": None, "distance_mm": None}, "not_recorded")]
)
def test_it_tells_a_screen_that_could_not_be_measured_from_one_that_was_not(
    study: Study, tmp_path: Path, stored: dict[str, object] | None, code: str
) -> None:
    study.definition["presentation"] = {"calibration": "card"}
    Study.objects.filter(pk=study.pk).update(definition=study.definition)
    ada = sitting(study, "ada", condition="control")
    if stored is not None:
        Gate.objects.create(session=ada, kind="screen", attempt=0, value=stored)
    row = row_of(study, tmp_path / "out")
    assert code_of(row, "px_per_mm") == code_of(row, "distance_mm") == code


def test_it_tells_what_was_withdrawn(study: Study, tmp_path: Path) -> None:
    ada = sitting(study, "ada", condition="control", verdict="", answers=4, comment="")
    withdraw(Session.objects.get(pk=ada.pk), "asked", erase=True)
    row = row_of(study, tmp_path / "out")
    for column in ("width_px", "height_px", "touch", "language", "answers", "comment"):
        assert code_of(row, column) == "withdrawn", column
    assert row["status"] == "withdrawn" and code_of(row, "simulated_kind") == "not_applicable"


def test_pandas_reads_numbers_as_numbers_without_options(study: Study, tmp_path: Path) -> None:
    ada = sitting(study, "ada", condition="control")
    for response in Response.objects.filter(session=ada, trial__phase="test"):
        response.value = {"choice": str(response.position % 5 - 2)}
        response.save()
    export_study(study, tmp_path / "out", Request())
    trials = pd.read_csv(tmp_path / "out" / "trials.csv")
    rated = pd.read_csv(tmp_path / "out" / "trials.csv").query("phase == 'test'")["response"]
    assert sorted(set(rated.astype(float))) == [-2, -1, 0, 1, 2]
    for column in ("rt_ms", "scored_index", "matches_model", "reservoir_ms", "onset_ms"):
        assert pd.api.types.is_numeric_dtype(trials[column]), column


def test_it_has_four_codes() -> None:
    assert CODES == ("not_applicable", "not_reached", "not_recorded", "withdrawn")
