"""Prints a study's report and writes it as JSON and HTML, with figures and tables as files."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import CommandError
from rich.console import Console

from analysis.frames import MixedOrigins
from analysis.refresh import REPORTED, make_report, store_report
from analysis.reports.base import ReportError
from analysis.reports.files import write_report
from analysis.reports.text import print_report
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Report a study: its flow, its result and its tests, as text, JSON, one HTML page and files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--out", type=Path, help="folder for report.json, report.html, figures, tables")
        parser.add_argument("--origin", choices=REPORTED, default="human")
        parser.add_argument(
            "--reporter", default="", help="another reporter than the paradigm's, by its name"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        study = study_of(options["slug"])
        try:
            with Terminal() as terminal:
                origin, named = options["origin"], options["reporter"]
                if named:
                    report = make_report(study, origin, terminal.progress, named)
                else:
                    # The dashboard's tab shows the stored one.
                    report = store_report(study, origin, terminal.progress)
            if options["out"]:
                written = write_report(report, options["out"])
        except (ReportError, MixedOrigins, OSError) as error:
            raise CommandError(str(error)) from error
        print_report(report, Console(file=cast(IO[str], self.stdout)))
        if options["out"]:
            self.stdout.write(f"Written to {options['out']}: {', '.join(written)}")
