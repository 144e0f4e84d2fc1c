"""Sends the stored messages to participants that wait: what a worker does, if there is one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from crowd.people.messages import deliver, waiting, write
from crowd.people.submission_actions import submission_named
from experiments.management.base import StudyCommand, study_of
from experiments.models import Study


class Command(StudyCommand):
    help = "Send the messages to participants that wait. Repeating it sends nothing twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--to", metavar="PARTICIPANT", help="write to somebody first, then send")
        parser.add_argument("--message", default="", help="what they read")
        parser.add_argument("--by", default="", help="the name that you log in with")

    def handle(self, *args: Any, slug: str, to: str | None, message: str, by: str, **options: Any) -> None:
        study = study_of(slug)
        if to is not None:
            self._write(study, to, message, by)
        elif message or by:
            raise CommandError(
                "Say to whom: --to, with the name that pages and terminal show, or a part of it."
            )
        became = Counter(deliver(letter) for letter in waiting(study))
        if not became:
            self.stdout.write("No message waits.")
            return
        words = {
            "sent": "sent",
            "failed": "failed, to be written again",
            "unknown": "may or may not have arrived: look on the platform",
        }
        for state, n in became.items():
            self.stdout.write(f"{n} {words.get(state, 'sent by another process at the same moment')}")

    def _write(self, study: Study, to: str, message: str, by: str) -> None:
        user = User.objects.filter(username=by, is_active=True).first()
        if user is None:
            raise CommandError(f"--by {by!r} is nobody here. Give the name that you log in with.")
        write(submission_named(study, to), message, user)
