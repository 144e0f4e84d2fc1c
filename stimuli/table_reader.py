"""The one reader of delimited tables, of ours and of anybody's: strict, every cell as it stands.

A table is UTF-8 (or UTF-16 with its mark), its first record names the columns, and every other record has as
many cells as there are names. Records end at LF or CR LF alone; a cell in quotation marks may hold both, and
marks in it are doubled [RFC 4180]. A first line such as `sep=;` names another separator, as spreadsheets
write it. Nothing is guessed: no types, no missing values, no names of rows, no other separator. What does not
fit is refused in one sentence with all places of its kind, by the numbers of lines that an editor shows.

This module imports nothing of studies: `analysis.any_table` reads strangers' tables by it.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from stimuli.errors import first_of

CELL_MAX = 131_072
"""Characters of a cell: the csv module's own limit."""
BLOCK = 1 << 20
DECLARATION = re.compile(r'"?sep=([,;|\t])"?\r?\n')
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab"}
FAULTS = {
    "unexpected end of data": (
        "a quotation mark is opened and never closed",
        "close it, or write two marks for one inside a cell",
    ),
    "expected after": (
        "text follows a closing quotation mark",
        "write two marks for one inside a cell in quotation marks",
    ),
    "new-line character": (
        "there is a carriage return (U+000D) outside of quotation marks",
        "end lines by LF or CR LF, and put a cell with line breaks into quotation marks",
    ),
    "field limit": (
        f"a cell has more than {CELL_MAX:,} characters",
        "shorten it, or close its quotation mark",
    ),
}
"""What the csv module's errors are called, and what to do."""


class TableError(ValueError):
    """The file is no table; the message names the file, the lines and the remedy."""


@dataclass(frozen=True, slots=True)
class DelimitedTable:
    """`names` are the cells of the first record, `columns` a list of cells for each, `lines` the number (from
    1) of the line at which each row begins. `notes`: cells that go on over several lines."""

    names: tuple[str, ...]
    columns: tuple[list[str], ...]
    lines: Sequence[int]
    notes: tuple[str, ...]

    def rows(self) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The line and the cells of each row."""
        return zip(self.lines, zip(*self.columns, strict=True), strict=True)


@dataclass(frozen=True, slots=True)
class PlainShape:
    """What is known of a file each of whose records is one line: the names of its columns, the line of its
    first row and the number of rows, what separates cells, and the encoding."""

    names: tuple[str, ...]
    line: int
    rows: int
    separator: str
    encoding: str


def plain_shape(path: Path, separator: str = ",") -> PlainShape | None:
    """The shape of a table whose every line has as many cells as there are names, which any parser of the csv
    module's dialect reads alike. None if it is another, or none at all; `read_table` says what is wrong."""
    with _opened(path) as stream:
        form, before, lines = _form(stream, separator, quotes=True)
        records = csv.reader(lines, **form)
        try:
            names = next(records, [])
            widths = Counter(map(len, records))
        except csv.Error:
            return None
        rows, named = widths[len(names)], [name for name in names if name]
        has_equal_names = len(set(named)) < len(named)
        if not names or has_equal_names or not widths.total() == rows == records.line_num - 1:
            return None
        return PlainShape(tuple(names), before + 2, rows, form["delimiter"], stream.encoding)


def read_table(path: Path, separator: str = ",", quotes: bool = True) -> DelimitedTable:
    """The table of a file whose cells are separated by `separator`; without `quotes`, quotation marks are
    characters like others. Raises TableError for a file that cannot be read or decoded, for quotation marks
    that do not fit, no or equal names of columns, and rows with a cell too many or too few."""
    ragged: list[tuple[int, list[str]]] = []
    rows: list[list[str]] = []
    starts, spans = [], list[str]()
    with _opened(path) as stream:
        form, before, lines = _form(stream, separator, quotes)
        records = csv.reader(lines, **form)
        try:
            names = next(filter(None, records), [])
            _check_names(path, names)
            above = line = before + records.line_num
            for record in records:
                begin, line = line + 1, before + records.line_num
                if record and len(record) != len(names):
                    ragged.append((begin, record))
                elif record:
                    rows.append(record)
                    starts.append(begin)
                    spans += _spans(names, record, begin) if line > begin else ()
        except csv.Error:
            raise TableError(_quotation_faults(path, form, before)) from None
    if ragged:
        raise TableError(_ragged_rows(path, ragged, names, form["delimiter"]))
    columns = [list(cells) for cells in zip(*rows, strict=True)] or [[] for _ in names]
    told = f"{counted(len(spans), 'cell')} {'goes' if len(spans) == 1 else 'go'} on over several lines"
    gave = f"{line - above:,} lines gave {counted(len(rows), 'row')}"
    notes = (f"{path.name}: {told} ({first_of(spans)}); {gave}.",) if spans else ()
    return DelimitedTable(tuple(names), tuple(columns), starts, notes)


def in_quotes(path: Path, separator: str, column: int, lines: Sequence[int]) -> list[bool]:
    """Whether the cell of that column (from 0) has quotation marks in the rows that begin at `lines`."""
    with _opened(path) as stream:
        form, before, rest = _form(stream, separator, quotes=True)
        source = list(rest)
    mark = re.escape(form["delimiter"])
    cell = re.compile(rf'("(?:[^"]|"")*"|[^{mark}\n]*)(?:{mark}|\r?\n|\Z)')
    marks = []
    for line in lines:
        begin = line - 1 - before
        records = csv.reader(map(source.__getitem__, range(begin, len(source))), **form)
        next(records)
        record = "".join(source[begin : begin + records.line_num])
        marks.append([match[1] for match in cell.finditer(record)][column].startswith('"'))
    return marks


