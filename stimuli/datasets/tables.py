"""Tables beside a dataset's pictures: CSV files in UTF-8 with a heading, read line by line."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from stimuli.errors import BadSpec

IMAGE = "image"
"""The column that names a picture by its path below the dataset's folder."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of a file, with what an error message about it needs."""

    file: str
    number: int
    cells: Mapping[str, str]

    def fault(self, text: str) -> BadSpec:
        return BadSpec(f"{self.file}, line {self.number}: {text}")

    def picture(self, known: Collection[str]) -> str:
        """The picture that the line is about. BadSpec if it is none of the `known`."""
        key = self.cells[IMAGE]
        if key not in known:
            example = min(known, default="cat/1.png")
            raise self.fault(
                f'there is no picture "{key}"; write the path below the folder, such as "{example}"'
            )
        return key


def table_lines(path: Path, columns: tuple[str, ...]) -> Iterator[TableLine]:
    """The lines of a file with a heading of these columns, in any order; none if there is no such file."""
    if not path.is_file():
        return
    wanted = ", ".join(columns)
    try:
        rows = list(csv.reader(path.read_text("utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadSpec(f'"{path}" cannot be read ({error}); save it as CSV in UTF-8') from error
    heading = [cell.strip() for cell in rows[0]] if rows else []
    if sorted(heading) != sorted(columns):
        named = ", ".join(heading) or "nothing"
        raise BadSpec(f"{path.name}: the first line names {named}; the columns must be {wanted}")
    for number, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(heading):
            raise BadSpec(
                f"{path.name}, line {number}: {len(row)} cells were found, {len(heading)} are needed "
                f"({wanted})"
            )
        yield TableLine(path.name, number, dict(zip(heading, (cell.strip() for cell in row), strict=True)))
