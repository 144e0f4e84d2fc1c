"""The page to leave one session out by hand, without its condition and without any score."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from crowd.dashboard.access import researcher_of, study_form
from crowd.dashboard.layout import study_response
from crowd.dashboard.rows.sessions import listed_sessions, session_rows
from crowd.people.manual_exclusions import REASON_MIN, can_be_left_out, leave_out, signals_of, take_back
from experiments.models import Session, Study
from experiments.sessions.pseudonyms import namer


class ExclusionForm(forms.Form):
    act = forms.ChoiceField(choices=[("leave_out", "leave out"), ("take_back", "take back")])
    reason = forms.CharField(
        min_length=REASON_MIN,
        max_length=1000,
        error_messages={
            "required": "Give the reason in a sentence.",
            "min_length": "Give the reason in a sentence: export, report and log print it.",
        },
    )


@study_form("view", "run")
def exclude(request: HttpRequest, study: Study, session: UUID) -> HttpResponse:
    """Signs of quality and a form; a POST decides."""
    row = get_object_or_404(listed_sessions(study), pk=session)
    if request.method != "POST":
        return _page(request, study, row, ExclusionForm())
    form = ExclusionForm(request.POST)
    if not form.is_valid():
        return _page(request, study, row, form, status=400)
    user, reason = researcher_of(request), form.cleaned_data["reason"]
    name = namer(study)(row.participant.pseudonym)
    if form.cleaned_data["act"] == "leave_out":
        done = leave_out(study, row, user, name, reason)
        said = f"{name} is left out of the main result. Pay and place stay as they are."
    else:
        done = take_back(study, row, user, name, reason)
        said = f"{name} counts again."
    if done:
        messages.success(request, said)
    else:
        messages.error(request, "Nothing was changed: it had been decided otherwise in the meantime.")
    return redirect("dashboard:exclude", slug=study.slug, session=row.pk)


def _page(
    request: HttpRequest, study: Study, row: Session, form: ExclusionForm, status: int = 200
) -> HttpResponse:
    content = {
        "sitting": session_rows(study, [row], blind=True)[0],
        "groups": [] if row.erased else signals_of(row),
        "can_be_left_out": can_be_left_out(row) and not row.excluded,
        "form": form,
        "reason_min": REASON_MIN,
    }
    return study_response(request, study, "exclude", content, status=status, current="exclusions")
