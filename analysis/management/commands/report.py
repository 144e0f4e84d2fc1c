"""Prints a study's report and writes it as JSON and HTML, with figures and tables as files."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import Console

from analysis.exports.report_from_package import rebuilt
from analysis.reports.output.files import write_report
from analysis.reports.output.terminal import print_report
from analysis.reports.report import Report
from analysis.stored_reports.refresh import REPORTED, make_report, store_report
from analysis.tables.response_reader import code_version
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Report a study: its flow, its result and its tests, as text, JSON, one HTML page and files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", nargs="?", default="")
        parser.add_argument(
            "--from",
            dest="package",
            type=Path,
            metavar="PACKAGE",
            help="an exported folder: its report is made again from its files alone, without the database",
        )
        parser.add_argument("--out", type=Path, help="folder for report.json, report.html, figures, tables")
        parser.add_argument("--origin", choices=REPORTED, default="", help="human without it")
        parser.add_argument(
            "--reporter", default="", help="another reporter than the paradigm's, by its name"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["slug"]) == bool(options["package"]):
            raise CommandError("Give a study's slug, or --from with the folder of a package.")
        if options["package"] and options["reporter"]:
            raise CommandError("--reporter chooses for a study in the database; leave it out with --from.")
        try:
            report = self._from_package(options) if options["package"] else self._from_study(options)
            if options["out"]:
                written = write_report(report, options["out"])
        except OSError as error:
            raise CommandError(str(error)) from error
        print_report(report, Console(file=cast(IO[str], self.stdout)))
        if options["out"]:
            self.stdout.write(f"Written to {options['out']}: {', '.join(written)}")

    def _from_study(self, options: Mapping[str, Any]) -> Report:
        study = study_of(options["slug"])
        origin, named = options["origin"] or "human", options["reporter"]
        with Terminal() as terminal:
            if named:
                return make_report(study, origin, terminal.progress, named)
            # The dashboard's tab shows the stored one.
            return store_report(study, origin, terminal.progress)

    def _from_package(self, options: Mapping[str, Any]) -> Report:
        """Reads files only, so that it runs beside any database, or none."""
        report = rebuilt(options["package"], options["origin"], f"{timezone.now():%Y-%m-%d %H:%M} UTC")
        if report.facts.code_version != code_version():
            self.stdout.write(
                f"Exported by version {report.facts.code_version} of Legible, made again by version "
                f"{code_version()}: numbers may differ if an analysis has changed in between."
            )
        return report
