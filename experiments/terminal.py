"""The output of commands: a bar for long work, a line per step, a table at the end; quiet when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table

SHOW_AFTER_S = 2.0


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

    def line(self, text: str) -> None:
        self.console.print(text, markup=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Numbers to the right, words to the left."""
        table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for index, column in enumerate(columns):
            numeric = bool(rows) and all(
                isinstance(row[index], int | float) or row[index] == "" for row in rows
            )
            table.add_column(column, justify="right" if numeric else "left")
        for row in rows:
            table.add_row(*(f"{cell:,.3f}" if isinstance(cell, float) else str(cell) for cell in row))
        self.console.print(table)
        sys.stdout.flush()
