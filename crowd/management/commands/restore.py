"""Brings a backup back, into an empty database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from crowd.ground import backups
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Restore a backup into an empty database and the store, then migrate; nothing is replaced."
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="that backup wrote")

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        with Terminal() as terminal:
            note = backups.restore(folder, terminal.progress)
            terminal.line(
                f"Restored as of {note['at']}: {note['studies']:,} studies, {note['sessions']:,} sessions, "
                f"{note['responses']:,} answers, {note['files']:,} files. Open sessions go on."
            )
