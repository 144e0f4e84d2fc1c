"""Leaks that are planted between the views and the browser: one byte, or some milliseconds, for the model's
solutions alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest, HttpResponse

from experiments.models import Trial

DELAY_S = 0.02
SESSION, PICTURES = "/api/session/", "/m/"


@dataclass(slots=True)
class Leak:
    """What leaks now: "" nothing, "reply" one byte more of a reply, "picture" of a picture with a mark,
    "time" the reply comes later. Remembers the addresses of the model's marks."""

    what: str = ""
    marks: set[str] = field(default_factory=set)


LEAK = Leak()


def is_of_model(trial: str) -> bool:
    row = Trial.objects.select_related("condition").get(pk=trial)
    return row.condition is not None and row.condition.role == "method"


def leaking(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """A middleware next to the views."""

    def served(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if request.path == SESSION and request.method == "GET":
            _of_session(response)
        elif request.path.startswith(PICTURES) and LEAK.what == "picture" and request.path in LEAK.marks:
            response.content += b"\0"
        return response

    return served


def _of_session(response: HttpResponse) -> None:
    state: dict[str, Any] = json.loads(response.content)
    trials = (state["block"] or {}).get("trials", [])
    for trial in trials:
        if is_of_model(trial["id"]):
            LEAK.marks |= {trial["content"]["mark"]["url"]} if trial["content"]["mark"] else set()
            if LEAK.what == "reply":
                response.content += b" "
            elif LEAK.what == "time":
                time.sleep(DELAY_S)
