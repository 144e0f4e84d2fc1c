"""The postings of a study with their places, and what can be done to each."""

from __future__ import annotations

from functools import partial
from typing import cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Case, IntegerField, Value, When
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from crowd.dashboard.access import reason_field, refusals, researcher_of, study_act, study_form, study_page
from crowd.dashboard.layout import page_of, study_response
from crowd.dashboard.rows.checklist import checklist
from crowd.dashboard.rows.postings import (
    BY_HAND,
    PLACES_MAX,
    Act,
    acts_of,
    command_of,
    mode_word,
    most_of,
    posting_cards,
    title_of,
)
from crowd.ground.amounts import cents_of, is_typed
from crowd.ground.broker_silence import asking_workers
from crowd.joining.floods import floods, release
from crowd.models import Posting
from crowd.money.expense_cap import REASON_MIN, change_cap
from crowd.money.manual_decisions import accept_reward
from crowd.money.needs_hand import hands_of
from crowd.money.payout_readiness import other_reward_of
from crowd.people.decisions import record
from crowd.platforms import has_service
from crowd.platforms.base import PlatformError, UnsupportedRequest
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
    page.object_list = posting_cards(study, list(page.object_list))
    content = {"page": page, "places_max": PLACES_MAX}
    content |= {"reason_min": REASON_MIN, "floods": floods(study)}
    is_live = Posting.objects.filter(study=study, mode=Posting.Mode.LIVE, pilot=False).exists()
    if study.state == Study.State.OPEN and not is_live:
        content["checklist"] = checklist(study)
    return study_response(request, study, "recruitment", content)


@study_act("run")
def release_places(request: HttpRequest, study: Study) -> HttpResponse:
    """Takes back what one address holds."""
    with refusals(partial(messages.error, request)):
        count = release(study, request.POST.get("sender", "")[:64], researcher_of(request).get_username())
        messages.success(request, f"{count} places are free again; the log keeps your name.")
    return redirect("dashboard:recruitment", slug=study.slug)


@study_act("run")
def posting_act(request: HttpRequest, study: Study, posting: int, act: str) -> HttpResponse:
    """Pause, resume, sync."""
    row = get_object_or_404(Posting, pk=posting, study=study)
    if act not in ("pause", "resume", "sync"):
        raise Http404("There is no such act.")
    return _perform_act(request, study, row, cast(Act, act), 0)


@study_form("run")
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
        return _perform_act(request, study, row, "add", count)
    content = {
        "card": posting_cards(study, [row])[0],
        "count": count,
        "cents": cents,
        "problem": request.method == "POST",
        "command": command_of(study, row, "add", count),
    }
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "posting_add", content, status=status, current="recruitment")


@study_form("run")
def posting_close(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Says what will happen and asks once."""
    row = get_object_or_404(Posting, pk=posting, study=study)
    if request.method == "POST":
        return _perform_act(request, study, row, "close", 0)
    content = {"card": posting_cards(study, [row])[0]}
    return study_response(request, study, "posting_close", content, current="recruitment")


class ReasonForm(forms.Form):
    reason = reason_field("; the log keeps it.")


class CapForm(ReasonForm):
    amount = forms.CharField(max_length=40, error_messages={"required": "Give the new cap, as 120.00."})


@study_form("pay")
def posting_reward(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Accepts the reward that the platform shows in place of the one that was offered. No platform is
    asked."""
    row = get_object_or_404(Posting.objects.select_related("study"), pk=posting, study=study)
    if not has_service(row.platform):
        raise Http404("No machine of this platform pays, so it shows no reward.")
    form = ReasonForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with refusals(partial(form.add_error, "reason")):
            count = accept_reward(row, researcher_of(request).get_username(), form.cleaned_data["reason"])
            messages.success(request, f"Accepted for {count} people; the log keeps your name and the reason.")
            return redirect("dashboard:money", slug=study.slug)
    hand = next((hand for hand in hands_of(row) if hand.kind == "reward"), None)
    content = {"card": posting_cards(study, [row])[0], "form": form, "reason_min": REASON_MIN, "hand": hand}
    content["why"] = other_reward_of(row)
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "posting_reward", content, status=status, current="money")


@study_form("pay")
def posting_cap(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Changes the most that a posting may pay in all, in the name of the user. No platform is asked."""
    row = get_object_or_404(Posting, pk=posting, study=study)
    if not has_service(row.platform):
        raise Http404("No machine of this platform pays, so there is no cap.")
    form = CapForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with refusals(partial(form.add_error, "amount")):
            cents = cents_of(form.cleaned_data["amount"], row.currency)
            change_cap(row, cents, researcher_of(request).get_username(), form.cleaned_data["reason"])
            messages.success(request, "The cap is changed; the log keeps your name and the reason.")
            return redirect("dashboard:recruitment", slug=study.slug)
    content = {"card": posting_cards(study, [row])[0], "form": form, "reason_min": REASON_MIN}
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "posting_cap", content, status=status, current="recruitment")


def _perform_act(request: HttpRequest, study: Study, posting: Posting, act: Act, count: int) -> HttpResponse:
    if act not in acts_of(posting):
        messages.error(
            request, f"The posting is {posting.state}, so nothing was done. This page shows it as it is now."
        )
    elif has_service(posting.platform) and not settings.CELERY_BROKER_URL:
        messages.error(
            request,
            "No message broker is configured, so a page cannot speak with the platform. Run: "
            f"{command_of(study, posting, act, count)}",
        )
    else:
        try:
            messages.success(request, _ask(study, posting, act, researcher_of(request), count))
        except (StudyError, UnsupportedRequest, PlatformError) as error:
            messages.error(request, str(error))
    return redirect("dashboard:recruitment", slug=study.slug)


def _ask(study: Study, posting: Posting, act: Act, user: User, count: int) -> str:
    """Does what was asked, or sends it to a worker; returns the sentence for the page. If neither is
    possible, the page shows `command_of` and does not call this.
    """
    if not has_service(posting.platform):
        from crowd.recruiting import publishing

        verbs = {"pause": publishing.pause, "resume": publishing.resume, "close": publishing.close}
        verbs[act](posting, user.get_username())
        return f"Done: {title_of(posting.platform)} is {posting.state}."
    from crowd.tasks import change_posting

    what = f"add {count} places" if act == "add" else f"{act} the posting"
    what += f" on {posting.platform} ({mode_word(posting).lower()})"
    with asking_workers():
        change_posting.delay(posting.pk, act, user.get_username(), count)
    record(study, user, f"Asked a worker to {what}.")
    return f"A worker was asked to {what}. Look again in a minute."
