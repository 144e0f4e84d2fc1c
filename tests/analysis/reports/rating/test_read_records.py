"""The command that reads PASTA's records: what it says of a file, what it writes, and what it refuses."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from analysis.pasta_records import ratings_from
from analysis.reports.rating.pasta_record_summary import sentences, tables
from analysis.stats.ratings.agreement import krippendorff_alpha

pytestmark = pytest.mark.pure
POINTS = ((1, 2, 2), (4, 4, 5), (3, 3, 3), (5, 4, 5))
"""Q1 of four explanations by three raters."""


def record(at: int, points: tuple[int, ...], light: bool = True, name: str = "") -> dict[str, Any]:
    """All questions get the same points, but Q5 is null without a `light` copy."""
    return {
        "img": f"coco_{at}_dog.png",
        "explication": name or f"coco_{at}_{at % 2}.npy",
        "GTclass": "dog",
        "predictedclass": "cat",
        "Annotation": [
            {f"Q{q}": None if q == 5 and not light else point for q in range(1, 7)} for point in points
        ],
    }


def saved(folder: Path, *records: dict[str, Any]) -> Path:
    path = folder / "records.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path, *(record(at, points, light=at > 0) for at, points in enumerate(POINTS)))


def test_means_modes_gaps_and_alpha_are_those_of_the_answers(file: Path) -> None:
    (by_question, beside, by_explainer), problems = tables(ratings_from(file), 0, lambda *_: None)
    rows = {row[0]: row for row in by_question.rows}
    # 41 / 12, and without the first explanation 36 / 9; 3, 4 and 5 are equally frequent, and the least is it.
    assert rows["Q1"][1:6] == ("4", "12", "3.42", "3", "0.0")
    assert rows["Q5"][1:6] == ("3", "9", "4.00", "3", "25.0")
    assert rows["Q1"][6].startswith(f"{krippendorff_alpha(POINTS, (1, 2, 3, 4, 5)).alpha:.2f} [")
    assert [row[:4] for row in by_explainer.rows] == [("coco", "0", "2", "2.33"), ("coco", "1", "2", "4.50")]
    assert by_explainer.rows[0][7] == "3.00", "of the explanation that was asked"
    assert any("here" in row[1] and row[2] != "\N{EN DASH}" for row in beside.rows)
    assert problems == []


def test_it_says_how_many_raters_there_are_and_what_stands_twice(tmp_path: Path, file: Path) -> None:
    assert sentences(ratings_from(file)) == ["4 explanations, 69 ratings: 3 raters each."]
    twice = saved(tmp_path, record(0, (1, 2, 3)), record(1, (2,), name="coco_0_0.npy"), record(2, (2, 3)))
    told = sentences(ratings_from(twice))
    assert told[0] == "3 explanations, 36 ratings: 1 with 3 raters, 1 with 2 raters, 1 with 1 rater."
    assert told[1] == "2 explanations with fewer than 3 raters."
    assert told[2].startswith("2 records name an explanation that another record names too")


def test_the_command_prints_it_and_writes_the_single_answers(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = file.parent / "answers.csv"
    call_command("read_records", str(file), "--out", str(out))
    told = capsys.readouterr().out
    assert "4 explanations, 69 ratings" in told and "Published, not recomputed" in told
    table = pd.read_csv(out)
    assert len(table) == 4 * 3 * 6 and table["value"].isna().sum() == 3
    assert table.loc[table["question"] == "Q1", "value"].tolist() == [p for row in POINTS for p in row]
    with pytest.raises(CommandError, match="cannot be written .File exists.: name another --out"):
        call_command("read_records", str(file), "--out", str(out), stdout=StringIO())


def test_equal_ratings_and_names_that_tell_nothing_are_said(tmp_path: Path) -> None:
    made, problems = tables(
        ratings_from(saved(tmp_path, record(0, (3, 3), name="by hand"))), 0, lambda *_: None
    )
    assert problems[0] == "Q1: All ratings are equal, so alpha is not defined; look at the raw ratings."
    assert made[2].rows[0][:3] == ("not told by its name", "\N{EN DASH}", "1")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[]", "holds no records"),
        ("{}", "is an object without entries, not a list"),
        ('[{"img": "a"}]', "record 0: explication is null"),
        ("participant,rating\n1,3\n", "is no JSON"),
    ],
)
def test_it_refuses_what_is_no_file_of_records(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(content)
    with pytest.raises(CommandError, match=sentence):
        call_command("read_records", str(path), "--out", str(tmp_path / "out.csv"))
    assert not (tmp_path / "out.csv").exists()


def test_it_says_that_there_is_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="none.json: cannot be read .No such file"):
        call_command("read_records", str(tmp_path / "none.json"))
