"""Removes a person's identity, and on request the answers; says what must remain."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import QuerySet

from crowd.models import Identity
from crowd.people.privacy import RemovalSummary, forget, forget_due
from crowd.platforms import PLATFORMS
from experiments.management.base import StudyCommand, study_of
from experiments.sessions.pseudonyms import is_called, namer
from experiments.tokens import keyed_hash


class Command(StudyCommand):
    help = "Forget a person: by the name that pages and terminal show, or by the platform's id."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", nargs="?", help="only in this study; without it, in all")
        parser.add_argument(
            "--participant", help="the name that pages and terminal show, or 8 or more of its digits"
        )
        parser.add_argument("--platform", choices=list(PLATFORMS), help="whose id standard input gives")
        parser.add_argument("--realm", help="the register of the id, if it is not the platform's own")
        parser.add_argument("--responses", action="store_true", help="remove the answers as well")
        parser.add_argument("--due", action="store_true", help="all people whose retention date has passed")
        parser.add_argument("--reason", default="asked by the participant", help="kept with the tombstone")

    def handle(self, *args: Any, slug: str | None, due: bool, **options: Any) -> None:
        if due:
            self._print(forget_due())
            return
        identities = list(self._people(slug, options))
        if not identities:
            raise CommandError("Nobody of that name is known here; nothing was changed.")
        total = RemovalSummary()
        for identity in identities:
            total += forget(identity, responses=options["responses"], reason=options["reason"])
        self._print(total)

    def _people(self, slug: str | None, options: dict[str, Any]) -> QuerySet[Identity]:
        people = Identity.objects.select_related("study", "participant").order_by("id")
        if slug:
            people = people.filter(study=study_of(slug))
        if options["participant"]:
            return self._by_key(people, options["participant"])
        if not options["platform"]:
            raise CommandError(
                "Say who: --participant NAME, or --platform NAME and the id on standard input."
            )
        # Read, not given as an argument: arguments stay in the shell's history and in the process list.
        person = sys.stdin.readline().strip()
        if not person:
            raise CommandError("Standard input is empty: write the platform's id of the person there.")
        return people.filter(
            person_hash=keyed_hash("person", options["realm"] or options["platform"], person)
        )

    def _by_key(self, people: QuerySet[Identity], key: str) -> QuerySet[Identity]:
        word = key.strip().casefold()
        if len(word.strip("p-")) < 8:
            raise CommandError(f"--participant {key[:40]!r}: give the name, or 8 or more of its digits.")
        ids = [
            row.pk
            for row in people.select_related("study", "participant")
            if is_called(namer(row.study)(row.participant.pseudonym), row.participant.pseudonym, word)
        ]
        if len(ids) > 1:
            raise CommandError(f"--participant {key!r} fits {len(ids)} people; give more characters.")
        return people.filter(pk__in=ids)

    def _print(self, total: RemovalSummary) -> None:
        self.stdout.write(
            f"Forgotten: {total.people} identities, {total.ids} ids of platforms, {total.messages} messages, "
            f"{total.responses} answers."
        )
        for sentence in total.remains:
            self.stdout.write(f"Remains: {sentence}")
