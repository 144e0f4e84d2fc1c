"""Nothing that is handed out with a solution tells whose it is, but the region and the answer themselves.

Reviews of either source go over the wire, by hundreds. What is the same by construction (keys, types,
lengths, queries, calls) is compared exactly; what is drawn or measured (bytes of replies and pictures, times
of handing out) by a decoder that learns from some leads and is asked about the others. Its interval of 99.9 %
holds .5 in all but one of a thousand runs if there is nothing to be told, and the upper end of that of 95 %
lies below .60 if there are reviews enough, as in the proof of payloads. `make test` compares what is exact.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.models import Rendering, Slot, Study, Trial
from experiments.opening.opening import stored_pool
from experiments.opening.picture_lengths import SPREAD_BYTES
from experiments.selectors import definition_of
from experiments.stages.solution_freeze import freeze, frozen_of, solutions_of
from experiments.tokens import keyed_hash
from stimuli.store.media_access import current_store
from stimuli.store.png_padding import LEAST_BYTES
from tests.experiments.api.test_blindness import shape
from tests.experiments.leaking import LEAK, is_of_model
from tests.experiments.protocols import REVIEW, answer, solved, staged
from tests.experiments.telling import UPPER_MAX, Decoder, Told, by_ridge, by_trees, told
from tests.world import Person

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[3]
PER_LEAD = 2 * (4 + 2 + 2) + 2
LEADS_FULL, LEADS_LEAKING = 128, 12
LEAST_PER_SOURCE = 200
EQUAL_WORDS = 'classes = ["left", "right"]\nlabel_names = "neutral"'
"""Answers of one length: which one it is, is content."""
SAME = ("looks", "length", "surplus", "headers", "queries", "beyond", "numbered")
"""What is the same of both sources, explained or not."""


@dataclass(frozen=True, slots=True)
class HandedOut:
    """One review as it was handed out: what the tester knows of it, and all that may be measured of it.

    `length` is that of its content in characters, `surplus` the bytes of the reply beyond its values,
    `packed` its bytes as they are compressed on the way; `headers` are those of the reply and of its
    pictures, `sizes` the lengths of its pictures in bytes, `beyond` what they are longer than their addresses
    say. `numbered`: its id, counted from that of the lead's first trial and its place.
    """

    lead: int
    """The place of the lead in the plan."""
    is_model: bool
    use: str
    explained: bool
    position: int
    looks: str
    length: int
    surplus: int
    bytes: int
    packed: int
    headers: tuple[str, ...]
    queries: int
    sizes: tuple[int, ...]
    beyond: int
    numbered: int
    took_ms: float
    pictures_ms: tuple[float, ...]


def expected_bytes(url: str, room_bytes: int) -> int:
    """The length of a picture by its address and the longest of its kind, as docs/participant.md says it."""
    seed = bytes.fromhex(keyed_hash("padding", url.removeprefix("/m/")))
    return room_bytes + LEAST_BYTES + int.from_bytes(seed[:2]) % SPREAD_BYTES


def plainly(reply: Any) -> bytes:
    """A reply as it is written without a byte too many."""
    return json.dumps(reply, separators=(",", ":"), ensure_ascii=False).encode()


def timed(ask: Callable[[], Any]) -> tuple[Any, float]:
    """The reply, and after how many milliseconds it came."""
    began = time.perf_counter()
    reply = ask()
    return reply, 1000 * (time.perf_counter() - began)


def handed_out(person: Person, study: Study) -> list[HandedOut]:
    """Every review of a lead, as it arrives."""
    seen: list[HandedOut] = []
    first = 0
    while person.state["step"] == "trials":
        with CaptureQueriesContext(connection) as queries:
            reply, took_ms = timed(lambda: person.call("GET", "/api/session/"))
        [trial] = reply.json()["block"]["trials"]
        first = first or int(trial["id"])
        seen.append(_arrived(reply, took_ms, len(queries), trial, first, study))
        answer(person, 1)
    return seen


def _arrived(
    reply: Any, took_ms: float, queries: int, trial: dict[str, Any], first: int, study: Study
) -> HandedOut:
    rooms = {"image": study.picture_bytes["image"], "mark": study.picture_bytes["explanation"]}
    content, row = trial["content"], Trial.objects.select_related("slot").get(pk=trial["id"])
    urls = {part: content[part]["url"] for part in rooms if content[part]}
    fetched = {part: timed(partial(Client().get, url)) for part, url in urls.items()}
    sizes = {part: len(picture.content) for part, (picture, _) in fetched.items()}
    return HandedOut(
        row.slot.ordinal,
        is_of_model(trial["id"]),
        row.extra["use"],
        row.explained,
        trial["position"],
        json.dumps(shape(content)),
        len(json.dumps(content)),
        len(reply.content)
        - len(json.dumps(reply.json(), separators=(",", ":"), ensure_ascii=False).encode()),
        len(reply.content),
        len(zlib.compress(reply.content)),
        tuple(sorted({name for each in (reply, *(p for p, _ in fetched.values())) for name in each.headers})),
        queries,
        tuple(sizes.values()),
        sum(sizes[part] - expected_bytes(urls[part], rooms[part]) for part in sizes),
        int(trial["id"]) - first - trial["position"],
        took_ms,
        tuple(ms for _, ms in fetched.values()),
    )


def judged_by(leads: int, folder: Path) -> Study:
    """A review of frozen solutions by so many leads, open."""

    def neutral(folder: Path) -> None:
        path = folder / "study.toml"
        path.write_text(path.read_text().replace('classes = ["left", "right"]', EQUAL_WORDS))

    freeze(solved(folder / "s", change=neutral))
    return staged(folder / "v", "judged", REVIEW.replace("slots = 3", f"slots = {leads}"), change=neutral)


@pytest.fixture
def judged(tmp_path: Path) -> Study:
    return judged_by(LEADS_LEAKING, tmp_path)


def reviews(study: Study, count: int, name: str) -> list[HandedOut]:
    """What `count` further leads of the study are handed out."""
    rows: list[HandedOut] = []
    for lead in range(count):
        person = Person(f"{name}{lead}", slug=study.slug)
        person.arrive()
        rows += handed_out(person, study)
    return rows


def measured(row: HandedOut) -> list[float]:
    """What is drawn for each address, what is measured, and what is the same if nothing leaks."""
    sizes, pictures_ms = [*row.sizes, 0][:2], [*row.pictures_ms, 0.0][:2]
    same = [row.length, row.surplus, len(row.headers), row.queries, row.beyond, row.numbered]
    return [*same, row.explained, row.position, row.bytes, row.packed, *sizes, row.took_ms, *pictures_ms]


TIMES = 3
"""So many features, the last ones, are times."""


def told_of(
    rows: list[HandedOut],
    label: Callable[[HandedOut], bool],
    decoder: Decoder = by_ridge,
    part: slice = slice(None),
) -> Told:
    return told(
        np.array([measured(row)[part] for row in rows], np.float64),
        np.array([label(row) for row in rows]),
        np.array([row.lead for row in rows]),
        decoder,
    )


def is_model(row: HandedOut) -> bool:
    return row.is_model


def test_what_is_the_same_by_construction_is_the_same(judged: Study) -> None:
    """Of two leads, who may both begin with the explained run: a first review without one is in the proof."""
    assert compare_exactly(reviews(judged, 2, "l")) >= 3


def test_a_byte_more_is_not_the_same(judged: Study, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.experiments.leaking.leaking"]
    monkeypatch.setattr(LEAK, "what", "reply")
    rows = reviews(judged, 1, "r")
    with pytest.raises(AssertionError, match="surplus"):
        compare_exactly(rows)


def compare_exactly(rows: list[HandedOut]) -> int:
    """In how many situations something was handed out."""
    for name in SAME:
        # Before the first review of a session there is no answer to tell of, which is a query less.
        alike: dict[tuple[bool, bool], set[Any]] = {}
        for row in rows:
            alike.setdefault((row.explained, row.position == 0), set()).add(getattr(row, name))
        assert all(len(values) == 1 for values in alike.values()), (name, alike)
    assert {row.beyond for row in rows} == {row.surplus for row in rows} == {0}
    return len(alike)


@pytest.mark.full
def test_nothing_tells_the_source(tmp_path: Path) -> None:
    judged = judged_by(LEADS_FULL, tmp_path)
    rows = reviews(judged, LEADS_FULL, "l")
    counts = Counter(row.is_model for row in rows)
    assert min(counts.values()) >= LEAST_PER_SOURCE and counts.total() == LEADS_FULL * PER_LEAD
    assert compare_exactly(rows) == 4
    print(f"{counts[False]} reviews of people's solutions, {counts[True]} of the model's")
    for what, part in (("all but times", slice(-TIMES)), ("times", slice(-TIMES, None))):
        print(f"Ridge regression, {what} alone: {told_of(rows, is_model, part=part)}.")
    for decoder in (by_ridge, by_trees):
        source = told_of(rows, is_model, decoder)
        # Blank items stand in the run with explanations alone; lures and known tasks in both.
        planted = told_of([row for row in rows if row.use != "alone"], lambda row: row.use != "task", decoder)
        print(f"{decoder.__doc__} The source: {source}. Lures and known tasks: {planted}.")
        assert not source.is_told and not planted.is_told, (source, planted)
        # A task that is a lure in one round is none in the next: a decoder that knew it again would err.
        assert source.is_at_chance and planted.usual[1] < UPPER_MAX, (source, planted)
    content = frozen_of(judged)["source_auc"]
    low, high = content["interval"]
    print(
        f"By the form of the region, which is content: AUC {content['auc']:.2f}, 95 % interval {low:.2f} to "
        f"{high:.2f}; n = {content['n']} regions."
    )


@pytest.mark.full
@pytest.mark.parametrize("leak", ["reply", "picture", "time"])
def test_a_byte_or_twenty_milliseconds_are_found(
    judged: Study, leak: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted behind the views: the model's replies, or its marks, are a byte longer, or late."""
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.experiments.leaking.leaking"]
    monkeypatch.setattr(LEAK, "what", leak)
    rows = reviews(judged, LEADS_LEAKING, leak)
    leaked = told_of([row for row in rows if row.explained], is_model)
    print(f"Planted in the {leak}: {leaked}")
    assert leaked.usual[0] > UPPER_MAX and leaked.is_told, leaked


