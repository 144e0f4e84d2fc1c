import math
from dataclasses import replace
from typing import Any

import pytest

from crowd.platforms.base import Account, BadOptions, PostingSpec, Site, UnsupportedRequest
from crowd.platforms.prolific.options import read_options
from crowd.platforms.prolific.specs import (
    check_spec,
    completion_codes,
    differences,
    filters,
    least_maximum,
    maximum_minutes,
    study_body,
)
from tests.crowd.platforms.prolific.prolific_spec import spec

pytestmark = pytest.mark.pure

ACCOUNT = Account(Site("live"), token="t", workspace="w", project="p")
OUTCOMES = {
    "complete": ("COMPLETED", "MANUALLY_REVIEW"),
    "failed_checks": ("FAILED_ATTENTION_CHECK", "MANUALLY_REVIEW"),
    "declined": ("NO_CONSENT", "REQUEST_RETURN"),
    "screened": ("SCREENED_OUT", "REQUEST_RETURN"),
    "device": ("INCOMPATIBLE_DEVICE", "REQUEST_RETURN"),
    "turned_away": ("OTHER", "REQUEST_RETURN"),
    "failure": ("OTHER", "REQUEST_RETURN"),
    "withdrawn": ("OTHER", "REQUEST_RETURN"),
}
DOCUMENTED_TYPES = {
    "COMPLETED", "FAILED_ATTENTION_CHECK", "FOLLOW_UP_STUDY", "GIVE_BONUS", "INCOMPATIBLE_DEVICE",
    "NO_CONSENT", "OTHER", "FIXED_SCREENOUT", "SCREENED_IN", "SCREENED_OUT",
}  # fmt: skip


def on_prolific(**changes: Any) -> PostingSpec:
    options = read_options(changes.pop("options", {}))
    return replace(spec(), **{"options": options, **changes})


@pytest.mark.parametrize(("estimate", "floor"), [(5, 16.5), (10, 28.3), (20, 50.9), (30, 73.0), (60, 137.5)])
def test_it_knows_the_least_maximum_time(estimate: float, floor: float) -> None:
    assert round(least_maximum(estimate), 1) == floor


@pytest.mark.parametrize(
    ("expected", "maximum", "sent"), [(5, 10, 17), (5, 60, 60), (60, 60, 138), (4.2, 0.5, 17), (10, 28.4, 29)]
)
def test_it_never_sends_less_than_the_least_maximum(expected: float, maximum: float, sent: int) -> None:
    assert maximum_minutes(on_prolific(expected_minutes=expected, maximum_minutes=maximum)) == sent


def test_it_takes_the_maximum_time_of_the_options_if_it_is_allowed() -> None:
    def with_maximum(minutes: int) -> PostingSpec:
        options = {"maximum_allowed_minutes": minutes}
        return on_prolific(expected_minutes=30, maximum_minutes=200, options=options)

    assert maximum_minutes(with_maximum(73)) == 73
    with pytest.raises(UnsupportedRequest, match="at least 73"):
        maximum_minutes(with_maximum(72))
    with pytest.raises(UnsupportedRequest, match="24 hours"):
        maximum_minutes(on_prolific(expected_minutes=900))


def test_it_gives_each_outcome_its_documented_code() -> None:
    codes = {code["code"]: code for code in completion_codes(on_prolific())}
    outcomes = {
        outcome: (codes[name]["code_type"], codes[name]["actions"][0]["action"])
        for outcome, name in spec().codes.items()
    }
    assert outcomes == OUTCOMES
    assert {code["code_type"] for code in codes.values()} <= DOCUMENTED_TYPES
    assert len(codes) == len(OUTCOMES)


def test_it_never_lets_a_code_approve_or_reject() -> None:
    actions = [
        action["action"] for code in completion_codes(on_prolific()) for action in code["actions"]
    ]  # fmt: skip
    assert "AUTOMATICALLY_APPROVE" not in actions


