"""Which address counts: what a proxy of ours wrote, in one form, IPv6 by its network."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import RequestFactory

from experiments.api.client_address import client_address, is_told

pytestmark = pytest.mark.pure
OUTSIDE = "203.0.113.7"


@pytest.mark.parametrize(
    ("near", "forwarded", "counted"),
    [
        (OUTSIDE, "", OUTSIDE),
        (OUTSIDE, "198.51.100.1", OUTSIDE),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "evil, 198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "", ""),
        ("::1", "", ""),
        ("", "", ""),
        ("", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "198.51.100.1:52111", "198.51.100.1"),
        ("::ffff:203.0.113.7", "", OUTSIDE),
        ("127.0.0.1", "::ffff:203.0.113.7", OUTSIDE),
        ("2001:db8:1:2:aaaa::1", "", "2001:db8:1:2::/64"),
        ("127.0.0.1", "2001:DB8:1:2:bbbb:cccc:dddd:eeee", "2001:db8:1:2::/64"),
        ("127.0.0.1", "[2001:db8:1:2::9]:443", "2001:db8:1:2::/64"),
        ("127.0.0.1", "2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "", "fe80::/64"),
        ("127.0.0.1", "zzzz:1:2:3", "127.0.0.1"),
        ("127.0.0.1", "x" * 4000, "127.0.0.1"),
        ("10.0.0.1", "198.51.100.1, unknown", "10.0.0.1"),
    ],
)
def test_it_knows_whom_to_count(near: str, forwarded: str, counted: str) -> None:
    assert client_address(asked(near, forwarded)) == counted


def test_it_does_not_take_a_silent_proxy_for_a_person() -> None:
    assert not is_told(asked("10.0.0.1", ""))
    assert is_told(asked("10.0.0.1", "198.51.100.1")) and is_told(asked(OUTSIDE, ""))


def asked(near: str, forwarded: str) -> Any:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    return RequestFactory().get("/", REMOTE_ADDR=near, headers=headers)
