"""Read-only views of the rows, for maintainers; researchers use the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from experiments import models

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


class ReadOnly(ModelAdmin):
    """No part of a study can be edited here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(models.Study)
class StudyAdmin(ReadOnly):
    list_display = ["slug", "paradigm", "state", "digest", "opened_at"]
    # What people read on the plates of the colour check never leaves the server.
    exclude = ["plates"]


@admin.register(models.Session)
class SessionAdmin(ReadOnly):
    list_display = ["id", "study", "origin", "state", "verdict", "started_at", "finished_at"]
    list_filter = ["study", "origin", "state", "verdict"]
