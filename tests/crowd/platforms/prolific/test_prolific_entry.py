from urllib.parse import quote

import pytest

from crowd.platforms import entry_of
from crowd.platforms.base import Arrival, Exit, NotAnArrival, Site
from crowd.platforms.prolific.arrival_and_exit import ProlificEntry

pytestmark = pytest.mark.pure

ENTRY = ProlificEntry({})
LIVE, REHEARSAL = Site("live"), Site("rehearsal", "http://127.0.0.1:9000/")
PID, STUDY, SESSION = "60bf9310e8dec401be6e9615", "6394cee383e14a167638b300", "65a1b2c3d4e5f60718293a4b"
QUERY = f"?via=abc&PROLIFIC_PID={PID}&STUDY_ID={STUDY}&SESSION_ID={SESSION}"


def test_it_reads_who_comes() -> None:
    assert ENTRY.arrival(QUERY, LIVE) == Arrival(person=PID, submission=SESSION, posting=STUDY)


def test_it_stands_in_the_table_of_platforms() -> None:
    assert entry_of("prolific", {}).name == "prolific"


def test_it_keeps_the_signed_token() -> None:
    token = "e" * 3000
    assert ENTRY.arrival(f"{QUERY}&prolific_token={token}", LIVE).signature == token


def test_it_takes_a_simulated_kind_in_a_rehearsal_only() -> None:
    assert ENTRY.arrival(f"{QUERY}&simulated=learner", REHEARSAL).simulated_kind == "learner"
    assert ENTRY.arrival(f"{QUERY}&simulated=learner", LIVE).simulated_kind == ""
    with pytest.raises(NotAnArrival):
        ENTRY.arrival(f"{QUERY}&simulated=<b>", REHEARSAL)


@pytest.mark.parametrize("name", ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"])
@pytest.mark.parametrize("is_quoted", [True, False])
def test_it_takes_an_unfilled_placeholder_for_a_preview(name: str, is_quoted: bool) -> None:
    placeholder = "{{%" + name + "%}}"
    values = {"PROLIFIC_PID": PID, "STUDY_ID": STUDY, "SESSION_ID": SESSION}
    values[name] = quote(placeholder) if is_quoted else placeholder
    arrival = ENTRY.arrival("&".join(f"{key}={value}" for key, value in values.items()), LIVE)
    assert arrival.preview
    assert PID not in (arrival.person, arrival.submission)


@pytest.mark.parametrize("name", ["PROLIFIC_PID", "STUDY_ID", "SESSION_ID"])
def test_it_says_what_is_missing(name: str) -> None:
    with pytest.raises(NotAnArrival, match=name):
        ENTRY.arrival(QUERY.replace(f"{name}=", "other="), LIVE)


@pytest.mark.parametrize("value", ["<script>alert(1)</script>", "a b", "a/b", "x" * 65, "ä", "%00", "a%0Ab"])
def test_it_refuses_what_has_no_form_of_an_id(value: str) -> None:
    with pytest.raises(NotAnArrival) as caught:
        ENTRY.arrival(QUERY.replace(PID, value), LIVE)
    assert "<script>" not in str(caught.value)


def test_it_sends_people_back_with_the_code_of_their_outcome() -> None:
    codes = {"complete": "C1ABC", "declined": "N0&x=1"}
    exits = {o: ENTRY.exit(o, codes, None, LIVE, {}) for o in ("complete", "declined", "screened")}
    assert exits == {
        "complete": Exit("GET", "https://app.prolific.com/submissions/complete?cc=C1ABC"),
        "declined": Exit("GET", "https://app.prolific.com/submissions/complete?cc=N0%26x%3D1"),
        "screened": Exit("none"),
    }


def test_it_sends_simulated_people_back_to_the_simulator() -> None:
    way = ENTRY.exit("complete", {"complete": "A"}, None, REHEARSAL, {})
    assert way.url == "http://127.0.0.1:9000/submissions/complete?cc=A"


def test_no_site_may_frame_it() -> None:
    assert ENTRY.ancestors(LIVE) == ENTRY.form_targets(LIVE) == ()
