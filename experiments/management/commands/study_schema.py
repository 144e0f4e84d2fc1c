"""What an editor needs to check a study file while it is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.management.base import StudyCommand


class Command(StudyCommand):
    help = "Print the JSON Schema of study.toml, by which editors check a study file while it is written."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--out", type=Path, metavar="FILE", help="write it there instead")

    def handle(self, *args: Any, out: Path | None, **options: Any) -> None:
        from experiments.study_files.json_schema import schema_text

        if out is None:
            self.stdout.write(schema_text())
            return
        try:
            out.write_text(schema_text(), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{out} cannot be written ({error.strerror}): name another file.") from error
        self.stdout.write(f"{out}: begin a study file beside it with the line #:schema ./{out.name}")
