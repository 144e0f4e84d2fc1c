"""Real photographs for the second shipped study, cut from what an installed library carries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from stimuli.datasets.photographs import cut
from stimuli.errors import StimulusError


class Command(BaseCommand):
    help = "Cut two texture photographs into non-overlapping crops in class folders: model/ and people/."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--out", required=True, type=Path, help="the folder that will hold model/ and people/"
        )

    def handle(self, *args: Any, out: Path, **options: Any) -> None:
        try:
            files = cut(out)
        except StimulusError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{len(files)} crops in {out}")
