"""The postings of a study with their places, and what can be done to each."""

from __future__ import annotations

from typing import cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Case, IntegerField, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from crowd.dashboard.access import researcher_of, study_page
from crowd.dashboard.checklist import checklist
from crowd.dashboard.layout import page_of, study_response
from crowd.dashboard.postings import (
    BY_HAND,
    PLACES_MAX,
    Act,
    acts_of,
    command_of,
    mode_word,
    most_of,
    offered,
    title_of,
    works_here,
)
from crowd.ground.amounts import cents_of, is_typed
from crowd.ground.workers import asking_workers
from crowd.joining.floods import floods, release
from crowd.models import Posting
from crowd.money.acts import accept_reward
from crowd.money.cap import REASON_MIN, change_cap
from crowd.money.hand import hands_of
from crowd.money.standings import other_reward_of
from crowd.people.decisions import record
from crowd.platforms.base import PlatformError, Unsupported
from experiments.errors import StudyError
from experiments.models import Study

PER_PAGE = 8


class PlacesForm(forms.Form):
    count = forms.IntegerField(
        min_value=1,
        max_value=PLACES_MAX,
        error_messages={
            "required": "Say how many places to add.",
            "invalid": "Say how many places to add, as a whole number.",
            "min_value": "Add at least 1 place.",
            "max_value": f"Add at most {PLACES_MAX:,} places at once.",
        },
    )


