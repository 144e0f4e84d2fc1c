"""Arrivals from Mechanical Turk, and the way back."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from crowd.platforms import entry_of
from crowd.platforms.base import NotAnArrival, Outcome, Site
from crowd.platforms.mturk.arrival_and_exit import MTurkEntry

pytestmark = pytest.mark.pure

LIVE, SANDBOX = Site("live"), Site("sandbox")
REHEARSAL = Site("rehearsal", "http://127.0.0.1:8123/")
ENTRY = MTurkEntry({})
CODES: dict[str, str] = {"complete": "C", "failed_checks": "F", "screened": "S", "withdrawn": "W",
                             "declined": "D", "device": "V", "failure": "X"}  # fmt: skip


def query(**changes: str) -> str:
    fields = {
        "via": "k",
        "assignmentId": "3ASSIGNMENT",
        "hitId": "3HIT",
        "workerId": "A1WORKER",
        "turkSubmitTo": "https://www.mturk.com",
        **changes,
    }
    return urlencode({name: value for name, value in fields.items() if value})


def test_it_is_the_door_of_the_platform() -> None:
    assert isinstance(entry_of("mturk", {}), MTurkEntry)


def test_it_reads_who_comes() -> None:
    arrival = ENTRY.arrival(query(), LIVE)
    assert (arrival.person, arrival.submission, arrival.posting) == (
        "A1WORKER",
        "3ASSIGNMENT:A1WORKER",
        "3HIT",
    )
    assert (arrival.preview, arrival.return_to, arrival.simulated_kind) == (
        False,
        "https://www.mturk.com",
        "",
    )


@pytest.mark.parametrize("assignment", ["ASSIGNMENT_ID_NOT_AVAILABLE", ""])
@pytest.mark.parametrize(
    "gone", [{"workerId": "", "turkSubmitTo": ""}, {"turkSubmitTo": "https://evil.example"}, {}]
)
def test_it_knows_a_preview_by_its_assignment_alone(assignment: str, gone: dict[str, str]) -> None:
    arrival = ENTRY.arrival(query(assignmentId=assignment, **gone), LIVE)
    assert (arrival.preview, arrival.person, arrival.submission, arrival.return_to) == (True, "", "", "")
    assert ENTRY.exit("complete", CODES, arrival, LIVE, {}).method == "none"


@pytest.mark.parametrize(
    ("site", "address"),
    [
        (LIVE, "https://www.mturk.com"),
        (LIVE, "https://www.mturk.com/"),
        (SANDBOX, "https://workersandbox.mturk.com"),
        (REHEARSAL, "http://127.0.0.1:8123"),
        (REHEARSAL, "http://127.0.0.1:8123/"),
    ],
)
def test_it_returns_to_the_platform_alone(site: Site, address: str) -> None:
    arrival = ENTRY.arrival(query(turkSubmitTo=address), site)
    assert arrival.return_to == address.rstrip("/")
    assert ENTRY.form_targets(site) == (arrival.return_to,)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://evil.example",
        "http://www.mturk.com",
        "https://www.mturk.com.evil.example",
        "https://www.mturk.com@evil.example",
        "https://evil.example/https://www.mturk.com",
        "https://www.mturk.com:444",
        "https://www.mturk.com/somewhere",
        "https://www.mturk.com//",
        "https://www.mturk.com?x=1",
        "//www.mturk.com",
        "javascript:alert(1)",
        "https://workersandbox.mturk.com",
        "http://127.0.0.1:8123",
    ],
)
def test_it_refuses_every_other_place_to_return_to(address: str) -> None:
    with pytest.raises(NotAnArrival, match="turkSubmitTo"):
        ENTRY.arrival(query(turkSubmitTo=address), LIVE)


@pytest.mark.parametrize("mixed", [(SANDBOX, "https://www.mturk.com"), (REHEARSAL, "https://www.mturk.com")])
def test_it_tells_production_from_sandbox_and_rehearsal(mixed: tuple[Site, str]) -> None:
    with pytest.raises(NotAnArrival, match="turkSubmitTo"):
        ENTRY.arrival(query(turkSubmitTo=mixed[1]), mixed[0])


@pytest.mark.parametrize(
    "worker", ["", "<script>alert(1)</script>", "A1<b>", "a1worker", "B1", "A" * 70, "A1 2"]
)
def test_it_refuses_a_person_with_markup_or_none(worker: str) -> None:
    with pytest.raises(NotAnArrival, match="workerId") as error:
        ENTRY.arrival(query(workerId=worker), LIVE)
    assert "<" not in str(error.value)


@pytest.mark.parametrize("name", ["assignmentId", "hitId"])
@pytest.mark.parametrize("value", ["3<b>", "3a", "3" * 65, "../x"])
def test_it_refuses_other_ids_that_amazon_never_makes(name: str, value: str) -> None:
    with pytest.raises(NotAnArrival, match=name):
        ENTRY.arrival(query(**{name: value}), LIVE)


def test_it_takes_simulated_people_in_a_rehearsal_only() -> None:
    there = query(turkSubmitTo="http://127.0.0.1:8123", simulated="careless")
    assert ENTRY.arrival(there, REHEARSAL).simulated_kind == "careless"
    assert ENTRY.arrival(query(simulated="careless"), LIVE).simulated_kind == ""
    with pytest.raises(NotAnArrival, match="simulated"):
        ENTRY.arrival(query(turkSubmitTo="http://127.0.0.1:8123", simulated="<b>"), REHEARSAL)


@pytest.mark.parametrize("outcome", ["complete", "failed_checks", "screened", "withdrawn", "failure"])
def test_it_posts_the_code_of_the_outcome(outcome: Outcome) -> None:
    arrival = ENTRY.arrival(query(turkSubmitTo="https://www.mturk.com/"), LIVE)
    assert ENTRY.exit(outcome, CODES, arrival, LIVE, {}).as_json() == {
        "method": "POST",
        "url": "https://www.mturk.com/mturk/externalSubmit",
        "fields": {"assignmentId": "3ASSIGNMENT", "completion": CODES[outcome]},
    }


@pytest.mark.parametrize("outcome", ["declined", "device", "turned_away"])
def test_it_leads_nowhere_who_is_paid_nothing(outcome: Outcome) -> None:
    """declined and device have codes here, and still submit nothing; turned_away has none."""
    arrival = ENTRY.arrival(query(), LIVE)
    assert ENTRY.exit(outcome, CODES, arrival, LIVE, {}).method == "none"


def test_it_leads_nowhere_where_the_page_forgot_who_came() -> None:
    assert ENTRY.exit("complete", CODES, None, LIVE, {}).method == "none"


def test_it_is_framed_by_the_platform_alone() -> None:
    assert ENTRY.ancestors(LIVE) == ("https://worker.mturk.com", "https://requester.mturk.com")
    assert ENTRY.ancestors(SANDBOX) == (
        "https://workersandbox.mturk.com",
        "https://requestersandbox.mturk.com",
    )
    assert ENTRY.ancestors(REHEARSAL) == ("http://127.0.0.1:8123",)
