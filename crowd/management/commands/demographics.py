"""Writes what people told the platform about themselves, by the pseudonyms of an export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from crowd.models import Posting
from crowd.people.demographics import demographics_of, write_demographics
from crowd.platforms import PLATFORMS, has_service
from crowd.platforms.base import PlatformError, UnsupportedRequest
from experiments.management.base import StudyCommand, study_of


class Command(StudyCommand):
    help = "Write what people told the platform about themselves, by the pseudonyms of an export."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("file", help="where to write it: demographics.csv")
        parser.add_argument("--platform", choices=[name for name in PLATFORMS if has_service(name)])
        parser.add_argument("--release", default="", help="the release of the export that it belongs to")

    def handle(self, *args: Any, slug: str, file: str, platform: str | None, **options: Any) -> None:
        study, path = study_of(slug), Path(file)
        if path.exists():
            raise CommandError(f"{file} is there already. Give a file that does not exist.")
        postings = Posting.objects.filter(study=study).exclude(external_id="").order_by("pk")
        chosen = [row for row in postings if has_service(row.platform) and platform in (None, row.platform)]
        if not chosen:
            raise CommandError(
                f"{slug} was offered on no platform that knows its people: there is nothing to ask."
            )
        told: dict[str, Mapping[str, str]] = {}
        try:
            for posting in chosen:
                told |= demographics_of(posting, options["release"])
        except (PlatformError, UnsupportedRequest) as error:
            raise CommandError(f"{error} Nothing was written.") from error
        write_demographics(told, path)
        self.stdout.write(
            f"{file}: {len(told)} participants. Join it with participants.csv by the column participant. "
            "These are personal data: keep the file where your consent text says."
        )
