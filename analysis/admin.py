"""Read-only views of the rows in Django's admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from analysis.models import Release, Report

if TYPE_CHECKING:
    # Generic for the type checker only.
    Admin = admin.ModelAdmin[Any]
else:
    Admin = admin.ModelAdmin


class ReadOnlyAdmin(Admin):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Report)
class ReportAdmin(ReadOnlyAdmin):
    list_display = ("study", "origin", "sealed", "newest_session_at", "created_at")
    list_select_related = ("study",)
    exclude = ("html",)


@admin.register(Release)
class ReleaseAdmin(ReadOnlyAdmin):
    list_display = ("study", "digest", "created_at")
    list_select_related = ("study",)
