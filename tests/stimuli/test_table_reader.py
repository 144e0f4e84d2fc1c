"""Tables are read cell by cell as they were written, or refused with every line that does not fit."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stimuli.table_reader import DECLARATION, DelimitedTable, TableError, in_quotes, read_table

pytestmark = pytest.mark.pure

CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
CELLS = st.one_of(st.text(CHARACTERS, max_size=6), st.text(',;"\r\n\t aN', max_size=6))


@st.composite
def tables(draw: st.DrawFn) -> list[list[str]]:
    """Names that differ, and rows of as many cells."""
    names = draw(st.lists(CELLS, min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.lists(CELLS, min_size=len(names), max_size=len(names)), max_size=5))
    return [names, *rows]


def written(rows: list[list[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def of(folder: Path, content: str | bytes, **options: object) -> DelimitedTable:
    path = folder / "table.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, **options)  # type: ignore[arg-type]


def refusal(folder: Path, content: str | bytes) -> str:
    with pytest.raises(TableError) as error:
        of(folder, content)
    return str(error.value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@given(tables())
def test_what_the_csv_writer_writes_is_read_back(folder: Path, rows: list[list[str]]) -> None:
    content = written(rows)
    assume(not content.startswith("\ufeff") and not DECLARATION.match(content))
    table = of(folder, content)
    assert [list(table.names), *(list(cells) for _, cells in table.rows())] == rows
    at = 1 + content.count("\n", 0, len(written(rows[:1])))
    for line, cells in table.rows():
        assert line == at
        at += written([list(cells)]).count("\n")
    assert bool(table.notes) == any("\n" in cell for row in rows[1:] for cell in row)


@given(tables(), st.data())
def test_every_row_with_another_number_of_cells_is_named(
    folder: Path, rows: list[list[str]], data: st.DataObject
) -> None:
    assume(len(rows) > 1)
    whole, lines, wrong = (
        written(rows[:1]),
        [],
        data.draw(st.sets(st.sampled_from(range(1, len(rows))), min_size=1)),
    )
    assume(not whole.startswith("\ufeff") and not DECLARATION.match(whole))
    for at, row in enumerate(rows[1:], 1):
        if at in wrong:
            lines.append(1 + whole.count("\n"))
            row = [*row, "more"] if len(row) == 1 or data.draw(st.booleans()) else row[:-1]
        whole += written([row])
    text = refusal(folder, whole)
    assert f"{len(lines)} row" in text
    assert all(f"line {line} has " in text for line in lines[:3])


@given(tables())
def test_it_knows_which_cells_have_quotation_marks(folder: Path, rows: list[list[str]]) -> None:
    """Every other cell is written with marks though it needs none."""
    names = [f"n{at}" for at in range(len(rows[0]))]
    plain = rows[1:]
    text, marked = ",".join(names) + "\n", []
    for row in plain:
        marks = [not at % 2 or any(sign in cell for sign in ',"\r\n') for at, cell in enumerate(row)]
        marked.append(marks)
        escaped = (cell.replace('"', '""') for cell in row)
        text += (
            ",".join(f'"{cell}"' if mark else cell for cell, mark in zip(escaped, marks, strict=True)) + "\n"
        )
    table = of(folder, text)
    for column in range(len(names)):
        marks = in_quotes(folder / "table.csv", ",", column, table.lines)
        assert marks == [row[column] for row in marked]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "its first line names the columns, and is empty"),
        (
            "a,b\r1,2\r",
            "a carriage return .U.000D. outside of quotation marks in the record that begins in line 1",
        ),
        (
            'a,b\n1,2\n1,"2\n3,4\n',
            "a quotation mark is opened and never closed in the record that begins in line 3",
        ),
        ('a,b\n1,"2"x\n1,2\n"1"x,2\n', "text follows a closing quotation mark in the records .* lines 2, 4"),
        (b"a,b\n1,\xe4\n", "is not in UTF-8 .byte 0xe4 in line 2.; save it as CSV in UTF-8"),
        (b"a,b\n1,\0\n", "holds the character NUL .U.0000."),
        ("a,b,a,\n1,2,3,\n", 'columns have the same name: "a" .1, 3.; rename all but one'),
        ("a,b\n" + "x" * 131_073 + ",2\n", "a cell has more than 131,072 characters in the record .* line 2"),
        ('"a","b"\n"1",2,3\n"2",2,3\n', "line 2 has 3, line 3 has 3; .* row.names = FALSE"),
        (
            "a;b\n1;2,5\n",
            "its cells seem to be separated by semicolons; .* sep=; into a line above the names",
        ),
        ("a,b\n1,2\n \n", "1 row has another number of cells: line 3 has 1; give each row as many"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(TableError, match=words):
        of(tmp_path, content)


def test_remedies_do_what_they_say(tmp_path: Path) -> None:
    assert of(tmp_path, "sep=;\na;b\n1;2,5\n").columns == (["1"], ["2,5"])
    assert of(tmp_path, 'a,b\n1,"a ""2"""\n').columns == (["1"], ['a "2"'])
    assert of(tmp_path, 'a,b\n1,"2\r3"\n').columns == (["1"], ["2\r3"])
    assert of(tmp_path, "a,b\n1," + "x" * 131_072).columns[1] == ["x" * 131_072]
    with pytest.raises(TableError, match=r"none\.csv cannot be read .No such file"):
        read_table(tmp_path / "none.csv")


def test_columns_without_a_name_and_empty_lines_do_no_harm(tmp_path: Path) -> None:
    table = of(tmp_path, "\ufeffa,,\r\n\r\n1,,\r\n\r\n2,x,\r\n")
    assert table.names == ("a", "", "") and table.columns[:2] == (["1", "2"], ["", "x"])
    assert list(table.lines) == [3, 5] and not table.notes
    assert of(tmp_path, 'a\tb\n1\t"2\n', separator="\t", quotes=False).columns == (["1"], ['"2'])
    assert of(tmp_path, "a\tb\n1\t2\n".encode("utf-16"), separator="\t").columns == (["1"], ["2"])
