"""Messages: unanswered first; a reply is a row before it is sent, and is sent once or never."""

import re
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from crowd import tasks
from crowd.models import Identity, Message, Posting
from crowd.people.messages import deliver
from experiments.models import Study
from tests.analysis import stored
from tests.crowd import paid

pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/messages/"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "crowd.ground.platform_accounts.time",
        SimpleNamespace(sleep=lambda seconds: None, monotonic=time.monotonic),
    )


@pytest.fixture
def stage(researcher: User) -> Iterator[paid.Stage]:
    """A posting on a simulated Prolific, with a person whose id is known because they consented."""
    with paid.offered(paid.paying()) as offered:
        offered.person(matches=4)
        paid.settle(offered.study, yes=False)
        yield offered


def message_of(stage: paid.Stage, body: str = "My page <b>froze</b>.") -> Message:
    identity = Identity.objects.get()
    assert identity.external_id
    return Message.objects.create(posting=stage.posting, identity=identity, state="received", body=body)


def text_of(client: Client, path: str = ROOT) -> str:
    reply = client.get(path)
    assert reply.status_code == 200, path
    return reply.content.decode()


def calls(stage: paid.Stage) -> int:
    return sum("message" in call.path and call.method == "POST" for call in stage.sim.log)


def test_it_shows_messages_by_pseudonym_unanswered_first(stage: paid.Stage, desk: Client) -> None:
    answered = message_of(stage, "Thanks!")
    Message.objects.filter(pk=answered.pk).update(state="answered")
    message_of(stage)
    page = text_of(desk)
    assert page.index("My page") < page.index("Thanks!")
    assert "My page &lt;b&gt;froze&lt;/b&gt;." in page and re.search(r"<code>p-[0-9a-f]{16}</code>", page)
    assert Identity.objects.get().external_id not in page
    assert "Thanks!" not in text_of(desk, f"{ROOT}?state=received")
    assert "No messages" not in page


def test_a_reply_is_a_row_first_and_then_sent_once(stage: paid.Stage, desk: Client) -> None:
    letter = message_of(stage)
    page = desk.post(f"{ROOT}{letter.pk}/answer/", {"body": "You will be paid."}, follow=True)
    assert "python manage.py send_messages wolf-or-husky" in page.content.decode()
    reply = Message.objects.get(answers=letter)
    assert (reply.state, reply.by, reply.body) == ("sending", "grace", "You will be paid.")
    letter.refresh_from_db()
    assert letter.state == "answered" and calls(stage) == 0
    for _ in range(2):
        call_command("send_messages", "wolf-or-husky")
    reply.refresh_from_db()
    assert (reply.state, reply.error, calls(stage)) == ("sent", "", 1)
    assert deliver(reply.pk) == "" and calls(stage) == 1
    assert LogEntry.objects.filter(user__username="grace", change_message__contains="Answered").count() == 1


