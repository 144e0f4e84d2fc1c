"""Filters of the participants' list that a login keeps under a name."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from django.contrib.auth.models import User

from crowd.models import SavedFilter
from experiments.errors import StudyError
from experiments.models import Study

NAME_MAX = 40
KEPT = ("origin", "status", "sort", "q")
QUERY_MAX = 300
MOST = 30


def save_filter(study: Study, user: User, name: str, chosen: Mapping[str, str]) -> SavedFilter:
    """Keeps what is chosen; a filter of that name is replaced. StudyError if there is nothing to keep."""
    plain = name.strip()
    query = urlencode({key: chosen[key] for key in KEPT if chosen.get(key)})
    if not 1 <= len(plain) <= NAME_MAX:
        raise StudyError(f"Name the filter, in 1 to {NAME_MAX} characters.")
    if not query or len(query) > QUERY_MAX:
        raise StudyError("Choose an origin, a status, an order or a word first; then keep that.")
    kept = SavedFilter.objects.filter(study=study, user=user)
    if kept.exclude(name=plain).count() >= MOST:
        raise StudyError(f"There are {MOST} filters already: remove one first.")
    return SavedFilter.objects.update_or_create(
        study=study, user=user, name=plain, defaults={"query": query}
    )[0]


def remove_filter(study: Study, user: User, number: int) -> None:
    SavedFilter.objects.filter(study=study, user=user, pk=number).delete()


def filters_saved(study: Study, user: User) -> list[SavedFilter]:
    return list(SavedFilter.objects.filter(study=study, user=user).order_by("name"))
