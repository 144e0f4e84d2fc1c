"""Wrong passwords are counted by name and address together, and by address: after some, a right one from
there is not looked at either. A name alone is not counted: strangers who know it could keep its person
out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from django.contrib.auth.forms import AuthenticationForm
from django.core.cache import BaseCache, caches
from django.core.exceptions import ValidationError
from redis.exceptions import RedisError
from rest_framework.request import Request

from experiments.api.client_address import around, client_address
from experiments.tokens import keyed_hash

WITHIN_S = 900
OF_NAME = 10
"""From one address."""
OF_ADDRESS = 50
"""More than of a name: a laboratory shares an address."""
WIDE = 4
"""A network of IPv6 of 48 bits may be wrong so many times as often as one of 64."""
TOO_MANY = "Too many wrong passwords. Wait {minutes} minutes; a link of manage.py login_link logs in at once."


class PatientForm(AuthenticationForm):
    """Django's form, which refuses names and addresses with too many wrong passwords behind them."""

    has_to_wait = False

    def clean(self) -> dict[str, Any]:
        counted = self._attempt_limits()
        if any(_times(key) >= most for key, most in counted):
            self.has_to_wait = True
            raise ValidationError(TOO_MANY.format(minutes=WITHIN_S // 60))
        try:
            return super().clean()
        except ValidationError:
            for key, _ in counted:
                _count(key)
            raise

    def _attempt_limits(self) -> list[tuple[str, int]]:
        name = str(self.cleaned_data.get("username", "")).casefold()
        address = client_address(cast("Request", self.request)) if self.request is not None else ""
        network = around(address, 48)
        places = [(address, 1), *([(network, WIDE)] if network else [])]
        counted = [("login:" + keyed_hash("login", "name", name, place), n * OF_NAME) for place, n in places]
        return counted + [
            ("login:" + keyed_hash("login", "address", place), n * OF_ADDRESS) for place, n in places if place
        ]


def _times(key: str) -> int:
    return max(int(value or 0) for value in _ask_caches(lambda cache: cache.get(key)))


def _count(key: str) -> None:
    """Here, and where all processes see it."""

    def counted(cache: BaseCache) -> None:
        if not cache.add(key, 1, WITHIN_S):
            with suppress(ValueError):  # Its time ended in between.
                cache.incr(key)

    _ask_caches(counted)


def _ask_caches(what: Callable[[BaseCache], Any]) -> list[Any]:
    """Of this process's own cache, and of the shared one unless it is away: then it keeps no one out."""
    answers = [what(caches["default"])]
    if "shared" in caches.settings:
        with suppress(RedisError):
            answers.append(what(caches["shared"]))
    return answers
