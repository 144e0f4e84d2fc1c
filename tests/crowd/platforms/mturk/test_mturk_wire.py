"""Calls to Mechanical Turk: the real boto3 client against a server that fails on purpose."""

from __future__ import annotations

import itertools
import socket
from typing import Any

import pytest

from crowd.platforms.base import Account, PlatformError, Site
from crowd.platforms.mturk.wire import TurkError, TurkWire
from crowd.rehearsal.serving import Answer
from tests.crowd.platforms.mturk.mturk_script import FAULT, LOST, Play, account, bare, refusal, reply, script

pytestmark = pytest.mark.pure

BONUS: dict[str, Any] = {
    "WorkerId": "A1WORKER",
    "AssignmentId": "3ASSIGNMENT",
    "BonusAmount": "0.50",
    "Reason": "Thank you.",
    "UniqueRequestToken": "bonus-1",
}
HIT: dict[str, Any] = {"HITTypeId": "3TYPE", "LifetimeInSeconds": 3600, "Question": "<x/>"}


def no_wait(seconds: float) -> None:
    raise AssertionError("nothing was to be repeated")


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize(
    ("site", "address"),
    [
        (Site("live"), "https://mturk-requester.us-east-1.amazonaws.com"),
        (Site("sandbox"), "https://mturk-requester-sandbox.us-east-1.amazonaws.com"),
        (Site("rehearsal", "http://127.0.0.1:9/"), "http://127.0.0.1:9"),
    ],
)
def test_it_speaks_with_the_place_that_the_mode_names(
    site: Site, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_MTURK", "https://elsewhere.example")
    client = TurkWire(Account(site, key_id="k", secret="s"), no_wait, float).client
    assert client.meta.endpoint_url == address
    assert client.meta.region_name == "us-east-1"


def test_it_says_that_keys_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with script(reply()) as server:
        wire = TurkWire(Account(Site("rehearsal", server.url)), no_wait, float)
        with pytest.raises(PlatformError, match="AWS_ACCESS_KEY_ID") as error:
            wire.call("GetAccountBalance")
    assert error.value.permanent
    assert server.asked == []


def test_it_follows_no_token_twice() -> None:
    """Else a list that names itself would be read for ever."""
    page = reply(NumResults=1, HITs=[{"HITId": "3A"}], NextToken="same")
    with script(page) as server, pytest.raises(TurkError, match="names a page twice") as error:
        list(server.wire.pages("ListHITs", "HITs"))
    assert len(server.asked) == 2
    assert (error.value.permanent, error.value.uncertain) == (False, False)


def test_it_reads_no_list_without_end() -> None:
    """Neither by ever new tokens, nor past its time."""
    numbers = itertools.count()

    def page(members: dict[str, Any]) -> Answer:
        return reply(NumResults=1, HITs=[{"HITId": "3A"}], NextToken=f"token-{next(numbers)}")

    seconds = itertools.count(0.0, 50.0)
    with script(page) as server:
        wire = TurkWire(account(server.url), no_wait, lambda: float(next(seconds)))
        with pytest.raises(TurkError, match="took over 600 seconds"):
            list(wire.pages("ListHITs", "HITs"))
        assert len(server.asked) < 20


def test_it_says_an_error_in_a_form_that_can_be_stored() -> None:
    with script(refusal("Broken", "No\u0000 \ud800money")) as server, pytest.raises(TurkError) as error:
        server.wire.call("GetAccountBalance")
    assert str(error.value).isprintable()
    assert "No? ?money" in str(error.value)


def test_it_takes_half_an_answer_for_none() -> None:
    """boto3 shows it as an answer without members, which would be an empty list."""
    whole = reply(NumResults=1, HITs=[{"HITId": "3A"}])
    half = Answer(200, whole.body[:20], whole.headers)
    with script(half, whole) as server:
        assert list(server.wire.pages("ListHITs", "HITs")) == [{"HITId": "3A"}]
    assert server.waited_s == [1]


@pytest.mark.parametrize(("play", "uncertain"), [(FAULT, True), (LOST, True), (bare("Throttling"), False)])
def test_it_sends_a_bonus_once_for_every_answer(play: Play, uncertain: bool) -> None:
    with script(play) as server:
        with pytest.raises(PlatformError) as error:
            server.wire.call("SendBonus", **BONUS)
        assert (error.value.permanent, error.value.uncertain) == (False, uncertain)
    assert [name for name, _ in server.asked] == ["SendBonus"]
    assert server.waited_s == []


def test_it_sends_a_message_once_for_every_answer() -> None:
    with script(FAULT) as server, pytest.raises(PlatformError):
        server.wire.call("NotifyWorkers", Subject="S", MessageText="T", WorkerIds=["A1WORKER"])
    assert len(server.asked) == 1


def test_it_is_certain_that_a_bonus_was_not_sent_if_no_server_listens() -> None:
    wire = TurkWire(account(f"http://127.0.0.1:{closed_port()}"), no_wait, float)
    with pytest.raises(PlatformError, match="cannot be reached") as error:
        wire.call("SendBonus", **BONUS)
    assert (error.value.permanent, error.value.uncertain) == (False, False)


@pytest.mark.parametrize("play", [FAULT, LOST, bare("ThrottlingException"), bare("Slow", status=429)])
def test_it_reads_again_after_a_failure_that_may_pass(play: Play) -> None:
    with script(play, play, reply(AvailableBalance="10000.00")) as server:
        assert server.wire.call("GetAccountBalance")["AvailableBalance"] == "10000.00"
    assert len(server.asked) == 3
    assert server.waited_s == [1.0, 2.0]


@pytest.mark.parametrize("play", [FAULT, LOST, bare("Throttling")])
def test_it_gives_up_reading_in_the_end_and_nothing_can_have_happened(play: Play) -> None:
    with script(play) as server:
        with pytest.raises(PlatformError) as error:
            server.wire.call("GetAccountBalance")
        assert (error.value.permanent, error.value.uncertain) == (False, False)
    assert len(server.asked) == 5
    assert server.waited_s == [1.0, 2.0, 4.0, 8.0]


def test_it_repeats_a_creation_with_the_same_token() -> None:
    with script(FAULT, LOST, refusal("HitAlreadyExists")) as server:
        with pytest.raises(TurkError) as error:
            server.wire.call("CreateHITWithHITType", **HIT, UniqueRequestToken="mine-0")
        assert error.value.code == "hitalreadyexists"
    assert {members["UniqueRequestToken"] for _, members in server.asked} == {"mine-0"}


def test_it_is_uncertain_of_a_creation_that_never_got_an_answer() -> None:
    with script(FAULT) as server, pytest.raises(PlatformError) as error:
        server.wire.call("CreateHITWithHITType", **HIT)
    assert (error.value.permanent, error.value.uncertain) == (False, True)


@pytest.mark.parametrize(
    "play",
    [refusal("InsufficientFunds"), refusal("SomethingNew"), bare("AccessDeniedException"),
     bare("UnrecognizedClientException", status=403)],
)  # fmt: skip
def test_it_repeats_no_refusal(play: Play) -> None:
    with script(play) as server:
        with pytest.raises(TurkError) as error:
            server.wire.call("GetAccountBalance")
        assert (error.value.permanent, error.value.uncertain) == (True, False)
    assert len(server.asked) == 1


def test_it_hides_who_people_are() -> None:
    text = "Worker A1WORKER did 3ASSIGNMENT; A2SOMEBODYELSE did not. (1767607200000)"
    with script(refusal("PermissionDeniedException", text)) as server, pytest.raises(TurkError) as error:
        server.wire.call("SendBonus", **BONUS)
    shown = str(error.value)
    assert "PermissionDenied" in shown
    assert not any(name in shown for name in ("A1WORKER", "3ASSIGNMENT", "A2SOMEBODYELSE"))
    assert error.value.full == text


def test_it_does_not_break_on_an_answer_that_is_no_json() -> None:
    with script(Answer(502, b"<html>Bad gateway</html>", {"Content-Type": "text/html"})) as server:
        with pytest.raises(PlatformError) as error:
            server.wire.call("SendBonus", **BONUS)
        assert (error.value.permanent, error.value.uncertain) == (False, True)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("SendBonus", {**BONUS, "UniqueRequestToken": "x" * 65}, "Token has 65 characters; at most 64"),
    ("SendBonus", {**BONUS, "WorkerId": "B1"}, "WorkerId"),
    ("SendBonus", {**BONUS, "WorkerId": "A1<b>"}, "WorkerId"),
    ("SendBonus", {**BONUS, "WorkerId": "A1WORKER\n"}, "WorkerId"),
    ("SendBonus", {**BONUS, "BonusAmount": "$1"}, "BonusAmount"),
    ("SendBonus", {**BONUS, "BonusAmount": "1.005"}, "BonusAmount"),
    ("SendBonus", {**BONUS, "BonusAmount": 1.0}, "BonusAmount"),
    ("SendBonus", {**BONUS, "Surprise": "1"}, "Surprise"),
    ("ListHITs", {"MaxResults": 101}, "MaxResults is 101; at most 100"),
    ("ListAssignmentsForHIT", {"HITId": "3A", "AssignmentStatuses": ["Lost"]}, "choose one of Submitted"),
    ("NotifyWorkers", {"Subject": "S", "MessageText": "T", "WorkerIds": ["A1", "b"]}, r"WorkerIds\[1\]"),
    (
        "CreateHITType",
        {"AssignmentDurationInSeconds": 60, "Reward": "0.10", "Title": "T", "Description": "D",
         "QualificationRequirements": [{"QualificationTypeId": "3A", "Comparator": "About"}]},
        r"QualificationRequirements\[0\].Comparator",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "members", "said"), WRONG)
def test_it_refuses_what_the_service_model_forbids(
    operation: str, members: dict[str, Any], said: str
) -> None:
    with script(reply()) as server:
        with pytest.raises(PlatformError, match=said) as error:
            server.wire.call(operation, **members)
        assert (error.value.permanent, error.value.uncertain) == (True, False)
    assert server.asked == []


def test_it_does_not_show_the_person_that_it_refuses() -> None:
    with script(reply()) as server, pytest.raises(PlatformError) as error:
        server.wire.call("SendBonus", **{**BONUS, "WorkerId": 12345678})
    assert "12345678" not in str(error.value)


def test_it_reads_all_pages() -> None:
    """The last page that holds something carries a token, as on the real service."""

    def page(members: dict[str, Any]) -> Any:
        start = int(members.get("NextToken", "0"))
        hits = [{"HITId": f"3{number}"} for number in range(start, min(start + 100, 200))]
        return reply(HITs=hits, NumResults=len(hits), NextToken=str(start + 100))

    with script(page) as server:
        assert [hit["HITId"] for hit in server.wire.pages("ListHITs", "HITs")] == [
            f"3{n}" for n in range(200)
        ]
    assert len(server.asked) == 3
