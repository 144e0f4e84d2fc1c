"""Checks an exported folder against its manifest."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.db import OperationalError, ProgrammingError

from analysis.exports import manifest
from analysis.models import Release
from experiments.management.base import StudyCommand


def is_issued_here(digest: str) -> bool:
    """Whether this installation wrote the export. One without a database, or an empty one, wrote none."""
    try:
        return Release.objects.filter(digest=digest).exists()
    except (OperationalError, ProgrammingError):
        return False


class Command(StudyCommand):
    help = "Check that an exported folder is exactly as it was written."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        checked = manifest.check(options["folder"])
        if checked.problems:
            raise CommandError("\n".join(checked.problems))
        content = checked.manifest
        self.stdout.write(
            f"{options['folder']}: {len(content['files'])} files are as they were exported from "
            f"'{content['study']}' "
            f"on {content['created_at']}."
        )
        # A forger can rewrite files and manifest together; only the issuer's own record reveals this.
        unknown = "This installation has no record of it: ask its issuer for the manifest's digest."
        is_ours = is_issued_here(content["digest"])
        self.stdout.write("This installation issued it." if is_ours else unknown)
