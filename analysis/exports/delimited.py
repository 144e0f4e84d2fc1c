"""CSV that is safe to open in a spreadsheet: UTF-8, RFC 4180, no cell that starts a formula.

A text cell whose first visible character could start a formula (= + - @, their wide and small forms), or that
begins with a tab or a line break, gets one apostrophe in front; so does a cell that begins with an apostrophe
itself. A text that is a plain number, such as -2, gets none: no spreadsheet computes it, and every program
reads it as the number. Removing one leading apostrophe restores the exact text: nothing is lost. Numbers,
flags and times are never touched.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.columns import UNITS, Column, codebook, columns_of, names
from analysis.exports.base import ExportError
from analysis.exports.public import DECISIONS
from analysis.frames import Tables, conform, join_parts
from analysis.spreadsheet_cells import escape_cell, unescape_cell
from analysis.tables.missing_codes import MEANINGS

READ_ROWS = 50_000
"""Rows of a file that are held as texts at once."""
NOTE = (
    "Text cells that a spreadsheet could read as a formula, and those that begin with an apostrophe, "
    "carry one extra "
    "apostrophe in front; remove one leading apostrophe to have the exact text. An empty cell has one of the "
    "codes of `missing`. Flags: 1 yes, "
    "0 no. Times: UTC, ISO 8601. Encoding: UTF-8."
)


def write(tables: Tables, folder: Path) -> Mapping[str, int]:
    """One file per table, codebook.csv and codebook.json; returns rows per file."""
    rows = {f"{table}.csv": _write_table(tables, table, folder) for table in tables.listed}
    return rows | write_codebook(tables, folder)


def write_codebook(tables: Tables, folder: Path) -> dict[str, int]:
    """codebook.csv and codebook.json; returns rows per file."""
    entries = [entry for entry in codebook(tables.extra, tables.asked) if entry["table"] in tables.listed]
    heads = list(entries[0])
    write_rows(
        folder / "codebook.csv", heads, ([escape_cell(entry[head]) for head in heads] for entry in entries)
    )
    profile = DECISIONS if tables.is_public else None
    book = {"note": NOTE, "public": profile, "missing": MEANINGS, "tables": UNITS, "columns": entries}
    (folder / "codebook.json").write_text(
        json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return {"codebook.csv": len(entries), "codebook.json": len(entries)}


def _write_table(tables: Tables, table: str, folder: Path) -> int:
    """Part after part, so that no table is held; returns its rows."""
    columns = columns_of(table, tables.extra)
    count = 0

    def lines() -> Iterator[tuple[str, ...]]:
        nonlocal count
        for part in tables.parts(table):
            count += len(part)
            yield from zip(*(_cells(part[column.name], column) for column in columns), strict=True)

    write_rows(folder / f"{table}.csv", [column.name for column in columns], lines())
    return count


def read(path: Path, table: str, extra: Sequence[Column] = (), held: Collection[str] = ()) -> pd.DataFrame:
    """A written table as the frame it was: same columns, dtypes and text. `extra`: see `Frames`; `held`: see
    `columns_of`."""
    if tuple(pd.read_csv(path, nrows=0, encoding="utf-8").columns) != names(table, extra):
        raise ExportError(f"{path.name}: its columns are not those of '{table}' in this version of Legible.")
    columns = columns_of(table, extra, held)
    with pd.read_csv(
        path,
        usecols=[column.name for column in columns],
        dtype=str,
        keep_default_na=False,
        encoding="utf-8",
        chunksize=READ_ROWS,
    ) as parts:
        return join_parts(
            conform(
                pd.DataFrame({column.name: _values(part[column.name], column) for column in columns}),
                table,
                extra,
                held,
            )
            for part in parts
        )


def write_rows(path: Path, heads: list[str], rows: object) -> None:
    """One file of cells that are text already."""
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, lineterminator="\r\n")
        writer.writerow(heads)
        writer.writerows(rows)  # type: ignore[arg-type]


def write_frame(path: Path, table: pd.DataFrame) -> None:
    """One file of a table whose cells are written as text, empty without a value."""
    cells = (["" if pd.isna(v) else escape_cell(str(v)) for v in row] for row in table.to_numpy(object))
    write_rows(path, list(table.columns), cells)


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """What a command writes to its --out. Raises ExportError if it cannot be written."""
    try:
        yield
    except OSError as error:
        raise ExportError(f"{out} cannot be written ({error.strerror}): name another --out.") from error


def _cells(series: pd.Series, column: Column) -> list[str]:
    if column.dtype in ("text", "json"):
        return [escape_cell(str(text)) for text in series]
    if column.dtype == "time":
        return ["" if pd.isna(value) else value.isoformat(timespec="milliseconds") for value in series]
    if column.dtype in ("flag", "integer"):
        return ["" if pd.isna(value) else str(int(value)) for value in series]
    # repr is the shortest text that reads back as the same float; 1.0 is written as 1.
    return ["" if pd.isna(value) else repr(float(value)).removesuffix(".0") for value in series]


def _values(series: pd.Series, column: Column) -> pd.Series:
    if column.dtype in ("text", "json"):
        codes, texts = pd.factorize(series)
        return pd.Series(np.array([unescape_cell(text) for text in texts], dtype=object)[codes], series.index)
    if column.dtype == "flag":
        return series.map({"1": True, "0": False, "": None})
    return series.where(series != "", None)
