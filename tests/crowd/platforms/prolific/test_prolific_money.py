import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowd.platforms.base import (
    Account,
    BonusStatement,
    Line,
    Payment,
    PlatformError,
    PlatformPosting,
    PreparedPayments,
    Site,
    Unread,
    UnsupportedRequest,
)
from crowd.platforms.prolific.bonuses import ProlificBonuses, as_lines
from crowd.platforms.prolific.money import balance, major, whole
from crowd.rehearsal.serving import Answer, serving
from tests.crowd.platforms.prolific.prolific_script import Line as Play
from tests.crowd.platforms.prolific.prolific_script import Script, closed_address, said, wired

pytestmark = pytest.mark.pure

ACCOUNT = Account(Site("rehearsal", "http://unused"), workspace="w", project="p")
STUDY = "6394cee383e14a167638b300"
POSTED = PlatformPosting(STUDY, "open", "ACTIVE", 5, 5, {"currency": "GBP"})
BALANCE = said({"currency_code": "GBP", "available_balance": 1})


def payment(cents: int, number: int = 0) -> Payment:
    return Payment(f"r{number}", f"{number:024x}", f"p{number}", cents, "bonus")


@given(st.lists(st.integers(min_value=1, max_value=10**9), min_size=1, max_size=200))
def test_it_writes_amounts_that_read_back_to_the_cent(amounts: list[int]) -> None:
    lines = as_lines([payment(cents, number) for number, cents in enumerate(amounts)]).split("\n")
    read = [line.split(",") for line in lines]
    assert [Fraction(amount) * 100 for _, amount in read] == amounts
    assert [int(person, 16) for person, _ in read] == list(range(len(amounts)))
    assert all("." in amount and len(amount.split(".")[1]) == 2 for _, amount in read)


@pytest.mark.parametrize(
    ("cents", "text"), [(1, "0.01"), (10, "0.10"), (30, "0.30"), (100, "1.00"), (150, "1.50"), (425, "4.25"),
                        (3000, "30.00"), (123_456_789, "1234567.89")]
)  # fmt: skip
def test_it_writes_major_units(cents: int, text: str) -> None:
    assert major(cents) == text


@pytest.mark.parametrize("value", [5, Decimal("5"), Decimal("5.0"), Decimal("5.00"), "5", "5.00"])
def test_it_reads_whole_numbers_in_any_notation(value: object) -> None:
    assert whole(value, "amount") == 5


@pytest.mark.parametrize("value", [Decimal("5.5"), "5.5", "five", " 5", "５", "", None, True, [5], 5.0])
def test_it_refuses_an_amount_that_is_no_whole_number(value: object) -> None:
    with pytest.raises(PlatformError, match="amount"):
        whole(value, "amount")


def batch(amount: object, **more: Any) -> Answer:
    return said({"id": "b1", "study": STUDY, "amount": amount, "fees": 50, "vat": 10, **more}, 201)


def test_it_announces_bonuses_and_compares_the_sum() -> None:
    script = Script(BALANCE, batch(300))
    payments = [payment(150, 1), payment(149, 2), payment(1, 3)]
    with serving(script) as url:
        prepared = ProlificBonuses(wired(url), ACCOUNT).prepare(POSTED, payments)
    assert prepared == PreparedPayments("b1", 300, 60)
    assert script.calls == ["GET /api/v1/workspaces/w/balance/", "POST /api/v1/submissions/bonus-payments/"]
    assert json.loads(script.asked[1].body) == {
        "study_id": STUDY,
        "csv_bonuses": f"{1:024x},1.50\n{2:024x},1.49\n{3:024x},0.01",
    }


@pytest.mark.parametrize(
    "answer",
    [
        batch(3),  # read as major units
        batch(30_000),  # read as cents times cents
        batch(299),
        batch("299"),
        batch("three hundred"),
        batch(None),
        batch(None, total_amount=299),
        batch(None, total_amount="all"),
        batch(300.5),
        batch(300, fees=-1),
        batch(300, fees="some"),
        batch(300, vat=[10]),
        batch(300, study="another"),
        said({"amount": 300}, 201),
        Answer(201, b"ok"),
    ],
)
def test_it_goes_no_further_when_the_platform_understood_another_sum(answer: Answer) -> None:
    script = Script(BALANCE, answer)
    with serving(script) as url, pytest.raises(PlatformError) as caught:
        ProlificBonuses(wired(url), ACCOUNT).prepare(POSTED, [payment(300)])
    assert not caught.value.uncertain
    assert not [call for call in script.calls if call.endswith("/pay/")]


@pytest.mark.parametrize(
    ("fees", "vat", "booked"),
    [(82.5, 0, 83), (82.5, 16.5, 99), (0.1, 0.2, 1), (82.0, 16, 98), (None, None, 0), (1e-9, 0, 1)],
)
def test_it_books_a_fraction_of_a_fee_as_a_whole_cent(fees: object, vat: object, booked: int) -> None:
    """What people get is whole; what the platform takes is documented as a double."""
    with serving(Script(BALANCE, batch(300, fees=fees, vat=vat))) as url:
        assert ProlificBonuses(wired(url), ACCOUNT).prepare(POSTED, [payment(300)]) == PreparedPayments(
            "b1", 300, booked
        )


