"""The limit on the requests of a session per minute, counted where all processes see it. Crowd counts the
joins."""

from __future__ import annotations

import time
from contextlib import suppress

from django.core.cache import BaseCache, caches
from redis.exceptions import RedisError
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from experiments.api.bodies import bearer_token
from experiments.errors import NoSession
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
        try:
            token = bearer_token(request)
        except NoSession:
            return True
        key = f"calls:{hash_token(token)[:32]}:{int(self.clock() // WINDOW_S)}"
        if "shared" in caches.settings:
            # A store that is away must not keep people out: then this process counts by itself.
            with suppress(RedisError, OSError):
                return _count(caches["shared"], key) <= self.limit
        return _count(caches["default"], key) <= self.limit

    def wait(self) -> float:
        return WINDOW_S - self.clock() % WINDOW_S


def _count(cache: BaseCache, key: str) -> int:
    if cache.add(key, 1, timeout=2 * WINDOW_S):
        return 1
    try:
        return int(cache.incr(key))
    except ValueError:
        return 1  # It was dropped in between, so this sender starts again.
