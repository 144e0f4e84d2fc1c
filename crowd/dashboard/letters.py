"""Messages from and to participants. A reply is a row before it is a request, and is sent once or never.

A reply waits as `sending`; just before the one call it becomes `unknown`, and afterwards `sent` or `failed`.
So whatever dies in between, nothing is sent twice, and what may have arrived is never called unsent.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction

from crowd.audit import record as log
from crowd.dashboard.decisions import record
from crowd.models import Message
from crowd.platforms import has_market
from crowd.platforms.base import PlatformError, Unsupported
from experiments.errors import StudyError
from experiments.models import Study

BODY_MAX = 4000
UNCERTAIN = (
    "No answer came. It may have arrived: look at the conversation on the platform before writing again."
)
WAITING = Message.State.SENDING


def refusal(letter: Message) -> str:
    """Why nobody can be answered by machine; empty: they can."""
    if not has_market(letter.posting.platform):
        return f"{letter.posting.platform} has no interface for messages. Answer where the message came from."
    if letter.identity is None or not letter.identity.external_id:
        return "Who wrote this is not known here any more. Answer on the platform, then mark it as answered."
    return ""


def reply(study: Study, letter: Message, body: str, user: User) -> Message:
    """Stores the reply and marks the message as answered. Raises StudyError where it cannot be sent."""
    problem = refusal(letter)
    if problem:
        raise StudyError(problem)
    with transaction.atomic():
        row = Message.objects.create(
            posting=letter.posting,
            identity=letter.identity,
            state=WAITING,
            body=body,
            by=user.get_username(),
            answers=letter,
        )
        Message.objects.filter(pk=letter.pk).update(state=Message.State.ANSWERED)
        record(study, user, f"Answered message {letter.pk}.")
    return row


def mark_answered(study: Study, letter: Message, user: User) -> bool:
    """For a message that was answered elsewhere, or needs no answer."""
    rows = Message.objects.filter(pk=letter.pk, state=Message.State.RECEIVED)
    with transaction.atomic():
        if rows.update(state=Message.State.ANSWERED) != 1:
            return False
        record(study, user, f"Marked message {letter.pk} as answered.")
    return True


def deliver(letter_id: int) -> str:
    """Sends one waiting reply; returns its state. Of two calls at once one sends, the other does nothing."""
    from crowd.accounts import market_of, posted_of

    rows = Message.objects.filter(pk=letter_id, state=WAITING)
    letter = rows.select_related("posting__study", "identity").first()
    if letter is None:
        return ""
    problem = refusal(letter)
    if problem:
        return _became(letter, Message.State.FAILED, problem)
    try:
        market = market_of(letter.posting)
    except (StudyError, Unsupported) as error:
        return _became(letter, Message.State.FAILED, str(error))
    if rows.update(state=Message.State.UNKNOWN, error=UNCERTAIN) != 1:
        return ""
    assert letter.identity is not None
    try:
        market.message(posted_of(letter.posting), letter.identity.external_id, letter.body)
    except Unsupported as error:
        return _became(letter, Message.State.FAILED, str(error))
    except PlatformError as error:
        if error.uncertain:
            return _became(letter, Message.State.UNKNOWN, f"{UNCERTAIN} ({error})")
        return _became(letter, Message.State.FAILED, str(error))
    return _became(letter, Message.State.SENT, "")


def _became(letter: Message, state: Message.State, error: str) -> str:
    """Stores what became of a reply. A failed one leaves its message to be answered again."""
    with transaction.atomic():
        Message.objects.filter(pk=letter.pk).update(state=state, error=error)
        if state == Message.State.FAILED and letter.answers_id is not None:
            Message.objects.filter(pk=letter.answers_id).update(state=Message.State.RECEIVED)
        if state != Message.State.SENT:
            what = "failed" if state == Message.State.FAILED else "may or may not have arrived"
            log(letter.posting.study, letter.by, f"A reply to message {letter.answers_id} {what}.")
    return state


def waiting(study: Study) -> list[int]:
    """Replies that nobody has sent yet, oldest first."""
    rows = Message.objects.filter(posting__study=study, state=WAITING).order_by("created_at", "pk")
    return list(rows.values_list("pk", flat=True))