@pytest.mark.parametrize(
    ("held", "floored"),
    [(99.99, 99), (0.5, 0), (-0.5, -1), (100, 100), (None, None), ("much", None), (1e300, None)],
)
def test_it_goes_on_with_a_balance_that_has_a_fraction(held: object, floored: int | None) -> None:
    answer = said({"currency_code": "gbp", "available_balance": held})
    with serving(Script(answer, answer, batch(300))) as url:
        assert balance(wired(url), ACCOUNT) == ("GBP", floored)
        assert ProlificBonuses(wired(url), ACCOUNT).prepare(POSTED, [payment(300)]).cents == 300


def test_it_refuses_to_pay_in_another_currency() -> None:
    script = Script(said({"currency_code": "USD", "available_balance": 1}))
    with serving(script) as url, pytest.raises(UnsupportedRequest, match=r"USD.*GBP"):
        ProlificBonuses(wired(url), ACCOUNT).prepare(POSTED, [payment(300)])
    assert len(script.asked) == 1


@pytest.mark.parametrize(
    "payments",
    [
        [],
        [payment(1, n) for n in range(201)],
        [payment(0)],
        [payment(-5)],
        [Payment("r", "x,100.00\ny", "p", 1, "")],
        [Payment("r", "", "p", 1, "")],
    ],
)
def test_it_refuses_a_batch_that_cannot_be_written(payments: list[Payment]) -> None:
    with pytest.raises(UnsupportedRequest):
        ProlificBonuses(wired(closed_address()), ACCOUNT).prepare(POSTED, payments)


def test_it_does_not_repeat_an_announcement() -> None:
    script = Script(BALANCE, said({}, 503))
    with serving(script) as url, pytest.raises(PlatformError) as caught:
        ProlificBonuses(wired(url), ACCOUNT).prepare(POSTED, [payment(300)])
    assert len(script.asked) == 2
    assert caught.value.uncertain


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (said({}, 202), "sent"),
        (Answer(202), "sent"),
        (Answer(202, b"<html>"), "sent"),
        (said({}, 200), "unknown"),
        (said({}, 201), "unknown"),
        (said({}, 302, Location="/again"), "unknown"),
        (said({}, 307, Location="/again"), "unknown"),
        (said({}, 401), "failed"),
        (said({}, 404), "failed"),
        (said({}, 405), "failed"),
        (said({}, 400), "unknown"),
        (said({}, 402), "unknown"),
        (said({}, 403), "unknown"),
        (said({}, 409), "unknown"),
        (said({}, 422), "unknown"),
        (said({}, 429), "unknown"),
        (said({}, 429, Retry_After="1"), "unknown"),
        (said({}, 408), "unknown"),
        (said({}, 500), "unknown"),
        (said({}, 502), "unknown"),
        (said({}, 503, Retry_After="1"), "unknown"),
        (said({}, 504), "unknown"),
        (None, "unknown"),
    ],
)
def test_it_pays_with_one_request_for_every_answer(answer: Play, state: str) -> None:
    waits: list[float] = []
    script = Script(answer)
    payments = [payment(100, 1), payment(200, 2)]
    with serving(script) as url:
        settled = ProlificBonuses(wired(url, waits), ACCOUNT).pay(
            POSTED, PreparedPayments("b1", 300), payments
        )
    assert script.calls == ["POST /api/v1/bulk-bonus-payments/b1/pay/"]
    assert script.asked[0].body == b""
    assert waits == []
    assert [(result.reference, result.state) for result in settled] == [("r1", state), ("r2", state)]
    assert all(result.message for result in settled if result.state != "sent")


def test_it_pays_once_over_a_connection_that_was_used_before() -> None:
    """Libraries often send a request again if a reused connection breaks."""
    script = Script(said({}), None)
    with serving(script) as url:
        wire = wired(url)
        wire.get("users/me/")
        (settled,) = ProlificBonuses(wire, ACCOUNT).pay(POSTED, PreparedPayments("b1", 300), [payment(300)])
    assert script.calls == ["GET /api/v1/users/me/", "POST /api/v1/bulk-bonus-payments/b1/pay/"]
    assert settled.state == "unknown"


@pytest.mark.parametrize(
    "prepared", [PreparedPayments("b1", 299), PreparedPayments("b1", 0), PreparedPayments("", 300)]
)
def test_it_pays_no_sum_that_was_not_announced(prepared: PreparedPayments) -> None:
    with pytest.raises(PlatformError) as caught:
        ProlificBonuses(wired(closed_address()), ACCOUNT).pay(POSTED, prepared, [payment(100), payment(200)])
    assert caught.value.permanent
    assert not caught.value.uncertain


def test_it_knows_that_no_person_was_paid_if_no_server_listens() -> None:
    (settled,) = ProlificBonuses(wired(closed_address()), ACCOUNT).pay(
        POSTED, PreparedPayments("b1", 300), [payment(300)]
    )
    assert settled.state == "failed"
    assert "nothing was sent" in settled.message


def test_it_reads_what_was_paid_in_minor_units() -> None:
    detail = said({"id": "s1", "study_id": STUDY, "bonus_payments": [150, 1.0]})
    with serving(Script(detail)) as url:
        shown = list(ProlificBonuses(wired(url), ACCOUNT).statement(POSTED, ["s1", "s1"]))
    assert shown == [BonusStatement("s1", (Line("bonus", 1), Line("bonus", 150)))]


def test_it_takes_no_bonus_of_another_study_for_proof() -> None:
    detail = said({"id": "s1", "study_id": "another", "bonus_payments": [150]})
    with serving(Script(detail)) as url:
        (unread,) = ProlificBonuses(wired(url), ACCOUNT).statement(POSTED, ["s1"])
    assert isinstance(unread, Unread)
    assert (unread.submission, "another study" in unread.why) == ("s1", True)
