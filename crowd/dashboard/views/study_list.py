"""All studies, and what a researcher does to one: build, close."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from crowd.dashboard.access import refusals, researcher, researcher_of, study_act, study_form, study_page
from crowd.dashboard.layout import page_of, study_response
from crowd.dashboard.rows.places_and_exclusions import UNPLACED, places_of
from crowd.dashboard.rows.postings import mode_word, title_of
from crowd.dashboard.rows.study_differences import differences, facts
from crowd.ground.broker_silence import asking_workers
from crowd.ground.roles import demand, studies_of
from crowd.people.decisions import record
from crowd.people.result_seals import seal
from crowd.people.study_closure import asks_a_platform, close_whole, command_of, still_offered
from crowd.recruiting.missing_picture_orders import send_missing
from experiments.models import Session, Slot, Study
from stimuli.errors import OtherPackage

PER_PAGE = 50
COMPARED = 200
RUNNING = ("gates", "assigned", "running")


@researcher
@require_safe
def studies(request: HttpRequest) -> HttpResponse:
    rows = studies_of(researcher_of(request)).defer("definition", "practice").order_by("-created_at", "-pk")
    page = page_of(request, rows, PER_PAGE)
    shown = [study.pk for study in page]
    held = Q(kept=False, holder__isnull=False, lease_ends_at__gte=timezone.now())
    slots = {
        row["study"]: row
        for row in Slot.objects.filter(study__in=shown, pilot=False)
        .values("study")
        .annotate(wanted=Count("id"), passed=Count("id", filter=Q(kept=True)), now=Count("id", filter=held))
        .order_by()
    }
    arrived = dict(
        Session.objects.filter(study__in=shown)
        .exclude(origin__in=UNPLACED)
        .values_list("study")
        .annotate(n=Count("id"))
        .order_by()
    )
    lines = [{"study": s, "slots": slots.get(s.pk), "arrived": arrived.get(s.pk, 0)} for s in page]
    return render(request, "dashboard/studies.html", {"lines": lines, "page": page})


@study_page("view")
def compare(request: HttpRequest, study: Study) -> HttpResponse:
    """What differs between this study and another that the login may look at."""
    others = studies_of(researcher_of(request)).exclude(pk=study.pk).order_by("-created_at", "-pk")
    other = others.filter(slug=request.GET.get("with", "")).first()
    content = {
        "others": others.values_list("slug", "title")[:COMPARED],
        "other": other,
        "differences": differences(study, other) if other else [],
        "facts": facts(study, other) if other else [],
    }
    return study_response(request, study, "compare", content, current="downloads")


@study_act("run")
def build(request: HttpRequest, study: Study) -> HttpResponse:
    """Sends what is missing to the workers; without a broker there are none, and nothing is done."""
    if settings.CELERY_BROKER_URL:
        try:
            with asking_workers():
                count = send_missing(study, researcher_of(request).get_username())
        except OtherPackage as error:
            messages.error(request, f"Nothing was sent: {error}.")
        else:
            messages.success(request, f"{count:,} stimuli were sent to the workers.")
    else:
        messages.error(
            request,
            "No message broker is configured, so a page cannot start this work. Run: "
            f"python manage.py build_stimuli {study.slug}",
        )
    return redirect("dashboard:stimuli", slug=study.slug)


@study_form("run")
def close(request: HttpRequest, study: Study) -> HttpResponse:
    """Says what will happen and asks once; what is still offered is closed first."""
    reason = request.POST.get("reason", "").strip()[:500]
    if request.method == "POST":
        return _close(request, study, reason)
    places, offering = places_of(study), still_offered(study)
    sealed = seal(study, "human")
    by = researcher_of(request).get_username()
    content = {
        "seal": sealed,
        "places": places,
        "kept": sum(p.passed for p in places),
        "wanted": sum(p.wanted for p in places),
        "taking_part": Session.objects.filter(study=study, state__in=RUNNING)
        .exclude(origin__in=UNPLACED)
        .count(),
        "offering": [
            f"{title_of(posting.platform)} ({mode_word(posting).lower()}, {posting.state})"
            for posting in offering
        ],
        "asks_a_platform": asks_a_platform(offering),
        "command": command_of(study, by, "WHY" if sealed.sealed and study.state == "open" else ""),
    }
    return study_response(request, study, "close", content)


def _close(request: HttpRequest, study: Study, reason: str) -> HttpResponse:
    user, offering = researcher_of(request), still_offered(study)
    opens_early = study.state == Study.State.OPEN and seal(study, "human").sealed
    if opens_early:
        # Closing shows the results per condition: who may not break the seal may not do so in this way.
        demand(user, study, "unseal")
    if study.state != Study.State.OPEN and not offering:
        messages.error(request, f"Only an open study can be closed; this one is {study.state}.")
    elif opens_early and not reason:
        messages.error(request, "Closing now opens the results early: say why. Nothing was changed.")
        return redirect("dashboard:close", slug=study.slug)
    elif not asks_a_platform(offering):
        with refusals(partial(messages.error, request)):
            close_whole(study, user.get_username(), reason)
            messages.success(request, "The study is closed. Nobody new can take part.")
    elif settings.CELERY_BROKER_URL:
        from crowd import tasks

        # Without a reason the worker closes nothing that is sealed again by then: that takes its own role.
        with asking_workers():
            tasks.close_study.delay(study.pk, user.get_username(), reason if opens_early else "")
        record(
            study, user, f"Asked a worker to close the study and its postings{': ' * bool(reason)}{reason}"
        )
        messages.success(
            request,
            "A worker was asked to close every posting and then the study. Look again in a minute; the log "
            "says what became of it.",
        )
    else:
        messages.error(
            request,
            "It is offered on a platform, and without a message broker a page cannot speak with it. Nothing "
            f"was closed. Run: {command_of(study, user.get_username(), reason)}",
        )
    return redirect("dashboard:overview", slug=study.slug)
