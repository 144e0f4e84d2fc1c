"""A link that logs a person in once."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from crowd.dashboard.login_links import make_login_path


class Command(BaseCommand):
    help = "Print a link that logs a person in to the dashboard, once, within an hour."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login", nargs="?", default="", help="whose (the only superuser's)")
        parser.add_argument("--url", default=settings.BASE_URL, help="where the server answers (BASE_URL)")

    def handle(self, *args: Any, login: str, url: str, **options: Any) -> None:
        active = User.objects.filter(is_active=True)
        people = list(active.filter(username=login) if login else active.filter(is_superuser=True))
        if len(people) != 1:
            raise CommandError(_remedy(login, len(people), list(active.order_by("username"))))
        self.stdout.write(f"{url.rstrip('/')}{make_login_path(people[0])}")
        self.stderr.write(
            f"For {people[0].get_username()}, once, within {settings.PASSWORD_RESET_TIMEOUT // 60} minutes."
        )


def _remedy(login: str, count: int, active: list[User]) -> str:
    """Why there is no link: that name is not known, or not exactly one superuser; and what to type."""
    names = ", ".join(user.get_username() for user in active)
    if login:
        known = f"name one of {names}" if names else "there is none yet, so run createsuperuser first"
        return f'There is no active login "{login}": {known}.'
    if count:
        return f"There are {count} superusers: name one of {names}."
    named = f", or name one of {names}" if names else ""
    return f"There is no superuser yet: run createsuperuser first{named}."
