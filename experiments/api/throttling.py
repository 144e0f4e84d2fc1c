"""The limit on the requests of a session per minute, counted in Django's cache. Crowd counts the joins."""

from __future__ import annotations

import time

from django.core.cache import cache
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from experiments.tokens import hash_token

WINDOW_S = 60
CALLS_PER_MINUTE = 600
"""Per session; no person gives ten answers a second for a whole minute."""


class CallsPerToken(BaseThrottle):
    """At most `limit` requests with one token within a minute of the clock. A request without a token is
    refused at no cost, so it is not counted."""

    limit = CALLS_PER_MINUTE
    clock = staticmethod(time.time)

    def allow_request(self, request: Request, view: APIView) -> bool:
        sender = request.headers.get("Authorization", "")
        if not sender:
            return True
        key = f"calls:{hash_token(sender)[:32]}:{int(self.clock() // WINDOW_S)}"
        if cache.add(key, 1, timeout=2 * WINDOW_S):
            return True
        try:
            return cache.incr(key) <= self.limit
        except ValueError:
            # The cache dropped the counter in between, so this sender starts again from zero.
            return True

    def wait(self) -> float:
        return WINDOW_S - self.clock() % WINDOW_S
