"""How trials are put on the screen: what a study may declare, what its page is told, what the screen gate
takes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from experiments.errors import InvalidRequest
from experiments.gates.plan import gate_plan
from experiments.gates.screen import measured_screen
from experiments.models import Gate, Study
from stimuli.spec import content_key
from tests.experiments.definitions import definition
from tests.world import Person

BRIEF = {"fixation_ms": 500, "exposure_ms": 100, "mask_ms": 200}
NO_CARD: dict[str, Any] = {"px_per_mm": None, "distance_mm": None, "tries": []}


@pytest.mark.pure
@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"mask_ms": 100}, "mask_ms = 100 covers a stimulus that stays until the answer: give exposure_ms"),
        ({"phases": "all"}, "there is neither: give fixation_ms or exposure_ms, or leave phases out"),
        ({"distance": "blind_spot"}, 'is not known: set calibration = "card" as well'),
        ({"exposure_ms": 5}, "greater than or equal to 10"),
        ({"fixation_ms": 5001}, "less than or equal to 5000"),
    ],
)
def test_it_refuses_what_makes_no_sense(keys: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        definition(presentation=keys)


@pytest.mark.pure
def test_buttons_may_wake_after_the_exposure_and_examples_may_stay() -> None:
    design = {"min_view_ms": 3000, "reservoir": "always"}
    assert definition(presentation=BRIEF, design=design).presentation.exposure_ms == 100


def presented(study: Study, **keys: Any) -> None:
    changed = dict(study.definition, presentation=keys)
    Study.objects.filter(pk=study.pk).update(definition=changed, digest=content_key(keys))
    study.refresh_from_db()


@pytest.mark.django_db
def test_the_page_is_told_the_same_in_every_condition(small: Study) -> None:
    presented(small, **BRIEF, fullscreen=True)
    told = []
    roles = set()
    for number in range(9):
        person = Person(f"f{number}")
        person.arrive()
        session = person.session()
        assert session.slot is not None and session.slot.condition is not None
        roles.add(session.slot.condition.role)
        told.append(person.state["study"]["presentation"])
    assert roles == {"baseline", "control", "method"}
    assert all(each == told[0] for each in told)
    assert told[0] == {**BRIEF, "fullscreen": True, "phases": "test", "distance": "off"}


@pytest.mark.django_db
def test_the_screen_is_measured_after_consent_and_only_if_the_study_asks(small: Study) -> None:
    assert "screen" not in [stop.kind for stop in gate_plan(small, None)]
    presented(small, calibration="card", distance="blind_spot")
    before = [stop.kind for stop in gate_plan(small, None)]
    assert before.index("consent") < before.index("screen") < before.index("practice")


@pytest.mark.django_db
def test_who_has_no_card_goes_on_and_the_size_is_unknown(small: Study) -> None:
    presented(small, calibration="card")
    ada = Person("ada")
    ada.arrive("screen")
    page = ada.state["page"]
    assert page["kind"] == "screen" and "card" in page["html"]
    refused = ada.call("POST", "/api/session/screen/", {"digest": page["digest"], "value": {"px_per_mm": 0}})
    assert refused.status_code == 400
    assert set(refused.json()["error"]["fields"]) == {"value.px_per_mm", "value.tries"}
    reply = ada.call("POST", "/api/session/screen/", {"digest": page["digest"], "value": NO_CARD})
    assert reply.json()["step"] == "practice"
    [row] = Gate.objects.filter(session=ada.session(), kind="screen")
    assert (row.value, row.passed) == (NO_CARD, None)


@pytest.mark.pure
@pytest.mark.parametrize(
    "value",
    [
        NO_CARD,
        {"px_per_mm": 3.78, "distance_mm": None, "tries": []},
        {"px_per_mm": 18, "distance_mm": 570, "tries": [560.5, 579.5]},
    ],
)
def test_it_takes_what_a_screen_can_measure(value: dict[str, Any]) -> None:
    assert measured_screen(value) == value


@pytest.mark.pure
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"px_per_mm": True}, "px_per_mm"),
        ({"px_per_mm": 101}, "px_per_mm"),
        ({"px_per_mm": float("nan")}, "px_per_mm"),
        ({"distance_mm": 49}, "distance_mm"),
        ({"px_per_mm": None}, "distance_mm"),
        ({"tries": [570] * 21}, "tries"),
        ({"tries": "570"}, "tries"),
        ({"tries": [None]}, "tries"),
        ({"brand": "x"}, "brand"),
    ],
)
def test_it_names_what_no_screen_can_be(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        measured_screen({"px_per_mm": 3.78, "distance_mm": 570, "tries": [570], **change})
    assert list(refused.value.fields) == [f"value.{field}"]
