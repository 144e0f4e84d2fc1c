from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.http import HttpRequest

from stimuli.models import Stimulus

if TYPE_CHECKING:
    StimulusPages = admin.ModelAdmin[Stimulus]
else:
    StimulusPages = admin.ModelAdmin  # not subscriptable at run time


@admin.register(Stimulus)
class StimulusAdmin(StimulusPages):
    """Reading only: rows and files are made by the pipeline."""

    list_display = ("key", "explainer", "state", "claimed_at", "finished_at", "error")
    list_filter = ("state",)
    search_fields = ("key", "attribution_key", "image_key", "picture_digest")
    ordering = ("-pk",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Stimulus | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Stimulus | None = None) -> bool:
        return False
