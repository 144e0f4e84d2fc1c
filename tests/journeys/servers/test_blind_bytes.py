"""Fifty whole sessions over real HTTP: no two addresses of pictures share their bytes, and all keep them."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from django.conf import settings
from django.test import Client
from PIL import Image

from experiments.api.trial_scene import media_files
from experiments.models import Session, Study
from experiments.opening.picture_lengths import SPREAD_BYTES
from experiments.simulation.browser.connection import Line, open_pool
from experiments.simulation.browser.participant_run import SimulatedSession
from experiments.simulation.browser.picture_cache import Album
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.people import Guesser
from stimuli.store.png_padding import LEAST_BYTES
from tests.services import WebServer
from tests.world import opened_study, write_study

pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS = 50
ADDRESS = re.compile(r"/m/([A-Za-z0-9_-]{44})")


@pytest.fixture
def study(server_env: dict[str, str], tmp_path: Path) -> Study:
    """One block; neither quiz nor practice nor checks send anybody away."""
    forgiving = {
        "blocks": "blocks = 1",
        "instructed_share_min": "instructed_share_min = 0.0",
        "quiz_attempts_max": "quiz_attempts_max = 50",
        "practice_attempts_max": "practice_attempts_max = 50",
    }
    return opened_study(write_study(tmp_path / "study", slots=(SESSIONS + 2) // 3, **forgiving))


@dataclass(frozen=True, slots=True)
class Seen:
    """One picture as it came: digests of the file and of its decoded pixels, and the length of the file."""

    content: bytes
    pixels: bytes
    length: int


def seen(content: bytes) -> Seen:
    with Image.open(io.BytesIO(content)) as image:
        pixels = hashlib.sha256(np.asarray(image).tobytes()).digest()
    return Seen(hashlib.sha256(content).digest(), pixels, len(content))


@dataclass(slots=True)
class Onlooker(Line):
    """A person's connection beside which a script asks for every picture that any reply names."""

    pictures: dict[str, Seen] = field(default_factory=dict)

    def _send(self, method: str, url: str, body: Any, with_token: bool = True) -> httpx.Response:
        reply = super(Onlooker, self)._send(method, url, body, with_token)
        if url.startswith("/api/"):
            for reference in ADDRESS.findall(reply.text):
                if reference not in self.pictures:
                    self.pictures[reference] = seen(self.fetch(f"/m/{reference}"))
        return reply


def take_part(pool: httpx.Client, study: str, number: int) -> tuple[Outcome, dict[str, Seen]]:
    line = Onlooker(pool)
    person = Guesser.drawn(4, number)
    outcome = SimulatedSession(person, line, Album(), quiz={"task": "machine"}).take(study)
    return outcome, line.pictures


def repeats(groups: Iterator[Seen]) -> int:
    """Pictures whose pixels came before."""
    return sum(count - 1 for count in Counter(picture.pixels for picture in groups).values())


@pytest.mark.long(
    stays="tests/experiments/api/test_blindness.py::test_it_shows_all_conditions_alike_but_for_the_explanation"
)
def test_fifty_whole_sessions_share_no_bytes(server: WebServer, study: Study) -> None:
    with open_pool(server.url, 4) as pool, ThreadPoolExecutor(4) as people:
        numbers = range(SESSIONS)
        taken = list(people.map(lambda number: take_part(pool, study.slug, number), numbers))
    assert [outcome.status for outcome, _ in taken] == ["finished"] * SESSIONS
    pictures = {reference: each for _, of_one in taken for reference, each in of_one.items()}
    # Every picture of every session was asked for: those of gates, of trials and of the reservoir.
    meant = {ref: picture for session in Session.objects.all() for ref, picture in media_files(session)}
    assert set(pictures) == set(meant) and len(pictures) > 20 * SESSIONS
    assert {picture.part for picture in meant.values()} == set(study.picture_bytes)
    assert len({each.content for each in pictures.values()}) == len(pictures)
    # What still matches, as docs/participant.md says: decoded pixels, within a session and between sessions.
    assert all(repeats(iter(of_one.values())) > 0 for _, of_one in taken)
    assert repeats(iter(pictures.values())) > len(pictures) / 2
    stored = {picture.file for picture in meant.values()}
    files = {file: seen((Path(settings.STORAGE_URL) / file).read_bytes()) for file in stored}
    drawn, unpadded = [], []
    for reference, each in pictures.items():
        file, part = meant[reference]
        assert each.pixels == files[file].pixels
        drawn.append(each.length - study.picture_bytes[part] - LEAST_BYTES)
        unpadded.append(files[file].length - study.picture_bytes[part])
    assert_unrelated(drawn, unpadded)
    # Another process answers with the same bytes.
    for reference in list(pictures)[::40]:
        assert seen(Client().get(f"/m/{reference}").content) == pictures[reference]


def assert_unrelated(drawn: list[int], unpadded: list[int]) -> None:
    """What a file is longer than its part's longest picture does not go with its own length: |r| < 4 /
    sqrt(n)."""
    assert min(drawn) >= 0 and max(drawn) < SPREAD_BYTES and np.std(unpadded) > 0
    assert abs(np.corrcoef(drawn, unpadded)[0, 1]) < 4 / np.sqrt(len(unpadded))
