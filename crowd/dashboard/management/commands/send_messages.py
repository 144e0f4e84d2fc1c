"""Sends the answers to participants that are stored and wait: what a worker does where there is one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.core.management.base import CommandParser

from crowd.dashboard.letters import deliver, waiting
from experiments.management.base import StudyCommand, study_of


class Command(StudyCommand):
    help = "Send the answers to participants that wait. Repeating it sends nothing twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        study = study_of(slug)
        became = Counter(deliver(letter) for letter in waiting(study))
        if not became:
            self.stdout.write("No answer waits.")
            return
        words = {
            "sent": "sent",
            "failed": "failed, to be answered again",
            "unknown": "may or may not have arrived: look on the platform",
        }
        for state, n in became.items():
            self.stdout.write(f"{n} {words.get(state, 'sent by somebody else at the same moment')}")
