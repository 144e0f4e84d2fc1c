"""Turns the kept answers of a closed study into solutions that a later stage starts from."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from experiments.errors import StudyError
from experiments.management.base import StudyCommand, study_of
from experiments.models import Solution
from experiments.stages import freeze
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Freeze the answers of a closed study as the solutions of a later stage."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")

    def handle(self, *args: Any, **options: Any) -> None:
        study = study_of(options["study"])
        try:
            digest = freeze(study)
        except StudyError as error:
            raise CommandError(str(error)) from error
        count = Solution.objects.filter(study=study).count()
        with Terminal() as terminal:
            terminal.line(f"{study.slug}: {count} solutions, digest {digest}.")