@study_page("view")
@require_safe
def recruitment(request: HttpRequest, study: Study) -> HttpResponse:
    # Open postings before closed ones, real money before trials, platforms without an interface last.
    order = Case(
        When(state=Posting.State.CLOSED, then=Value(9)),
        When(platform__in=BY_HAND, then=Value(4)),
        When(mode=Posting.Mode.LIVE, then=Value(1)),
        When(mode=Posting.Mode.SANDBOX, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    rows = Posting.objects.filter(study=study).order_by(order, "-created_at", "-pk")
    page = page_of(request, rows, PER_PAGE)
    page.object_list = offered(study, list(page.object_list))
    content = {"page": page, "has_broker": bool(settings.CELERY_BROKER_URL), "places_max": PLACES_MAX}
    content |= {"reason_min": REASON_MIN, "floods": floods(study)}
    is_live = Posting.objects.filter(study=study, mode=Posting.Mode.LIVE, pilot=False).exists()
    if study.state == Study.State.OPEN and not is_live:
        content["checklist"] = checklist(study)
    return study_response(request, study, "recruitment", content)


@study_page("run")
@require_POST
def release_places(request: HttpRequest, study: Study) -> HttpResponse:
    """Takes back what one address holds."""
    try:
        count = release(study, request.POST.get("sender", "")[:64], researcher_of(request).get_username())
    except StudyError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{count} places are free again; the log keeps your name.")
    return redirect("dashboard:recruitment", slug=study.slug)


@study_page("run")
@require_POST
def posting_act(request: HttpRequest, study: Study, posting: int, act: str) -> HttpResponse:
    """Pause, resume, sync."""
    row = get_object_or_404(Posting, pk=posting, study=study)
    if act not in ("pause", "resume", "sync"):
        raise Http404("There is no such act.")
    return _asked(request, study, row, cast(Act, act), 0)


@study_page("run")
@require_http_methods(["GET", "HEAD", "POST"])
def posting_add(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Says what so many places cost at most; if the money is real, the sum has to be typed."""
    row = get_object_or_404(Posting, pk=posting, study=study)
    form = PlacesForm(request.POST if request.method == "POST" else request.GET)
    if not form.is_valid():
        messages.error(request, str(form.errors["count"][0]))
        return redirect("dashboard:recruitment", slug=study.slug)
    count = form.cleaned_data["count"]
    cents = most_of(study, row, count)
    is_sure = not row.live or is_typed(request.POST.get("total", ""), cents, row.currency)
    if request.method == "POST" and is_sure:
        return _asked(request, study, row, "add", count)
    content = {
        "card": offered(study, [row])[0],
        "count": count,
        "cents": cents,
        "problem": request.method == "POST",
        "has_broker": bool(settings.CELERY_BROKER_URL),
        "command": command_of(study, row, "add", count),
    }
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "posting_add", content, status=status, current="recruitment")


@study_page("run")
@require_http_methods(["GET", "HEAD", "POST"])
def posting_close(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Says what will happen and asks once."""
    row = get_object_or_404(Posting, pk=posting, study=study)
    if request.method == "POST":
        return _asked(request, study, row, "close", 0)
    content = {"card": offered(study, [row])[0], "has_broker": bool(settings.CELERY_BROKER_URL)}
    return study_response(request, study, "posting_close", content, current="recruitment")


class ReasonForm(forms.Form):
    reason = forms.CharField(
        min_length=REASON_MIN,
        max_length=1000,
        error_messages={
            "required": "Give the reason; the log keeps it.",
            "min_length": f"Give the reason in at least {REASON_MIN} characters; the log keeps it.",
        },
    )


class CapForm(ReasonForm):
    amount = forms.CharField(max_length=40, error_messages={"required": "Give the new cap, as 120.00."})


@study_page("pay")
@require_http_methods(["GET", "HEAD", "POST"])
def posting_reward(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Accepts the reward that the platform shows in place of the one that was offered. No platform is
    asked."""
    row = get_object_or_404(Posting.objects.select_related("study"), pk=posting, study=study)
    if works_here(row):
        raise Http404("No machine of this platform pays, so it shows no reward.")
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            count = accept_reward(row, researcher_of(request).get_username(), form.cleaned_data["reason"])
        except StudyError as error:
            form.add_error("reason", str(error))
        else:
            messages.success(request, f"Accepted for {count} people; the log keeps your name and the reason.")
            return redirect("dashboard:money", slug=study.slug)
    hand = next((hand for hand in hands_of(row) if hand.kind == "reward"), None)
    content = {"card": offered(study, [row])[0], "form": form, "reason_min": REASON_MIN, "hand": hand}
    content["why"] = other_reward_of(row)
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "posting_reward", content, status=status, current="money")


@study_page("pay")
@require_http_methods(["GET", "HEAD", "POST"])
def posting_cap(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Changes the most that a posting may pay in all, in the name of the user. No platform is asked."""
    row = get_object_or_404(Posting, pk=posting, study=study)
    if works_here(row):
        raise Http404("No machine of this platform pays, so there is no cap.")
    form = CapForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        who = researcher_of(request).get_username()
        try:
            cents = cents_of(form.cleaned_data["amount"], row.currency)
            change_cap(row, cents, who, form.cleaned_data["reason"])
        except StudyError as error:
            form.add_error("amount", str(error))
        else:
            messages.success(request, "The cap is changed; the log keeps your name and the reason.")
            return redirect("dashboard:recruitment", slug=study.slug)
    content = {"card": offered(study, [row])[0], "form": form, "reason_min": REASON_MIN}
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "posting_cap", content, status=status, current="recruitment")


def _asked(request: HttpRequest, study: Study, posting: Posting, act: Act, count: int) -> HttpResponse:
    if act not in acts_of(posting):
        messages.error(
            request, f"The posting is {posting.state}, so nothing was done. This page shows it as it is now."
        )
    elif not works_here(posting) and not settings.CELERY_BROKER_URL:
        messages.error(
            request,
            "No message broker is configured, so a page cannot speak with the platform. Run: "
            f"{command_of(study, posting, act, count)}",
        )
    else:
        try:
            messages.success(request, _ask(study, posting, act, researcher_of(request), count))
        except (StudyError, Unsupported, PlatformError) as error:
            messages.error(request, str(error))
    return redirect("dashboard:recruitment", slug=study.slug)


def _ask(study: Study, posting: Posting, act: Act, user: User, count: int) -> str:
    """Does what was asked, or sends it to a worker; returns the sentence for the page. If neither is
    possible, the page shows `command_of` and does not call this.
    """
    if works_here(posting):
        from crowd.recruiting import publishing

        verbs = {"pause": publishing.pause, "resume": publishing.resume, "close": publishing.close}
        verbs[act](posting, user.get_username())
        return f"Done: {title_of(posting.platform)} is {posting.state}."
    from crowd.tasks import change_posting

    what = f"{_in_words(act, count)} on {posting.platform} ({mode_word(posting).lower()})"
    with asking_workers():
        change_posting.delay(posting.pk, act, user.get_username(), count)
    record(study, user, f"Asked a worker to {what}.")
    return f"A worker was asked to {what}. Look again in a minute."


def _in_words(act: Act, count: int) -> str:
    words = {"pause": "pause", "resume": "resume", "close": "close", "sync": "sync"}
    return f"add {count} places" if act == "add" else f"{words[act]} the posting"
