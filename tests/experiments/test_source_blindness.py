"""Nothing that is handed out with a solution tells whose it is, but the region and the answer themselves.

Hundreds of reviews of either source go over the wire. A decoder that learns from some leads is asked about
the others; its area under the ROC curve has an interval by bootstrap over whole leads. What is the same by
construction (keys, types, lengths, queries, calls) is compared exactly; what is drawn or measured (bytes of
pictures, times of handing out) by the decoder. Its interval of 99.9 % holds .5 in all but one of a thousand
runs if there is nothing to be told, and the upper end of that of 95 % lies below .60.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from numpy.typing import NDArray

from experiments.models import Slot, Study, Trial
from experiments.servings import SPREAD_BYTES
from experiments.stages import freeze
from experiments.tokens import keyed_hash
from stimuli.store.padding import LEAST_BYTES
from tests.experiments.protocols import REVIEW, answer, solved, staged
from tests.experiments.test_blindness import shape
from tests.world import Person

pytestmark = pytest.mark.django_db

ROOT = Path(__file__).resolve().parents[2]
LEADS, PER_LEAD = 64, 2 * (4 + 2 + 2) + 2
LEAST_PER_SOURCE = 200
FOLDS, RIDGE, RESAMPLES = 4, 1e-3, 2000
UPPER_MAX = 0.60
EQUAL_WORDS = 'classes = ["left", "right"]\nlabel_names = "neutral"'
"""Answers of one length: which one it is, is content."""
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HandedOut:
    """One review as it was handed out: what the tester knows of it, and all that may be measured of it.

    `sizes` are the lengths of its pictures in bytes, `beyond` what they are longer than their addresses say.
    """

    lead: int
    is_model: bool
    use: str
    explained: bool
    looks: str
    length: int
    queries: int
    sizes: tuple[int, ...]
    beyond: int
    took_ms: float


@dataclass(frozen=True, slots=True)
class Told:
    """Area under the curve with its intervals of 95 % and of 99.9 %."""

    auc: float
    usual: tuple[float, float]
    wide: tuple[float, float]

    @property
    def is_blind(self) -> bool:
        return self.wide[0] <= 0.5 <= self.wide[1] and self.usual[1] < UPPER_MAX


def expected_bytes(url: str, room_bytes: int) -> int:
    """The length of a picture by its address and the longest of its kind, as docs/participant.md says it."""
    seed = bytes.fromhex(keyed_hash("padding", url.removeprefix("/m/")))
    return room_bytes + LEAST_BYTES + int.from_bytes(seed[:2]) % SPREAD_BYTES


def handed_out(person: Person, lead: int, study: Study) -> list[HandedOut]:
    """Every review of a lead, as it arrives."""
    rooms = {"image": study.picture_bytes["image"], "mark": study.picture_bytes["explanation"]}
    seen = []
    while person.state["step"] == "trials":
        began = time.perf_counter()
        with CaptureQueriesContext(connection) as queries:
            state = person.call("GET", "/api/session/").json()
        took_ms = 1000 * (time.perf_counter() - began)
        [trial] = state["block"]["trials"]
        content = trial["content"]
        pictures = {part: content[part]["url"] for part in rooms if content[part]}
        sizes = {part: len(Client().get(url).content) for part, url in pictures.items()}
        row = Trial.objects.select_related("condition").get(pk=trial["id"])
        assert row.condition is not None
        seen.append(
            HandedOut(
                lead,
                row.condition.role == "method",
                row.extra["use"],
                row.explained,
                json.dumps(shape(content)),
                len(json.dumps(content)),
                len(queries),
                tuple(sizes.values()),
                sum(sizes[part] - expected_bytes(pictures[part], rooms[part]) for part in sizes),
                took_ms,
            )
        )
        answer(person, 1)
    return seen


@pytest.fixture
def judged(tmp_path: Path) -> Study:
    def neutral(folder: Path) -> None:
        path = folder / "study.toml"
        path.write_text(path.read_text().replace('classes = ["left", "right"]', EQUAL_WORDS))

    freeze(solved(tmp_path / "s", change=neutral))
    tables = REVIEW.replace("slots = 3", f"slots = {LEADS}")
    return staged(tmp_path / "v", "judged", tables, change=neutral)


@pytest.fixture
def reviews(judged: Study) -> list[HandedOut]:
    """What every lead of the study is handed out."""
    rows: list[HandedOut] = []
    for lead in range(LEADS):
        person = Person(f"l{lead}", slug="judged")
        person.arrive()
        rows += handed_out(person, lead, judged)
    return rows


def told(features: Floats, label: NDArray[np.bool_], groups: NDArray[np.int64]) -> Told:
    """How well `label` is told from `features` (N, F) of other groups: ridge regression on ranks, by folds of
    whole groups; intervals by bootstrap of groups."""
    ranked = np.stack([_ranks(column) for column in features.T], 1)
    said = np.zeros(len(label))
    for fold in range(FOLDS):
        out = groups % FOLDS == fold
        inside, target = ranked[~out], label[~out] - label[~out].mean()
        middle = inside.mean(0)
        matrix = (inside - middle).T @ (inside - middle) + RIDGE * len(inside) * np.eye(inside.shape[1])
        said[out] = (ranked[out] - middle) @ np.linalg.solve(matrix, (inside - middle).T @ target)
    rng, names = np.random.default_rng(1), np.unique(groups)
    of_group = [np.flatnonzero(groups == name) for name in names]
    drawn = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([of_group[at] for at in rng.integers(0, len(names), len(names))])
        drawn.append(_auc(said[rows], label[rows]))
    usual, wide = (tuple(np.percentile(drawn, [tail, 100 - tail])) for tail in (2.5, 0.05))
    return Told(_auc(said, label), usual, wide)


def _ranks(values: Floats) -> Floats:
    """Ranks from -1 to 1; equal values share theirs."""
    order, inverse = np.unique(values, return_inverse=True)
    counts = np.bincount(inverse)
    middles = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(2 * middles[inverse] / max(1, len(values) - 1) - 1 if len(order) > 1 else 0 * values)


def _auc(said: Floats, label: NDArray[np.bool_]) -> float:
    ranks = (_ranks(said) + 1) / 2 * (len(said) - 1)
    ones = int(label.sum())
    pairs = ones * (len(said) - ones)
    return float((ranks[label].sum() - ones * (ones - 1) / 2) / pairs) if pairs else 0.5


def drawn_of(row: HandedOut) -> list[float]:
    """What is drawn for each address, and what is measured."""
    sizes = [*row.sizes, 0][:2]
    return [row.explained, *sizes, row.beyond, row.length, row.took_ms]


def told_of(
    rows: list[HandedOut],
    label: Callable[[HandedOut], bool],
    leak: Callable[[HandedOut, list[float]], list[float]] = lambda row, features: features,
) -> Told:
    features = np.array([leak(row, drawn_of(row)) for row in rows], np.float64)
    return told(features, np.array([label(row) for row in rows]), np.array([row.lead for row in rows]))


def is_model(row: HandedOut) -> bool:
    return row.is_model


def test_nothing_tells_the_source_and_a_planted_leak_is_found(reviews: list[HandedOut]) -> None:
    counts = Counter(row.is_model for row in reviews)
    assert min(counts.values()) >= LEAST_PER_SOURCE and counts.total() == LEADS * PER_LEAD
    # The same by construction: keys, types, lengths, queries, and lengths of pictures by their addresses.
    for name in ("looks", "length", "queries", "beyond"):
        of_source = {
            (source, shown): {
                getattr(r, name) for r in reviews if (r.is_model, r.explained) == (source, shown)
            }
            for source in (True, False)
            for shown in (True, False)
        }
        for shown in (True, False):
            assert of_source[True, shown] == of_source[False, shown], name
    assert {row.beyond for row in reviews} == {0} and len({row.looks for row in reviews}) == 2
    # Drawn or measured.
    source = told_of(reviews, is_model)
    assert source.is_blind, source
    # Blank items stand in the run with explanations alone; lures and known tasks in both.
    control = told_of([row for row in reviews if row.use != "alone"], lambda row: row.use != "task")
    assert control.is_blind, control
    # Planted: one byte more of a picture or of the text, or 20 ms.
    for place, more in ((3, 1.0), (4, 1.0), (5, 20.0)):

        def leaking(row: HandedOut, features: list[float], place: int = place, more: float = more) -> Any:
            added = more if row.is_model else 0.0
            return [*features[:place], features[place] + added, *features[place + 1 :]]

        leak = told_of(reviews, is_model, leaking)
        assert leak.usual[0] > UPPER_MAX and not leak.is_blind, (place, leak)


def test_an_unpadded_picture_would_tell(judged: Study) -> None:
    """Without the padding, lengths follow the region: the check above can fail."""
    from experiments.models import Rendering
    from stimuli.store.media import current_store

    files = Rendering.objects.filter(item__study=judged).values_list("stimulus__explanation_file", flat=True)
    assert len({len(current_store().get(file)) for file in files}) > 10


def test_the_same_code_runs_for_every_source_and_use(judged: Study) -> None:
    """Our own functions in the order of their first calls, when a review that was handed out is asked for
    again; how often each is called follows from the place in the list."""
    ways: dict[tuple[bool, bool], set[tuple[str, ...]]] = {}
    for lead in range(4):
        person = Person(f"l{lead}", slug="judged")
        person.arrive()
        while person.state["step"] == "trials":
            person.refresh()
            calls = called(lambda: person.refresh())  # noqa: B023
            row = Trial.objects.select_related("condition").get(pk=person.state["block"]["trials"][0]["id"])
            assert row.condition is not None
            key = row.condition.role == "method", row.explained
            ways.setdefault(key, set()).add(calls)
            answer(person, 1)
    assert len(ways) == 4
    for explained in (True, False):
        assert ways[True, explained] == ways[False, explained] and len(ways[True, explained]) == 1


def called(run: Callable[[], object]) -> tuple[str, ...]:
    """Names of the functions of this project that run, in the order of their first calls."""
    names: list[str] = []

    def note(frame: Any, event: str, argument: object) -> None:
        code = frame.f_code
        path = Path(code.co_filename)
        is_ours = ROOT in path.parents and path.relative_to(ROOT).parts[0] in ("experiments", "stimuli")
        if event == "call" and is_ours:
            names.append(f"{path.name}:{code.co_name}")

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    assert len(names) > 50
    return tuple(dict.fromkeys(names))


def test_solutions_of_all_sources_come_by_one_query(judged: Study, tmp_path: Path) -> None:
    """Planning and building ask as often for any number of sources."""
    from experiments.opening import stored_pool
    from experiments.selectors import definition_of
    from experiments.stages import solutions_of

    with CaptureQueriesContext(connection) as queries:
        solutions = solutions_of(judged, definition_of(judged))
    assert {s.source for s in solutions} == {"people", "saliency"}
    about = [q["sql"] for q in queries if "experiments_solution" in q["sql"]]
    assert len(about) == 1 and "source" not in about[0].partition("WHERE")[2]
    assert stored_pool(judged, definition_of(judged)).solutions == solutions
    assert Slot.objects.filter(study=judged).count() == LEADS
