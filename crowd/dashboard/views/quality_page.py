"""Who passes which check while a study runs, and what another limit would do: no condition, never sealed."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from analysis.models import Viewing
from crowd.dashboard.access import researcher_of, study_act, study_page
from crowd.dashboard.layout import attachment, choices, study_response
from crowd.dashboard.rows.ledger import modes_of, spending_of
from crowd.dashboard.rows.page_errors import broken_of
from crowd.dashboard.rows.places_and_exclusions import COUNTED, ORIGIN_WORDS, origins_of, places_of
from crowd.dashboard.rows.quality_page import can_be_tried, limit_word, origin_quality, what_if
from crowd.people.interim_look_log import note_limit
from experiments.models import Study
from experiments.paradigms.screening import Limit, rule_word

TRIED_SHOWN = 10


@study_page("view")
def quality(request: HttpRequest, study: Study) -> HttpResponse:
    return study_response(request, study, "watched", _content(request, study), current="quality")


@study_page("view")
def live(request: HttpRequest, study: Study) -> HttpResponse:
    """The part of the page that is updated live."""
    return render(request, "dashboard/parts/watched.html", {"study": study, **_content(request, study)})


@study_page("view")
def values(request: HttpRequest, study: Study) -> HttpResponse:
    """The values of every figure, as CSV."""
    from analysis.spreadsheet_cells import escape_cell

    content = _content(request, study)
    response = attachment(f"{study.slug}-quality.csv", "text/csv")
    rows = csv.writer(response)
    rows.writerow(["figure", "from", "to or value", "people"])
    shown = content["watched"]
    for chart in (*[check.chart for check in shown.checks], *shown.charts):
        for row in chart.rows:
            cells = [chart.title, *row] if len(row) == 3 else [chart.title, row[0], row[1], ""]
            rows.writerow([escape_cell(cell) for cell in cells])
    return response


@study_act("view")
def try_limit(request: HttpRequest, study: Study) -> HttpResponse:
    """Works out what another limit would do, and notes that it was tried: the study keeps its limits."""
    origin, name = _origin(request.POST, study), request.POST.get("rule", "")
    page = f"{reverse('dashboard:quality', args=[study.slug])}?origin={origin}#tried"
    if name not in {rule for rule, _, _ in can_be_tried(study)}:
        messages.error(request, "Choose a rule that acts at the end of a session.")
        return HttpResponseRedirect(page)
    try:
        told = what_if(study, origin, name, _parse_limit(request.POST.get("limit", "")))
    except ValueError as error:
        messages.error(request, f"{rule_word(name)}: {error}.")
        return HttpResponseRedirect(page)
    words = f"{rule_word(name).lower()}, {limit_word(name, _limit(told))}"
    note_limit(study, origin, researcher_of(request).get_username(), told, words)
    return HttpResponseRedirect(page)


def _content(request: HttpRequest, study: Study) -> dict[str, Any]:
    origin = _origin(request.GET, study)
    tried = _recent_limits(study, origin)
    last = {tried[0]["rule"]: tried[0]["as_limit"]} if tried else {}
    places = places_of(study)
    shown = origin_quality(study, origin, sum(p.wanted - p.passed for p in places), last)
    words = {o: ORIGIN_WORDS[o] for o in origins_of(study)}
    spending = spending_of(study, "live") if origin == "human" and "live" in modes_of(study) else None
    return {
        "watched": shown,
        "places": places,
        "origin": origin,
        "whose": ORIGIN_WORDS[origin],
        "origins": choices(request, "origin", words, origin) if len(words) > 1 else [],
        "tried": tried,
        "broken": broken_of(study),
        "can_be_tried": can_be_tried(study),
        "cents_each": spending.fees_end // shown.passed if spending and shown.passed else None,
        "currency": spending.books.currency if spending else "",
        "now": timezone.now(),
    }


def _origin(asked: Mapping[str, str], study: Study) -> str:
    """The origin that is asked for, or the first that has come, people before all others."""
    origin = asked.get("origin", "")
    return origin if origin in COUNTED else next(iter(origins_of(study)), "human")


def _recent_limits(study: Study, origin: str) -> list[dict[str, Any]]:
    """The limits that were tried last, newest first."""
    rows = Viewing.objects.filter(study=study, kind=Viewing.Kind.LIMIT, origin=origin)[:TRIED_SHOWN]
    return [
        {
            **row.detail,
            "who": row.who,
            "at": row.viewed_at,
            "as_limit": _limit(row.detail),
            "word": rule_word(row.detail["rule"]),
            "limit_word": limit_word(row.detail["rule"], _limit(row.detail)),
        }
        for row in rows
    ]


def _limit(told: Mapping[str, Any]) -> Limit:
    limit = told["limit"]
    return (limit[0], limit[1]) if isinstance(limit, list) else limit


def _parse_limit(text: str) -> object:
    """A number, or two with a comma or "to" between them; what cannot be read stays text, and is refused."""
    parts = text.replace(" to ", ",").split(",")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return text[:40]
    return numbers[0] if len(numbers) == 1 else numbers
