"""Real photographs for the second shipped study, cut from the images of an installed library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from experiments.management.base import StudyCommand
from stimuli.datasets.photographs import cut


class Command(StudyCommand):
    help = "Cut two texture photographs into non-overlapping crops in class folders: model/ and people/."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--out", required=True, type=Path, help="the folder that will hold model/ and people/"
        )

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        files = cut(out)
        self.stdout.write(f"{len(files)} crops in {out}")
