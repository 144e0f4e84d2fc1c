"""Amounts as people read and type them."""

from __future__ import annotations

import pytest

from crowd.ground.amounts import BadAmount, amount_of, cents_of, is_typed


@pytest.mark.parametrize(
    ("typed", "cents"),
    [
        ("120", 12000),
        ("44.33", 4433),
        (" 1,234.50 GBP ", 123450),
        ("1234.50GBP", 123450),
        ("0.05", 5),
        ("1,000,000", 100_000_000),
    ],
)
def test_it_reads_an_amount_as_it_is_printed(typed: str, cents: int) -> None:
    assert cents_of(typed, "GBP") == cents_of(typed) == cents
    assert cents_of(amount_of(cents, "GBP"), "GBP") == cents
    assert is_typed(typed, cents, "GBP") and not is_typed(typed, cents + 1, "GBP")


@pytest.mark.parametrize(
    "typed",
    ["", "44.333", "44.3", "-1.00", "1.00 gbp", "1.00 USD", "9" * 30 + ".00", "12,34.00", "0", "1e3", "٣"],
)
def test_it_refuses_what_is_no_amount_in_this_currency(typed: str) -> None:
    with pytest.raises(BadAmount) as refused:
        cents_of(typed, "GBP")
    assert "GBP" in str(refused.value)
    assert not is_typed(typed, 100, "GBP")


def test_it_names_the_limit() -> None:
    with pytest.raises(BadAmount, match=r"at least 0\.01 and at most 1,000,000\.00 USD"):
        cents_of("1,000,000.01", "USD")
