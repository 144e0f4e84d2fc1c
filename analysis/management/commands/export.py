"""Writes a study's tables, codebook and manifest into a folder."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from analysis.exports import EXPORTERS
from analysis.exports.base import ExportError
from analysis.exports.release import Request, export_study
from experiments.management.base import StudyCommand, study_of
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Export the trials, participants and stimuli of a study, with codebook and manifest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--format", choices=list(EXPORTERS), default="csv")
        parser.add_argument(
            "--out", required=True, type=Path, help="a folder that is empty or does not exist"
        )
        parser.add_argument("--cleaned", action="store_true", help="only those who passed, of one origin")
        parser.add_argument("--origin", choices=["human", "simulated", "pilot", "preview"], default="")
        parser.add_argument(
            "--release", default="", help="name of the pseudonyms' key; another name, other pseudonyms"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        study = study_of(options["slug"])
        request = Request(options["format"], options["cleaned"], options["origin"], options["release"])
        try:
            with Terminal() as terminal:
                manifest = export_study(study, options["out"], request, terminal.progress)
        except (ExportError, OSError) as error:
            raise CommandError(str(error)) from error
        for entry in manifest["files"]:
            self.stdout.write(f"{entry['name']:<18} {entry['rows']:>9,} rows  {entry['sha256'][:16]}")
        self.stdout.write(f"manifest.json      {manifest['digest'][:16]}  in {options['out']}")
