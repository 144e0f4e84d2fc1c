"""Notifications of Mechanical Turk: the documents, and a real SQS protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws

from crowd.platforms import notice_of, queues
from crowd.platforms.base import Account, BadNotice, Notification, PlatformError, Site
from crowd.platforms.mturk.sqs_notices import events_of, pull, queue_client

pytestmark = pytest.mark.pure

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def document(event_id: str = "doc-1", *hits: str) -> dict[str, Any]:
    return {
        "EventDocVersion": "2014-08-15",
        "EventDocId": event_id,
        "CustomerId": "A1REQUESTER",
        "Events": [
            {"EventType": "AssignmentSubmitted", "EventTimestamp": "2026-01-05T00:00:00Z", "HITId": hit,
             "HITTypeId": "3TYPE", "AssignmentId": "3A"}
            for hit in hits or ("3HIT",)
        ],
    }  # fmt: skip


def envelope(inner: str, kind: str = "Notification") -> str:
    return json.dumps({"Type": kind, "MessageId": "m", "TopicArn": "arn", "Message": inner})


def test_it_reads_a_bare_document() -> None:
    assert events_of(json.dumps(document())) == [Notification("doc-1", "AssignmentSubmitted", "3HIT")]


def test_it_reads_the_envelope_of_sns() -> None:
    assert events_of(envelope(json.dumps(document())).encode()) == [
        Notification("doc-1", "AssignmentSubmitted", "3HIT")
    ]


def test_it_tells_several_events_of_one_document_apart() -> None:
    """Each event is a notice of its own, with the same id whenever the document comes again."""
    text = json.dumps(document("doc-1", "3HIT", "3OTHER"))
    first, again = events_of(text), events_of(text)
    assert first == again
    assert [(notice.event_id, notice.posting) for notice in first] == [
        ("doc-1-0", "3HIT"),
        ("doc-1-1", "3OTHER"),
    ]


def test_it_reads_a_ping() -> None:
    text = json.dumps({"EventDocId": "p", "Events": [{"EventType": "Ping"}]})
    assert events_of(text) == [Notification("p", "Ping")]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "no json",
        "[" * 100_000,
        json.dumps({**document(), "EventDocId": ""}),
        json.dumps({**document(), "EventDocId": "x" * 101}),
        json.dumps({**document(), "EventDocId": "<b>"}),
        json.dumps({**document(), "Events": []}),
        json.dumps({**document(), "Events": {}}),
        json.dumps({**document(), "Events": ["x"]}),
        json.dumps({**document(), "Events": [{"EventType": "<script>"}]}),
        json.dumps({**document(), "Events": [{"EventType": "Ping", "HITId": "<b>"}]}),
        json.dumps({**document(), "Events": [{"EventType": "Ping", "HITId": 5}]}),
        envelope("no json"),
        envelope(json.dumps(document()), "SubscriptionConfirmation"),
        json.dumps({"Message": 5}),
        " " * 300_000,
    ],
    ids=range(17),
)
def test_it_refuses_what_it_cannot_read(text: str) -> None:
    with pytest.raises(BadNotice):
        events_of(text)


def test_it_takes_nothing_over_the_web() -> None:
    assert notice_of("mturk") is None
    assert [name for name, _ in queues()] == ["mturk"]


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        client = boto3.client("sqs", region_name="us-east-1")
        url = client.create_queue(QueueName="notices", Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
        yield url, client


def left(queue: tuple[str, Any]) -> int:
    url, client = queue
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return int(attributes["ApproximateNumberOfMessages"]) + int(
        attributes["ApproximateNumberOfMessagesNotVisible"]
    )


def test_it_empties_the_queue(queue: tuple[str, Any]) -> None:
    url, client = queue
    for number in range(23):
        client.send_message(QueueUrl=url, MessageBody=json.dumps(document(f"doc-{number}")))
    seen: list[str] = []
    pull(url, client, lambda notices: seen.extend(notice.event_id for notice in notices))
    assert sorted(seen) == sorted(f"doc-{number}" for number in range(23))
    assert left(queue) == 0


def test_it_deletes_a_message_only_after_it_was_handled(queue: tuple[str, Any]) -> None:
    """A message comes again if its process died while handling it."""
    url, client = queue
    client.send_message(QueueUrl=url, MessageBody=json.dumps(document()))

    class Killed(Exception):
        pass

    def die(notices: list[Notification]) -> None:
        raise Killed

    with pytest.raises(Killed):
        pull(url, client, die)
    assert left(queue) == 1
    seen: list[Notification] = []
    pull(url, client, seen.extend)
    assert len(seen) == 1
    assert [notice.event_id for notice in seen] == ["doc-1"]


def test_it_leaves_what_it_cannot_read_and_takes_the_rest(
    queue: tuple[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, client = queue
    client.send_message(QueueUrl=url, MessageBody="<html>")
    client.send_message(QueueUrl=url, MessageBody=envelope(json.dumps(document())))
    seen: list[Notification] = []
    monkeypatch.setattr("crowd.platforms.mturk.sqs_notices.ROUNDS_MAX", 3)
    pull(url, client, seen.extend)
    assert len(seen) == 1
    assert left(queue) == 1


def test_it_says_that_there_is_no_such_queue(queue: tuple[str, Any]) -> None:
    url, client = queue
    with pytest.raises(PlatformError, match="MTURK_QUEUE_URL") as error:
        pull(f"{url}-other", client, lambda _: None)
    assert error.value.permanent


@pytest.mark.parametrize(
    ("url", "region"),
    [
        ("https://sqs.eu-west-1.amazonaws.com/1/notices", "eu-west-1"),
        ("http://127.0.0.1:5000/1/n", "us-east-1"),
    ],
)
def test_it_looks_in_the_region_of_the_queue(url: str, region: str) -> None:
    account = Account(Site("sandbox"), key_id="k", secret="s", queue_url=url)
    assert queue_client(account).meta.region_name == region