def test_it_lets_the_platform_pay_screened_people_where_it_can() -> None:
    options = {"fixed_screen_out": True, "screened_reserve_share": 0.25}
    codes = completion_codes(on_prolific(screened_cents=50, places=10, options=options))
    (code,) = [code for code in codes if code["code_type"] == "FIXED_SCREENOUT"]
    assert code["actions"] == [
        {"action": "FIXED_SCREEN_OUT_PAYMENT", "fixed_screen_out_reward": 50, "slots": math.ceil(2.5)}
    ]
    unpaid = completion_codes(on_prolific(screened_cents=0, options=options))
    assert "FIXED_SCREENOUT" not in {code["code_type"] for code in unpaid}


def test_it_sends_what_the_platform_documents() -> None:
    body = study_body(on_prolific(url="https://lab.example/join/x/?via=k"), ACCOUNT)
    assert body["external_study_url"] == (
        "https://lab.example/join/x/?via=k&PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}"
        "&SESSION_ID={{%SESSION_ID%}}"
    )
    assert body["prolific_id_option"] == "url_parameters"
    assert body["project"] == "p"
    assert body["internal_name"] == spec().reference
    assert isinstance(body["reward"], int)
    assert body["device_compatibility"] == ["desktop"]
    old = {"completion_code", "completion_option", "is_custom_screening", "eligibility_requirements"}
    assert not old & body.keys()
    assert not {"is_external_study_url_secure", "study_labels", "naivety_distribution_rate"} & body.keys()


def test_it_rounds_the_expected_time_up() -> None:
    assert study_body(on_prolific(expected_minutes=7.2), ACCOUNT)["estimated_completion_time"] == 8


def test_it_keeps_out_children_of_a_higher_age_and_earlier_people() -> None:
    chosen = filters(on_prolific(minimum_age=21, excluded=("b", "a")))
    assert chosen == [
        {"filter_id": "age", "selected_range": {"lower": 21, "upper": 100}},
        {"filter_id": "previous_studies_blocklist", "selected_values": ["a", "b"]},
    ]
    assert filters(on_prolific()) == []


def test_it_sends_the_options_that_were_chosen() -> None:
    options = {
        "project": "other",
        "filters": [{"filter_id": "handedness", "selected_values": ["1"]}],
        "device_compatibility": ["desktop", "tablet"],
        "study_labels": ["survey", "ai_annotation"],
        "signed_entry": True,
        "naivety_distribution_rate": 0,
        "peripheral_requirements": ["audio"],
    }
    body = study_body(on_prolific(options=options, content_warning="Hateful texts"), ACCOUNT)
    assert body["project"] == "other"
    assert body["filters"] == options["filters"]
    assert body["device_compatibility"] == ["desktop", "tablet"]
    assert body["study_labels"] == ["survey", "ai_annotation"]
    assert body["is_external_study_url_secure"] is True
    assert body["naivety_distribution_rate"] == 0
    assert body["peripheral_requirements"] == ["audio"]
    assert body["content_warnings"] == ["sensitive"]
    assert body["content_warning_details"] == "Hateful texts"


