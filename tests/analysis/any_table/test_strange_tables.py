"""Tables as other programs and hands write them: the same numbers, or a refusal whose remedy helps."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest
from django.core.management import CommandError
from hypothesis import given
from hypothesis import strategies as st

from analysis.any_table.analyse import AnalysisPlan, analyse
from analysis.any_table.table import Roles, read_table, tidy
from stimuli.table_reader import plain_shape
from tests.analysis.any_table.test_analyse import between, refused, run_on

pytestmark = pytest.mark.pure

ARMS = "arm,points\na,3\nb,5\na,4\nb,7\na,3\nb,6\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("commas.csv", ARMS),
        ("declared.csv", "sep=;\n" + ARMS.replace(",", ";")),
        ("tabs.tsv", ARMS.replace(",", "\t")),
        ("wide.csv", ARMS),
        ("unnamed.csv", "".join(f"{line},,\n" for line in ARMS.splitlines())),
        ("quoted.csv", '"arm","points"\r\n' + ARMS.partition("\n")[2].replace("\n", "\r\n")),
    ],
)
def test_the_same_table_in_another_dress_gives_the_same(tmp_path: Path, name: str, text: str) -> None:
    # A declaration is a line of its own, and rows are named by their lines.
    (tmp_path / "plain.csv").write_text("\n" * name.startswith("declared") + ARMS)
    expected = run_on(tmp_path / "plain.csv", "--dv", "points", "--between", "arm")
    (tmp_path / name).write_bytes(text.encode("utf-16" if name.startswith("wide") else "utf-8"))
    assert run_on(tmp_path / name, "--dv", "points", "--between", "arm") == expected


CELLS = st.text(st.sampled_from(' ,;"\r\n\tNA1\ufeff\xe9'), max_size=5)


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6))
def test_the_faster_parser_reads_what_the_strict_one_does(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "parsers.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("a", "b", "c"), *rows])
    frame = read_table(path).frame
    assert list(frame.itertuples(index=False, name=None)) == rows
    assert plain_shape(path) is None or not any("\n" in cell for row in rows for cell in row)


def test_a_row_with_one_cell_too_many_moves_no_column(tmp_path: Path) -> None:
    """A comma behind the first row made pandas name rows by the first column; so does one behind each."""
    for text, lines in ((ARMS.replace("a,3", "a,3,", 1), "1 row"), (ARMS.replace("\n", ",\n"), "")):
        path = tmp_path / "table.csv"
        path.write_text(text)
        if not lines:  # behind the names as well: one column without a name
            assert "n = 6 people" in run_on(path, "--dv", "points", "--between", "arm")
            continue
        with pytest.raises(
            CommandError, match=f"{lines} has another number of cells: line 2 has 3 .it ends with"
        ):
            run_on(path, "--dv", "points", "--between", "arm")
        path.write_text(text.replace("a,3,", "a,3"))
        assert "n = 6 people" in run_on(path, "--dv", "points", "--between", "arm"), "the remedy"


def test_a_quotation_mark_that_eats_rows_is_told(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text('arm,said,points\na,"oh,3\nb,no,5\na,yes",4\nb,x,7\na,x,3\nb,x,6\na,x,8\n')
    text = run_on(path, "--dv", "points", "--between", "arm")
    assert (
        'table.csv: 1 cell goes on over several lines ("said" in line 2 over 3 lines); 7 lines gave 5 rows.'
        in text
    )


UNCLEAR = 'arm,points\nNA,3\nb,5\n"NA",4\nb,7\nNA,9\nb,6\n"NA",8\nnone,1\nnone,2\n'


def test_a_word_that_may_be_missing_is_asked_about(tmp_path: Path) -> None:
    """R writes a missing value without quotation marks, and the name NA with them."""
    path, roles = tmp_path / "table.csv", ("--dv", "points", "--between", "arm")
    path.write_text(UNCLEAR)
    with pytest.raises(CommandError) as error:
        run_on(path, *roles)
    assert str(error.value) == (
        "Column 'arm' holds NA in 2 rows (line 2, 6) and \"NA\" in 2 rows (line 4, 8), which may be a "
        "missing value or a name: say of each whether it is missing or a level, such as --missing NA "
        "--level '\"NA\"'."
    )
    assert "arm is missing in 4 of 9 rows" in run_on(path, *roles, "--missing", "NA")
    kept = run_on(path, *roles, "--level", "NA")
    assert "n = 9 people" in kept and "missing" not in kept
    told_apart = run_on(path, *roles, "--missing", "NA", "--level", '"NA"')
    assert "arm is missing in 2 of 9 rows (lines 2, 6)." in told_apart and "n = 7 people" in told_apart
    path.write_text(
        "arm,points\n" + "".join(f"{arm},{n}\n" for n, arm in enumerate(["b", "null", "b", "null"]))
    )
    with pytest.raises(CommandError, match="holds null in 2 rows .line 3, 5.*--level null if it is a name."):
        run_on(path, *roles)


def test_a_number_that_can_be_read_two_ways_is_asked_about() -> None:
    frame = between()
    frame["Points"] = ["3,941", "1", "2,5"] * 12
    text = refused(frame, Roles("Points", ("Arm",)))
    assert "'3,941' in row 2" in text and "3,941 can be read two ways (3.941 or 3941)" in text
    frame["Points"] = ["1,003,941", "1", "2"] * 12
    assert "1,003,941 has separators of thousands" in refused(frame, Roles("Points", ("Arm",)))


def test_numbers_of_people_that_begin_again_are_not_called_within(tmp_path: Path) -> None:
    """What the refusal says first keeps 8 people; the second way would make 4 of them."""
    cells = [(g, t, n) for g in "xy" for t in "ab" for n in range(1, 5)]
    frame = pd.DataFrame(cells, columns=["group", "time", "who"])
    frame["score"] = [(3 * len(row) + 7 * at) % 11 for at, row in enumerate(cells)]
    roles = Roles("score", ("group",), ("time",), subject="who")
    assert "1 has 2; if people are numbered anew in each group, give each a name, such as x1 and y1" in (
        refused(frame, roles)
    )
    frame["who"] = frame["group"] + frame["who"].astype(str)
    assert any(note.startswith("n = 8 people") for note in analyse(tidy(frame, roles), AnalysisPlan()).notes)


def test_names_are_compared_as_they_look() -> None:
    """A Mac writes the accent of Café as a character of its own."""
    frame = pd.DataFrame({"arm": ["Caf\xe9", "Cafe\u0301", "b", "b", "b"], "points": [1, 2, 4, 5, 7]})
    assert tidy(frame, Roles("points", ("arm",))).levels == {"arm": ("Caf\xe9", "b")}
