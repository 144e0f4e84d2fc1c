"""The state of a study: four numbers, slots, flow, exclusions; updated live by fragments."""

from __future__ import annotations

from typing import Any, cast

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from analysis.models import Report
from crowd.alerts.current_troubles import of_study
from crowd.dashboard.access import study_page
from crowd.dashboard.layout import study_response
from crowd.dashboard.rows.ledger import modes_of, spending_of
from crowd.dashboard.rows.next_steps import next_step
from crowd.dashboard.rows.pay_due import money_of
from crowd.dashboard.rows.places_and_exclusions import (
    UNPLACED,
    Flow,
    by_hand_of,
    drawing_of,
    exclusions_of,
    flows_of,
    places_of,
    steps_of,
)
from crowd.ground.roles import roles_of
from crowd.models import Alert
from experiments.models import Study


@study_page("view")
def overview(request: HttpRequest, study: Study) -> HttpResponse:
    return study_response(request, study, "overview", snapshot(study))


@study_page("view")
def live(request: HttpRequest, study: Study) -> HttpResponse:
    """The part of the overview that is updated live, and the header's next step, which counts the same."""
    content = snapshot(study)
    around = {
        "study": study,
        "step": next_step(study, content["places"], content["drawing"]),
        "may": roles_of(cast(User, request.user), study),
        "is_fresh": True,
    }
    return render(request, "dashboard/parts/live.html", {**around, **content})


@study_page("view")
def live_drawing(request: HttpRequest, study: Study) -> HttpResponse:
    """The state of rendering alone."""
    drawing = drawing_of(study)
    return render(
        request, "dashboard/parts/drawing.html", {"study": study, "drawing": drawing, "now": timezone.now()}
    )


def snapshot(study: Study) -> dict[str, Any]:
    """Everything that the live part shows."""
    now = timezone.now()
    places, flows = places_of(study), flows_of(study)
    origins = [flow.origin for flow in flows]
    placed = [flow for flow in flows if flow.origin not in UNPLACED]
    wanted, in_progress = sum(p.wanted for p in places), sum(p.in_progress for p in places)
    return {
        "places": places,
        "drawing": drawing_of(study),
        "wanted": wanted,
        "passed": sum(p.passed for p in places),
        "in_progress": in_progress,
        "at_gates": sum(flow.at_gates for flow in placed),
        "screened": sum(flow.screened for flow in placed),
        "whose": _whose(flows),
        "flows": flows,
        "steps": steps_of(flows),
        "exclusions": exclusions_of(study, origins) + by_hand_of(flows),
        "money": money_of(study, wanted, in_progress),
        "spending": spending_of(study, "live") if "live" in modes_of(study) else None,
        "openings": _openings(study, origins),
        "troubles": [*of_study(study, now), *Alert.objects.filter(study=None, ended_at=None).order_by("pk")],
        "now": now,
    }


def _whose(flows: list[Flow]) -> str:
    """The origins of the numbers, if not all are people's."""
    words = [flow.word.lower() for flow in flows]
    return "" if words in ([], ["people"]) else " and ".join(words)


def _openings(study: Study, origins: list[str]) -> list[dict[str, Any]]:
    """The sentence that each stored report gives while results are sealed."""
    reports = Report.objects.filter(study=study, origin__in=origins).exclude(opening="")
    return [
        {"sentence": opening, "made_at": made_at}
        for opening, made_at in reports.order_by("origin").values_list("opening", "created_at")
    ]
