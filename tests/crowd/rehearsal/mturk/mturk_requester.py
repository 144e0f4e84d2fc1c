"""A requester with the real client, and the few documents it sends."""

from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape

import boto3
import httpx
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from crowd.rehearsal.mturk import TurkSimulator

STUDY = "https://study.example/join/faces/?via=abc&batch=1"
NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"


def question(url: str = STUDY, height: str = "0") -> str:
    return (
        f'<ExternalQuestion xmlns="{NAMESPACE}"><ExternalURL>{escape(url)}</ExternalURL>'
        f"<FrameHeight>{height}</FrameHeight></ExternalQuestion>"
    )


def client(sim: TurkSimulator, **changed: Any) -> Any:
    """boto3's own client, each call once."""
    known = {
        "region_name": "us-east-1",
        "aws_access_key_id": "rehearsal",
        "aws_secret_access_key": "rehearsal",
        "config": Config(retries={"mode": "standard", "total_max_attempts": 1}),
        "endpoint_url": sim.url,
    }
    return boto3.session.Session().client("mturk", **(known | changed))


SPEC = {
    "LifetimeInSeconds": 86_400,
    "AssignmentDurationInSeconds": 3_600,
    "AutoApprovalDelayInSeconds": 259_200,
    "Reward": "2.00",
    "Title": "A study of pictures",
    "Description": "Look at pictures and say what you see.",
    "Keywords": "pictures, study",
    "Question": question(),
    "MaxAssignments": 3,
}


OF_TYPE = (
    "AssignmentDurationInSeconds", "AutoApprovalDelayInSeconds", "Reward", "Title", "Description", "Keywords",
    "QualificationRequirements",
)  # fmt: skip


def created(turk: Any, **members: Any) -> Any:
    """A new HIT of a type with these members; the answer."""
    kind = turk.create_hit_type(**{name: members[name] for name in OF_TYPE if name in members})["HITTypeId"]
    rest = {name: value for name, value in members.items() if name not in OF_TYPE}
    return turk.create_hit_with_hit_type(HITTypeId=kind, **rest)


def offer(turk: Any, **changed: Any) -> str:
    """A new HIT; its id."""
    members = {name: value for name, value in (SPEC | changed).items() if value is not None}
    return str(created(turk, **members)["HIT"]["HITId"])


def hit(turk: Any, hit_id: str) -> dict[str, Any]:
    answer: dict[str, Any] = turk.get_hit(HITId=hit_id)["HIT"]
    return answer


def refusal(call: Callable[..., Any], **members: Any) -> str:
    """The error of a call that must fail: its TurkErrorCode without prefix, else the wire's name for it."""
    with pytest.raises(ClientError) as caught:
        call(**members)
    response = caught.value.response
    code = response.get("TurkErrorCode") or response["Error"]["Code"]
    return str(code).removeprefix("AWS.MechanicalTurk.")


def submitted(sim: TurkSimulator, hit_id: str = "", code: str = "DONE") -> dict[str, Any]:
    """A worker takes a HIT and submits it, by the form that their browser posts."""
    taken = sim.control.take(posting=hit_id)
    assert post(sim, assignmentId=taken["assignment"], completion=code).status_code == 200
    return taken


def post(sim: TurkSimulator, **fields: str) -> httpx.Response:
    return httpx.post(f"{sim.url}/mturk/externalSubmit", data=fields)


def verb(sim: TurkSimulator, name: str, **members: Any) -> dict[str, Any]:
    """A verb of the simulator over HTTP."""
    answer = httpx.post(f"{sim.url}/_simulator/{name}", json=members)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body
