"""Logins in Django's admin: made and switched off here, never deleted."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest

admin.site.unregister(User)


@admin.register(User)
class Logins(UserAdmin):  # type: ignore[type-arg]
    """The log of a study would lose the lines of a deleted login; one that is not active cannot log in."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