def test_a_worker_sends_it_where_there_is_one(
    stage: paid.Stage, desk: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.CELERY_BROKER_URL = "redis://nowhere"
    asked: list[int] = []
    monkeypatch.setattr(tasks.send_message, "delay", asked.append)
    letter = message_of(stage)
    desk.post(f"{ROOT}{letter.pk}/answer/", {"body": "You will be paid."})
    reply = Message.objects.get(answers=letter)
    assert asked == [reply.pk] and reply.state == "sending"
    tasks.send_message(reply.pk)
    reply.refresh_from_db()
    assert reply.state == "sent"


@pytest.mark.parametrize("fault", ["lost_answer", "5xx_after"])
def test_a_call_without_an_answer_is_never_repeated(stage: paid.Stage, desk: Client, fault: Any) -> None:
    letter = message_of(stage)
    desk.post(f"{ROOT}{letter.pk}/answer/", {"body": "You will be paid."})
    stage.sim.faults.forced[:] = [fault]
    call_command("send_messages", "wolf-or-husky")
    reply = Message.objects.get(answers=letter)
    assert reply.state == "unknown" and "It may have arrived" in reply.error
    sent = calls(stage)
    stage.sim.faults.forced.clear()
    call_command("send_messages", "wolf-or-husky")
    assert calls(stage) == sent == 1
    letter.refresh_from_db()
    assert letter.state == "answered"
    assert "It may have arrived" in text_of(desk)


def test_a_process_that_dies_in_the_call_leaves_it_unknown(
    stage: paid.Stage, desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter = message_of(stage)
    desk.post(f"{ROOT}{letter.pk}/answer/", {"body": "You will be paid."})

    def die(call: Any) -> None:
        raise KeyboardInterrupt

    reply = Message.objects.get(answers=letter)
    monkeypatch.setattr("crowd.platforms.prolific.service.Prolific.message", lambda *args: die(args))
    with pytest.raises(KeyboardInterrupt):
        deliver(reply.pk)
    monkeypatch.undo()
    assert deliver(reply.pk) == ""
    reply.refresh_from_db()
    assert reply.state == "unknown" and calls(stage) == 0


def test_a_refused_reply_is_to_be_answered_again(stage: paid.Stage, desk: Client) -> None:
    letter = message_of(stage)
    desk.post(f"{ROOT}{letter.pk}/answer/", {"body": "You will be paid."})
    Identity.objects.update(external_id="")
    call_command("send_messages", "wolf-or-husky")
    reply = Message.objects.get(answers=letter)
    letter.refresh_from_db()
    assert (reply.state, letter.state) == ("failed", "received")
    assert "not known here any more" in reply.error


@pytest.mark.parametrize("body", ["", "   ", "x" * 4001])
def test_it_sends_nothing_empty_or_endless(stage: paid.Stage, desk: Client, body: str) -> None:
    letter = message_of(stage)
    assert desk.post(f"{ROOT}{letter.pk}/answer/", {"body": body}).status_code == 400
    assert Message.objects.count() == 1


def test_it_marks_as_answered_once(study: Study, desk: Client) -> None:
    posting = Posting.objects.create(study=study, platform="prolific", external_id="64ab")
    letter = Message.objects.create(posting=posting, state="received", body="Who are you?")
    assert "not known here any more" in text_of(desk)
    assert "textarea" not in text_of(desk)
    for _ in range(2):
        desk.post(f"{ROOT}{letter.pk}/answered/")
    letter.refresh_from_db()
    assert letter.state == "answered" and LogEntry.objects.count() == 1
    assert desk.post(f"{ROOT}{letter.pk}/answer/", {"body": "Hello."}).status_code == 302
    assert Message.objects.count() == 1, "nobody to send it to"


def test_it_knows_no_message_of_another_study(study: Study, desk: Client) -> None:
    posting = Posting.objects.create(study=study, platform="prolific", external_id="64ab")
    letter = Message.objects.create(posting=posting, state="received", body="Hello?")
    Study.objects.filter(pk=study.pk).update(slug="elsewhere")
    for act in ("answer", "answered"):
        assert desk.post(f"{ROOT}{letter.pk}/{act}/", {"body": "x"}).status_code == 404


def test_it_leads_to_messages_that_wait(study: Study, desk: Client) -> None:
    posting = Posting.objects.create(study=study, platform="prolific", mode="live", external_id="64ab")
    Message.objects.create(posting=posting, state="received", body="Hello?")
    assert ">Answer 1 message</a>" in text_of(desk, "/studies/wolf-or-husky/")


def test_it_pages_in_a_fixed_number_of_questions(
    study: Study, desk: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    posting = Posting.objects.create(study=study, platform="prolific", mode="live", external_id="64ab")
    text_of(desk)
    for number in range(30):
        person = stored.sitting(study, f"p{number}", verdict="screened").participant
        identity = Identity.objects.create(
            study=study, platform="prolific", person_hash=f"{number:064}", participant=person, external_id="X"
        )
        first = Message.objects.create(posting=posting, identity=identity, state="answered", body="Hello")
        Message.objects.create(posting=posting, identity=identity, state="sent", body="Hi", answers=first)
        if number in (1, 29):
            with django_assert_max_num_queries(16):
                page = text_of(desk)
    assert "1–25 of 30" in page and page.count('<li class="letter') == 25
