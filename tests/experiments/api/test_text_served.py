"""A study of texts and pairs of pictures over the API: what the page gets, and which pictures it can open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from django.test import Client

from experiments.api.trial_scene import address_role, media_files
from experiments.models import Study, Trial
from experiments.tokens import MEDIA_ID_LENGTH, media_reference
from stimuli.render.png import decode
from stimuli.store.media_access import current_store
from tests.experiments.api.test_openapi import errors_of
from tests.experiments.toys import SLUG, Sorter, sorter, write_toy
from tests.toy.kind import PAIR
from tests.toy.tables import registered
from tests.world import opened_study

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db
TEXTS, CHECKS = 4, 2


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Study]:
    with registered():
        yield opened_study(write_toy(tmp_path / "toy"))


@pytest.fixture
def ada(toy: Study) -> Sorter:
    person = sorter("ada")
    person.arrive()
    return person


def served(person: Sorter) -> list[tuple[Trial, dict[str, Any]]]:
    """Every sorting trial as it is stored and as the page got it."""
    rows = {str(trial.pk): trial for trial in person.trials()}
    told = [t for t in person.state["block"]["trials"] if t["kind"] == "sort"]
    return [(rows[t["id"]], t["content"]) for t in told]


def document(name: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(current_store().get(name))
    return stored


def addresses(person: Sorter) -> list[str]:
    return [picture["url"] for _, content in served(person) for picture in content["pair"]]


def test_it_serves_every_trial_of_the_block(ada: Sorter) -> None:
    kinds = [trial["kind"] for trial in ada.state["block"]["trials"]]
    assert (kinds.count("sort"), kinds.count("instructed")) == (TEXTS, CHECKS)
    assert len(ada.trials()) == TEXTS + CHECKS == ada.state["total"]


def test_the_pieces_together_are_the_text_that_was_stored_without_marks(ada: Sorter) -> None:
    for trial, content in served(ada):
        assert trial.stimulus is not None
        plain = document(trial.stimulus.image_file)["text"]
        assert " " in plain, "a sentence has several words"
        assert "".join(piece["text"] for piece in content["text"]["tokens"]) == plain


def test_a_shade_is_a_darkness_or_none(ada: Sorter) -> None:
    shades = [piece["shade"] for _, content in served(ada) for piece in content["text"]["tokens"]]
    assert all(shade is None or 0 < shade <= 1 for shade in shades)
    assert any(shade is not None for shade in shades), "explained texts are marked somewhere"


def test_the_shades_are_those_of_the_trial_s_condition(ada: Sorter) -> None:
    """Marks of one method on a text must not appear under another: each trial has its stimulus's own."""
    for trial, content in served(ada):
        assert trial.stimulus is not None and trial.explained
        stored = document(trial.stimulus.explanation_file)["tokens"]
        told = [(piece["text"], piece["shade"] or 0) for piece in content["text"]["tokens"]]
        assert told == [(piece["text"], piece["shade"] or 0) for piece in stored]


def test_a_hidden_explanation_leaves_no_shade(toy: Study) -> None:
    """The same text as one piece; the marks stay on the server."""
    Trial.objects.filter(slot__study=toy).update(explained=False)
    Study.objects.filter(pk=toy.pk).update(plan_digest="hidden")
    person = sorter("ben")
    person.arrive()
    for trial, content in served(person):
        assert trial.stimulus is not None
        text = document(trial.stimulus.image_file)["text"]
        assert content["text"]["tokens"] == [{"text": text, "shade": None}]


def test_every_picture_of_a_pair_is_open_to_its_session(ada: Sorter) -> None:
    urls = addresses(ada)
    assert len(urls) == len(set(urls)) == TEXTS * len(PAIR)
    for url in urls:
        reply = Client().get(url)
        assert reply.status_code == 200 and reply.content.startswith(b"\x89PNG\r\n")
        assert "private" in reply["Cache-Control"]


def test_a_pair_shows_the_pictures_that_the_plan_names(ada: Sorter) -> None:
    store = current_store()
    for trial, content in served(ada):
        stimuli = {row.role: row.stimulus for row in trial.others.select_related("stimulus")}
        assert set(stimuli) == set(PAIR)
        for role, picture in zip(PAIR, content["pair"], strict=True):
            shown = decode(Client().get(picture["url"]).content)
            assert np.array_equal(shown, decode(store.get(stimuli[role].image_file)))
            size = stimuli[role].width_px, stimuli[role].height_px
            assert (picture["width_px"], picture["height_px"]) == size


def test_no_picture_address_opens_a_text(ada: Sorter) -> None:
    session = ada.session()
    for trial, _ in served(ada):
        for part in ("image", "explanation", "tile", "tile_explanation"):
            reference = media_reference(session.media_id, str(trial.pk), part)
            assert Client().get(f"/m/{reference}").status_code == 404


