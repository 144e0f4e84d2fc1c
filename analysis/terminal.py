"""What the commands of this room share with a person at a terminal: studies by slug, a progress bar on
long work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from analysis.tables import Progress as Report
from experiments.models import Study


def study_of(slug: str) -> Study:
    """The study of that slug. Raises CommandError that names what there is."""
    try:
        return Study.objects.get(slug=slug)
    except Study.DoesNotExist:
        known = ", ".join(Study.objects.order_by("slug").values_list("slug", flat=True)) or "none yet"
        raise CommandError(f"There is no study '{slug}' in this database (there are: {known}).") from None


@contextmanager
def progress_bar() -> Iterator[Report]:
    """A bar on the standard error stream while work goes on; silent when piped."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield show
