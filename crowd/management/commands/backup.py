"""Backs an installation up while people take part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from crowd.ground.backups import back_up
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Write all rows and files into a folder, while people take part; keys are not in it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="new, or that of an earlier backup, which it replaces")

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        with Terminal() as terminal:
            note = back_up(folder, terminal.progress)
            terminal.line(
                f"{note['studies']:,} studies, {note['sessions']:,} sessions, {note['responses']:,} answers "
                f"and {note['files']:,} files are in {folder}. Keep IDENTITY_KEY and SECRET_KEY elsewhere."
            )
