"""Prints the file in which a study says its pages in a language of its own."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from experiments.management.base import StudyCommand
from experiments.wording import language_file


class Command(StudyCommand):
    help = "Print every sentence of a study's pages as a file to translate, for [interface] words."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--template",
            metavar="LANGUAGE",
            nargs="?",
            const="en",
            required=True,
            help="the language's tag, such as uk, zh-Hant or ar-EG (en); those of en and de are filled in",
        )

    def handle(self, *args: Any, template: str, **options: Any) -> None:
        self.stdout.write(language_file.template(template), ending="")
