"""People whom their platform's rules permit to reject: shown with the grounds, decided by a named person."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect

from crowd.dashboard.access import researcher_of, study_form
from crowd.dashboard.layout import page_of, study_response
from crowd.dashboard.rows.decision_wording import ACTIONS, CATEGORIES, command_of, named_people
from crowd.dashboard.rows.postings import title_of
from crowd.ground.broker_silence import asking_workers
from crowd.people.decisions import DONE_WORDS, Proposal, propose_rejections, record
from crowd.people.second_approval import approval_refused
from crowd.platforms.base import UnsupportedRequest
from experiments.errors import StudyError
from experiments.models import Study

PER_PAGE = 50
MESSAGE_MIN = 100
RETURN_MIN = 20


class DecisionForm(forms.Form):
    """One decision for all ticked people."""

    people = forms.TypedMultipleChoiceField(
        coerce=int, error_messages={"required": "Tick the people that you decide about."}
    )
    act = forms.ChoiceField(
        choices=list(ACTIONS.items()), error_messages={"required": "Choose what is to happen."}
    )
    category = forms.ChoiceField(choices=list(CATEGORIES.items()), required=False)
    message = forms.CharField(required=False, max_length=1000)

    def __init__(self, data: QueryDict | None, proposals: list[Proposal]) -> None:
        super().__init__(data)
        self.fields["people"].choices = [(proposal.submission, proposal.name) for proposal in proposals]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        wanted = {"reject": MESSAGE_MIN, "request_return": RETURN_MIN}.get(given.get("act", ""), 0)
        length = len(given.get("message", ""))
        if length < wanted:
            self.add_error(
                "message",
                f"The message has {length} characters; {wanted} or more are needed. They read it: say which "
                "checks were failed.",
            )
        if given.get("act") == "reject" and not given.get("category"):
            self.add_error("category", "Choose the ground.")
        return given


@study_form("view", "pay")
def proposals(request: HttpRequest, study: Study) -> HttpResponse:
    """The table; a POST decides about those who are ticked, a rejection after being asked once more."""
    try:
        proposed, problem = propose_rejections(study), ""
    except (StudyError, UnsupportedRequest) as error:
        proposed, problem = [], str(error)
    form = DecisionForm(request.POST if request.method == "POST" else None, proposed)
    if request.method != "POST" or not form.is_valid():
        status = 400 if request.method == "POST" else 200
        return _page(request, study, proposed, form, problem, status)
    given = form.cleaned_data
    if given["act"] == "reject" and "confirmed" not in request.POST:
        chosen = [proposal for proposal in proposed if proposal.submission in given["people"]]
        content = {"given": given, "chosen": _rows(study, chosen), "category": CATEGORIES[given["category"]]}
        return study_response(request, study, "reject", content, current="money")
    _decide(request, study, proposed, given)
    return redirect("dashboard:proposals", slug=study.slug)


def _decide(request: HttpRequest, study: Study, proposed: list[Proposal], given: dict[str, Any]) -> None:
    user, act, people = researcher_of(request), given["act"], given["people"]
    refused = approval_refused(people) if act == "approve" else ""
    if refused:
        messages.error(request, refused)
        return
    if not settings.CELERY_BROKER_URL:
        names = [proposal.name for proposal in proposed if proposal.submission in people]
        line = command_of(study, act, names, given["message"], given["category"], user.get_username())
        messages.error(
            request, f"No message broker is configured, so a page cannot speak with the platform. Run: {line}"
        )
        return
    from crowd.tasks import decide_people

    count = f"{len(people)} {'person' if len(people) == 1 else 'people'}"
    with asking_workers():
        decide_people.delay(user.pk, people, act, given["message"], given["category"])
    record(study, user, f"Asked a worker to {DONE_WORDS[act]} the work of {count}.")
    messages.success(
        request, f"A worker was asked to {DONE_WORDS[act]} the work of {count}. The log says how."
    )


def _rows(study: Study, proposed: list[Proposal]) -> list[dict[str, Any]]:
    known, nobody = named_people(study, [proposal.submission for proposal in proposed]), ("", "", False)
    return [
        {
            "one": proposal,
            "session": known.get(proposal.submission, nobody)[0],
            "name": known.get(proposal.submission, nobody)[1] or proposal.name,
            "asked": known.get(proposal.submission, nobody)[2],
            "where": title_of(proposal.platform),
        }
        for proposal in proposed
    ]


def _page(
    request: HttpRequest,
    study: Study,
    proposed: list[Proposal],
    form: DecisionForm,
    problem: str,
    status: int,
) -> HttpResponse:
    page = page_of(request, proposed, PER_PAGE)
    page.object_list = _rows(study, list(page.object_list))
    ticked = set(request.POST.getlist("people")) if request.method == "POST" else set()
    content = {
        "page": page,
        "form": form,
        "problem": problem,
        "ticked": ticked,
        "act": request.POST.get("act", ""),
        "chosen_category": request.POST.get("category", "FAILED_CHECK"),
        "message": request.POST.get("message", ""),
        "categories": CATEGORIES.items(),
        "message_min": MESSAGE_MIN,
    }
    return study_response(request, study, "proposals", content, status=status, current="money")