def test_an_unpadded_picture_would_tell(judged: Study) -> None:
    """Without the padding, lengths follow the region: the check above can fail."""
    files = Rendering.objects.filter(item__study=judged).values_list("stimulus__explanation_file", flat=True)
    assert len({len(current_store().get(file)) for file in files}) > 10


def test_the_same_code_runs_for_every_source_and_use(judged: Study) -> None:
    """Our own functions in the order of their first calls, when a review that was handed out is asked for
    again. The first review of a session has no answer before it to tell of; all others are alike."""
    ways: dict[tuple[bool, bool], set[tuple[str, ...]]] = {}
    person = Person("lea", slug="judged")
    person.arrive()
    answer(person, 1)
    while person.state["step"] == "trials":
        person.refresh()
        calls = called(person.refresh)
        [trial] = person.state["block"]["trials"]
        explained = trial["content"]["mark"] is not None
        ways.setdefault((is_of_model(trial["id"]), explained), set()).add(calls)
        answer(person, 1)
    assert len(ways) == 4
    for explained in (True, False):
        assert ways[True, explained] == ways[False, explained] and len(ways[True, explained]) == 1


@cache
def ours(file: str) -> str:
    """The name of a file of these two packages; empty for any other. Every call of any function asks."""
    path = Path(file)
    is_ours = ROOT in path.parents and path.relative_to(ROOT).parts[0] in ("experiments", "stimuli")
    return path.name if is_ours else ""


def called(run: Callable[[], object]) -> tuple[str, ...]:
    """Names of the functions of this project that run, in the order of their first calls."""
    names: list[str] = []

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "call" and (file := ours(frame.f_code.co_filename)):
            names.append(f"{file}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    assert len(names) > 50
    return tuple(dict.fromkeys(names))


def test_solutions_of_all_sources_come_by_one_query(judged: Study) -> None:
    """Planning and building ask as often for two sources as for one."""
    with CaptureQueriesContext(connection) as queries:
        solutions = solutions_of(judged, definition_of(judged))
    assert {s.source for s in solutions} == {"people", "saliency"}
    about = [q["sql"] for q in queries if "experiments_solution" in q["sql"]]
    assert len(about) == 1 and "source" not in about[0].partition("WHERE")[2]
    assert stored_pool(judged, definition_of(judged)).solutions == solutions
    assert Slot.objects.filter(study=judged).count() == LEADS_LEAKING