def counted(count: int, noun: str, plural: str = "") -> str:
    """ "1 row", "3 rows"."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def other_separator(separator: str) -> str:
    """What to do with a table whose cells another separator divides."""
    name = {";": "semicolons", "\t": "tabs"}[separator]
    declared = "" if separator == "\t" else f", or write sep={separator} into a line above the names"
    end = " or under a name that ends in .tsv" if separator == "\t" else ""
    return f"its cells seem to be separated by {name}; save the table with commas{end}{declared}"


def _form(stream: TextIO, separator: str, quotes: bool) -> tuple[dict[str, Any], int, Iterator[str]]:
    """How cells are written, how many lines stand before the names, and the lines after these."""
    first = stream.readline()
    declared = DECLARATION.fullmatch(first)
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    form = {"strict": True, "quoting": quoting, "delimiter": declared[1] if declared else separator}
    return form, int(bool(declared)), stream if declared else chain([first] * bool(first), stream)


def _spans(names: Sequence[str], record: Sequence[str], line: int) -> list[str]:
    """The cells of a record that hold line breaks."""
    cells = zip(names, record, strict=True)
    return [
        f'"{name}" in line {line:,} over {breaks + 1:,} lines'
        for name, cell in cells
        if (breaks := cell.count("\n"))
    ]


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The file's lines, each with its end. Raises TableError."""
    try:
        with path.open("rb") as file:
            is_wide = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            file.seek(0)
            if not is_wide and any(b"\0" in block for block in iter(partial(file.read, BLOCK), b"")):
                raise TableError(f"{path.name} holds the character NUL (U+0000); save it as CSV in UTF-8.")
        with path.open(encoding="utf-16" if is_wide else "utf-8-sig", newline="\n") as stream:
            yield stream
    except OSError as error:
        raise TableError(f"{path.name} cannot be read ({error.strerror}); check its path.") from error
    except UnicodeDecodeError:
        data = path.read_bytes()
        try:
            data.decode("utf-16" if is_wide else "utf-8-sig")
            place = ""
        except UnicodeDecodeError as error:
            place = f" (byte {data[error.start]:#04x} in line {data[: error.start].count(10) + 1:,})"
        raise TableError(f"{path.name} is not in UTF-8{place}; save it as CSV in UTF-8.") from None


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Names may be empty, as spreadsheets leave them and R names its rows, but never equal."""
    if not names:
        raise TableError(
            f"{path.name} cannot be read as a table: its first line names the columns, and is empty."
        )
    places: dict[str, list[str]] = {}
    for at, name in enumerate(names, 1):
        places.setdefault(name, []).append(str(at))
    if equal := [f'"{name}" ({", ".join(at)})' for name, at in places.items() if name and len(at) > 1]:
        raise TableError(
            f"{path.name}: columns have the same name: {first_of(equal)}; rename all but one of them."
        )


def _quotation_faults(path: Path, form: dict[str, Any], before: int) -> str:
    """What the csv module refuses, of all lines."""
    places: dict[str, list[str]] = {}
    with _opened(path) as stream:
        records = csv.reader(islice(stream, before, None), **form)
        while True:
            line = before + records.line_num + 1
            try:
                next(records)
            except StopIteration:
                break
            except csv.Error as error:
                kind = next((kind for kind in FAULTS if kind in str(error)), str(error))
                places.setdefault(kind, []).append(f"{line:,}")
    faults = []
    for kind, lines in places.items():
        what, remedy = FAULTS.get(kind, (kind, "save it as CSV in UTF-8"))
        begin = "record that begins in line" if len(lines) == 1 else "records that begin in lines"
        faults.append(f"{what} in the {begin} {first_of(lines)}; {remedy}")
    return f"{path.name} cannot be read as a table: {'. '.join(faults)}."


def _ragged_rows(
    path: Path, ragged: Sequence[tuple[int, list[str]]], names: Sequence[str], separator: str
) -> str:
    mark = SEPARATORS.get(separator, repr(separator))
    trailing = [len(cells) == len(names) + 1 and not cells[-1] for _, cells in ragged]
    places = [
        f"line {line:,} has {len(cells)}{f' (it ends with a {mark})' * ends}"
        for (line, cells), ends in zip(ragged, trailing, strict=True)
    ]
    within = f"a cell that holds a {mark} stands in quotation marks"
    if len(names) == 1 and (other := next((sign for sign in ";\t" if sign in names[0]), "")):
        remedy = other_separator(other)
    elif all(trailing):
        remedy = f"take the {mark} away at the end of {'this line' if len(ragged) == 1 else 'these lines'}"
    elif not any(trailing) and {len(cells) for _, cells in ragged} == {len(names) + 1}:
        remedy = f"{within}; if R's write.table has numbered the rows, write them with row.names = FALSE"
    else:
        remedy = f"give each row as many cells; {within}"
    have = "row has" if len(ragged) == 1 else "rows have"
    return (
        f"{path.name}: the first line names {counted(len(names), 'column')}, but {len(ragged):,} {have} "
        f"another number of cells: {first_of(places)}; {remedy}."
    )