def test_no_file_of_a_text_is_among_the_pictures_of_a_session(ada: Sorter) -> None:
    files = dict(media_files(ada.session()))
    assert files and all(picture.file.endswith(".png") for picture in files.values())
    assert {url.removeprefix("/m/") for url in addresses(ada)} <= set(files)


def test_a_pair_has_no_tiles_since_it_is_no_example(ada: Sorter) -> None:
    session = ada.session()
    trial, _ = served(ada)[0]
    for role in PAIR:
        reference = media_reference(session.media_id, str(trial.pk), address_role(role, "tile"))
        assert Client().get(f"/m/{reference}").status_code == 404


def test_the_pictures_of_another_session_stay_shut(toy: Study, ada: Sorter) -> None:
    ben = sorter("ben")
    ben.arrive()
    assert not set(addresses(ada)) & set(addresses(ben))
    for trial, _ in served(ada):
        for role in PAIR:
            stolen = media_reference(ben.session().media_id, str(trial.pk), address_role(role, "image"))
            assert Client().get(f"/m/{stolen}").status_code == 404


def test_an_address_with_a_letter_changed_opens_nothing(ada: Sorter) -> None:
    url = addresses(ada)[0]
    place = len("/m/") + MEDIA_ID_LENGTH
    for at in (place, len(url) - 2):
        other = "A" if url[at] != "A" else "B"
        assert Client().get(url[:at] + other + url[at + 1 :]).status_code == 404


def test_nothing_that_is_told_of_a_trial_names_its_source(ada: Sorter) -> None:
    told = json.dumps(ada.state["block"])
    for word in ("marked", "shuffled", "photo", "texts/", "input_gradient", "saliency", "reader", "desk"):
        assert word not in told, word


def test_the_answers_are_the_study_s_own_and_no_class_of_the_material(ada: Sorter) -> None:
    for _, content in served(ada):
        assert {(c["value"], c["text"]) for c in content["choices"]} == {
            ("single", "One"), ("several", "Several"), ("unsure", "Unsure"),
        }  # fmt: skip
        assert len({c["key"] for c in content["choices"]}) == 3


@pytest.mark.parametrize("value", [{"choice": "plural"}, {"choice": ""}, {"choice": ["single"]}, {}])
def test_a_class_of_the_material_is_no_answer(ada: Sorter, value: dict[str, Any]) -> None:
    trial, _ = served(ada)[0]
    first = ada.trials()[0]
    assert trial.pk == first.pk
    reply = ada.respond({"trial": str(trial.pk), "value": value, "rt_ms": 1, "shown_ms": 1})
    assert reply.status_code == 400 and "choice" in reply.json()["error"]["message"]


def test_half_of_the_trials_have_a_right_answer_in_the_words_of_the_answers(toy: Study) -> None:
    rights = Trial.objects.filter(slot__study=toy, kind="sort").order_by("slot", "position")
    by_slot: dict[int, list[str | None]] = {}
    for slot, right in rights.values_list("slot_id", "right"):
        by_slot.setdefault(slot, []).append(right)
    for row in by_slot.values():
        assert len(row) == TEXTS and sum(right is not None for right in row) == TEXTS // 2
        assert {right for right in row if right} <= {"single", "several"}


def test_a_whole_life_ends_with_every_answer_stored(ada: Sorter) -> None:
    for trial in ada.trials():
        value = {"choice": trial.expected or "unsure"}
        answer = {"trial": str(trial.pk), "value": value, "rt_ms": 900, "shown_ms": 900}
        assert ada.respond(answer).status_code == 200
    ada.refresh()
    assert ada.state["step"] in ("comment", "finish") and ada.finish().status_code == 200
    session = ada.session()
    assert session.study.slug == SLUG and session.responses.count() == TEXTS + CHECKS
    assert session.verdict == "passed"


def test_a_store_that_does_not_answer_is_asked_again_and_changes_nothing(
    ada: Sorter, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ada.state["block"]["trials"]
    [picture, *_] = addresses(ada)
    working = settings.STORAGE_URL
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    # Nothing listens there.
    settings.STORAGE_URL = "s3://bucket/stimuli?endpoint=http://127.0.0.1:1"
    state = ada.call("GET", "/api/session/")
    assert state.status_code == 503 and errors_of("Error", state.json()) == []
    assert state.json()["error"]["code"] == "unavailable"
    for reply in (state, Client().get(picture)):
        assert reply.status_code == 503 and reply["Retry-After"] == "2"
        assert "no-store" in reply["Cache-Control"]
    settings.STORAGE_URL = working
    assert ada.refresh()["block"]["trials"] == before and Client().get(picture).status_code == 200
