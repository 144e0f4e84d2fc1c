"""A link that logs one person in, once, within an hour. Nothing is stored: the login itself spends it."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.urls import reverse
from django.utils import timezone

SALT = "legible.dashboard.enter"


class LoginTokens(PasswordResetTokenGenerator):
    """Django's tokens for a new password, here for a login: short, signed, of one hour
    (PASSWORD_RESET_TIMEOUT), and over with every login and with a new password."""

    key_salt = SALT

    def _make_hash_value(self, user: AbstractBaseUser, timestamp: int) -> str:
        # Django drops the microseconds: a link that is made and used within one second would stay.
        seen = user.last_login.isoformat() if user.last_login else ""
        return f"{user.pk}\x1f{seen}\x1f{user.password}\x1f{timestamp}"


TOKENS = LoginTokens()


def make_login_path(user: User) -> str:
    """The path "/enter/<token>/": valid for one hour, and until this person's next login of any kind."""
    return reverse("dashboard:enter", args=[f"{user.pk}-{TOKENS.make_token(user)}"])


def person_of(token: str) -> User | None:
    """The user whom a token would log in; None if it is forged, spent or too old. Changes nothing."""
    number, _, rest = token.partition("-")
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        return None
    user = User.objects.filter(pk=int(number), is_active=True).first()
    return user if user is not None and TOKENS.check_token(user, rest) else None


def spend(token: str) -> User | None:
    """Uses the token up. Of two calls at the same moment, one gets the user, the other None."""
    user = person_of(token)
    if user is None:
        return None
    unused = User.objects.filter(pk=user.pk, last_login=user.last_login)
    if user.last_login is None:
        unused = User.objects.filter(pk=user.pk, last_login__isnull=True)
    if unused.update(last_login=timezone.now()) != 1:
        return None
    user.refresh_from_db()
    return user
