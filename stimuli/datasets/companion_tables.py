"""Tables beside a dataset's pictures: CSV files in UTF-8 with a heading, read line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stimuli.datasets.file_names import Names
from stimuli.errors import BadSpec, first_of
from stimuli.table_reader import TableError, read_table

IMAGE = "image"
"""The column that names a picture by its path below the dataset's folder."""


class LineFault(BadSpec):
    """A line that cannot be meant; the message begins with its number."""


@dataclass(frozen=True, slots=True)
class TableLine:
    """One line of a file, with what an error message about it needs."""

    number: int
    cells: Mapping[str, str]

    def fault(self, text: str) -> LineFault:
        return LineFault(f"line {self.number:,}: {text}")

    def picture(self, known: Names) -> str:
        """The picture that the line is about. BadSpec if it is none of the `known`."""
        written = self.cells[IMAGE]
        key = known.find(written)
        if key is None:
            example = min(known.known, default="cat/1.png")
            raise self.fault(
                f'there is no picture "{written}"; write the path below the folder, such as "{example}"'
            )
        return key


def read_lines(path: Path, columns: tuple[str, ...], read: Callable[[TableLine], None]) -> None:
    """Hands every line of a file with a heading of these columns, in any order, to `read`; none without a
    file. Raises BadSpec of all lines whose LineFault `read` raises."""
    if not path.is_file():
        return
    try:
        table = read_table(path)
    except TableError as error:
        raise BadSpec(str(error).removesuffix(".")) from None
    heading = [name.strip() for name in table.names]
    if sorted(heading) != sorted(columns):
        named, wanted = ", ".join(heading), ", ".join(columns)
        raise BadSpec(f"{path.name}: the first line names {named}; the columns must be {wanted}")
    faults = []
    for number, row in table.rows():
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        try:
            read(TableLine(number, dict(zip(heading, cells, strict=True))))
        except LineFault as fault:
            faults.append(str(fault))
    if faults:
        many = f": {len(faults):,} lines are refused" if len(faults) > 1 else ""
        raise BadSpec(f"{path.name}{many}, {first_of(faults, '; ')}")
