"""Messages from and to participants. What is written here is a row before it is a request, and is sent once
or never.

It waits as `sending`; just before the one call it becomes `unknown`, and afterwards `sent` or `failed`. So if
a process is killed in between, nothing is sent twice, and what may have arrived is never called unsent.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from crowd.ground.audit import record as log
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.models import Message, Posting, Submission, new_key
from crowd.money.platform_statement import name_in_sentence
from crowd.people.decisions import record, there
from crowd.people.decisions import refusal as no_way_to
from crowd.people.submission_actions import to
from crowd.platforms import has_service
from crowd.platforms.base import PlatformError, Service, UnsupportedRequest
from experiments.errors import StudyError
from experiments.models import Study

BODY_MAX = 4000
UNCERTAIN = (
    "No answer came. It may have arrived: look at the conversation on the platform before writing again."
)
WAITING = Message.State.SENDING
FIRST = "to:"
"""Prefix of the id of a message that was written here first: the id names the submission of the person it is
for."""


def refusal(message: Message) -> str:
    """Why the message cannot be answered from here; empty: it can."""
    if not has_service(message.posting.platform):
        return (
            f"{message.posting.platform} has no interface for messages. Answer where the message came from."
        )
    row = written_to(message)
    if row is not None:
        return no_way_to(row)
    if message.identity is None or not message.identity.external_id:
        return "Who wrote this is not known here any more. Answer on the platform, then mark it as answered."
    return ""


def reply(study: Study, message: Message, body: str, user: User) -> Message:
    """Stores the reply and marks the message as answered. Raises StudyError if it cannot be sent."""
    problem = refusal(message)
    if problem:
        raise StudyError(problem)
    with transaction.atomic():
        row = Message.objects.create(
            posting=message.posting,
            identity=message.identity,
            state=WAITING,
            body=body,
            by=user.get_username(),
            answers=message,
        )
        Message.objects.filter(pk=message.pk).update(state=Message.State.ANSWERED)
        record(study, user, f"Answered message {message.pk}.")
    return row


def written_to(message: Message) -> Submission | None:
    """The submission whose person this first message was written to; None for every other message."""
    if not message.external_id.startswith(FIRST):
        return None
    key = message.external_id.split(":")[1]
    rows = Submission.objects.filter(posting=message.posting, submission_hash=key)
    return rows.select_related("posting__study", "identity", "session__participant").first()


def write(row: Submission, body: str, user: User) -> Message:
    """Stores a message to a person who has not written. The same text to the same person is stored once,
    however often a button is pressed. Raises StudyError if it cannot be sent."""
    text, posting = body.strip(), row.posting
    if not text or len(text) > BODY_MAX:
        raise StudyError(f"A message has 1 to {BODY_MAX:,} characters; this one has {len(text):,}.")
    problem = no_way_to(row)
    if problem:
        raise StudyError(problem)
    with transaction.atomic():
        # Two clicks: the second one finds the row of the first.
        Posting.objects.select_for_update().get(pk=posting.pk)
        same = Message.objects.filter(posting=posting, external_id__startswith=to(row), body=text)
        if same.exclude(state=Message.State.FAILED).exists():
            raise StudyError("They were written exactly this before, so it is not sent again.")
        stored = Message.objects.create(
            posting=posting,
            identity=row.identity,
            external_id=f"{to(row)}{new_key()}",
            state=WAITING,
            body=text,
            by=user.get_username(),
        )
        record(posting.study, user, f"Wrote to {name_in_sentence(row)} (message {stored.pk}).")
    return stored


def mark_answered(study: Study, message: Message, user: User) -> bool:
    """For a message that was answered elsewhere, or needs no answer."""
    rows = Message.objects.filter(pk=message.pk, state=Message.State.RECEIVED)
    with transaction.atomic():
        if rows.update(state=Message.State.ANSWERED) != 1:
            return False
        record(study, user, f"Marked message {message.pk} as answered.")
    return True


def deliver(message_id: int) -> str:
    """Sends one waiting message; returns its state. Of two calls at once, only one sends."""
    rows = Message.objects.filter(pk=message_id, state=WAITING)
    message = rows.select_related("posting__study", "identity").first()
    if message is None:
        return ""
    problem = refusal(message)
    if problem:
        return _became(message, Message.State.FAILED, problem)
    try:
        service = service_of(message.posting)
        person = _person_of(message, service)
    except (StudyError, UnsupportedRequest, PlatformError) as error:
        return _became(message, Message.State.FAILED, str(error))
    if rows.update(state=Message.State.UNKNOWN, error=UNCERTAIN) != 1:
        return ""
    try:
        service.message(posted_of(message.posting), person, message.body)
    except UnsupportedRequest as error:
        return _became(message, Message.State.FAILED, str(error))
    except PlatformError as error:
        if error.uncertain:
            return _became(message, Message.State.UNKNOWN, f"{UNCERTAIN} ({error})")
        return _became(message, Message.State.FAILED, str(error))
    return _became(message, Message.State.SENT, "")


def _person_of(message: Message, service: Service) -> str:
    """The platform's id of the person to write to. The id of a person who never came or has not consented is
    read from the platform's list for this call, and not stored."""
    if message.identity is not None and message.identity.external_id:
        return message.identity.external_id
    row = written_to(message)
    if row is None:
        raise StudyError("Whom this was for is not known here any more.")
    return there(service, row).person


def _became(message: Message, state: Message.State, error: str) -> str:
    """Stores the result for a message. If a reply failed, the message that it answers is open again."""
    with transaction.atomic():
        Message.objects.filter(pk=message.pk).update(state=state, error=error)
        if state == Message.State.FAILED and message.answers_id is not None:
            Message.objects.filter(pk=message.answers_id).update(state=Message.State.RECEIVED)
        if state != Message.State.SENT:
            what = "failed" if state == Message.State.FAILED else "may or may not have arrived"
            which = (
                f"A reply to message {message.answers_id}" if message.answers_id else f"Message {message.pk}"
            )
            log(message.posting.study, message.by, f"{which} {what}.")
    return state


def waiting(study: Study) -> list[int]:
    """Messages that are not sent yet, oldest first."""
    rows = Message.objects.filter(posting__study=study, state=WAITING).order_by("created_at", "pk")
    return list(rows.values_list("pk", flat=True))
