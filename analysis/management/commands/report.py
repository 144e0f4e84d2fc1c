"""Prints a study's report and writes it as JSON, HTML and PDF figures."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any, cast

from django.core.management.base import CommandError
from rich.console import Console

from analysis.frames import MixedOrigins
from analysis.refresh import REPORTED, make_report, store_report
from analysis.reports.base import ReportError
from analysis.reports.html import page
from analysis.reports.report import Report
from analysis.reports.text import print_report
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Report a study: its flow, its result and its tests, as text, JSON, one HTML page and PDF figures."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--out", type=Path, help="folder for report.json, report.html and the figures")
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


def write_report(report: Report, folder: Path) -> list[str]:
    """report.json, report.html and figures/*.pdf; returns the names."""
    from analysis.reports.figures import as_pdf

    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.json(), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")
    (folder / "report.html").write_text(page(report), encoding="utf-8")
    names = ["report.json", "report.html"]
    for figure in (figure for section in report.sections for figure in section.figures):
        (folder / "figures").mkdir(exist_ok=True)
        names.append(f"figures/{figure.key}.pdf")
        (folder / names[-1]).write_bytes(as_pdf(figure.draw()))
    return names
