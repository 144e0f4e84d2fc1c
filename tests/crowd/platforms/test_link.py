"""A plain link: arrivals by the panel's own parameter names, and the way back."""

from __future__ import annotations

from typing import Any

import pytest

from crowd.platforms.base import BadOptions, NotAnArrival, Site
from crowd.platforms.link import Link

pytestmark = pytest.mark.pure
LIVE = Site("live")
CODES = {"complete": "C0MPLETE", "screened": "SCREEN"}
EXITS = {
    "complete": "https://panel.example/done?code={code}&who={person}",
    "screened": "https://panel.example/out",
    "withdrawn": "https://panel.example/out?code={code}",
}
OPTIONS: dict[str, Any] = {
    "panel": "students",
    "person_field": "survey_code",
    "submission_field": "visit",
    "exits": EXITS,
}


def test_it_reads_the_panel_s_own_names() -> None:
    entry = Link(Link({}).check_options(OPTIONS))
    arrival = entry.arrival("via=k&survey_code=a%26b&visit=v1", LIVE)
    assert (arrival.person, arrival.submission, arrival.realm) == ("a&b", "v1", "students")
    assert entry.arrival("survey_code=ada", LIVE).submission == "ada"
    with pytest.raises(NotAnArrival, match="survey_code"):
        entry.arrival("person=ada", LIVE)
    with pytest.raises(NotAnArrival):
        entry.arrival("survey_code=" + "x" * 201, LIVE)


def test_it_leaves_by_the_panel_s_address() -> None:
    entry = Link(OPTIONS)
    arrival = entry.arrival("survey_code=a%26b%2F%3Cx%3E&visit=v1", LIVE)
    way = entry.exit("complete", CODES, arrival, LIVE, OPTIONS)
    assert (way.method, way.url) == ("GET", "https://panel.example/done?code=C0MPLETE&who=a%26b%2F%3Cx%3E")
    assert entry.exit("screened", CODES, None, LIVE, OPTIONS).url == "https://panel.example/out"


def test_it_shows_the_code_where_no_address_can_be_made() -> None:
    entry = Link(OPTIONS)
    unknown = entry.exit("complete", CODES, None, LIVE, OPTIONS)
    assert (unknown.method, dict(unknown.fields)) == ("none", {"code": "C0MPLETE"})
    assert entry.exit("withdrawn", CODES, None, LIVE, OPTIONS).as_json() == {
        "method": "none",
        "url": "",
        "fields": {},
    }
    plain = Link({}).exit("complete", CODES, None, LIVE, {})
    assert (plain.method, dict(plain.fields)) == ("none", {"code": "C0MPLETE"})


@pytest.mark.parametrize(
    "address",
    [
        "http://panel.example/done",
        "javascript:alert(1)",
        "data:text/html,x",
        "//panel.example",
        "/done",
        "",
        7,
        "https://panel.example/<script>",
        'https://panel.example/"x',
        "https://panel.example/a b",
        "https://user:secret@panel.example/",
        "https://{code}.example/",
        "https://{person}/x",
        "https://panel.example/{token}",
        "https://panel.example/{code",
        "https://panel.example/{}",
        "https://panel.example/" + "x" * 500,
        "https://[::1/",
        "https:///x",
    ],
)
def test_it_leads_nowhere_but_to_a_plain_https_address(address: Any) -> None:
    with pytest.raises(BadOptions, match="exits.complete"):
        Link({}).check_options({"exits": {"complete": address}})
    assert Link({}).exit("complete", CODES, None, LIVE, {"exits": {"complete": address}}).method == "none"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"token": "x"}, "token"),
        ({"panel": "Students!"}, "panel"),
        ({"panel": 7}, "panel"),
        ({"person_field": "via"}, "person_field"),
        ({"submission_field": "a b"}, "submission_field"),
        ({"exits": ["https://panel.example/"]}, "exits"),
        ({"exits": {"bored": "https://panel.example/"}}, "bored"),
    ],
)
def test_it_names_what_is_wrong_in_the_study_s_table(options: Any, named: str) -> None:
    with pytest.raises(BadOptions, match=named):
        Link({}).check_options(options)


def test_it_fills_what_the_table_leaves_out() -> None:
    filled = {"panel": "link", "person_field": "person", "submission_field": "submission", "exits": {}}
    assert Link({}).check_options({}) == filled
    assert vars(Link({})) == vars(Link(filled))
    assert Link({}).ancestors(LIVE) == Link({}).form_targets(LIVE) == ()
