"""Puts people on an exclusion list, which studies name in [recruitment] excludes."""

from __future__ import annotations

import re
import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from crowd.models import ExcludedPerson
from crowd.platforms import PLATFORMS
from experiments.management.base import StudyCommand
from experiments.tokens import keyed_hash

NAME = re.compile(r"[a-z0-9][a-z0-9_\-]{0,62}")


class Command(StudyCommand):
    help = "Exclude people: their ids, one per line on standard input, are kept as keyed hashes only."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("list", help="name of the list; a study excludes it as list:NAME")
        parser.add_argument("--platform", choices=list(PLATFORMS), required=True, help="whose ids they are")
        parser.add_argument("--realm", help="the register of the ids, if it is not the platform's own")
        parser.add_argument("--remove", action="store_true", help="take them off the list again")

    def handle(
        self, *args: Any, list: str, platform: str, realm: str | None, remove: bool, **options: Any
    ) -> None:
        if not NAME.fullmatch(list):
            raise CommandError(f"{list[:80]!r}: a list is named by 1 to 63 of a-z, 0-9, _ and -.")
        people = {line.strip() for line in sys.stdin if line.strip()}
        hashes = [keyed_hash("person", realm or platform, person) for person in sorted(people)]
        if remove:
            gone, _ = ExcludedPerson.objects.filter(list_name=list, person_hash__in=hashes).delete()
            self.stdout.write(f"{gone} people taken off {list!r}.")
            return
        before = ExcludedPerson.objects.filter(list_name=list).count()
        rows = [ExcludedPerson(list_name=list, person_hash=value) for value in hashes]
        ExcludedPerson.objects.bulk_create(rows, ignore_conflicts=True, batch_size=500)
        after = ExcludedPerson.objects.filter(list_name=list).count()
        self.stdout.write(f"{after - before} people added to {list!r}; it holds {after}.")
