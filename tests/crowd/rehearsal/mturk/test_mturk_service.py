"""The service as a client sees it: who may ask, what a request must look like, errors, faults."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError, ConnectionClosedError, HTTPClientError
from botocore.model import ServiceModel

from crowd.rehearsal import mturk
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.mturk import TurkSimulator
from crowd.rehearsal.mturk.operations import OPERATIONS
from tests.crowd.rehearsal.mturk.mturk_requester import (
    SPEC,
    client,
    created,
    offer,
    question,
    refusal,
    submitted,
)

pytestmark = pytest.mark.pure
TARGET = "MTurkRequesterServiceV20170117"
EPOCH_MS = int(mturk.START.timestamp() * 1000)


@pytest.fixture
def sim() -> Iterator[TurkSimulator]:
    with mturk.simulator(seed=1) as running:
        yield running


@pytest.fixture
def turk(sim: TurkSimulator) -> Any:
    return client(sim)


def signed(
    sim: TurkSimulator, body: bytes = b"{}", at: datetime | None = None, **changed: str
) -> dict[str, str]:
    """The headers of GetAccountBalance as botocore signs it, at a date of our choice."""
    request = AWSRequest(
        method="POST",
        url=f"{sim.url}/",
        data=body,
        headers={
            "Content-Type": "application/x-amz-json-1.1",
            "X-Amz-Target": f"{TARGET}.GetAccountBalance",
            "Host": sim.url.removeprefix("http://"),
        },
    )
    signer = SigV4Auth(Credentials("rehearsal", "rehearsal"), "mturk-requester", "us-east-1")
    stamp = f"{at or datetime(2026, 3, 1, tzinfo=UTC):%Y%m%dT%H%M%SZ}"
    request.context["timestamp"] = stamp
    request.headers["X-Amz-Date"] = stamp
    signature = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    signer._inject_signature_to_request(request, signature)
    return dict(request.headers.items()) | changed


def ask(sim: TurkSimulator, headers: dict[str, str], body: bytes = b"{}") -> str:
    """The result: `ok`, or the name of the error."""
    answer = httpx.post(f"{sim.url}/", content=body, headers=headers)
    assert answer.headers["content-type"] == "application/x-amz-json-1.1"
    return "ok" if answer.status_code == 200 else str(answer.json()["__type"])


def test_it_answers_requests_signed_with_a_known_key(sim: TurkSimulator, turk: Any) -> None:
    assert ask(sim, signed(sim)) == "ok"
    assert turk.get_account_balance()["AvailableBalance"] == "10000.00"


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"aws_secret_access_key": "guessed"}, "InvalidSignatureException"),
        ({"region_name": "eu-west-1"}, "InvalidSignatureException"),
        ({"region_name": "sandbox"}, "InvalidSignatureException"),
        ({"aws_access_key_id": "AKIDEXAMPLE"}, "UnrecognizedClientException"),
    ],
)
def test_it_refuses_a_wrong_secret_region_or_key(
    sim: TurkSimulator, changed: dict[str, str], code: str
) -> None:
    wrong = client(sim, **changed)
    assert refusal(created, turk=wrong, **SPEC) == code
    assert sim.control.state()["postings"] == {}
    assert [call.effect for call in sim.log] == [False]


def test_it_refuses_a_changed_body(sim: TurkSimulator) -> None:
    assert ask(sim, signed(sim), b'{"a": 1}') == "InvalidSignatureException"


def test_it_refuses_changed_or_missing_headers(sim: TurkSimulator) -> None:
    good = signed(sim)
    assert ask(sim, good | {"X-Amz-Target": f"{TARGET}.ListHITs"}) == "InvalidSignatureException"
    assert ask(sim, good | {"X-Amz-Date": "20260302T000000Z"}) == "InvalidSignatureException"
    unsigned = {name: value for name, value in good.items() if name != "Authorization"}
    assert ask(sim, unsigned) == "MissingAuthenticationTokenException"
    assert ask(sim, good | {"Authorization": "Bearer rehearsal"}) == "IncompleteSignatureException"


def test_it_knows_every_operation_of_the_model_or_says_no_clearly(turk: Any) -> None:
    """The list of operations is the client's own; those that are not simulated answer a RequestError."""
    model: ServiceModel = turk.meta.service_model
    assert set(OPERATIONS) <= set(model.operation_names)
    with pytest.raises(turk.exceptions.RequestError, match="does not carry out ListQualificationRequests"):
        turk.list_qualification_requests()


def test_it_refuses_an_operation_that_does_not_exist(sim: TurkSimulator) -> None:
    assert ask(sim, signed(sim) | {"X-Amz-Target": f"{TARGET}.PrintMoney"}) == "UnknownOperationException"
    assert ask(sim, signed(sim) | {"X-Amz-Target": ""}) == "UnknownOperationException"


