"""Messages of participants: unanswered first, with a reply."""

from __future__ import annotations

from functools import partial

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Case, IntegerField, Prefetch, Q, QuerySet, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from crowd.dashboard.access import refusals, researcher_of, study_act, study_page
from crowd.dashboard.layout import choices, page_of, study_response
from crowd.dashboard.rows.postings import title_of
from crowd.ground.broker_silence import BrokerSilent, asking_workers
from crowd.models import Message
from crowd.people.messages import BODY_MAX, FIRST, mark_answered, refusal, reply, waiting
from experiments.models import Study
from experiments.sessions.pseudonyms import namer

PER_PAGE = 25
RECEIVED = (Message.State.RECEIVED, Message.State.ANSWERED)
CAME = Q(state__in=RECEIVED)
STATES = {"": "All", "received": "To be answered", "answered": "Answered", "first": "Written here first"}


class ReplyForm(forms.Form):
    body = forms.CharField(
        max_length=BODY_MAX,
        error_messages={
            "required": "Write the answer first.",
            "max_length": f"An answer has at most {BODY_MAX:,} characters.",
        },
    )


@study_page("view")
def letters(request: HttpRequest, study: Study) -> HttpResponse:
    return _page(request, study)


@study_act("run")
def answer(request: HttpRequest, study: Study, letter: int) -> HttpResponse:
    """Stores the reply; a worker sends it, or the command that the page names."""
    row = get_object_or_404(_letters(study), pk=letter)
    form = ReplyForm(request.POST)
    if not form.is_valid():
        messages.error(request, str(form.errors["body"][0]))
        return _page(request, study, 400, row.pk, request.POST.get("body", ""))
    with refusals(partial(messages.error, request)):
        stored = reply(study, row, form.cleaned_data["body"], researcher_of(request))
        is_sure, said = hand_to_worker(study, stored, "answer")
        (messages.success if is_sure else messages.error)(request, said)
    return redirect("dashboard:letters", slug=study.slug)


@study_act("run")
def mark_letter(request: HttpRequest, study: Study, letter: int) -> HttpResponse:
    row = get_object_or_404(_letters(study), pk=letter)
    if mark_answered(study, row, researcher_of(request)):
        messages.success(request, "Marked as answered.")
    return redirect("dashboard:letters", slug=study.slug)


def _letters(study: Study, which: Q = CAME) -> QuerySet[Message, Message]:
    rows = Message.objects.filter(which, posting__study=study)
    return rows.select_related("posting", "identity__participant")


def hand_to_worker(study: Study, stored: Message, what: str) -> tuple[bool, str]:
    """Asks a worker to send a stored message; whether nothing went wrong, and the sentence for the page."""
    later = f"To send it, run: {_command(study)}"
    if not settings.CELERY_BROKER_URL:
        return True, f"The {what} is stored. {later}"
    from crowd.tasks import send_message

    try:
        with asking_workers():
            send_message.delay(stored.pk)
    except BrokerSilent:
        return False, f"The {what} is stored, but no worker could be asked. {later}"
    return True, f"The {what} is stored, and a worker sends it."


def _command(study: Study) -> str:
    return f"python manage.py send_messages {study.slug}"


def _page(
    request: HttpRequest, study: Study, status: int = 200, open_letter: int = 0, body: str = ""
) -> HttpResponse:
    state = request.GET.get("state", "")
    first = Case(When(state="received", then=Value(0)), default=Value(1), output_field=IntegerField())
    replies = Prefetch("replies", Message.objects.order_by("created_at", "pk"))
    # The first messages of conversations: those that came, and those written here first.
    rows = _letters(study, CAME | Q(external_id__startswith=FIRST)).prefetch_related(replies)
    if state == "first":
        rows = rows.filter(external_id__startswith=FIRST)
    elif state in RECEIVED:
        rows = rows.filter(state=state)
    page = page_of(request, rows.order_by(first, "-created_at", "-pk"), PER_PAGE)
    name = namer(study)
    page.object_list = [
        {
            "letter": message,
            "from": name(message.identity.participant.pseudonym) if message.identity else "",
            "where": title_of(message.posting.platform),
            "replies": list(message.replies.all()),
            "refusal": "" if message.external_id.startswith(FIRST) else refusal(message),
            "is_open": message.pk == open_letter,
            "is_first": message.external_id.startswith(FIRST),
        }
        for message in page.object_list
    ]
    content = {
        "page": page,
        "states": choices(request, "state", STATES, state),
        "is_filtered": bool(state),
        "body": body,
        "body_max": BODY_MAX,
        "waiting": len(waiting(study)),
        "command": _command(study),
    }
    return study_response(request, study, "letters", content, status=status)
