"""A guard before every page: no query string reaches a database that could not store it."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

NUL = ("%00", "\x00")
READS_ITSELF = ("/api/", "/join/")
"""Addresses that refuse such a query string in their own form."""


def refuse_nul(answer: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Django's own lists hand a field of the address on as it is, and PostgreSQL takes no NUL."""

    def guarded(request: HttpRequest) -> HttpResponse:
        query = request.META.get("QUERY_STRING", "")
        if any(text in query for text in NUL) and not request.path.startswith(READS_ITSELF):
            return HttpResponseBadRequest("The address holds a character that no page reads: remove %00.")
        return answer(request)

    return guarded