WORKER = "A" + "B" * 13
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("create_hit", SPEC | {"UniqueRequestToken": "t" * 65}),
    ("create_hit", SPEC | {"Reward": "$1"}),
    ("create_hit", SPEC | {"Reward": "1.005"}),
    ("create_hit", SPEC | {"Reward": "1.00\n"}),
    ("create_hit", SPEC | {"Reward": "-1.00"}),
    ("create_hit", SPEC | {"Title": ""}),
    ("create_hit", SPEC | {"Title": "t" * 129}),
    ("create_hit", SPEC | {"Description": "d" * 2001}),
    ("create_hit", SPEC | {"Keywords": "k" * 1001}),
    ("create_hit", SPEC | {"RequesterAnnotation": "r" * 256}),
    ("create_hit", SPEC | {"LifetimeInSeconds": 29}),
    ("create_hit", SPEC | {"LifetimeInSeconds": 31_536_001}),
    ("create_hit", SPEC | {"AssignmentDurationInSeconds": 29}),
    ("create_hit", SPEC | {"AutoApprovalDelayInSeconds": 2_592_001}),
    ("create_hit", SPEC | {"MaxAssignments": 0}),
    ("create_hit", SPEC | {"Question": question("ftp://study.example/")}),
    ("create_hit", SPEC | {"Question": question() + " " * 65_536}),
    # Too long in bytes alone: the no-break space has two.
    ("create_hit", SPEC | {"Question": question() + "<!--" + "\N{NO-BREAK SPACE}" * 33_000 + "-->"}),
    ("create_hit", {name: value for name, value in SPEC.items() if name != "Question"}),
    ("create_hit", SPEC | {"QualificationRequirements": [
        {"QualificationTypeId": "00000000000000000040", "Comparator": "AtLeast", "IntegerValues": [1]}]}),
    ("create_hit", SPEC | {"QualificationRequirements": [
        {"QualificationTypeId": "00000000000000000071", "Comparator": "EqualTo",
         "LocaleValues": [{"Country": "USA"}]}]}),
    ("create_hit", SPEC | {"QualificationRequirements": [
        {"QualificationTypeId": "00000000000000000040", "Comparator": "Exists", "IntegerValues": [1]}]}),
    ("create_hit", SPEC | {"QualificationRequirements": [
        {"QualificationTypeId": "00000000000000000040", "Comparator": "In", "IntegerValues": [*range(16)]}]}),
    ("create_hit", SPEC | {"QualificationRequirements": [
        {"QualificationTypeId": "00000000000000000060", "Comparator": "Exists"}] * 11}),
    ("list_hits", {"MaxResults": 101}),
    ("list_hits", {"NextToken": "t" * 256}),
    ("list_hits", {"NextToken": "made-up"}),
    ("get_hit", {"HITId": "lower"}),
    ("get_hit", {"HITId": "A" * 65}),
    ("list_assignments_for_hit", {"HITId": "AAA", "AssignmentStatuses": ["Accepted"]}),
    ("send_bonus", {"WorkerId": "B123", "BonusAmount": "1.00", "AssignmentId": "AAA", "Reason": "r"}),
    ("send_bonus", {"WorkerId": "A<b>", "BonusAmount": "1.00", "AssignmentId": "AAA", "Reason": "r"}),
    ("notify_workers", {"Subject": "s" * 201, "MessageText": "m", "WorkerIds": [WORKER]}),
    ("notify_workers", {"Subject": "s", "MessageText": "m" * 4097, "WorkerIds": [WORKER]}),
    ("notify_workers", {"Subject": "s", "MessageText": "m", "WorkerIds": [WORKER] * 101}),
    ("notify_workers", {"Subject": "s", "MessageText": "m", "WorkerIds": ["a"]}),
    ("list_bonus_payments", {}),
    ("list_bonus_payments", {"HITId": "AAA", "AssignmentId": "AAA"}),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "members"), WRONG)
