"""The parts of the Mechanical Turk adapter that need no network: fees, documents, options, terms."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any
from xml.dom import minidom

import pytest

from crowd.platforms.base import BadOptions, PostingSpec, Site, UnsupportedRequest
from crowd.platforms.mturk.fees import TurkRates, base_cents, cents_of, dollars, fee_cents
from crowd.platforms.mturk.hits import token
from crowd.platforms.mturk.offer_terms import quote_terms, sizes, terms_of
from crowd.platforms.mturk.options import check_options, requirements
from crowd.platforms.mturk.question_xml import BadAnswer, completion_of, external_question, fields_of_answer

pytestmark = pytest.mark.pure

LIVE = Site("live")
SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
SPEC = PostingSpec(
    reference="wolf-1",
    title="Can you predict the machine?",
    description="Look at pictures.",
    url="https://lab.example/join/wolf/?via=1&x=2",
    places=20,
    reward_cents=140,
    currency="USD",
    expected_minutes=7,
    maximum_minutes=28,
    codes={"complete": "C1"},
    screened_cents=140,
    turned_away_cents=0,
    withdrawn="full",
    bonus_max_cents=60,
)


# Fees: 20 % of every payment; 20 % more of a reward from ten assignments on; 5 % for Masters; 1 cent at least


@pytest.mark.parametrize(
    ("cents", "places", "masters", "fee"),
    [
        (140, 1, False, 28),
        (140, 9, False, 28),
        (140, 10, False, 56),
        (140, 9, True, 35),
        (140, 10, True, 63),
        (1, 1, False, 1),
        (2, 1, False, 1),
        (7, 1, False, 1),
        (8, 1, False, 2),
        (12, 1, False, 2),
        (13, 1, False, 3),
        (50, 9, True, 13),
    ],
)
def test_it_knows_the_fees(cents: int, places: int, masters: bool, fee: int) -> None:
    assert fee_cents(cents, TurkRates(), places=places, masters=masters) == fee


def test_it_rounds_half_a_cent_up() -> None:
    assert fee_cents(10, TurkRates(every=Decimal("0.25"))) == 3  # 2.5 cents


@pytest.mark.parametrize(("cents", "text"), [(0, "0.00"), (5, "0.05"), (140, "1.40"), (123456, "1234.56")])
def test_it_writes_and_reads_dollars(cents: int, text: str) -> None:
    assert dollars(cents) == text
    assert cents_of(text) == cents


def test_it_refuses_a_fraction_of_a_cent() -> None:
    with pytest.raises(ValueError, match="whole number"):
        cents_of("1.005")


@pytest.mark.parametrize(
    ("reward", "share", "base"), [(140, 1.0, 140), (140, 0.25, 35), (140, 0, 1), (150, 0.25, 38), (0, 1.0, 0)]
)
def test_it_knows_the_reward_of_a_hit(reward: int, share: float, base: int) -> None:
    assert base_cents(reward, share) == base


# Documents


def test_it_writes_the_question_that_the_schema_wants() -> None:
    text = external_question("https://lab.example/join/?a=1&b=<2>", 0)
    root = minidom.parseString(text).documentElement
    assert root is not None
    assert root.tagName == "ExternalQuestion"
    assert root.namespaceURI == f"{SCHEMAS}/2006-07-14/ExternalQuestion.xsd"
    assert [child.nodeName for child in root.childNodes] == ["ExternalURL", "FrameHeight"]
    assert [child.firstChild.nodeValue for child in root.childNodes if child.firstChild] == [
        "https://lab.example/join/?a=1&b=<2>",
        "0",
    ]


def test_it_shows_no_page_that_amazon_would_not_frame() -> None:
    with pytest.raises(UnsupportedRequest, match="https"):
        external_question("http://lab.example/join/", 0)
    assert "http://127.0.0.1" in external_question("http://127.0.0.1:8000/join/", 0, rehearsed=True)


def test_it_measures_the_question_in_bytes() -> None:
    with pytest.raises(UnsupportedRequest, match="65535"):
        external_question("https://lab.example/" + "ä" * 33_000, 0)


def answer(*fields: tuple[str, str]) -> str:
    inner = "".join(
        f"<Answer><QuestionIdentifier>{name}</QuestionIdentifier><FreeText>{text}</FreeText></Answer>"
        for name, text in fields
    )
    space = f"{SCHEMAS}/2005-10-01/QuestionFormAnswers.xsd"
    root = f'<QuestionFormAnswers xmlns="{space}">{inner}</QuestionFormAnswers>'
    return f'<?xml version="1.0" encoding="ASCII"?>{root}'


def test_it_reads_the_completion_code() -> None:
    assert completion_of(answer(("other", "1"), ("completion", " CODE1 "))) == "CODE1"
    assert fields_of_answer(answer(("completion", "A"), ("completion", "B")))["completion"] == "A"


BOMB = """<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "aaaaaaaaaa"><!ENTITY y "&x;&x;&x;&x;">]>
<QuestionFormAnswers><Answer><QuestionIdentifier>completion</QuestionIdentifier><FreeText>&y;</FreeText></Answer>
</QuestionFormAnswers>"""
THIEF = """<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><QuestionFormAnswers><Answer>
<QuestionIdentifier>completion</QuestionIdentifier><FreeText>&x;</FreeText></Answer></QuestionFormAnswers>"""


@pytest.mark.parametrize(
    "text",
    [BOMB, THIEF, BOMB.lower(), "", "<QuestionFormAnswers>", "no xml", "<a>" * 60_000, "<a>&undefined;</a>"],
    ids=["bomb", "thief", "small letters", "empty", "cut", "text", "deep", "entity"],
)
def test_it_refuses_what_strangers_may_send(text: str) -> None:
    with pytest.raises(BadAnswer):
        fields_of_answer(text)
    assert completion_of(text) == ""


@pytest.mark.parametrize("code", ["", "x" * 65, "a&#10;b"])
def test_it_takes_no_code_that_cannot_be_ours(code: str) -> None:
    assert completion_of(answer(("completion", code))) == ""


def test_it_survives_deep_nesting() -> None:
    assert completion_of("<a>" * 18_000 + "</a>" * 18_000) == ""


# Options


def test_it_fills_the_defaults() -> None:
    assert check_options({}) == {
        "batch": "nine", "base_share": 1.0, "qualifications": [], "keywords": [], "lifetime_days": 30,
        "auto_approval_days": 14, "frame_height": 0, "masters": False, "adult": False, "fee_share": 0.2,
        "fee_share_many": 0.2, "fee_share_masters": 0.05,
    }  # fmt: skip


def test_it_may_check_options_again() -> None:
    once = check_options({"batch": "one", "keywords": ["a"], "qualifications": [
        {"type": "locale", "comparator": "In", "values": ["US", "GB"]}]})  # fmt: skip
    assert check_options(once) == once


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"batches": "nine"}, "batches: unknown"),
    ({"batch": "ten"}, "batch = 'ten'"),
    ({"base_share": 1.5}, "base_share"),
    ({"base_share": True}, "base_share"),
    ({"lifetime_days": 0}, "from 1 to 365"),
    ({"lifetime_days": 366}, "from 1 to 365"),
    ({"auto_approval_days": 31}, "from 1 to 30"),
    ({"frame_height": -1}, "frame_height"),
    ({"masters": "yes"}, "true or false"),
    ({"keywords": "vision"}, "list of words"),
    ({"keywords": ["a, b"]}, "one by one"),
    ({"keywords": ["x" * 600, "y" * 600]}, "at most 1000"),
    ({"qualifications": {"type": "adult"}}, "list of tables"),
    ({"qualifications": [{"type": "adult", "comparator": "EqualTo", "value": 1}]}, "value"),
    ({"qualifications": [{"type": "unknown kind", "comparator": "Exists"}]}, "type"),
    ({"qualifications": [{"type": "hits_approved", "comparator": "AtLeast", "values": [1]}]}, "comparator"),
    ({"qualifications": [{"type": "hits_approved", "comparator": "GreaterThan"}]}, "takes one value"),
    ({"qualifications": [{"type": "hits_approved", "comparator": "EqualTo", "values": [1, 2]}]}, "one value"),
    ({"qualifications": [{"type": "hits_approved", "comparator": "EqualTo", "values": ["1"]}]}, "whole"),
    ({"qualifications": [{"type": "hits_approved", "comparator": "In", "values": [1] * 16}]}, "1 to 15"),
    ({"qualifications": [{"type": "ABC", "comparator": "Exists", "values": [1]}]}, "takes no values"),
    ({"qualifications": [{"type": "locale", "comparator": "GreaterThan", "values": ["US"]}]}, "locale"),
    ({"qualifications": [{"type": "locale", "comparator": "In", "values": ["USA"]}]}, "countries"),
    ({"qualifications": [{"type": "locale", "comparator": "In", "values": ["US"] * 31}]}, "1 to 30"),
    ({"qualifications": [{"type": "masters", "comparator": "EqualTo", "values": [1]}]}, "masters"),
    ({"qualifications": [{"type": "ABC", "comparator": "Exists", "guards": "See"}]}, "guards"),
    ({"qualifications": [{"type": "ABC", "comparator": "Exists"}] * 9, "adult": True}, "at most 9"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), WRONG, ids=lambda value: str(value)[:40])
def test_it_refuses_options_with_a_remedy(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadOptions, match=said):
        check_options(options)


def test_it_writes_requirements_as_amazon_wants_them() -> None:
    options = check_options(
        {
            "qualifications": [
                {"type": "percent_approved", "comparator": "GreaterThanOrEqualTo", "values": [95]},
                {"type": "locale", "comparator": "In", "values": ["US", "GB-LND"]},
            ],
            "masters": True,
            "adult": True,
        }
    )
    assert requirements(options, "live") == [
        {"QualificationTypeId": "000000000000000000L0", "Comparator": "GreaterThanOrEqualTo",
         "ActionsGuarded": "Accept", "IntegerValues": [95]},
        {"QualificationTypeId": "00000000000000000071", "Comparator": "In", "ActionsGuarded": "Accept",
         "LocaleValues": [{"Country": "US"}, {"Country": "GB", "Subdivision": "LND"}]},
        {"QualificationTypeId": "2F1QJWKUDD8XADTFD2Q0G6UTO95ALH", "Comparator": "Exists",
         "ActionsGuarded": "Accept"},
        {"QualificationTypeId": "00000000000000000060", "Comparator": "EqualTo", "ActionsGuarded": "Accept",
         "IntegerValues": [1]},
    ]  # fmt: skip
    sandbox = requirements(options, "sandbox")
    assert sandbox[2]["QualificationTypeId"] == "2ARFPLSP75KLA8M8DH1HTEQVJT3SY6"


# Terms


@pytest.mark.parametrize(
    ("places", "batch", "expected"), [(1, "nine", [1]), (9, "nine", [9]), (10, "nine", [9, 1]),
                                   (40, "nine", [9, 9, 9, 9, 4]), (40, "one", [40])]
)  # fmt: skip
def test_it_splits_places_into_hits(places: int, batch: str, expected: list[int]) -> None:
    assert sizes(places, batch) == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"currency": "GBP"}, "GBP"),
        ({"reference": "a_b"}, "reference"),
        ({"reference": "x" * 61}, "reference"),
        ({"title": "x" * 129}, "129 characters"),
        ({"description": ""}, "0 characters"),
        ({"description": "x" * 1990, "content_warning": "Blood."}, "characters"),
        ({"minimum_age": 21}, "minimum_age = 21"),
        ({"places": 0}, "at least one place"),
        ({"reward_cents": 0, "screened_cents": 0}, "reward is 0"),
        ({"maximum_minutes": 0.1}, "half a minute"),
        ({"url": "http://lab.example/"}, "https"),
        ({"screened_cents": 70}, "screened_share comes to 70 cents.*0.50 or less"),
        ({"turned_away_cents": 35}, "turned_away_share comes to 35 cents"),
        ({"withdrawn": "pro_rata"}, "pro_rata"),
        ({"excluded": tuple(f"3Q{n}" for n in range(10))}, "11 qualification requirements"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_it_refuses_loudly_what_cannot_be_expressed(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UnsupportedRequest, match=said):
        terms_of(replace(SPEC, **change), LIVE)


@pytest.mark.parametrize(
    "change",
    [
        {"screened_cents": 0, "withdrawn": "none"},
        {"turned_away_cents": 35, "options": {"base_share": 0.25}},
        {"withdrawn": "pro_rata", "options": {"base_share": 0.0}},
    ],
)
def test_it_accepts_what_can_be_expressed(change: dict[str, Any]) -> None:
    assert terms_of(replace(SPEC, **change), LIVE).base_cents >= 1


def test_it_warns_in_the_description_and_keeps_everybody_out_who_took_part() -> None:
    spec = replace(SPEC, content_warning="Pictures of blood.", excluded=("3OLD",))
    members = terms_of(spec, LIVE).hit_type("3OWN")
    assert members["Description"].startswith("Content warning: Pictures of blood.")
    requirements = members["QualificationRequirements"]
    assert [requirement["QualificationTypeId"] for requirement in requirements] == ["3OWN", "3OLD"]
    assert {requirement["Comparator"] for requirement in requirements} == {"DoesNotExist"}
    assert (members["Reward"], members["AssignmentDurationInSeconds"]) == ("1.40", 28 * 60)


def test_it_quotes_the_most_that_an_offer_can_cost() -> None:
    # 20 people: 1.40 each, bonus 0.60 each, fee 0.28 on every reward (HITs of nine), 0.12 on every bonus.
    quote = quote_terms(terms_of(SPEC, LIVE), 1_000_000)
    assert quote.total_cents == 20 * (140 + 60 + 28 + 12)
    assert (quote.currency, quote.balance_cents) == ("USD", 1_000_000)
    # One HIT of twenty: 0.56 on every reward.
    quote = quote_terms(terms_of(replace(SPEC, options={"batch": "one"}), LIVE), None)
    assert quote.total_cents == 20 * (140 + 60 + 56 + 12)
    assert any("higher fee" in note for note in quote.notes)


def test_it_quotes_bonuses_that_are_sent_apart() -> None:
    # 0.35 as the HIT's reward (fee 0.07); 1.05 and 0.63 as bonuses: 0.21 + 0.13 apart, 0.34 together.
    quote = quote_terms(
        terms_of(replace(SPEC, bonus_max_cents=63, options={"base_share": 0.25}), LIVE), None
    )  # fmt: skip
    assert quote.total_cents == 20 * (35 + 7 + 105 + 63 + 34)


def test_it_quotes_the_lowest_fee_of_each_small_bonus() -> None:
    # A reward of 0.10 as 0.08 (fee 0.02) and 0.02; a bonus of 0.02: a cent of fee each, or one of both.
    small = replace(
        SPEC, reward_cents=10, screened_cents=10, bonus_max_cents=2, options={"base_share": 0.8}
    )  # fmt: skip
    assert quote_terms(terms_of(small, LIVE), None).total_cents == 20 * (8 + 2 + 2 + 2 + 2)


def test_it_makes_tokens_that_fit_and_differ() -> None:
    assert token("bonus", "abc") == "bonus-abc"
    long = [token("r" * 60, index, "to", 9) for index in range(3)]
    assert len(set(long)) == 3
    assert all(len(token) <= 64 for token in long)
    assert long == [token("r" * 60, index, "to", 9) for index in range(3)]
