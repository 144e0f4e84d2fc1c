"""Event notifications: which events come, in what document, and in what disorder they are delivered."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from crowd.rehearsal import mturk
from crowd.rehearsal.mturk import TurkSimulator
from crowd.rehearsal.mturk.records import Specification
from tests.crowd.rehearsal.mturk.mturk_requester import client, hit, offer, refusal, submitted, verb

pytestmark = pytest.mark.pure
QUEUE = "https://sqs.us-east-1.amazonaws.com/123456789012/notices"
TOPIC = "arn:aws:sns:us-east-1:123456789012:notices"
EVERYTHING = ["AssignmentAccepted", "AssignmentAbandoned", "AssignmentReturned", "AssignmentSubmitted",
              "AssignmentRejected", "AssignmentApproved", "HITCreated", "HITExpired", "HITReviewable",
              "HITExtended", "HITDisposed"]  # fmt: skip


@pytest.fixture
def sim() -> Iterator[TurkSimulator]:
    with mturk.simulator(seed=5) as running:
        yield running


@pytest.fixture
def turk(sim: TurkSimulator) -> Any:
    return client(sim)


def wanted(events: list[str], **changed: Any) -> dict[str, Any]:
    known = {"Destination": QUEUE, "Transport": "SQS", "Version": "2014-08-15", "EventTypes": events}
    return known | changed


def listened(turk: Any, events: list[str] = EVERYTHING, **changed: Any) -> str:
    """A HIT whose type tells of these events; its id."""
    hit_id = offer(turk, **changed)
    kind = hit(turk, hit_id)["HITTypeId"]
    turk.update_notification_settings(HITTypeId=kind, Notification=wanted(events), Active=True)
    return hit_id


def delivered(sim: TurkSimulator, **manner: Any) -> list[dict[str, Any]]:
    texts: list[str] = []
    sim.control.deliver(send=lambda _, text: texts.append(text), **manner)
    return [json.loads(text) for text in texts]


def kinds(documents: list[dict[str, Any]]) -> list[str]:
    return [event["EventType"] for document in documents for event in document["Events"]]


def test_it_tells_what_happens_in_order(sim: TurkSimulator, turk: Any) -> None:
    hit_id = listened(turk, MaxAssignments=2, LifetimeInSeconds=3600, AssignmentDurationInSeconds=600)
    offer(turk, MaxAssignments=2, LifetimeInSeconds=3600, AssignmentDurationInSeconds=600)
    verb(sim, "return", submission=sim.control.take(posting=hit_id)["submission"])
    sim.control.take(posting=hit_id)
    sim.clock.advance(600)
    first, second = submitted(sim, hit_id), submitted(sim, hit_id)
    turk.approve_assignment(AssignmentId=first["assignment"])
    turk.reject_assignment(AssignmentId=second["assignment"], RequesterFeedback="Left empty.")
    turk.create_additional_assignments_for_hit(HITId=hit_id, NumberOfAdditionalAssignments=1)
    turk.update_expiration_for_hit(HITId=hit_id, ExpireAt=0)
    sim.clock.advance(120 * 86_400)
    documents = delivered(sim)
    assert kinds(documents)[0] == "HITCreated"  # the second, whose type was listened to by then
    assert kinds([each for each in documents if each["Events"][0]["HITId"] == hit_id]) == [
        *("AssignmentAccepted", "AssignmentReturned"),
        *("AssignmentAccepted", "AssignmentAbandoned"),
        *("AssignmentAccepted", "AssignmentSubmitted"),
        *("AssignmentAccepted", "AssignmentSubmitted"),
        "HITReviewable",
        *("AssignmentApproved", "AssignmentRejected"),
        *("HITExtended", "HITExpired", "HITReviewable", "HITDisposed"),
    ]


def test_it_names_hit_and_assignment_and_never_the_worker(sim: TurkSimulator, turk: Any) -> None:
    hit_id = listened(turk)
    sim.clock.advance(61)
    work = submitted(sim)
    first = delivered(sim)[-1]
    assert first == {
        "EventDocVersion": "2014-08-15",
        "EventDocId": first["EventDocId"],
        "CustomerId": first["CustomerId"],
        "Events": [
            {
                "EventType": "AssignmentSubmitted",
                "EventTimestamp": "2026-01-05T09:01:01Z",
                "HITTypeId": hit(turk, hit_id)["HITTypeId"],
                "HITId": hit_id,
                "AssignmentId": work["assignment"],
            }
        ],
    }
    assert work["person"] not in json.dumps(first)


def test_it_tells_only_of_what_was_asked_for(sim: TurkSimulator, turk: Any) -> None:
    hit_id = listened(turk, ["AssignmentSubmitted"])
    submitted(sim)
    turk.update_notification_settings(HITTypeId=hit(turk, hit_id)["HITTypeId"], Active=False)
    submitted(sim)
    assert kinds(delivered(sim)) == ["AssignmentSubmitted"]
    assert delivered(sim) == []


def test_it_says_nothing_of_work_submitted_after_expiry(sim: TurkSimulator, turk: Any) -> None:
    """Only the list shows such work: notifications are hints."""
    hit_id = listened(turk, ["AssignmentSubmitted"], LifetimeInSeconds=60)
    held = sim.control.take()
    sim.clock.advance(60)
    sim.control.complete(held["submission"], "DONE")
    assert delivered(sim) == []
    assert len(turk.list_assignments_for_hit(HITId=hit_id)["Assignments"]) == 1


def test_it_delivers_twice_backwards_and_late(sim: TurkSimulator, turk: Any) -> None:
    listened(turk, ["AssignmentAccepted", "AssignmentSubmitted"])
    submitted(sim)
    documents = delivered(sim, duplicates=True, reverse=True, late_s=600)
    assert kinds(documents) == ["AssignmentSubmitted", "AssignmentAccepted"] * 2
    assert len({document["EventDocId"] for document in documents}) == 2
    assert sim.clock.now() == mturk.START.replace(minute=10)


def test_it_lets_the_receiver_ask_back_while_it_delivers(sim: TurkSimulator, turk: Any) -> None:
    listened(turk, ["AssignmentSubmitted"])
    submitted(sim)
    seen: list[str] = []

    def ask_back(_: Specification, text: str) -> None:
        name = json.loads(text)["Events"][0]["AssignmentId"]
        seen.append(turk.get_assignment(AssignmentId=name)["Assignment"]["AssignmentStatus"])

    sim.control.deliver(send=ask_back)
    assert seen == ["Submitted"]


def test_it_puts_documents_into_a_queue(sim: TurkSimulator, turk: Any) -> None:
    """With the real client of the queue service, into a replacement of the queue."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        queue = boto3.session.Session().client(
            "sqs", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="rehearsal",
            aws_secret_access_key="rehearsal",
        )  # fmt: skip
        url = queue.create_queue(QueueName="notices")["QueueUrl"]
        listened(turk, ["AssignmentSubmitted"])
        work = submitted(sim)
        assert verb(sim, "deliver", endpoint=endpoint, queue_url=url, duplicates=True) == {"sent": 2}
        messages = queue.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
        documents = [json.loads(message["Body"]) for message in messages]
        assert [document["Events"][0]["AssignmentId"] for document in documents] == [work["assignment"]] * 2
        assert documents[0]["EventDocId"] == documents[1]["EventDocId"]
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"Destination": TOPIC}, "InvalidTransportEndpoint"),
        ({"Transport": "SNS"}, "InvalidTransportEndpoint"),
        ({"Transport": "Email"}, "InvalidTransportEndpoint"),
        ({"Transport": "Pigeon"}, "InvalidParameterValue"),
        ({"Version": "2020-01-01"}, "InvalidParameterValue"),
        ({"EventTypes": ["Ping"]}, "InvalidParameterValue"),
        ({"EventTypes": ["AssignmentPraised"]}, "InvalidParameterValue"),
    ],
)
def test_it_refuses_a_wrong_specification(turk: Any, changed: dict[str, Any], code: str) -> None:
    kind = hit(turk, offer(turk))["HITTypeId"]
    members = {"HITTypeId": kind, "Notification": wanted(["HITCreated"], **changed)}
    assert refusal(turk.update_notification_settings, **members) == code


def test_it_needs_a_specification_before_it_can_be_switched(turk: Any) -> None:
    kind = hit(turk, offer(turk))["HITTypeId"]
    assert refusal(turk.update_notification_settings, HITTypeId=kind) == "InvalidParameterValue"
    assert refusal(turk.update_notification_settings, HITTypeId=kind, Active=True) == "InvalidParameterValue"
