"""A named person's decision about submissions: what the dashboard asks a worker for, at the terminal."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from crowd.dashboard.rows.decision_wording import ACTIONS, CATEGORIES
from crowd.people.decisions import NO_DATA, Action, decide, decide_batch, propose_rejections
from crowd.people.submission_actions import submission_named
from crowd.platforms.base import PlatformError, UnsupportedRequest
from experiments.errors import StudyError
from experiments.management.base import StudyCommand, study_of
from experiments.models import Study

ACTS = {act.replace("_", "-"): act for act in ACTIONS}


class Command(StudyCommand):
    help = (
        "Approve, or ask to return, any submission that awaits a decision; reject on the platform's grounds."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("act", choices=list(ACTS))
        parser.add_argument("people", nargs="+", help="the first 8 characters of their names")
        parser.add_argument("--by", required=True, help="your name here: the decision is yours")
        parser.add_argument("--message", default="", help="why: the log keeps it, they read it")
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
        known = {proposal.name: proposal.submission for proposal in propose_rejections(study_of(slug))}
        strange = [name for name in people if name not in known]
        if strange and act == "reject" and category != NO_DATA:
            raise CommandError(
                f"{', '.join(strange)}: there is nothing to decide, for no rule gives grounds to reject. "
                "The dashboard's page of proposals lists whom it concerns."
            )
        done, problems = _decide_others(study_of(slug), user, strange, ACTS[act], message, category)
        if len(strange) < len(people):
            chosen = [known[name] for name in people if name in known]
            decided = decide_batch(user, chosen, ACTS[act], message, category)  # type: ignore[arg-type]
            done, problems = done + decided.done, [*problems, *decided.problems]
        self.stdout.write(f"{done} of {len(people)} done.")
        if problems:
            raise CommandError(" ".join(problems))


def _decide_others(
    study: Study, user: User, names: list[str], act: str, message: str, category: str
) -> tuple[int, list[str]]:
    """People who failed no checks, and people who never came: each separately, with a reason."""
    rows, done, problems = [submission_named(study, name) for name in names], 0, []
    for row, name in zip(rows, names, strict=True):
        try:
            decide(user, row, cast(Action, act), message, category)
            done += 1
        except (StudyError, UnsupportedRequest, PlatformError) as error:
            problems.append(f"{name}: {error}")
    return done, problems
