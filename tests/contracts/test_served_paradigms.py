"""What every paradigm promises over the API: observers fill it, its export says what was stored, nothing on
the wire tells, and who comes back meets the same."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.test import Client

from analysis.exports.delimited import read
from analysis.exports.study_export import Request, export_study
from analysis.tables.response_reader import read_frames
from experiments.drafting.stimulus_warnings import is_seen_with_answer
from experiments.kinds import get_kind
from experiments.models import Item, Response, Session, Slot, Study, Trial
from experiments.paradigms import PARADIGMS, design_of, get_paradigm
from experiments.selectors import cards_of, definition_of
from experiments.simulation import person_class
from experiments.simulation.browser.connection import Line
from experiments.simulation.browser.participant_run import SimulatedSession
from experiments.simulation.browser.picture_cache import Album
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.population import parse_mix, usual_mix
from experiments.stages.solution_freeze import freeze
from stimuli.models import Stimulus
from tests.experiments.api.test_blindness import TELLING_KEYS, leaves, shape
from tests.experiments.protocols import (
    ASSISTED,
    LABELS,
    RATING,
    REVIEW,
    SENTENCES,
    SOLVE,
    TURING,
    TWO_MODELS,
    opened,
    solved,
    staged,
    take_part,
)
from tests.world import Person, opened_study, write_study

pytestmark = pytest.mark.django_db

RATERS = 2
TEXTS = (
    TURING.replace('"plain"', '"tells_none"')
    .replace('"marked"', '"tells_words"')
    .replace('"random_text"', '"input_gradient_text"')
    + """
[[conditions]]
name = "tells_others"
role = "control"
explainer = { name = "random_text" }
"""
)
RATED = RATING.replace('asked = ["q1", "q2"]', 'asked = ["q1", "q5", "q6"]\nanchors = 1')
ADVISED = ASSISTED.replace('"alone"', '"tells_none"').replace('"plain"', '"tells_advice"')
ADVISED = ADVISED.replace('"marked"', '"tells_map"').replace('"unrelated"', '"tells_another"')
SOLVED, REVIEWED = (tables.replace('"people"', '"from_people"') for tables in (SOLVE, REVIEW))
LABELLED = LABELS.replace('name = "labels"', 'name = "from_people"').replace('"predicted"', '"from_model"')


def meta_predictor(folder: Path) -> Study:
    return opened_study(write_study(folder / "m", slots=1))


def reverse_turing(folder: Path) -> Study:
    return opened(folder / "t", "letters", "reverse_turing", TEXTS, sources=SENTENCES)


def rating(folder: Path) -> Study:
    return opened(folder / "r", "ratings", "rating", RATED, sources=TWO_MODELS, sittings=2)


def solving(folder: Path) -> Study:
    return staged(folder / "s", "tasks", SOLVED)


def reviewing(folder: Path) -> Study:
    freeze(solved(folder / "s", SOLVED))
    return staged(folder / "v", "judged", REVIEWED)


def labelling(folder: Path) -> Study:
    return staged(folder / "l", "labels", LABELLED)


def advising(folder: Path) -> Study:
    return opened(folder / "a", "advised", "assisted_decision", ADVISED)


STUDIES: dict[str, Callable[[Path], Study]] = {
    made.__name__: made
    for made in (meta_predictor, reverse_turing, rating, solving, reviewing, labelling, advising)
}


@pytest.fixture(params=STUDIES)
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    return STUDIES[request.param](tmp_path)


class Inside(httpx.BaseTransport):
    """The application in this process, and in this test's transaction."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        kind = request.headers.get("Content-Type", "application/json")
        headers = {name: request.headers[name] for name in ("Authorization",) if name in request.headers}
        url, body = request.url.raw_path.decode(), request.read()
        reply: Any = Client().generic(request.method, url, body, content_type=kind, headers=headers)
        content = b"".join(reply.streaming_content) if reply.streaming else reply.content
        return httpx.Response(reply.status_code, headers=dict(reply.headers), content=content)


