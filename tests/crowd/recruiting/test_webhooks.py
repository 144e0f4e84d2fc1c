"""Notifications: verified, stored once, answered fast; they trigger a sync and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from crowd import tasks
from crowd.ground.identity_hashes import submission_hash
from crowd.models import Notice, Posting, Submission
from crowd.platforms.base import Notification
from crowd.platforms.prolific.notices import signature
from crowd.recruiting.notice_intake import keep
from crowd.recruiting.publishing import publish_posting
from tests.crowd.offered_studies import held, public, simulated, study_of

__all__ = ["public"]
pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("constraints")]
SECRET, STUDY = "an-example-of-a-secret", "64b7c0ffee0000000000beef"
PATH = "/hooks/prolific/"


@pytest.fixture
def posting(settings: Any) -> Posting:
    settings.PROLIFIC_WEBHOOK_SECRET = SECRET
    return Posting.objects.create(
        study=study_of(), platform="prolific", mode="live", external_id=STUDY, state="open"
    )


def deliver(
    kind: str = "study.status.change",
    resource: str = STUDY,
    *,
    secret: str = SECRET,
    event: str = "event-1",
    age_s: int = 0,
    body: bytes = b"",
    **headers: str,
) -> Any:
    body = body or json.dumps({"event_type": kind, "resource_id": resource, "status": "ACTIVE"}).encode()
    stamp = str(int(timezone.now().timestamp()) - age_s)
    sent = {
        "X-Prolific-Request-Timestamp": stamp,
        "X-Prolific-Request-Signature": signature(secret, stamp, body),
        "X-Event-ID": event,
        **headers,
    }
    client = Client(enforce_csrf_checks=True)
    return client.post(PATH, body, content_type="application/json", headers=sent)


def test_it_stores_a_notification_once_and_asks_for_a_sync(posting: Posting) -> None:
    assert deliver().status_code == 200
    posting.refresh_from_db()
    asked = posting.sync_asked_at
    assert asked is not None
    notice = Notice.objects.get()
    assert (notice.platform, notice.event_id, notice.kind) == ("prolific", "event-1", "study.status.change")
    assert notice.posting == posting
    # The same notification again, as after a lost answer: accepted, without effect.
    assert deliver().status_code == 200 and Notice.objects.count() == 1
    posting.refresh_from_db()
    assert posting.sync_asked_at == asked
    assert deliver(event="event-2").status_code == 200 and Notice.objects.count() == 2


@pytest.mark.parametrize(
    "forged",
    [
        {"secret": "another"},
        {"age_s": 330},
        {"age_s": -330},
        {"X-Prolific-Request-Signature": ""},
        {"X-Prolific-Request-Timestamp": "now"},
        {"X-Event-ID": ""},
        {"X-Event-ID": "x" * 141},
        {"body": b"[1]"},
        {"body": b"\xff\xfe"},
        {"body": b'{"event_type": 3}'},
        {"kind": "<b>"},
    ],
)
def test_it_refuses_what_is_forged_stale_or_unreadable(posting: Posting, forged: dict[str, Any]) -> None:
    reply = deliver(**forged)
    assert reply.status_code == 403 and reply.content
    assert not Notice.objects.exists()
    posting.refresh_from_db()
    assert posting.sync_asked_at is None


def test_it_refuses_a_body_that_was_changed_on_its_way(posting: Posting) -> None:
    body = json.dumps({"event_type": "study.status.change", "resource_id": STUDY}).encode()
    stamp = str(int(timezone.now().timestamp()))
    good = signature(SECRET, stamp, body)
    headers: dict[str, Any] = {"X-Prolific-Request-Signature": good}
    reply = deliver(body=body.replace(b"study", b"stuDy"), **headers)
    assert reply.status_code == 403 and not Notice.objects.exists()


def test_it_refuses_a_body_of_more_than_64_kib(posting: Posting) -> None:
    assert deliver(body=b"x" * 65_537).status_code == 413
    body = json.dumps({"event_type": "k", "resource_id": "r", "more": "x" * 65_000}).encode()
    assert deliver(body=body).status_code == 200


def test_it_answers_post_only_and_only_with_a_secret(settings: Any) -> None:
    assert Client().get(PATH).status_code == 405
    settings.PROLIFIC_WEBHOOK_SECRET = ""
    reply = deliver(secret="")
    assert reply.status_code == 403 and b"No notifications are expected" in reply.content


def test_it_stores_kinds_that_it_does_not_know(posting: Posting) -> None:
    assert deliver("study.was.praised").status_code == 200
    assert Notice.objects.get().kind == "study.was.praised"


def test_it_wakes_the_posting_of_a_submission_or_all_where_it_is_new(posting: Posting) -> None:
    other = Posting.objects.create(
        study=posting.study, platform="prolific", mode="live", pilot=True, external_id="other", state="open"
    )
    Submission.objects.create(posting=other, submission_hash=submission_hash(other, "sub-1"))
    deliver("submission.status.change", "sub-1")
    posting.refresh_from_db()
    other.refresh_from_db()
    assert posting.sync_asked_at is None and other.sync_asked_at is not None
    assert Notice.objects.get().posting == other
    deliver("submission.status.change", "sub-2", event="event-2")
    posting.refresh_from_db()
    assert posting.sync_asked_at is not None
    assert Notice.objects.get(event_id="event-2").posting is None


def test_it_keeps_no_word_of_what_a_notification_says(posting: Posting) -> None:
    body = {"event_type": "submission.status.change", "resource_id": "sub-raw", "participant_id": "pid-raw"}
    deliver(body=json.dumps(body).encode())
    stored = repr(list(Notice.objects.values())) + repr(list(Posting.objects.values()))
    assert "sub-raw" not in stored and "pid-raw" not in stored


def test_it_takes_the_simulators_secret_only_while_something_is_rehearsed(posting: Posting) -> None:
    assert deliver(secret="rehearsal").status_code == 403
    rehearsed = Posting.objects.create(
        study=posting.study,
        platform="prolific",
        mode="rehearsal",
        site="http://127.0.0.1:9",
        external_id=STUDY,
    )
    assert deliver(secret="rehearsal").status_code == 200
    posting.refresh_from_db()
    rehearsed.refresh_from_db()
    # The secret is public, so it triggers no sync of a real posting, though both have the same name there.
    assert posting.sync_asked_at is None and rehearsed.sync_asked_at is not None
    assert deliver().status_code == 200 and Notice.objects.count() == 2
    posting.refresh_from_db()
    assert posting.sync_asked_at is not None


def test_it_hears_of_mechanical_turk_by_any_of_its_hits() -> None:
    posting = Posting.objects.create(
        **{"study": study_of(), "platform": "mturk", "mode": "sandbox", "external_id": "3QUAL"},
        names=["3HIT1", "3HIT2"],
    )
    notices = [
        Notification("e-1", "AssignmentSubmitted", posting="3HIT2"),
        Notification("e-1", "Again", posting="3HIT2"),
    ]
    assert keep("mturk", notices).new == 1 and Notice.objects.get().posting == posting
    posting.refresh_from_db()
    assert posting.sync_asked_at is not None
    assert keep("mturk", [Notification("e-2", "HITExpired", posting="3NOBODY")]).woken == (posting.pk,)
    assert tasks.pull_notices() == 0


def test_it_follows_a_simulated_platform_in_any_order_of_notifications(
    live_server: Any, settings: Any
) -> None:
    hook = (f"{live_server.url}{PATH}", "rehearsal")
    with simulated("prolific", start=datetime.now(UTC), webhook=hook) as sim:
        posting = publish_posting(study_of(), "prolific", "rehearsal", places=4, site=sim.url)
        rows = [held(posting, sim) for _ in range(3)]
        answers = sim.control("deliver", duplicates=True, reverse=True)["answers"]
        assert answers and set(answers) == {200}
        assert Notice.objects.count() == len(answers) // 2
        assert tasks.sync_posting(posting.pk) is True
        assert {Submission.objects.get(pk=row.pk).state for row in rows} == {"awaiting"}
        held(posting, sim)
        before = Notice.objects.count()
        assert set(sim.control("deliver", forged=True)["answers"]) == {403}
        assert Notice.objects.count() == before and tasks.sync_posting(posting.pk) is False
