"""Nothing that a rater's browser gets tells which method, control or anchor it shows, or what was changed."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from experiments.api.trial_scene import media_files
from experiments.models import Study, Trial
from experiments.opening.picture_lengths import SPREAD_BYTES
from stimuli.store.png_padding import LEAST_BYTES
from tests.experiments.api.test_blindness import ADDRESS, TELLING_KEYS, leaves, shape
from tests.experiments.protocols import RATING, TWO_MODELS, opened, take_part
from tests.world import Person

pytestmark = pytest.mark.django_db
TABLES = (
    RATING.replace('asked = ["q1", "q2"]', 'asked = ["q1", "q5", "q6"]\nanchors = 2')
    .replace("saliency-coarse", "tells_coarse")
    .replace("saliency-fine", "tells_fine")
    + """
[[conditions]]
name = "tells_control"
role = "control"
predictor = "fine"
explainer = { name = "random" }
"""
)
SECRETS = ("tells_", "saliency", "random", "coarse", "fine", "anchor", "light", "strong", "control", "round-")


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return opened(tmp_path, "ratings", "rating", TABLES, sources=TWO_MODELS, sittings=2)


@pytest.fixture
def people(study: Study) -> list[Person]:
    """One person in every list of the first rounds, at the first page, and one who is there again."""
    made = [Person(f"p{number}", slug=study.slug, submission=f"s{number}") for number in range(3)]
    for person in made:
        person.arrive()
    take_part(Person("p9", slug=study.slug, submission="first"))
    back = Person("p9", slug=study.slug, submission="second")
    back.arrive()
    return [*made, back]


def pages(person: Person) -> Iterator[tuple[Trial, dict[str, Any]]]:
    """Each rating with what the browser is given of it."""
    plan = {str(trial.pk): trial for trial in person.trials()}
    for sent in person.state["block"]["trials"]:
        if sent["kind"] == "rate":
            yield plan[sent["id"]], sent


def test_every_condition_and_every_anchor_looks_alike(people: list[Person]) -> None:
    """Keys, types and lengths are the same wherever the same questions are asked. A question is left out
    where there is no copy, which says something about the picture and its model alone."""
    looks: dict[frozenset[str], set[str]] = defaultdict(set)
    roles, anchors = set(), set()
    for person in people:
        for trial, sent in pages(person):
            assert trial.condition is not None
            roles.add(trial.condition.name)
            anchors.add(bool(trial.extra.get("anchor")))
            assert not [path for path, _ in leaves(sent) if TELLING_KEYS & set(path)]
            asked = frozenset(row["id"] for row in sent["content"]["questions"])
            # The order of questions is the person's; an answer is as long as its word.
            sent["content"]["questions"].sort(key=lambda row: row["id"])
            label = sent["content"].pop("label")
            assert label.casefold() in {"left", "right"}
            looks[asked].add(json.dumps(shape(sent)))
    assert roles == {"tells_coarse", "tells_fine", "tells_control"} and anchors == {True, False}
    assert {len(alike) for alike in looks.values()} == {1}, looks


def test_no_word_on_the_wire_tells(people: list[Person]) -> None:
    for person in people:
        for _, value in leaves(person.state):
            text = str(value).casefold()
            if ADDRESS.fullmatch(str(value)) or text == str(person.state.get("token", "")).casefold():
                continue
            assert not [word for word in SECRETS if word in text], value


def test_an_address_belongs_to_one_picture_of_one_page(people: list[Person]) -> None:
    """The picture that a question compares with is the page's own; all others have addresses of their own,
    an anchor too that the same person meets again."""
    meant: dict[str, tuple[str, str]] = {}
    for number, person in enumerate(people):
        for _, sent in pages(person):
            content = sent["content"]
            shown = {"image": content["image"], "mark": content["mark"]}
            for row in content["questions"]:
                if row["pair"]:
                    first, copy = row["pair"]
                    assert (first["image"], first["mark"]) == (content["image"], content["mark"])
                    shown |= {f"{row['id']} image": copy["image"], f"{row['id']} mark": copy["mark"]}
            assert len({media["url"] for media in shown.values()}) == len(shown)
            for media in shown.values():
                assert ADDRESS.fullmatch(media["url"])
                where = (f"{number}", sent["id"])
                assert meant.setdefault(media["url"], where) == where
    assert len(meant) > 4 * 8 * 2


def test_bytes_and_lengths_are_those_of_the_address_alone(study: Study, people: list[Person]) -> None:
    """Of maps, controls and copies alike: no two addresses have the same bytes, and each length lies where
    the longest picture of its part puts it, whichever picture it is."""
    served: set[bytes] = set()
    count, files = 0, defaultdict(set)
    for person in people:
        for reference, picture in media_files(person.session()):
            content = Client().get(f"/m/{reference}").content
            least = study.picture_bytes[picture.part] + LEAST_BYTES
            assert least <= len(content) < least + SPREAD_BYTES
            served.add(hashlib.sha256(content).digest())
            files[picture.part].add(picture.file)
            count += 1
    assert len(served) == count
    assert len(files["explanation"]) > 8 * 3, "with those of copies"


def test_every_list_is_read_by_the_same_queries(people: list[Person]) -> None:
    """So that neither time nor way of reading tells what is in it."""
    counts = set()
    for person in people:
        with CaptureQueriesContext(connection) as queries:
            assert person.call("GET", "/api/session/").status_code == 200
        counts.add(len(queries))
    assert len(counts) == 1
