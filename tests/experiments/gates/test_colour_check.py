"""The gate `plates` over the API: its consent, what it asks and keeps, who goes on, and how it ends."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from experiments.definition.study import StudyDefinition
from experiments.drafting.plates import drawn_plates
from experiments.errors import InvalidStudy
from experiments.models import Gate, Study
from experiments.paradigms import get_paradigm
from experiments.study_files.load import load_study
from experiments.wording.sentence_tables import LANGUAGES, table_of
from tests.experiments.api.test_blindness import leaves, shape
from tests.experiments.checked import SHORT, VISIONS, checked_study, checked_tables, person
from tests.experiments.definitions import definition
from tests.experiments.protocols import SOLVE, write
from tests.world import seen_plates

pytestmark = pytest.mark.django_db

BLIND_REVIEW = get_paradigm("blind_review")
FORBIDDEN = {
    "en": r"ai|model|machine|predict\w*|explain\w*|explanation\w*|legible",
    "de": r"ki|modell\w*|maschine\w*|vorher\w*|erklär\w*|legible",
}


@pytest.fixture
def study(store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    return checked_study(tmp_path / "checked", monkeypatch)


def test_it_stands_after_the_consent_and_before_everything_else(study: Study) -> None:
    ada, met = person("ada"), []
    ada.join()
    while ada.state["step"] != "trials":
        met.append(ada.state["step"])
        ada.gate(ada.good_value())
    assert met == ["device", "consent", "plates", "instructions", "practice"]


def test_a_study_without_the_table_asks_nothing_of_the_kind(
    store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.experiments.protocols import opened

    plain = opened(tmp_path / "plain", "tasks", "blind_review", SHORT)
    assert plain.plates == [] and list(drawn_plates(definition())) == []
    ada = person("ada")
    ada.join()
    ada.gate(ada.good_value())
    assert ada.state["step"] == "consent" and ada.state["page"]["questions"] == []
    ada.gate(ada.good_value())
    assert ada.state["step"] == "instructions"
    assert Gate.objects.get(kind="consent").value == {"agree": True}
    ended = ada.call("POST", "/api/session/withdraw/", {"reason": "", "erase": False}).json()
    assert not ended["invites"] and not ended["has_check"]


# Consent


def test_its_consent_is_a_tick_of_its_own_on_the_same_page(study: Study) -> None:
    ada = person("ada")
    ada.arrive("consent")
    [tick] = ada.state["page"]["questions"]
    assert (tick["id"], tick["kind"], tick["required"]) == ("plates", "tick", False)
    assert "health" in tick["prompt"] and "no refusal" in tick["prompt"]


@pytest.mark.parametrize("tick", [{}, {"plates": False}])
def test_no_tick_is_no_refusal_of_the_study(study: Study, tick: dict[str, bool]) -> None:
    """Silence is none either: what is not sent was not ticked."""
    ada = person("ada", "skipped")
    ada.arrive("consent")
    reply = ada.gate({"agree": True, **tick})
    assert reply.status_code == 200 and ada.state["step"] == "finish"
    session = ada.session()
    assert (session.state, session.verdict) == ("finished", "screened")
    assert ada.state["page"]["kind"] == "screened"
    assert Gate.objects.get(kind="consent").value == {"agree": True, "plates": False}
    assert Gate.objects.get(kind="plates").value == {}


def test_a_reply_that_was_lost_is_given_again(study: Study) -> None:
    ada = person("ada", "skipped")
    ada.arrive("consent")
    digest = ada.state["page"]["digest"]
    for _ in range(2):
        reply = ada.gate({"agree": True}, step="consent", digest=digest)
        assert reply.status_code == 200 and reply.json()["step"] == "finish"
    assert ada.gate({"agree": True, "plates": True}, step="consent", digest=digest).status_code == 409


@pytest.mark.parametrize("value", [{"agree": True, "plates": "yes"}, {"agree": True, "plates": 1}])
def test_a_tick_is_true_or_false(study: Study, value: dict[str, Any]) -> None:
    ada = person("ada")
    ada.arrive("consent")
    refused = ada.gate(value)
    assert refused.status_code == 400
    assert set(refused.json()["error"]["fields"]) == {"value.plates"}


def test_refusing_the_study_asks_nothing_more(study: Study) -> None:
    ada = person("ada")
    ada.arrive("consent")
    ended = ada.gate({"agree": False}).json()
    assert ended["page"]["kind"] == "declined" and not Gate.objects.filter(kind="plates").exists()
    last = ada.finish().json()
    assert not last["invites"] and not last["has_check"]


# What the page is given


def test_no_answer_and_no_control_leaves_the_server(study: Study) -> None:
    """Two studies that differ in answers and controls alone give the same page."""
    ada = person("ada")
    ada.arrive("plates")
    given = json.dumps(ada.state["page"]["questions"])
    assert sum(row["control"] for row in study.plates) == 2
    mixed = [{**row, "answer": "4", "control": not row["control"]} for row in study.plates]
    Study.objects.filter(pk=study.pk).update(plates=mixed)
    ada.refresh()
    assert json.dumps(ada.state["page"]["questions"]) == given
    assert not {"answer", "control", "file"} & {key for path, _ in leaves(ada.state["page"]) for key in path}


def test_plates_differ_in_number_and_address_alone(study: Study) -> None:
    ada = person("ada")
    ada.arrive("plates")
    asked, *plates = ada.state["page"]["questions"]
    assert asked["id"] == "filter" and asked["image"] is None
    assert [plate["id"] for plate in plates] == [f"plate-{number}" for number in range(1, 13)]
    plain = [{**shape(plate), "id": ""} for plate in plates]
    assert all(each == plain[0] for each in plain)
    keys = [choice["key"] for choice in plates[0]["choices"]]
    assert keys == [*"0123456789", "n"]
    assert [choice["value"] for choice in plates[0]["choices"]] == [*"0123456789", "nothing"]


def test_each_plate_is_served_under_an_address_that_tells_nothing(study: Study) -> None:
    bodies = []
    for name in ("ada", "bea"):
        each = person(name)
        each.arrive("plates")
        for question in each.state["page"]["questions"][1:]:
            reply = each.call("GET", question["image"]["url"])
            assert reply.status_code == 200 and "Content-Disposition" not in reply
            bodies.append(reply.content)
    assert len(set(bodies)) == 24
    files = {row["file"].rsplit("/", 1)[-1].removesuffix(".png") for row in study.plates}
    addresses = json.dumps([question["image"] for question in each.state["page"]["questions"][1:]])
    assert not [file for file in files if file[:8] in addresses]
    # The address and the longest plate set the length, not the plate.
    longest = study.picture_bytes["plates"]
    assert all(longest < len(body) < longest + 2048 for body in bodies)


@pytest.mark.pure
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_of_it_says_what_the_study_is_about(language: str) -> None:
    import re

    words = table_of(language)["pages"]
    mine = {k: v for k, v in words.items() if k.startswith(("plates", "check_")) or k == "screened"}
    assert len(mine) > 10
    for name, text in mine.items():
        assert not re.search(rf"\b({FORBIDDEN[language]})\b", text, re.IGNORECASE), name
    results = [mine[f"check_{vision}"] for vision in VISIONS]
    assert len(set(results)) == 4
    said = {"en": ("a diagnosis", "optician"), "de": ("Diagnose", "Optiker")}[language]
    for text in (*results, mine["plates"]):
        assert said[0] in text.replace("*", "")
    assert all(said[1] in text for text in results)


# Answers


def test_answers_are_kept_one_by_one_and_a_reload_goes_on_after_them(study: Study) -> None:
    ada = person("ada")
    ada.arrive("plates")
    assert ada.state["page"]["kept"] == {}
    given = list(seen_plates(study, "ordinary").items())[:4]
    for question, choice in given:
        body = {"digest": ada.state["page"]["digest"], "question": question, "choice": choice}
        reply = ada.call("POST", "/api/session/plates/kept/", body)
        assert (reply.status_code, reply.json()) == (200, {"choice": choice})
    ada.join()
    assert ada.state["step"] == "plates" and ada.state["page"]["kept"] == dict(given)


def test_the_first_answer_stands_and_nothing_is_told_of_it(study: Study) -> None:
    ada = person("ada")
    ada.arrive("plates")
    right = study.plates[0]["answer"]
    replies = []
    for choice in ("9", right):
        body = {"digest": ada.state["page"]["digest"], "question": "plate-1", "choice": choice}
        replies.append(ada.call("POST", "/api/session/plates/kept/", body).json())
    assert right != "9" and replies == [{"choice": "9"}, {"choice": "9"}]
    body = {"digest": ada.state["page"]["digest"], "question": "plate-1", "choice": right}
    refused = ada.call("POST", "/api/session/plates/told/", body)
    assert refused.status_code == 400 and "correct" not in refused.json()


@pytest.mark.parametrize(
    ("question", "choice", "field"),
    [
        ("plate-99", "7", "value.plate-99"),
        ("plate-1", "77", "value.plate-1"),
        ("plate-1", 7, "value.plate-1"),
        ("plate-1", "", "value.plate-1"),
        ("filter", "7", "value.filter"),
    ],
)
def test_what_is_no_answer_is_not_kept(study: Study, question: str, choice: Any, field: str) -> None:
    ada = person("ada")
    ada.arrive("plates")
    body = {"digest": ada.state["page"]["digest"], "question": question, "choice": choice}
    refused = ada.call("POST", "/api/session/plates/kept/", body)
    assert refused.status_code == 400 and set(refused.json()["error"]["fields"]) == {field}
    assert not Gate.objects.filter(kind="plates_kept").exists()


def test_single_answers_are_kept_of_no_other_page_and_not_out_of_turn(study: Study) -> None:
    ada = person("ada")
    ada.arrive("plates")
    digest = ada.state["page"]["digest"]
    body = {"digest": digest, "question": "plate-1", "choice": "7"}
    stale = ada.call("POST", "/api/session/plates/kept/", {**body, "digest": "0" * 64})
    assert stale.status_code == 409 and stale.json()["error"]["code"] == "text_changed"
    assert ada.call("POST", "/api/session/practice/kept/", body).status_code == 409
    ada.gate(ada.good_value())
    assert ada.state["step"] == "instructions"
    late = ada.call("POST", "/api/session/plates/kept/", body)
    assert late.status_code == 409 and late.json()["error"]["code"] == "out_of_turn"
    other = {"digest": ada.state["page"]["digest"], "question": "x", "choice": "y"}
    refused = ada.call("POST", "/api/session/instructions/kept/", other)
    assert refused.status_code == 400 and "sent as a whole" in refused.json()["error"]["message"]
    assert ada.call("POST", "/api/session/trials/kept/", body).status_code == 404


def test_the_whole_page_needs_every_answer(study: Study) -> None:
    ada = person("ada")
    ada.arrive("plates")
    whole = ada.good_value()
    for name in ("filter", "plate-1", "plate-12"):
        part = {k: v for k, v in whole.items() if k != name}
        refused = ada.gate(part)
        assert set(refused.json()["error"]["fields"]) == {f"value.{name}"}
    assert ada.gate(whole).status_code == 200
    tried = Gate.objects.get(kind="plates")
    assert tried.value == whole and tried.passed is None and tried.text_digest
    assert tried.created_at >= ada.session().started_at


def test_the_check_can_be_left_out_in_its_middle_and_nothing_of_it_stays(study: Study) -> None:
    ada = person("ada")
    ada.arrive("plates")
    body = {"digest": ada.state["page"]["digest"], "question": "plate-1", "choice": "7"}
    ada.call("POST", "/api/session/plates/kept/", body)
    assert ada.gate({}).status_code == 200
    assert ada.state["page"]["kind"] == "screened"
    values = Gate.objects.filter(kind__startswith="plates").values_list("kind", "value")
    assert dict(values) == {"plates": {}, "plates_kept": {}}


def test_a_try_that_is_sent_again_must_be_the_stored_one(study: Study) -> None:
    """Left out holds nothing, so any other try would hold all of it too."""
    ada = person("ada", "reduced")
    ada.arrive("plates")
    digest, value = ada.state["page"]["digest"], ada.good_value()
    assert ada.gate(value, "plates", digest).json()["step"] == "finish"
    assert ada.gate(value, "plates", digest).json()["step"] == "finish"
    assert ada.gate({}, "plates", digest).status_code == 409
    assert Gate.objects.filter(kind="plates").count() == 1


def test_a_log_holds_no_answer(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    ada = person("ada")
    ada.arrive("plates")
    body = {"digest": ada.state["page"]["digest"], "question": "plate-1", "choice": "not-a-digit-7461"}
    ada.call("POST", "/api/session/plates/kept/", body)
    ada.gate({"plate-2": "not-a-digit-7461"})
    ada.gate(ada.good_value())
    said = [record.getMessage() for record in caplog.records if not record.name.startswith("django.db")]
    assert not [line for line in said if "7461" in line or "plate-1" in line]


# The study file


def mistakes(path: Path, tables: str, paradigm: str = "blind_review") -> list[str]:
    with pytest.raises(InvalidStudy) as caught:
        load_study(write(path, "tasks", paradigm, tables))
    return [str(problem) for problem in caught.value.problems]


def test_the_table_and_the_design_go_together(tmp_path: Path) -> None:
    asked = SOLVE.replace("[design]", '[design]\ncolour_vision = "plates"')
    [said] = mistakes(tmp_path / "a", asked)
    assert "has no [plates]" in said and "Add the table" in said
    [said] = mistakes(tmp_path / "b", SOLVE + "[plates]\n")
    assert "decides nothing here" in said


def test_other_paradigms_have_no_check(tmp_path: Path) -> None:
    from tests.experiments.protocols import RATING, TWO_MODELS

    path = write(tmp_path / "r", "ratings", "rating", RATING + "[plates]\n", sources=TWO_MODELS)
    with pytest.raises(InvalidStudy, match="rating has none"):
        load_study(path)


def test_a_key_of_the_table_that_is_wrong_is_named(tmp_path: Path) -> None:
    [said] = mistakes(tmp_path / "a", checked_tables("contols = 2"))
    assert "plates.contols" in said and "controls" in said


def test_the_definition_carries_the_table(tmp_path: Path) -> None:
    path = write(tmp_path / "a", "tasks", "blind_review", checked_tables("count = 14"))
    made: StudyDefinition = load_study(path)
    assert made.plates is not None and (made.plates.count, made.plates.controls) == (14, 2)


def test_colours_that_no_plate_can_have_are_told_before_anything_is_drawn(tmp_path: Path) -> None:
    [said] = mistakes(tmp_path / "a", checked_tables("severity = 0.1"))
    assert "such eyes read as well: choose a higher severity" in said


@pytest.mark.pure
def test_the_table_knows_the_lines_on_which_plates_are_drawn() -> None:
    from typing import get_args

    from experiments.definition.gate_page_tables import PlatesTable
    from stimuli.datasets.plates.colours import Line

    assert get_args(PlatesTable.model_fields["axis"].annotation) == get_args(Line)


PLATE_PX = 128
"""Two pixels for each of the 64 of CSS in which the study shows a picture."""


def test_a_draft_holds_plates_as_they_were_asked_for(store_folder: Path, tmp_path: Path) -> None:
    """Drawn by the generator itself: so many, with controls, each digit at most twice, none like another."""
    from stimuli.render import png
    from stimuli.store import open_store
    from tests.world import draft_study

    path = write(tmp_path / "a", "tasks", "blind_review", checked_tables("controls = 3"))
    rows = draft_study(path).plates
    assert [row["id"] for row in rows] == [f"plate-{number}" for number in range(1, 13)]
    assert sum(row["control"] for row in rows) == 3
    assert max(sum(row["answer"] == digit for row in rows) for digit in "0123456789") == 2
    assert {row["width_px"] for row in rows} == {PLATE_PX} and len({row["file"] for row in rows}) == 12
    assert [value for value, _ in rows[0]["choices"]] == [*"0123456789", "nothing"]
    store = open_store(str(store_folder))
    dark = [(png.decode(store.get(row["file"])).min(), row["control"]) for row in rows]
    assert max(low for low, control in dark if control) < min(low for low, control in dark if not control)


def test_the_same_study_has_the_same_plates(store_folder: Path, tmp_path: Path) -> None:
    from experiments.drafting.plates import store_plates
    from stimuli.store import open_store

    made = load_study(write(tmp_path / "a", "tasks", "blind_review", checked_tables("count = 6")))
    store = open_store(str(store_folder))
    first = store_plates(made, store)
    assert store_plates(made, store) == first
    assert store_plates(made.model_copy(update={"seed": 4}), store) != first
