"""Serving: many respondents at once against the production server, compared with a bare view on the same
server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import numpy as np

from benchmarks.processes import cpu_s, loads
from tests import services
from tests.run.guard import Service
from tests.services import WebServer

if TYPE_CHECKING:
    from benchmarks.crowd_rows import Respondent

LATER = 500
CONTEXT = {
    "onset_ms": 412.5,
    "input": "keyboard",
    "key": "j",
    "side": "right",
    "image_px": 320,
    "pixel_ratio": 2,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: people at once, rounds of each kind, answers of each person in a round."""

    people: int = 200
    rounds: int = 3
    answers: int = 20
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """One kind of request over all its rounds. CPU in ms per response; latencies in ms."""

    name: str
    count: int
    rate: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    server_ms: float
    database_ms: float
    client_ms: float


@dataclass(frozen=True, slots=True)
class Stage:
    """The servers of one run."""

    web: WebServer
    database: Service


@contextmanager
def stage(workers: int) -> Iterator[Stage]:
    """PostgreSQL with synchronous commit, migrated; the production server on it; Django set up here."""
    with (
        tempfile.TemporaryDirectory(prefix="legible-bench-") as folder,
        services.postgres(durable=True) as server,
    ):
        env = {
            "DATABASE_URL": services.create_database(server.port, "legible"),
            "LEGIBLE_VAR": folder,
            "STORAGE_URL": f"{folder}/store",
            "SECRET_KEY": "only-for-benchmarks",
            "CELERY_BROKER_URL": "",
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        }
        os.environ.update(env)
        services.migrate(env)
        import django

        django.setup()
        from django.db import connection

        from benchmarks.bare import CREATE

        with connection.cursor() as cursor:
            cursor.execute(CREATE)
        with services.web_server(env, workers=workers) as web:
            yield Stage(web, server.service)
        connection.close()


def request(url: str, path: str, token: str, body: object) -> str:
    text = json.dumps(body)
    return (
        f"POST {path} HTTP/1.1\r\nHost: {urlparse(url).netloc}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}"
    )


def answer(trial: int) -> dict[str, object]:
    return {
        "trial": str(trial),
        "value": {"choice": "wolf"},
        "rt_ms": 900,
        "shown_ms": 2400,
        "context": CONTEXT,
    }


def to_us(url: str, person: Respondent, positions: range) -> list[str]:
    return [
        request(url, "/api/session/responses/", person.token, {"responses": [answer(person.trials[i])]})
        for i in positions
    ]


def to_bare(url: str, person: Respondent, positions: range) -> list[str]:
    return [
        request(
            url, "/bare/", person.token,
            {"responses": [answer(person.trials[i])], "session": person.session, "position": i},
        )
        for i in positions
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Round:
    """One load and what it cost, in seconds of CPU."""

    wall_s: float
    latencies_ms: list[float]
    server_s: float
    database_s: float
    client_s: float


def load(on: Stage, people: Sequence[list[str]]) -> Round:
    """Sends everything and waits. A status other than 200 is an error."""
    url = urlparse(on.web.url)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"host": url.hostname, "port": url.port, "people": people}, file)
        file.flush()
        server, database = cpu_s(on.web.service.pid), cpu_s(on.database.pid)
        command = [sys.executable, "-m", "benchmarks.load", file.name]
        result = subprocess.run(
            command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, timeout=300
        )
        server, database = cpu_s(on.web.service.pid) - server, cpu_s(on.database.pid) - database
    if result.returncode != 0:
        raise RuntimeError(f"the load ended early:\n{result.stderr[-2000:]}")
    said = json.loads(result.stdout)
    if set(said["statuses"]) != {"200"}:
        raise RuntimeError(f"not all answers were taken: {Counter(said['statuses'])}")
    return Round(said["wall_s"], said["latencies_ms"], server, database, said["cpu_s"])


def summary(name: str, rounds: Sequence[Round]) -> Measured:
    latencies = np.concatenate([each.latencies_ms for each in rounds])
    count = len(latencies)
    p50, p95, p99 = np.percentile(latencies, [50, 95, 99])
    per_ms = 1000 / count
    return Measured(
        name,
        count,
        count / sum(each.wall_s for each in rounds),
        float(p50),
        float(p95),
        float(p99),
        sum(each.server_s for each in rounds) * per_ms,
        sum(each.database_s for each in rounds) * per_ms,
        sum(each.client_s for each in rounds) * per_ms,
    )


def measure(on: Stage, plan: Plan) -> tuple[list[Measured], bool]:
    """The bare view and ours in turns, then the first answers of long sessions and those from the 500th.

    Also says whether any process of the server has torch loaded.
    """
    from benchmarks.crowd_rows import answer_up_to, respondents

    url = on.web.url
    people = respondents(plan.people, (plan.rounds + 1) * plan.answers + 1)  # no respondent comes to the end
    bare, ours = [], []
    for number in range(plan.rounds + 1):
        positions = range(number * plan.answers, (number + 1) * plan.answers)
        bare.append(load(on, [to_bare(url, person, positions) for person in people]))
        ours.append(load(on, [to_us(url, person, positions) for person in people]))
    many = plan.rounds * plan.answers // 2
    long = respondents(plan.people, LATER + many + 1)
    late, early = long[::2], long[1::2]
    answer_up_to(late, LATER - 1)
    first, last = [], []
    for number in range(4):
        part = range(number * many // 4, (number + 1) * many // 4)
        first.append(load(on, [to_us(url, person, part) for person in early]))
        part = range(LATER - 1 + part.start, LATER - 1 + part.stop)
        last.append(load(on, [to_us(url, person, part) for person in late]))
    has_torch = loads(on.web.service.pid, "libtorch")
    # The first round of each kind warms up connections and caches and is left out.
    measured = [
        summary("bare view, one INSERT", bare[1:]),
        summary("responses", ours[1:]),
        summary("from response 1", first[1:]),
        summary(f"from response {LATER}", last[1:]),
    ]
    return measured, has_torch
