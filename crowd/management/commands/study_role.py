"""Who may do what in a study: shows it, gives roles and takes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from crowd.ground.roles import ROLES, change, people_of
from experiments.management.base import StudyCommand, study_of


class Command(StudyCommand):
    help = "Show the roles in a study, or give and take those of one login. The log keeps every change."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("user", nargs="?", default="", help="the login; without it all are shown")
        parser.add_argument("--add", nargs="+", choices=ROLES, default=[], help="roles to give")
        parser.add_argument("--remove", nargs="+", choices=ROLES, default=[], help="roles to take")
        parser.add_argument("--by", default="", help="your name, for the log")

    def handle(
        self,
        *args: Any,
        slug: str,
        user: str,
        add: Sequence[str],
        remove: Sequence[str],
        by: str,
        **options: Any,
    ) -> None:
        study = study_of(slug)
        if add or remove:
            if not (user and by.strip()):
                raise CommandError("To change roles, give the login, and your name with --by.")
            if set(add) & set(remove):
                raise CommandError(f"{', '.join(sorted(set(add) & set(remove)))}: given and taken at once.")
            for sentence in change(study, _login(user), add, remove, by.strip()) or ["Nothing was changed."]:
                self.stdout.write(sentence)
        people = people_of(study)
        for person, roles in people.items():
            if not user or person.get_username() == user:
                self.stdout.write(f"{person.get_username()}: {', '.join(roles)}")
        if not people:
            self.stdout.write(f"No login has a role in {slug}; superusers may do all.")


def _login(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        known = User.objects.filter(is_active=True).order_by("username").values_list("username", flat=True)
        raise CommandError(
            f"There is no login {name!r} (there are: {', '.join(known[:20]) or 'none yet'}). "
            "An administrator makes it on the page /admin/auth/user/add/."
        )
    return user
