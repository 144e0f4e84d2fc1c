"""A large batch takes two logins: one asks, another confirms the same sum."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from crowd import tasks
from crowd.models import AskedPayment, Posting, StudyRole, Submission
from crowd.people import second_approval
from tests.crowd import paid
from tests.crowd.logins import login, owe, posting_of

pytestmark = pytest.mark.django_db
ROOT = "/studies/wolf-or-husky/"
REASON = "Their page failed after the last question."
SENT = list[tuple[Any, ...]]


@pytest.fixture
def sent(settings: Any, monkeypatch: pytest.MonkeyPatch) -> SENT:
    """A broker that only records what a worker was asked to pay."""
    settings.CELERY_BROKER_URL = "redis://nowhere"
    asked: SENT = []
    monkeypatch.setattr(tasks.pay_batch, "delay", lambda *args: asked.append(args))
    monkeypatch.setattr(tasks.carry_out, "delay", lambda *args: asked.append(args))
    return asked


@pytest.fixture
def batch(db: None) -> Posting:
    """A posting that owes one person 1.40 GBP."""
    posting = posting_of(paid.paying())
    owe(posting, "first")
    return posting


def typed(client: Client, posting: Posting, total: str = "1.40") -> str:
    return str(
        client.post(f"{ROOT}money/settle/{posting.pk}/", {"total": total}, follow=True).content.decode()
    )


def test_it_lets_one_login_pay_up_to_the_sum(batch: Posting, sent: SENT, settings: Any) -> None:
    ada = login("ada", "pay")
    for limit in (0, 140, 141):
        settings.SECOND_PERSON_CENTS = limit
        typed(ada, batch)
        assert sent == [(batch.pk, "ada", 140)], limit
        sent.clear()
    assert not AskedPayment.objects.exists()


def test_it_sends_a_larger_sum_when_another_login_confirms_it(
    batch: Posting, sent: SENT, settings: Any
) -> None:
    settings.SECOND_PERSON_CENTS = 139
    ada, bo = login("ada", "pay"), login("bo", "pay")
    for _ in range(2):  # asking again confirms nothing
        assert "Nothing was sent yet" in typed(ada, batch)
    typed(login("eve", "view", "run", "unseal"), batch)
    assert "Nothing was sent." in typed(bo, batch, "1.41")
    assert sent == []
    assert "ada did at" in bo.get(f"{ROOT}money/").content.decode()
    typed(bo, batch)
    assert sent == [(batch.pk, "bo", 140)]
    typed(bo, batch)  # the confirmation is used up: the same sum is asked for anew
    assert len(sent) == 1 and AskedPayment.objects.get().user.get_username() == "bo"
    log = list(LogEntry.objects.order_by("pk").values_list("user__username", "change_message"))
    assert log[1][0] == "ada" and "Asked to pay 1.40 GBP on prolific (live)" in log[1][1]
    assert log[2] == ("bo", "Confirmed the payment of 1.40 GBP on prolific (live) that ada asked for.")


def test_it_asks_anew_for_another_sum(batch: Posting, sent: SENT, settings: Any) -> None:
    settings.SECOND_PERSON_CENTS = 100
    ada, bo = login("ada", "pay"), login("bo", "pay")
    typed(ada, batch)
    owe(batch, "second")
    assert "Nothing was sent yet" in typed(bo, batch, "2.80")
    assert sent == []
    typed(ada, batch, "2.80")
    assert sent == [(batch.pk, "ada", 280)]


@pytest.mark.parametrize("loses", ["role", "login"])
def test_it_counts_no_request_of_a_person_who_may_not_pay_any_more(
    batch: Posting, sent: SENT, settings: Any, loses: str
) -> None:
    settings.SECOND_PERSON_CENTS = 100
    typed(login("ada", "pay"), batch)
    if loses == "role":
        StudyRole.objects.filter(user__username="ada").update(role="view")
    else:
        User.objects.filter(username="ada").update(is_active=False)
    assert "Nothing was sent yet" in typed(login("bo", "pay"), batch)
    assert sent == []


@pytest.mark.both_databases("constraints")
def test_it_confirms_a_request_once(batch: Posting, settings: Any) -> None:
    settings.SECOND_PERSON_CENTS = 100
    ada, bo, cy = (User.objects.create_user(name) for name in ("ada", "bo", "cy"))
    StudyRole.objects.create(study=batch.study, user=ada, role="pay")
    assert not second_approval.confirm(batch, bo, 140)
    second_approval.ask(batch, ada, 140)
    assert not second_approval.confirm(batch, ada, 140) and not second_approval.confirm(batch, bo, 139)
    assert [second_approval.confirm(batch, bo, 140), second_approval.confirm(batch, cy, 140)] == [True, False]


def test_it_approves_no_large_sum_beside_the_batch(batch: Posting, sent: SENT, settings: Any) -> None:
    submissions = list(Submission.objects.values_list("pk", flat=True))
    for limit, refused in ((0, False), (140, False), (139, True)):
        settings.SECOND_PERSON_CENTS = limit
        assert bool(second_approval.approval_refused(submissions)) == refused, limit
    path = f"{ROOT}recruitment/submissions/{submissions[0]}/"
    reply = login("ada", "pay").post(path, {"act": "approve", "text": REASON})
    assert reply.status_code == 400
    assert "paid up to 1.40 GBP, and above 1.39 GBP two people" in reply.content.decode()
    assert sent == [] and not LogEntry.objects.exists()
