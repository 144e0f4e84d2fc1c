"""Removes what no study names from the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from experiments.drafting.store_cleanup import (
    ABANDONED,
    Orphans,
    find_orphans,
    forget_other_installations,
    remove,
)
from experiments.errors import StudyError
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal
from stimuli.store import open_store

DAYS = 30.0
WORDS = {
    "maps": "raw explanations",
    "pictures": "drawn explanations",
    "tiles": "small pictures of items",
    "views": "items as models saw them",
    "texts": "texts of items",
    "regions": "annotated regions",
    "recorded": "explanations made elsewhere",
    "predictors": "models",
    "surveys": "answers of models",
    "trained": "trained networks",
    ABANDONED: "halves that killed processes left",
}


class Command(StudyCommand):
    help = "List the stimuli and files that no study names; --remove removes them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--remove", action="store_true", help="remove what is listed")
        parser.add_argument("--days", type=float, default=DAYS, help=f"what is younger stays ({DAYS:.0f})")
        parser.add_argument("--list", type=Path, help="a file to write the name of every such file into")
        parser.add_argument("--alone", action="store_true", help="no other database uses this store any more")

    def handle(self, *args: Any, days: float, alone: bool, **options: Any) -> None:
        if days < 0:
            raise StudyError(f"--days {days:g}: at least 0 is needed.")
        store = open_store(settings.STORAGE_URL)
        if alone:
            forget_other_installations(store)
        left = find_orphans(store, days)
        if options["list"]:
            options["list"].write_text("".join(f"{file.key}\n" for file in left.files))
        if options["remove"]:
            remove(left, store, days)
        with Terminal() as terminal:
            _print(left, terminal, days, is_removed=options["remove"])


def _print(left: Orphans, terminal: Terminal, days: float, is_removed: bool) -> None:
    if not left.files and not left.stimuli:
        terminal.line(f"Every file older than {days:g} days is named by a study: {left.kept:,} files.")
        return
    rows = [(WORDS[room], count, round(size / 1e6, 3)) for room, (count, size) in left.by_room().items()]
    terminal.table("Named by no study", ("what", "files", "MB"), rows)
    total = sum(file.size_bytes for file in left.files) / 1e6
    done = "Removed" if is_removed else "Nothing was removed. With --remove go"
    terminal.line(
        f"{done}: {len(left.stimuli):,} stimuli, {len(left.files):,} files, {total:,.1f} MB. "
        f"{left.kept:,} files stay."
    )