def observers(study: Study) -> Iterator[Outcome]:
    """The observer that such a study gets first, again and again until every slot is kept."""
    definition = definition_of(study)
    kind, *_ = parse_mix(usual_mix(get_paradigm(study.paradigm), design_of(definition))).shares
    quiz = {question.id: question.answer for question in definition.quiz}
    album = Album()  # of all, as in a rehearsal: each picture is looked at once
    with httpx.Client(transport=Inside(), base_url="http://testserver") as inside:
        for number in range(4 * Slot.objects.filter(study=study).count()):
            person = person_class(kind).drawn(5, number)
            for sitting in range(1, definition.sittings_max + 1):
                if not Slot.objects.filter(study=study, kept=False).exists():
                    return
                session = SimulatedSession(person, Line(inside), album, quiz=quiz, sitting=sitting)
                yield session.take(study.slug)


IN_STUDIES = {
    **{"meta_predictor": "meta_predictor", "reverse_turing": "reverse_turing", "rating": "rating"},
    **{"solving": "blind_review", "reviewing": "blind_review", "labelling": "blind_review"},
    "advising": "assisted_decision",
}
BESIDE = {"meta_predictor": True, "reverse_turing": False, "rating": True}
"""Whether the answer stands beside an explanation, or is asked for there."""


def test_every_paradigm_is_served_here() -> None:
    assert IN_STUDIES.keys() == STUDIES.keys() and set(IN_STUDIES.values()) == set(PARADIGMS)


def test_it_knows_where_an_explanation_could_give_the_answer_away(
    study: Study, request: pytest.FixtureRequest
) -> None:
    """A guess is asked for beside its explanation; else the answer stands beside it, or none is right."""
    name = request.node.callspec.params["study"]
    assert study.paradigm == IN_STUDIES[name]
    if name in BESIDE:
        assert is_seen_with_answer(study) is BESIDE[name]


SHORT = ["meta_predictor", "reverse_turing", "solving", "labelling", "advising"]
FILLED = [
    *SHORT,
    *(
        pytest.param(
            name,
            marks=pytest.mark.long(
                stays="test_observers_fill_every_slot_and_the_export_says_what_they_answered"
            ),
        )
        for name in STUDIES
        if name not in SHORT
    ),
]


@pytest.mark.parametrize("study", FILLED, indirect=True)
def test_observers_fill_every_slot_and_the_export_says_what_they_answered(
    study: Study, tmp_path: Path
) -> None:
    endings = Counter(outcome.status for outcome in observers(study))
    slots = Slot.objects.filter(study=study)
    assert not slots.filter(kept=False).exists(), endings
    kept = Response.objects.filter(session__slot__study=study, session__slot__kept=True)
    assert kept.count() >= Trial.objects.filter(slot__study=study).count() > 0
    if study.paradigm == "rating":
        rated = Counter(
            (r.trial.item_id, r.trial.condition_id, bool(r.trial.extra.get("anchor")))
            for r in kept.filter(trial__kind="rate", session__verdict="passed").select_related("trial")
        )
        assert {count for (*_, anchor), count in rated.items() if not anchor} == {RATERS}
        assert {count for (*_, anchor), count in rated.items() if anchor} == {slots.count()}
    study.refresh_from_db()
    frames = read_frames(study)
    export_study(study, tmp_path / "out", Request())
    told = read(tmp_path / "out" / "trials.csv", "trials", frames.extra)
    assert len(told) == len(frames.trials) == Response.objects.filter(session__study=study).count()
    for column in [
        "session",
        "trial_index",
        "item",
        "condition",
        "response",
        *(c.name for c in frames.extra),
    ]:
        assert list(told[column].astype(str)) == list(frames.trials[column].astype(str)), column


