"""One table from our errors to HTTP. The body is the same for all: {"error", "next", "exit"}."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework.exceptions import APIException, Throttled
from rest_framework.response import Response

from experiments.errors import SessionError, TooMany
from stimuli.errors import StoreSilent

CODES = {
    400: "invalid",
    401: "no_session",
    403: "not_admitted",
    404: "no_study",
    405: "invalid",
    429: "too_many",
}

STORE_RETRY_S = 2
"""When a page may ask again for what the store did not hand over."""


def error_body(
    code: str,
    message: str,
    remedy: str = "",
    *,
    fields: Mapping[str, str] | None = None,
    next_position: int | None = None,
    exit: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "error": {"code": code, "message": message, "remedy": remedy, "fields": dict(fields or {})},
        "next": next_position,
        "exit": exit,
    }


def exception_response(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """DRF's exception handler: None lets an unexpected error become a 500, which the page sends again."""
    if isinstance(error, SessionError):
        body = error_body(
            error.code,
            error.message,
            error.remedy,
            fields=error.fields,
            next_position=error.next_position,
            exit=error.exit,
        )
        headers = {"Retry-After": str(error.retry_after_s)} if isinstance(error, TooMany) else None
        return Response(body, status=error.status, headers=headers)
    if isinstance(error, StoreSilent):
        message = "The study's pictures and texts cannot be read now."
        body = error_body("unavailable", message, "Wait a moment and send the request again.")
        return Response(body, status=503, headers={"Retry-After": str(STORE_RETRY_S)})
    if isinstance(error, Http404):
        return Response(error_body("no_study", "There is nothing at this address."), status=404)
    if isinstance(error, PermissionDenied):
        return Response(error_body("not_admitted", "This is not allowed."), status=403)
    if isinstance(error, Throttled):
        return _throttle_response(error)
    if isinstance(error, APIException):
        status = 400 if error.status_code == 415 else error.status_code
        remedy = "Send application/json." if error.status_code == 415 else ""
        return Response(error_body(CODES.get(status, "invalid"), str(error.detail), remedy), status=status)
    return None


def _throttle_response(error: Throttled) -> Response:
    """Too many requests: how long to wait stands in the header, as the page expects it."""
    wait_s = max(1, ceil(getattr(error, "wait", None) or 1))
    body = error_body(
        "too_many",
        f"Too many requests came from here within a minute. It goes on in {wait_s} s.",
        f"Wait {wait_s} s and send the request again; nothing is lost.",
    )
    return Response(body, status=429, headers={"Retry-After": str(wait_s)})
