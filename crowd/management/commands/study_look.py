"""Takes the look at an open study that its plan names: prints continue or stop."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from analysis.stored_reports.interim_look import take_look
from crowd.ground.audit import record
from experiments.management.base import StudyCommand, study_of


class Command(StudyCommand):
    help = "Take the planned look that is due: says continue or stop and no score, and stores who looked."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--by", required=True, help="your name, for the log and the report")

    def handle(self, *args: Any, slug: str, by: str, **options: Any) -> None:
        study = study_of(slug)
        said = take_look(study, by)
        record(study, by, f"{said}.")
        self.stdout.write(said)
