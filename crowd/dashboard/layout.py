"""What every page of a study shows around its content: the list of studies, the header, the tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from crowd.dashboard.rows.next_steps import next_step
from crowd.dashboard.rows.places_and_exclusions import drawing_of, places_of
from crowd.ground.roles import roles_of, studies_of
from experiments.models import Study

TABS = (
    ("overview", "Overview"),
    ("quality", "Quality"),
    ("participants", "Participants"),
    ("exclusions", "Exclusions"),
    ("stimuli", "Stimuli"),
    ("preview", "Preview"),
    ("recruitment", "Recruitment"),
    ("money", "Money"),
    ("letters", "Messages"),
    ("report", "Report"),
    ("downloads", "Downloads"),
    ("log", "Log"),
)
STUDIES_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Heading:
    """A column's heading; `href` sorts by it, `direction` says how it is sorted now."""

    word: str
    href: str = ""
    direction: str = ""
    numeric: bool = False


def tabs_of(study: Study, current: str) -> list[tuple[str, str, bool]]:
    """Word, address, and whether it is the current one."""
    return [(word, reverse(f"dashboard:{name}", args=[study.slug]), name == current) for name, word in TABS]


def studies_listed(user: User) -> list[Study]:
    """Those that the login may see, newest first, without their definitions."""
    fields = ("slug", "title", "state", "created_at")
    return list(studies_of(user).only(*fields).order_by("-created_at", "-pk")[:STUDIES_SHOWN])


def study_response(
    request: HttpRequest,
    study: Study,
    tab: str,
    content: dict[str, Any],
    status: int = 200,
    *,
    current: str = "",
) -> HttpResponse:
    """A tab of a study, or a page behind the tab `current`, by the template of its name. `content` may bring
    what it has counted already. `may` are the login's roles, so that a page shows no form in vain.
    """
    user = cast(User, request.user)
    places = content.get("places")
    places = places_of(study) if places is None else places
    drawing = content.get("drawing") or drawing_of(study)
    around = {
        "study": study,
        "studies": studies_listed(user),
        "may": roles_of(user, study),
        "tabs": tabs_of(study, current or tab),
        "step": next_step(study, places, drawing),
        "places": places,
        "drawing": drawing,
        "has_broker": bool(settings.CELERY_BROKER_URL),
    }
    return render(request, f"dashboard/{tab}.html", around | content, status=status)


def attachment(name: str, content_type: str, text: str = "") -> HttpResponse:
    """A file to be saved under this name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type=f"{content_type}; charset=utf-8", headers=headers)


def page_of(request: HttpRequest, rows: Any, per_page: int) -> Page[Any]:
    """The page that the address asks for; the nearest page if there is no such page."""
    return Paginator(rows, per_page).get_page(request.GET.get("page", "1"))


def address(request: HttpRequest, **changes: str) -> str:
    """This page's query string with some keys changed; an empty value removes a key, and so does any change
    to the page.
    """
    current = {key: value for key, value in request.GET.items() if key != "page"}
    query = {key: value for key, value in {**current, **changes}.items() if value}
    return "?" + urlencode(query)


def headings(request: HttpRequest, columns: Sequence[tuple[str, str, bool]], sort: str) -> list[Heading]:
    """(word, sort key or "", numeric) -> headings; a click on the sorted one turns it around."""
    row = []
    for word, key, numeric in columns:
        direction = "ascending" if key and sort == key else "descending" if key and sort == f"-{key}" else ""
        href = address(request, sort=f"-{key}" if sort == key else key) if key else ""
        row.append(Heading(word, href, direction, numeric))
    return row


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of a filter, as a link."""

    word: str
    href: str
    is_current: bool


def choices(request: HttpRequest, name: str, words: dict[str, str], current: str) -> list[Choice]:
    return [
        Choice(word, address(request, **{name: value}), value == current) for value, word in words.items()
    ]