def said_to(person: Person) -> tuple[list[str], list[dict[str, Any]]]:
    """All that the server sends to a person who takes part, and the trials among it."""
    said: list[str] = []
    trials: dict[str, dict[str, Any]] = {}
    call = person.call

    def listening(*given: Any, **more: Any) -> Any:
        reply = call(*given, **more)
        said.append(reply.content.decode())
        if reply.status_code < 400:
            body = reply.json()
            block = (body.get("session") or body).get("block") or {"trials": []}
            trials.update({trial["id"]: trial for trial in block["trials"]})
        return reply

    person.call = listening  # type: ignore[method-assign]
    take_part(person)
    return said, list(trials.values())


def test_nothing_that_is_sent_tells_condition_method_or_item(study: Study) -> None:
    definition = definition_of(study)
    secrets = {condition.name for condition in definition.conditions}
    secrets |= {c.explainer.name for c in definition.conditions if c.explainer}
    secrets |= set(Item.objects.filter(study=study).values_list("key", flat=True))
    secrets |= set(Stimulus.objects.values_list("key", flat=True))
    looks: dict[tuple[int, int], set[str]] = {}
    for number, slot in enumerate(Slot.objects.filter(study=study).order_by("ordinal")):
        person = Person(f"p{number}", slug=study.slug)
        said, trials = said_to(person)
        words = " ".join(re.sub(r'"(url|token|digest|id)": "[^"]*"', "", text) for text in said)
        assert not [secret for secret in secrets if secret in words], slot
        assert len(trials) == person.session().slot.trials.count()  # type: ignore[union-attr]
        for trial in trials:
            assert not [path for path, _ in leaves(trial) if TELLING_KEYS & set(path)]
            if definition.paradigm == "reverse_turing" and trial["content"].get("text"):
                tokens = trial["content"]["text"]["tokens"]
                assert {frozenset(token) for token in tokens} == {frozenset({"text", "shade"})}
                assert {type(token["shade"]) for token in tokens} <= {float, int, type(None)}
                trial["content"]["text"] = "".join(token["text"] for token in tokens)
            taken = person.session().slot
            assert taken is not None
            shown = [trial["content"].get(part) for part in ("explanation", "advice")]
            if taken.matched is not None and not any(shown):
                looks.setdefault((taken.matched, trial["position"]), set()).add(json.dumps(shape(trial)))
    assert all(len(alike) == 1 for alike in looks.values())


def test_who_comes_back_meets_the_same(study: Study) -> None:
    """The page is lost after half of the trials, and opened anew: the same trials, words and reveal."""
    tim = Person("tim", slug=study.slug)
    tim.arrive()
    slot = tim.session().slot
    assert slot is not None
    cards = {str(card.id): card for card in cards_of(slot, study)}
    half, told = slot.trials.count() // 2, None
    while tim.state["next"] < half:
        trial = next(t for t in tim.state["block"]["trials"] if t["position"] == tim.state["next"])
        view = cards[trial["id"]].view
        value = {"choice": view.expected} if view.check else get_kind(view.kind).preview(view)
        answer = {"trial": trial["id"], "value": dict(value), "rt_ms": 900, "shown_ms": 900}
        reply = tim.respond(answer)
        assert reply.status_code == 200, reply.content
        told = reply.json()["feedback"].get(trial["id"])
        assert tim.respond(answer).json()["feedback"].get(trial["id"]) == told, "sent twice, told the same"
        tim.refresh()
    before = tim.state
    back = Person("tim", slug=study.slug)
    assert back.join().status_code in (200, 201)
    after = back.refresh()
    assert Session.objects.filter(study=study).count() == 1
    assert (after["step"], after["next"], after["total"]) == (before["step"], half, before["total"])
    assert without_addresses(after["block"]) == without_addresses(before["block"])
    assert after["feedback"] == before["feedback"] == told
    assert Response.objects.filter(session__slot=slot).count() == half
    take_part(back)
    assert Response.objects.filter(session__slot=slot).count() == slot.trials.count()


def without_addresses(value: Any) -> Any:
    """The same without the addresses of pictures."""
    return [(path, leaf) for path, leaf in leaves(value) if path[-1] != "url"]
