"""Pictures of all methods, recipes and paradigms, for the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandParser

from crowd.rehearsal.documentation_gallery import draw_sheets, draw_trials
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Draw what methods and recipes look like: one sheet for each kind, for the documentation."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--to", type=Path, default=Path("docs/pictures"), help="folder (docs/pictures)")

        parser.add_argument(
            "--trials",
            action="store_true",
            help="a trial of each paradigm too: builds four studies, a quarter of an hour",
        )

    def handle(self, *args: Any, to: Path, trials: bool, **options: Any) -> None:
        with Terminal() as terminal:
            written = draw_sheets(to, terminal.progress)
            if trials:
                written += draw_trials(to, settings.VAR_DIR / "screens")
            for path in written:
                terminal.line(str(path))
