"""Closes every posting of a study, verified, and then the study itself."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from crowd.people.study_closure import close_whole
from experiments.management.base import StudyCommand, study_of


class Command(StudyCommand):
    help = "End a study for good: its postings first, then the study. Repeating it does what is left."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--by", required=True, help="your name, for the log")
        parser.add_argument(
            "--reason", default="", help="why, needed before every place is kept: reports print it"
        )

    def handle(self, *args: Any, slug: str, by: str, reason: str, **options: Any) -> None:
        for sentence in close_whole(study_of(slug), by, reason) or ["Nothing was left to close."]:
            self.stdout.write(sentence)
