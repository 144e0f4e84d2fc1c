"""A link that logs one person in, once, within an hour. Nothing is stored: the login itself spends it."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser, User
from django.core import signing
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac

MAX_AGE_S = 3600
SALT = "legible.dashboard.enter"


def make_login_path(user: AbstractBaseUser) -> str:
    """The path "/enter/<token>/": valid for one hour, and until this person's next login of any kind."""
    token = signing.dumps({"user": user.pk, "state": _state(user)}, salt=SALT)
    return reverse("dashboard:enter", args=[token])


def person_of(token: str) -> User | None:
    """The user whom a token would log in; None if it is forged, spent or too old. Changes nothing."""
    try:
        held = signing.loads(token, salt=SALT, max_age=MAX_AGE_S)
    except signing.BadSignature:
        return None
    user = User.objects.filter(pk=held["user"], is_active=True).first()
    return user if user is not None and held["state"] == _state(user) else None


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


def _state(user: AbstractBaseUser) -> str:
    """Changes with every login and with a new password; tells neither."""
    seen: datetime | None = user.last_login
    text = f"{user.pk}\x1f{seen.isoformat() if seen else ''}\x1f{user.password}"
    return salted_hmac(SALT, text).hexdigest()[:32]
