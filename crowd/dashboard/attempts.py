"""Wrong passwords are counted, by name and by address: after some, a right one is not looked at either."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.forms import AuthenticationForm
from django.core.cache import caches
from django.core.exceptions import ValidationError
from rest_framework.request import Request

from experiments.api.addresses import client_address
from experiments.tokens import keyed_hash

WITHIN_S = 900
OF_NAME = 10
OF_ADDRESS = 50
"""More than of a name: a laboratory shares an address."""
TOO_MANY = "Too many wrong passwords. Wait {minutes} minutes; a link of manage.py login_link logs in at once."


class PatientForm(AuthenticationForm):
    """Django's form, which refuses names and addresses with too many wrong passwords behind them."""

    has_to_wait = False

    def clean(self) -> dict[str, Any]:
        counted = self._counted()
        cache = caches["shared" if "shared" in caches.settings else "default"]
        if any((cache.get(key) or 0) >= most for key, most in counted):
            self.has_to_wait = True
            raise ValidationError(TOO_MANY.format(minutes=WITHIN_S // 60))
        try:
            return super().clean()
        except ValidationError:
            for key, _ in counted:
                cache.add(key, 0, WITHIN_S)
                cache.incr(key)
            raise

    def _counted(self) -> list[tuple[str, int]]:
        name = str(self.cleaned_data.get("username", "")).casefold()
        counted = [("login:" + keyed_hash("login", "name", name), OF_NAME)]
        address = client_address(cast("Request", self.request)) if self.request is not None else ""
        if address:
            counted.append(("login:" + keyed_hash("login", "address", address), OF_ADDRESS))
        return counted
