"""What a researcher does for one person on a platform: write, grant, ask to return, approve, note. One page
for each submission, also of people who never came; the participant's page shows the same forms."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from crowd.dashboard.access import refusals, researcher_of, study_form
from crowd.dashboard.layout import study_response
from crowd.dashboard.rows.postings import mode_word, title_of
from crowd.dashboard.rows.sessions import SUBMISSION_WORDS
from crowd.dashboard.views.messages import hand_to_worker
from crowd.ground.amounts import cents_of
from crowd.ground.broker_silence import asking_workers
from crowd.ground.roles import demand
from crowd.models import Submission
from crowd.money.ledger import grant
from crowd.money.platform_statement import name_in_sentence, name_of
from crowd.people.decisions import record
from crowd.people.messages import BODY_MAX, write
from crowd.people.second_approval import approval_refused
from crowd.people.submission_actions import ASKED, GRANTS, Act, note, remedies_of
from crowd.platforms import has_service
from experiments.errors import StudyError
from experiments.models import Study

TEXT_MIN = {"grant": 20, "request_return": 20, "approve": 20, "note": 10, "write": 1}
ROLE_OF = {"grant": "pay", "request_return": "pay", "approve": "pay", "note": "run", "write": "run"}
ACTS = {"write": "Write", "grant": "Grant", "request_return": "Ask", "approve": "Approve", "note": "Note"}


class WorkForm(forms.Form):
    """One act. `text` is the message or the reason; `amount` and `kind` are of a grant."""

    act = forms.ChoiceField(
        choices=list(ACTS.items()), error_messages={"required": "Choose what is to happen."}
    )
    text = forms.CharField(required=False, max_length=BODY_MAX)
    amount = forms.CharField(required=False, max_length=40)
    kind = forms.ChoiceField(choices=list(GRANTS.items()), required=False)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or {}
        act, text = given.get("act", ""), given.get("text", "")
        least = TEXT_MIN.get(act, 1)
        if act and len(text) < least and "text" not in self.errors:
            what = "message" if act in ("write", "request_return") else "reason"
            self.add_error("text", f"The {what} has {len(text)} characters; {least} or more are needed.")
        if act == "grant" and not given.get("kind") and "kind" not in self.errors:
            self.add_error("kind", "Choose whether it is a bonus or a compensation.")
        return given


@study_form("view", "run", "pay")
def work(request: HttpRequest, study: Study, submission: int) -> HttpResponse:
    """The forms; a POST does one thing, in the name of the user."""
    rows = Submission.objects.select_related("posting__study", "identity", "session__participant")
    row = get_object_or_404(rows, pk=submission, posting__study=study)
    if not has_service(row.posting.platform):
        raise Http404("No machine of this platform lists work.")
    form = WorkForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        demand(researcher_of(request), study, ROLE_OF[form.cleaned_data["act"]])
        with refusals(partial(form.add_error, None)):
            said = _do(study, row, researcher_of(request), form.cleaned_data)
            messages.success(request, said)
            if row.session_id:
                return redirect("dashboard:participant", slug=study.slug, session=row.session_id)
            return redirect("dashboard:work", slug=study.slug, submission=row.pk)
    status = 400 if request.method == "POST" else 200
    content = work_content(request, study, row, form)
    return study_response(request, study, "work", content, status=status, current="recruitment")


def work_content(
    request: HttpRequest, study: Study, row: Submission, form: WorkForm | None = None
) -> dict[str, Any]:
    """The context of the forms, for both pages."""
    problems = [str(error) for errors in form.errors.values() for error in errors] if form else []
    return {
        "work": row,
        "remedies": remedies_of(study, row, researcher_of(request).get_username()),
        "work_name": name_of(row),
        "work_where": title_of(row.posting.platform),
        "work_mode": mode_word(row.posting),
        "work_tone": row.posting.mode,
        "work_word": SUBMISSION_WORDS.get(row.state, row.state),
        "problems": problems,
        "tried": request.POST.get("act", "") if problems else "",
        "given": request.POST if problems else {},
        "body_max": BODY_MAX,
        "text_min": TEXT_MIN,
    }


def _do(study: Study, row: Submission, user: User, given: dict[str, Any]) -> str:
    """Does one thing or sends it to a worker; the sentence for the page. Raises StudyError."""
    act, text = given["act"], given["text"]
    if act == "grant":
        return _grant(row, user, given)
    if act == "note":
        note(row, user, text)
        return "The log keeps the note with your name."
    if act == "write":
        return hand_to_worker(study, write(row, text, user), "message")[1]
    return _ask(study, row, user, cast(Act, act), text)


def _grant(row: Submission, user: User, given: dict[str, Any]) -> str:
    if row.session is None:
        raise StudyError(
            "They never came: approve their submission, which pays the reward, or pay them on the "
            "platform's own page."
        )
    cents = cents_of(given["amount"], row.posting.currency)
    grant(row.session, given["kind"], cents, user.get_username(), given["text"])
    return "Granted: it is due, and the next batch on the money page sends it. The log keeps name and reason."


def _ask(study: Study, row: Submission, user: User, act: Act, text: str) -> str:
    spec = remedies_of(study, row, user.get_username())
    if not (spec.approves if act == "approve" else spec.asks):
        raise StudyError(spec.refused or "Nothing was done: the platform lists this work otherwise by now.")
    refused = approval_refused([row.pk]) if act == "approve" else ""
    if refused:
        raise StudyError(refused)
    if not settings.CELERY_BROKER_URL:
        raise StudyError(
            "No message broker is configured, so a page cannot speak with the platform. Run: "
            + spec.commands[act].replace("WHY", shlex.quote(text))
        )
    from crowd.tasks import carry_out

    with asking_workers():
        carry_out.delay(user.pk, row.pk, act, text)
    record(study, user, f"Asked a worker to {ASKED[act]} {name_in_sentence(row)}: {text}")
    return f"A worker was asked to {ASKED[act]} this person. The log says what became of it."
