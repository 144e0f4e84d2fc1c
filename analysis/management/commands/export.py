"""Writes a study's tables, codebook and manifest into a folder."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.checks import Tags
from django.core.management.base import CommandError
from django.utils import timezone

from analysis.exports import EXPORTERS
from analysis.exports.study_export import Request, export_study
from analysis.seal import seal_of
from analysis.tables.response_reader import study_facts
from analysis.tables.stimulus_pictures import FOLDER
from experiments.management.base import StudyCommand, study_of
from experiments.models import Session, Study
from experiments.terminal import Terminal


class Command(StudyCommand):
    # Checking the addresses would load every page of the server, which takes more memory than the export.
    requires_system_checks = (Tags.caches, Tags.compatibility, Tags.files, Tags.models)
    help = "Export the trials, participants and stimuli of a study, with codebook and manifest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--format", choices=list(EXPORTERS), default="csv")
        parser.add_argument(
            "--out", required=True, type=Path, help="a folder that is empty or does not exist"
        )
        parser.add_argument("--cleaned", action="store_true", help="only those who passed, of one origin")
        parser.add_argument(
            "--origin", choices=["human", "simulated", "pilot", "preview", "model"], default=""
        )
        parser.add_argument(
            "--release", default="", help="name of the pseudonyms' key; another name, other pseudonyms"
        )
        parser.add_argument(
            "--public",
            action="store_true",
            help="the profile for publication: no clock times, no free text, a coarse device",
        )
        parser.add_argument("--pictures", action="store_true", help="with the pictures that were shown")
        parser.add_argument(
            "--unseal-as", default="", help="name of the person who breaks the seal, if it is still closed"
        )
        parser.add_argument("--reason", default="", help="why; name and reason are printed in every report")

    def handle(self, *args: Any, **options: Any) -> None:
        study = study_of(options["slug"])
        # Whole tables hold a pilot's sessions as well, whose results have a seal of their own.
        whole = ("human",) if options["cleaned"] else ("human", "pilot")
        for origin in (options["origin"],) if options["origin"] else whole:
            unseal_for(study, origin, options["unseal_as"], options["reason"])
        names = ("format", "cleaned", "origin", "release", "public", "pictures")
        request = Request(**{name: options[name] for name in names})
        try:
            with Terminal() as terminal:
                manifest = export_study(study, options["out"], request, terminal.progress)
        except OSError as error:
            raise CommandError(str(error)) from error
        listed = [entry for entry in manifest["files"] if "/" not in entry["name"]]
        if shown := len(manifest["files"]) - len(listed):
            self.stdout.write(f"{FOLDER + '/':<18} {shown:>9,} files")
        for entry in listed:
            self.stdout.write(f"{entry['name']:<18} {entry['rows']:>9,} rows  {entry['sha256'][:16]}")
        self.stdout.write(f"manifest.json      {manifest['digest'][:16]}  in {options['out']}")


def unseal_for(study: Study, origin: str, name: str, reason: str) -> None:
    """The tables name conditions, so exporting a sealed origin needs the name of a person and a reason."""
    seal = seal_of(study_facts(study, origin), origin)
    if not seal.sealed or not Session.objects.filter(study=study, origin=origin).exists():
        return
    if not name.strip() or not reason.strip():
        raise CommandError(
            f"{seal.sentence} The tables name conditions: give --unseal-as NAME and --reason TEXT, "
            "which every report will print, or wait."
        )
    Study.objects.filter(id=study.pk, unsealed_at__isnull=True).update(
        unsealed_at=timezone.now(), unsealed_by=name.strip(), unsealed_reason=reason.strip()
    )
