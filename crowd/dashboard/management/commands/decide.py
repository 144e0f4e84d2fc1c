"""A named person's decision about people's work: what the dashboard asks a worker for, at the terminal."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from crowd.dashboard.decisions import decide_batch, propose_rejections
from crowd.dashboard.proposing import ACTIONS, CATEGORIES
from experiments.management.base import StudyCommand, study_of

ACTS = {act.replace("_", "-"): act for act in ACTIONS}


class Command(StudyCommand):
    help = "Approve, ask to return, or reject the work of people who failed instructed checks."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("act", choices=list(ACTS))
        parser.add_argument("people", nargs="+", help="the first 8 characters of their names")
        parser.add_argument("--by", required=True, help="your name here: the decision is yours")
        parser.add_argument("--message", default="", help="what they read")
        parser.add_argument("--category", default="FAILED_CHECK", choices=list(CATEGORIES))

    def handle(
        self,
        *args: Any,
        slug: str,
        act: str,
        people: list[str],
        by: str,
        message: str,
        category: str,
        **options: Any,
    ) -> None:
        user = User.objects.filter(username=by, is_active=True).first()
        if user is None:
            raise CommandError(f"{by!r} is nobody here. Give the name that you log in with.")
        known = {one.name: one.submission for one in propose_rejections(study_of(slug))}
        strange = [name for name in people if name not in known]
        if strange:
            raise CommandError(
                f"{', '.join(strange)}: there is nothing to decide. The dashboard's page of proposals lists "
                "whom it concerns."
            )
        decided = decide_batch(user, [known[name] for name in people], ACTS[act], message, category)  # type: ignore[arg-type]
        self.stdout.write(f"{decided.done} of {len(people)} done.")
        if decided.problems:
            raise CommandError(" ".join(decided.problems))
