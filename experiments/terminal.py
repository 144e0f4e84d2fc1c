"""The output of commands: a bar for long work, a line per step, a table at the end; quiet when piped."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Sequence
from types import TracebackType

from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

SHOW_AFTER_S = 2.0
NO_BREAK = "\N{NO-BREAK SPACE}"
LINE_MAX = 100
GAP = 2
"""Spaces between the columns of a table."""


class Terminal:
    """Progress and lines of one command; a context manager that leaves the terminal as it was.

    `progress(what, done, total)` is called by the code that does the work. A bar appears once work has taken
    two seconds and only on a terminal; when the work is done, one line says how much it was and how long it
    took.
    """

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._tasks: dict[str, tuple[TaskID | None, float]] = {}

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def progress(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        task, began = self._tasks.setdefault(what, (None, now))
        elapsed = now - began
        if done >= total:
            if task is not None:
                self.bars.remove_task(task)
            del self._tasks[what]
            if not self._tasks:
                self.bars.stop()
            if elapsed >= SHOW_AFTER_S or task is not None:
                self.line(f"  {what}: {total:,} in {elapsed:.0f} s")
            return
        if task is None and elapsed >= SHOW_AFTER_S:
            self.bars.start()
            task = self.bars.add_task(what, total=total, rate="")
            self._tasks[what] = (task, began)
        if task is not None:
            rate = f"{done / elapsed:.1f}/s" if elapsed > 0 and done else ""
            self.bars.update(task, completed=done, total=total, rate=rate)

    def line(self, text: str, style: str | None = None, *, is_whole: bool = False) -> None:
        """A sentence, in lines of at most LINE_MAX at a terminal. `is_whole`: it is there to be copied."""
        self.console.print(text if is_whole else wrap_lines(text, self.console), markup=False, style=style)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Numbers to the right, words to the left. Nothing is cut off: a row that is too wide for a terminal
        goes on below, each cell in its column; a pipe gets one line per row."""
        cells = [[f"{cell:,.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
        numeric = [
            bool(rows) and all(isinstance(row[index], int | float) or row[index] == "" for row in rows)
            for index in range(len(columns))
        ]
        table = whole_table(columns, cells, numeric, self.console)
        self.line(title, "bold")
        self.console.print(table, markup=False)
        sys.stdout.flush()


def wrap_lines(text: str, console: Console) -> str:
    """The text in lines that are read with ease, words whole; as it is in a pipe."""
    if not console.is_terminal:
        return text
    width = min(LINE_MAX, console.width)
    return "\n".join(
        textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)
        for line in text.split("\n")
    )


def whole_table(
    columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], console: Console
) -> Table:
    """A table of which nothing is cut off, as wide as a terminal if its words allow that. `numeric` columns
    stand to the right."""
    columns_of = list(zip(columns, *cells, strict=True))
    widths = [max(map(cell_len, column)) for column in columns_of]
    if console.is_terminal:
        widths = _narrow_columns(widths, columns_of, console.width)
    folded = [[_fold_cell(cell, w) for cell in column] for column, w in zip(columns_of, widths, strict=True)]
    widths = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in folded]
    # rich takes columns away from a table that it believes too wide.
    table = Table(box=None, pad_edge=False, width=sum(widths) + GAP * (len(widths) - 1), header_style="bold")
    for column, width, is_number in zip(folded, widths, numeric, strict=True):
        side: JustifyMethod = "right" if is_number else "left"
        table.add_column(Text(column[0]), justify=side, width=width, no_wrap=True)
    for row in zip(*(column[1:] for column in folded), strict=True):
        # As text, not as markup, so that a label in square brackets is printed as it is.
        table.add_row(*map(Text, row))
    return table


def _narrow_columns(widths: Sequence[int], columns: Sequence[Sequence[str]], most: int) -> list[int]:
    """Widths of columns whose sum with the gaps is at most `most`, if their longest words allow that; the
    widest column gives first."""
    least = [max(cell_len(word) for cell in column for word in [*cell.split(" "), ""]) for column in columns]
    made = list(widths)
    while sum(made) + GAP * (len(made) - 1) > most:
        free = [index for index, width in enumerate(made) if width > least[index]]
        if not free:
            break
        made[max(free, key=lambda index: made[index])] -= 1
    return made


def _fold_cell(cell: str, width: int) -> str:
    """In lines of that width, if its words allow that. A no-break space is none between words."""
    lines = textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) if width else []
    return "\n".join(lines).replace(NO_BREAK, " ")