def test_it_checks_what_the_client_lets_through(
    sim: TurkSimulator, turk: Any, operation: str, members: dict[str, Any]
) -> None:
    call = partial(created, turk) if operation == "create_hit" else getattr(turk, operation)
    assert refusal(call, **members) == "InvalidParameterValue"
    assert sim.control.state()["postings"] == {} and not sim.log[-1].effect


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"Reward": 1}',
        b"\xff",
        b'{"LifetimeInSeconds": 3600}',
        json.dumps(SPEC | {"MadeUp": 1}).encode(),
        json.dumps(SPEC | {"Title": None}).encode(),
        json.dumps(SPEC | {"MaxAssignments": "3"}).encode(),
    ],
)
def test_it_checks_required_and_unknown_members_and_types_itself(
    sim: TurkSimulator, turk: Any, body: bytes
) -> None:
    """Also for clients other than Amazon's: the body is replaced just before it is signed."""
    turk.meta.events.register("before-sign.mturk", lambda request, **_: setattr(request, "data", body))
    assert refusal(created, turk=turk, **SPEC) == "InvalidParameterValue"
    assert sim.control.state()["postings"] == {}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("<ExternalQuestion>", "XMLParseError"),
        (
            "<ExternalQuestion><ExternalURL>https://a.example</ExternalURL></ExternalQuestion>",
            "XMLParseError",
        ),
        (question(height="tall"), "XMLParseError"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]>" + question(), "XMLParseError"),
        (question("https://a.example/x y"), "InvalidParameterValue"),
    ],
)
def test_it_reads_the_question(turk: Any, text: str, code: str) -> None:
    assert refusal(created, turk=turk, **(SPEC | {"Question": text})) == code


def test_it_writes_errors_as_the_platform_does(sim: TurkSimulator, turk: Any) -> None:
    with pytest.raises(turk.exceptions.RequestError) as caught:
        turk.get_hit(HITId="3NONE")
    response = caught.value.response
    assert response["TurkErrorCode"] == "AWS.MechanicalTurk.HITDoesNotExist"
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert response["Message"].endswith(f"({EPOCH_MS})") and "3NONE" in response["Message"]


def test_it_fails_on_demand_before_and_after_the_effect(sim: TurkSimulator, turk: Any) -> None:
    taken = [submitted(sim) for _ in range(4)] if offer(turk, MaxAssignments=4) else []
    sim.faults.forced += ["429", "5xx_before", "5xx_after", "lost_answer"]
    errors: list[str] = []
    for work in taken:
        try:
            turk.approve_assignment(AssignmentId=work["assignment"])
        except ClientError as error:
            errors.append(error.response["Error"]["Code"])
        except (ConnectionClosedError, HTTPClientError):
            errors.append("lost")
    assert errors == ["ThrottlingException", "ServiceFault", "ServiceFault", "lost"]
    state = sim.control.state()
    assert [state["submissions"][work["submission"]]["reward_paid_count"] for work in taken] == [0, 0, 1, 1]
    assert [(call.fault, call.effect) for call in sim.log[-4:]] == [
        ("429", False),
        ("5xx_before", False),
        ("5xx_after", True),
        ("lost_answer", True),
    ]


def test_it_raises_the_modelled_fault(sim: TurkSimulator, turk: Any) -> None:
    sim.faults.down = True
    with pytest.raises(turk.exceptions.ServiceFault) as caught:
        turk.get_account_balance()
    assert caught.value.response["TurkErrorCode"] == "AWS.ServiceUnavailable"


def test_it_shows_what_a_retry_without_a_token_costs(sim: TurkSimulator, turk: Any) -> None:
    """The client's own retries after a lost answer pay again, unless a token prevents it."""
    offer(turk)
    work = submitted(sim)
    hasty = client(sim, config=Config(retries={"mode": "legacy"}))
    bonus = {
        "WorkerId": work["person"],
        "AssignmentId": work["assignment"],
        "Reason": "r",
        "BonusAmount": "1",
    }
    sim.faults.forced += ["5xx_after"]
    hasty.send_bonus(**bonus)
    sim.faults.forced += ["5xx_after"]
    assert refusal(hasty.send_bonus, **bonus, UniqueRequestToken="once") == "BonusAlreadyExists"
    assert sim.control.state()["submissions"][work["submission"]]["bonuses"] == [100, 100, 100]


def test_it_calls_hooks_between_effect_and_answer(sim: TurkSimulator, turk: Any) -> None:
    seen: list[tuple[str, bool, int]] = []
    sim.before_reply.append(
        lambda call: seen.append((call.operation, call.effect, len(sim.control.state()["postings"])))
    )
    offer(turk)
    refusal(turk.get_hit, HITId="3NONE")
    assert seen == [("CreateHITType", True, 0), ("CreateHITWithHITType", True, 1), ("GetHIT", False, 1)]
    assert sim.calls_count == 3


def test_it_behaves_the_same_for_the_same_seed() -> None:
    def run(seed: int) -> str:
        with mturk.simulator(seed=seed, faults=Faults(seed, share=0.3)) as sim:
            turk = client(sim)
            for index in range(20):
                try:
                    offer(turk, MaxAssignments=1 + index)
                except (ClientError, HTTPClientError, ConnectionClosedError):
                    continue
            return json.dumps(sim.control.state())

    assert run(5) == run(5) != run(6)
