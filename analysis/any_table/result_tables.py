"""What an analysis of anybody's table prints: tables with exact numbers, sentences, and their text form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from analysis.any_table.formats import NONE, p_value
from analysis.stats.intervals_and_checks import Row, StatsError


def count_text(count: int, what: str) -> str:
    """A number with its noun, which is given in the plural."""
    return f"{count:,} {what}"


@dataclass(frozen=True, slots=True)
class Table:
    """A printable table: cells are already text.

    `left` counts the leading columns that are words, not numbers. `short` are the headings in a terminal of
    80 columns; an empty one leaves the column out.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    left: int = 1
    short: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Rows with exact numbers; `key` names the file that they are written to. An interval is two columns, low
    and high or names that end so; `level` (0-1) is that of all whose names do not say another."""

    key: str
    title: str
    rows: list[Row]
    note: str = ""
    level: float = 0.95

    @property
    def has_intervals(self) -> bool:
        """Whether a column holds ends of intervals."""
        return any(name == "low" or name.endswith("_low") for name in self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of all rows, in the order in which they come."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row))

    def printable(self) -> Table:
        """The table as text, four significant digits; a column without any value is left out."""
        columns = [name for name in self.columns if any(row.get(name) is not None for row in self.rows)]
        rows = tuple(tuple(_cell(name, row.get(name)) for name in columns) for row in self.rows)
        left = next(
            (i for i, name in enumerate(columns) if any(_is_number(row.get(name)) for row in self.rows)),
            len(columns),
        )
        heads = tuple(name.replace("_", " ") for name in columns)
        note = f"{self.note} Intervals: {self.level:.0%}.".strip() if self.has_intervals else self.note
        return Table(self.key, self.title, heads, rows, note, left=left)


@dataclass(slots=True)
class Results:
    """`notes` are sentences; `refused` holds the procedures that each reason leaves out of this table."""

    tables: list[ResultTable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """Each reason once, after all that it leaves out."""
        return [f"{'; '.join(titles)}: {why}" for why, titles in self.refused.items()]

    def refuse(self, title: str, why: str) -> None:
        """There is no `title`, and why."""
        self.refused.setdefault(why, []).append(title)

    def add(self, table: ResultTable) -> None:
        self.tables.append(table)

    def attempt(
        self, key: str, title: str, made: Callable[[], list[Row]], note: str = "", *, level: float = 0.95
    ) -> None:
        """Adds the table, or the sentence that says why there is none."""
        try:
            rows = made()
        except StatsError as error:
            self.refuse(title, str(error))
            return
        self.tables.append(ResultTable(key, title, rows, note, level))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(name: str, value: object) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    is_p = name == "p" or name.startswith("p_") or name.endswith("_p")
    if is_p:
        return p_value(value)
    text = f"{value:.0f}" if abs(value) >= 10_000 else f"{value:z.4g}"
    return text.replace("-", "\N{MINUS SIGN}")
