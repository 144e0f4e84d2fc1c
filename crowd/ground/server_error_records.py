"""Requests that ended in an error of ours, each with where and whom it hit. The error's own words are kept in
no row: they may repeat what a person sent."""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.signals import got_request_exception
from django.db import Error as AnyDatabaseError
from django.http import HttpRequest

from crowd.models import Failure
from experiments.models import Session, Study
from experiments.tokens import hash_token

log = logging.getLogger(__name__)


def keep_failures() -> None:
    got_request_exception.connect(_keep, dispatch_uid="keep failures")


def _keep(sender: object, request: HttpRequest | None = None, **more: Any) -> None:
    error = sys.exc_info()[1]
    if error is None or request is None or isinstance(error, AnyDatabaseError):
        return  # Without a database there is no row; readyz and the watcher tell it.
    try:
        session = _session(request)
        route = request.resolver_match
        slug = route.kwargs.get("slug", "") if route else ""
        study = session.study_id if session else _study_of(slug)
        Failure.objects.create(
            study_id=study,
            session=session,
            route=(route.route if route else "")[:120],
            error=type(error).__name__[:80],
            place=_place(error)[:160],
        )
    except AnyDatabaseError as problem:
        log.warning("A failed request could not be noted: %s", type(problem).__name__)


def _session(request: HttpRequest) -> Session | None:
    token = request.headers.get("Authorization", "").rpartition(" ")[2]
    return Session.objects.filter(token_hash=hash_token(token)).first() if token else None


def _study_of(slug: str) -> int | None:
    return Study.objects.filter(slug=slug).values_list("pk", flat=True).first() if slug else None


def _place(error: BaseException) -> str:
    """The last line of our own code that the error came through, as path:line; of any code if it met none."""
    frames = traceback.extract_tb(error.__traceback__)
    root = Path(settings.BASE_DIR)
    ours = [f for f in frames if Path(f.filename).is_relative_to(root) and ".venv" not in f.filename]
    if not frames:
        return ""
    last = (ours or frames)[-1]
    path = Path(last.filename)
    return f"{path.relative_to(root) if path.is_relative_to(root) else path.name}:{last.lineno}"
