"""Workers: what they see, take, give back and post; who may come; who gets messages."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree

import httpx
import pytest

from crowd.rehearsal import mturk
from crowd.rehearsal.mturk import TurkSimulator
from crowd.rehearsal.platform_control import CannotBe
from tests.crowd.rehearsal.mturk.mturk_requester import (
    STUDY,
    client,
    hit,
    offer,
    post,
    refusal,
    submitted,
    verb,
)

pytestmark = pytest.mark.pure
ANSWERS = (
    "{http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd}"
)

APPROVALS, PLACE, ADULT = "00000000000000000040", "00000000000000000071", "00000000000000000060"
PERCENT, MASTERS = "000000000000000000L0", "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH"


@pytest.fixture
def sim() -> Iterator[TurkSimulator]:
    with mturk.simulator(seed=4) as running:
        yield running


@pytest.fixture
def turk(sim: TurkSimulator) -> Any:
    return client(sim)


def answers(turk: Any, assignment: str) -> list[tuple[str, str]]:
    root = ElementTree.fromstring(turk.get_assignment(AssignmentId=assignment)["Assignment"]["Answer"])
    assert root.tag == f"{ANSWERS}QuestionFormAnswers"
    name, text = f"{ANSWERS}QuestionIdentifier", f"{ANSWERS}FreeText"
    return [(answer.findtext(name, ""), answer.findtext(text, "")) for answer in root]


def test_it_leads_to_the_study_with_its_own_query_kept(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk)
    taken = verb(sim, "take")
    assert taken["url"].startswith(f"{STUDY}&")
    assert parse_qsl(urlsplit(taken["url"]).query) == [
        ("via", "abc"),
        ("batch", "1"),
        ("assignmentId", taken["assignment"]),
        ("hitId", hit_id),
        ("workerId", taken["person"]),
        ("turkSubmitTo", sim.url),
    ]
    assert taken["submission"] == f"{taken['assignment']}:{taken['person']}"
    assert re.fullmatch("A[A-Z0-9]+", taken["person"]) and re.fullmatch("[A-Z0-9]+", taken["assignment"])


def test_it_tells_a_preview_nothing_of_a_person(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk)
    query = dict(parse_qsl(urlsplit(verb(sim, "preview")["url"]).query))
    assert query == {
        "via": "abc",
        "batch": "1",
        "assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE",
        "hitId": hit_id,
    }
    assert verb(sim, "state")["submissions"] == {}


def test_it_takes_the_form_of_the_page(sim: TurkSimulator, turk: Any) -> None:
    offer(turk)
    taken = sim.control.take()
    text = "x < y & \u00e9\x01"
    answer = post(sim, assignmentId=taken["assignment"], hitId="H", workerId="AW", turkSubmitTo="u",
                  completion="DONE", note=text)  # fmt: skip
    assert answer.status_code == 200 and "Submitted" in answer.text
    fields = answers(turk, taken["assignment"])
    assert fields == [("completion", "DONE"), ("note", "x < y & \u00e9\ufffd")]
    assert sim.control.state()["submissions"][taken["submission"]]["code"] == "DONE"
    real = turk.get_assignment(AssignmentId=taken["assignment"])["Assignment"]
    assert real["WorkerId"] == taken["person"]  # not the person that the form names


def test_it_refuses_a_form_that_the_platform_would_not_take(sim: TurkSimulator, turk: Any) -> None:
    offer(turk)
    taken = sim.control.take()
    name = taken["assignment"]
    for fields in (
        {"assignmentId": name},
        {"assignmentId": name, "workerId": taken["person"]},
        {"AssignmentId": name, "completion": "DONE"},
        {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "completion": "DONE"},
        {"assignmentId": "3UNKNOWN", "completion": "DONE"},
        {"assignmentId": f" {name}", "completion": "DONE"},
    ):
        assert post(sim, **fields).status_code == 400, fields
    as_json = httpx.post(f"{sim.url}/mturk/externalSubmit", json={"assignmentId": name, "completion": "DONE"})
    assert as_json.status_code == 400
    assert httpx.get(f"{sim.url}/mturk/externalSubmit?assignmentId={name}&completion=D").status_code == 404
    assert sim.control.state()["submissions"][taken["submission"]]["state"] == "Accepted"


def test_it_takes_a_form_once(sim: TurkSimulator, turk: Any) -> None:
    offer(turk)
    taken = submitted(sim)
    assert post(sim, assignmentId=taken["assignment"], completion="OTHER").status_code == 400
    assert answers(turk, taken["assignment"]) == [("completion", "DONE")]


def test_it_takes_no_form_after_the_deadline_or_a_return(sim: TurkSimulator, turk: Any) -> None:
    offer(turk, AssignmentDurationInSeconds=60)
    late, back = sim.control.take(), sim.control.take()
    verb(sim, "return", submission=back["submission"])
    sim.clock.advance(60)
    for taken in (late, back):
        assert post(sim, assignmentId=taken["assignment"], completion="DONE").status_code == 400
    states = {work["state"] for work in verb(sim, "state")["submissions"].values()}
    assert states == {"Abandoned", "Returned"}


def test_it_gives_a_returned_assignment_id_to_a_second_worker(sim: TurkSimulator, turk: Any) -> None:
    hit_id = offer(turk)
    first = sim.control.take()
    sim.control.give_back(first["submission"])
    again = sim.control.take(person=first["person"])
    assert again["assignment"] != first["assignment"]  # never for the same worker
    second = sim.control.take()
    assert second["assignment"] == first["assignment"] and second["person"] != first["person"]
    assert post(sim, assignmentId=second["assignment"], completion="DONE").status_code == 200
    listed = turk.list_assignments_for_hit(HITId=hit_id)["Assignments"]
    assert [(assignment["AssignmentId"], assignment["WorkerId"]) for assignment in listed] == [
        (first["assignment"], second["person"])
    ]
    assert sim.control.state()["submissions"][first["submission"]]["state"] == "Returned"


def test_it_gives_a_worker_one_assignment_of_a_hit(sim: TurkSimulator, turk: Any) -> None:
    first, other = offer(turk), offer(turk)
    taken = submitted(sim, first)
    with pytest.raises(CannotBe, match="no more"):
        sim.control.take(posting=first, person=taken["person"])
    assert sim.control.take(posting=other, person=taken["person"])["posting"] == other
    kind = hit(turk, first)["HITTypeId"]
    assert sim.control.take(posting=kind)["person"] != taken["person"]


def test_it_times_out_on_demand(sim: TurkSimulator, turk: Any) -> None:
    offer(turk, MaxAssignments=1)
    taken = verb(sim, "take")
    verb(sim, "time_out", submission=taken["submission"])
    assert verb(sim, "take")["assignment"] == taken["assignment"]


def wants(kind: str, comparator: str, **values: Any) -> dict[str, Any]:
    return {"QualificationTypeId": kind, "Comparator": comparator, **values}


@pytest.mark.parametrize(
    ("wanted", "known", "may"),
    [
        (wants(APPROVALS, "GreaterThanOrEqualTo", IntegerValues=[500]), {"approvals": 500}, True),
        (wants(APPROVALS, "GreaterThanOrEqualTo", IntegerValues=[500]), {"approvals": 499}, False),
        (wants(PERCENT, "GreaterThan", IntegerValues=[97]), {"percent": 98}, True),
        (wants(PERCENT, "GreaterThan", IntegerValues=[97]), {"percent": 97}, False),
        (wants(ADULT, "EqualTo", IntegerValues=[1]), {"is_adult": False}, False),
        (wants(MASTERS, "Exists"), {}, False),
        (wants(MASTERS, "DoesNotExist"), {"is_master": True}, False),
        (wants(PLACE, "In", LocaleValues=[{"Country": "GB"}, {"Country": "US"}]), {}, True),
        (wants(PLACE, "NotIn", LocaleValues=[{"Country": "US"}]), {}, False),
        (wants(PLACE, "EqualTo", LocaleValues=[{"Country": "US", "Subdivision": "CA"}]),
         {"subdivision": "NY"}, False),
        (wants(APPROVALS, "In", IntegerValues=[1, 2]), {"approvals": 2}, True),
        (wants(APPROVALS, "NotIn", IntegerValues=[1, 2]), {"approvals": 2}, False),
        (wants(APPROVALS, "LessThan", IntegerValues=[10]), {"approvals": 10}, False),
        (wants(APPROVALS, "NotEqualTo", IntegerValues=[10]), {"approvals": 10}, False),
    ],
)  # fmt: skip
def test_it_lets_in_who_is_qualified(
    sim: TurkSimulator, turk: Any, wanted: dict[str, Any], known: dict[str, Any], may: bool
) -> None:
    offer(turk, QualificationRequirements=[wanted])
    person = verb(sim, "people", **known)["people"][0]["person"]
    if may:
        assert sim.control.take(person=person)["person"] == person
    else:
        with pytest.raises(CannotBe, match="qualification"):
            sim.control.take(person=person)


def test_it_keeps_out_who_took_part_before(sim: TurkSimulator, turk: Any) -> None:
    """How to offer HITs of nine without getting a worker twice."""
    created = turk.create_qualification_type(
        Name="took part", Description="Took part in the study.", QualificationTypeStatus="Active"
    )
    kind = created["QualificationType"]["QualificationTypeId"]
    wanted = [
        wants(kind, "DoesNotExist", ActionsGuarded="DiscoverPreviewAndAccept"),
    ]
    first, second = (offer(turk, QualificationRequirements=wanted) for _ in range(2))
    taken = submitted(sim, first)
    silent = {"QualificationTypeId": kind, "WorkerId": taken["person"], "SendNotification": False}
    turk.associate_qualification_with_worker(**silent, IntegerValue=7)
    with pytest.raises(CannotBe, match="qualification"):
        sim.control.take(posting=second, person=taken["person"])
    with pytest.raises(CannotBe, match="preview"):
        sim.control.preview(posting=second, person=taken["person"])
    assert verb(sim, "state")["letters"] == {}


def test_it_manages_qualification_types(sim: TurkSimulator, turk: Any) -> None:
    known = {"Name": "took part", "Description": "Took part.", "QualificationTypeStatus": "Active"}
    kind = turk.create_qualification_type(**known)["QualificationType"]["QualificationTypeId"]
    assert refusal(turk.create_qualification_type, **known) == "QualificationTypeAlreadyExists"
    listed = turk.list_qualification_types(MustBeRequestable=False, MustBeOwnedByCaller=True, Query="TOOK")
    assert [row["QualificationTypeId"] for row in listed["QualificationTypes"]] == [kind]
    for worker in ("AONE", "ATWO"):
        turk.associate_qualification_with_worker(QualificationTypeId=kind, WorkerId=worker)
    assert verb(sim, "state")["letters"].keys() == {"AONE", "ATWO"}  # workers are notified by default
    listing = turk.list_workers_with_qualification_type
    by_state = {
        state: [row["WorkerId"] for row in listing(QualificationTypeId=kind, Status=state)["Qualifications"]]
        for state in ("Granted", "Revoked")
    }
    assert by_state == {"Granted": ["AONE", "ATWO"], "Revoked": []}
    missing = [wants("3" + "A" * 29, "DoesNotExist")]
    assert refusal(offer, turk=turk, QualificationRequirements=missing) == "QualificationTypeDoesNotExist"


def test_it_writes_to_people_whose_work_was_decided(sim: TurkSimulator, turk: Any) -> None:
    offer(turk, MaxAssignments=4)
    paid, refused, waiting, busy = (submitted(sim) for _ in range(4))
    turk.approve_assignment(AssignmentId=paid["assignment"])
    turk.approve_assignment(AssignmentId=busy["assignment"])
    turk.reject_assignment(AssignmentId=refused["assignment"], RequesterFeedback="Left empty.")
    verb(sim, "fail_softly", people=[busy["person"]])
    everybody = [work["person"] for work in (paid, refused, waiting, busy)] + ["ANOBODY"]
    letter = {"Subject": "About your work", "MessageText": "Thank you."}
    failed = turk.notify_workers(**letter, WorkerIds=everybody)["NotifyWorkersFailureStatuses"]
    assert {failure["WorkerId"]: failure["NotifyWorkersFailureCode"] for failure in failed} == {
        waiting["person"]: "HardFailure",
        busy["person"]: "SoftFailure",
        "ANOBODY": "HardFailure",
    }
    assert turk.notify_workers(**letter, WorkerIds=[busy["person"]])["NotifyWorkersFailureStatuses"] == []
    sent = verb(sim, "state")["letters"]
    assert sent == {work["person"]: [list(letter.values())] for work in (paid, refused, busy)}


def test_it_says_why_a_verb_is_refused(sim: TurkSimulator, turk: Any) -> None:
    def status(name: str, **members: Any) -> int:
        return httpx.post(f"{sim.url}/_simulator/{name}", json=members).status_code

    assert status("take") == 409
    offer(turk)
    assert status("take", person="ANOBODY") == 409
    assert status("complete", submission="3X:AY", code="D") == 409
    assert status("take", nonsense=1) == 400
    assert status("deliver", send="x") == 400
    assert status("fund", dollars="much") == 400
    assert status("faults", forced=["fire"]) == 400
    assert status("explode") == 404
    assert verb(sim, "faults", share=0.5, down=True)["share"] == 0.5
    assert verb(sim, "message", person=verb(sim, "take")["person"], body="Hello")["reaches_api"] is False


def test_it_makes_people_with_habits_from_the_seed() -> None:
    def habits(seed: int) -> list[str]:
        with mturk.simulator(seed=seed) as sim:
            return [person["habit"] for person in verb(sim, "people", count=200)["people"]]

    assert habits(1) == habits(1) != habits(2)
    assert {"plain", "returns_midway", "submits_twice"} <= set(habits(1))