def test_it_fills_in_the_defaults_of_the_options() -> None:
    options = read_options({})
    assert options["device_compatibility"] == ["desktop"]
    assert options["screened_reserve_share"] == 0.2
    assert options["fixed_screen_out"] is options["signed_entry"] is False
    assert read_options(options) == options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device_compatability": ["desktop"]}, "Did you mean device_compatibility"),
        ({"colour": "red"}, "It has: project"),
        ({"device_compatibility": ["phone"]}, "device_compatibility"),
        ({"device_compatibility": []}, "device_compatibility"),
        ({"fixed_screen_out": "yes"}, "fixed_screen_out"),
        ({"screened_reserve_share": -1}, "screened_reserve_share"),
        ({"maximum_allowed_minutes": 1440}, "maximum_allowed_minutes"),
        ({"naivety_distribution_rate": 2}, "naivety_distribution_rate"),
        ({"study_labels": ["game"]}, "study_labels"),
        ({"project": 7}, "project"),
        ({"filters": [{"selected_values": ["1"]}]}, "filter_id"),
        ({"filters": [{"filter_id": "age"}]}, "needs one of"),
        ({"filters": [{"filter_id": "age", "selected_range": {"low": 1}}]}, "lower, upper"),
        ({"filters": [{"filter_id": "age", "selected_range": {"lower": 1}, "min": 2}]}, "'min'"),
        ({"filters": [{"filter_id": "sex", "selected_values": [1]}]}, "list of texts"),
        ({"filters": [{"filter_id": "xor", "selected_filters": [{}]}]}, '"and" or "or"'),
        ({"filters": [{"filter_id": "or", "selected_filters": ["a"]}]}, "must be a filter"),
    ],
)
def test_it_says_what_is_wrong_with_an_option(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOptions, match=words.replace("(", r"\(")):
        read_options(options)


def test_it_takes_composite_filters() -> None:
    inner = [{"filter_id": "a", "selected_values": ["1"]}, {"filter_id": "b", "selected_range": {"upper": 3}}]
    options = read_options({"filters": [{"filter_id": "or", "selected_filters": inner, "weightings": {}}]})
    assert options["filters"][0]["selected_filters"] == inner


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reward_cents": 0}, "reward of 0"),
        ({"places": 0}, "0 places"),
        ({"url": "http://lab.example/"}, "https"),
        ({"codes": {"declined": "A"}}, "no completion code"),
        ({"codes": {"complete": "A", "declined": "A"}}, "share a completion code"),
        ({"options": {"fixed_screen_out": True}, "screened_cents": 300}, "below the reward"),
        ({"expected_minutes": 1000}, "24 hours"),
    ],
)
def test_it_refuses_what_the_platform_cannot_express(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedRequest, match=words):
        check_spec(on_prolific(**changes), ACCOUNT)


def test_it_says_which_setting_is_missing() -> None:
    with pytest.raises(UnsupportedRequest, match="PROLIFIC_WORKSPACE"):
        check_spec(on_prolific(), replace(ACCOUNT, workspace=""))
    with pytest.raises(UnsupportedRequest, match="PROLIFIC_PROJECT"):
        check_spec(on_prolific(), replace(ACCOUNT, project=""))
    check_spec(on_prolific(options={"project": "own"}), replace(ACCOUNT, project=""))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reward", 301),
        ("reward", None),
        ("total_available_places", 4),
        ("external_study_url", "https://lab.example/other"),
        ("completion_codes", []),
        ("completion_codes", None),
        ("filters", []),
        ("maximum_allowed_time", 16),
    ],
)
def test_it_sees_what_the_platform_has_otherwise(name: str, value: object) -> None:
    body = study_body(on_prolific(excluded=("a",)), ACCOUNT)
    assert not list(differences(body, body))
    (difference,) = differences(body, {**body, name: value})
    assert difference.startswith(name)


def test_it_sees_a_code_that_would_pay_at_once() -> None:
    body = study_body(on_prolific(), ACCOUNT)
    codes = [{**code, "actions": [{"action": "AUTOMATICALLY_APPROVE"}]} for code in body["completion_codes"]]
    assert list(differences(body, {**body, "completion_codes": codes}))


def test_it_overlooks_what_the_platform_adds_or_reorders() -> None:
    body = study_body(on_prolific(excluded=("a", "b")), ACCOUNT)
    encoded = body["external_study_url"].replace("{{%", "%7B%7B%25").replace("%}}", "%25%7D%7D")
    read = {
        **body,
        "completion_codes": [{**code, "id": "x"} for code in reversed(body["completion_codes"])],
        "filters": [{**row, "title": "t", "selected_values": ["b", "a"]} for row in body["filters"]],
        "external_study_url": encoded,
        "id": "x",
    }  # fmt: skip
    assert not list(differences(body, read))
