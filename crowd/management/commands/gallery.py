"""Pictures of all methods and recipes, for the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from crowd.rehearsal.gallery import draw_sheets
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Draw what methods and recipes look like: one sheet for each kind, for the documentation."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", type=Path, default=Path("docs/pictures"), help="folder (docs/pictures)")

    def handle(self, *args: Any, to: Path, **options: Any) -> None:
        with Terminal() as terminal:
            for path in draw_sheets(to, terminal.progress):
                terminal.line(str(path))
