"""Limits on requests per minute, counted in Django's cache: high enough for a laboratory, too low for a
flood."""

from __future__ import annotations

import ipaddress
import time

from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from experiments.tokens import hash_token

WINDOW_S = 60
JOINS_PER_MINUTE = 300
"""Per address; the people of a laboratory or a school share one."""
CALLS_PER_MINUTE = 600
"""Per session; no person gives ten answers a second for a whole minute."""

INSIDE = tuple(
    ipaddress.ip_network(network)
    for network in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
"""Networks of our own proxies."""


class PerMinute(BaseThrottle):
    """At most `limit` requests of one `sender` within a minute of the clock."""

    limit = CALLS_PER_MINUTE
    scope = "calls"
    clock = staticmethod(time.time)

    def sender(self, request: Request) -> str:
        """The sender whose requests are counted; empty: the request is not counted."""
        raise NotImplementedError

    def allow_request(self, request: Request, view: APIView) -> bool:
        sender = self.sender(request)
        if not sender:
            return True
        key = f"{self.scope}:{hash_token(sender)[:32]}:{int(self.clock() // WINDOW_S)}"
        if cache.add(key, 1, timeout=2 * WINDOW_S):
            return True
        try:
            return cache.incr(key) <= self.limit
        except ValueError:
            # The cache dropped the counter in between, so this sender starts again from zero.
            return True

    def wait(self) -> float:
        return WINDOW_S - self.clock() % WINDOW_S


class JoinsPerAddress(PerMinute):
    limit = JOINS_PER_MINUTE
    scope = "joins"

    def sender(self, request: Request) -> str:
        return client_address(request)


class CallsPerToken(PerMinute):
    """A request without a token is refused at no cost, so it is not counted."""

    limit = CALLS_PER_MINUTE
    scope = "calls"

    def sender(self, request: Request) -> str:
        return request.headers.get("Authorization", "")


def client_address(request: Request) -> str:
    """The address that a request came from; empty for the machine itself, where simulated people live.

    X-Forwarded-For is believed only from a proxy in our own network, and only its last part, which that proxy
    wrote.
    """
    near = str(request.META.get("REMOTE_ADDR", ""))
    if not _is_inside(near):
        return near
    forwarded = request.headers.get("X-Forwarded-For", "").rsplit(",", 1)[-1].strip()
    if forwarded:
        return forwarded[:64]
    return "" if _is_loopback(near) else near


def _is_inside(address: str) -> bool:
    """Also the empty address of a Unix socket: only a proxy on this machine speaks over one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return True
    return any(parsed in network for network in INSIDE)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
