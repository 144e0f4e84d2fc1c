"""Gates as values: which a session meets, in which order, and what their pages let pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments.definition.study import StudyDefinition
from experiments.errors import InvalidRequest
from experiments.gates import GATES, get_gate, instructions
from experiments.gates.base import PLACES, Stop, answers_to, flag_of, limit_of, question_row
from experiments.gates.device import described_device
from experiments.gates.forms import FORMS
from experiments.gates.instructions import help_text
from experiments.gates.plan import gate_plan
from experiments.models import Gate, Session, Study
from experiments.selectors import definition_of
from experiments.sessions import lifecycle
from experiments.wording.smallest_window import PHONE, windows_of
from stimuli.errors import UnknownName
from tests.world import WINDOW, Person

pytestmark = pytest.mark.django_db


def kinds(study: Study, arm: tuple[bool, ...] | None) -> list[str]:
    return [stop.kind for stop in gate_plan(study, arm)]


def test_it_follows_the_paradigm_and_what_the_study_has(small: Study) -> None:
    before = ["device", "consent", "questions_before", "instructions", "quiz", "practice"]
    assert kinds(small, None) == [*before, "questions_after"]
    assert kinds(small, (True, True)) == [*before, "instructions_arm", "questions_after"]
    bare = dict(small.definition, quiz=[], questions=[])
    del bare["screening"]["quiz_attempts_max"]
    Study.objects.filter(pk=small.pk).update(definition=bare, digest="bare")
    small.refresh_from_db()
    assert kinds(small, None) == ["device", "consent", "instructions", "practice"]


def test_it_stands_in_the_order_of_places(small: Study) -> None:
    places = [PLACES.index(stop.place) for stop in gate_plan(small, (True, False))]
    assert places == sorted(places)


def test_it_counts_the_tries_that_the_rules_allow(small: Study) -> None:
    tries = {stop.kind: stop.attempts_max for stop in gate_plan(small, None)}
    assert (tries["quiz"], tries["practice"], tries["consent"]) == (2, 3, None)


def test_it_tells_each_arm_its_own_words(small: Study) -> None:
    definition = definition_of(small)
    told = {}
    for number in range(9):
        person = Person(f"p{number}")
        person.arrive()
        session = person.session()
        assert session.slot is not None and session.slot.condition is not None
        stop = next(s for s in gate_plan(small, (True, True)) if s.place == "arm")
        told[session.slot.condition.role] = get_gate("instructions").text(session, stop)
    assert told["control"] == told["method"] == definition.texts["instructions_explained"]
    assert told["baseline"] == definition.texts["instructions_baseline"]


def test_the_help_holds_what_this_person_was_told_and_no_other_text(small: Study) -> None:
    definition = definition_of(small)
    common = definition.texts["instructions"]
    assert help_text(Session(study=small), definition) == common
    for number in range(9):
        person = Person(f"h{number}")
        person.arrive()
        session = person.session()
        assert session.slot is not None and session.slot.condition is not None
        is_explained = session.slot.condition.role != "baseline"
        mine, others = ("explained", "baseline") if is_explained else ("baseline", "explained")
        told = help_text(session, definition)
        assert told == f"{common}\n\n{definition.texts[f'instructions_{mine}']}"
        assert definition.texts[f"instructions_{others}"] not in told


def test_the_legend_is_for_those_whose_explanations_have_colours(small: Study) -> None:
    """The ends of viridis as published [van der Walt and Smith 2015]; nothing for the baseline, which
    is told nothing of what others see."""
    told = {}
    for number in range(9):
        person = Person(f"l{number}")
        person.arrive()
        session = person.session()
        assert session.slot is not None and session.slot.condition is not None
        told[session.slot.condition.role] = person.state["study"]["legend"]
    assert told["baseline"] is None and told["control"] == told["method"]
    assert (told["method"]["colours"][0], told["method"]["colours"][-1]) == ("#440154", "#fde725")
    assert told["method"]["ends"] == "importance" and len(told["method"]["colours"]) == 9


def test_it_has_a_page_before_each_block_if_blocks_differ(
    small: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a Latin square: a person who learns with marks, then without, reads a page before each block."""
    for module in (lifecycle, instructions):
        monkeypatch.setattr(module, "arm_of", lambda slot, study: (True, False))
    blocks = ["instructions_block_0", "instructions_block_1"]
    assert [kind for kind in kinds(small, (True, False)) if "block" in kind] == blocks
    ada = Person("ada")
    ada.arrive("trials")
    texts = []
    while ada.state["step"] in ("instructions", "trials"):
        if ada.state["step"] == "instructions":
            texts.append(ada.state["page"]["html"])
            ada.gate({"read": True})
        else:
            trials = {t.pk: t for t in ada.trials()}
            for trial in ada.state["block"]["trials"]:
                if trial["position"] >= ada.state["next"]:
                    assert ada.respond(ada.good_response(trials[int(trial["id"])])).status_code == 200
            ada.refresh()
    passed = Gate.objects.filter(session=ada.session(), kind__startswith="instructions_block")
    assert list(passed.order_by("id").values_list("kind", flat=True)) == blocks
    assert "No coloured areas" in texts[-1]


@pytest.mark.pure
@pytest.mark.parametrize(
    "value", [{}, {"agree": 1}, {"agree": None}, {"agree": True, "more": 1}, {"no": True}]
)
def test_it_takes_a_flag_and_nothing_else(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="true or false"):
        flag_of(value, "agree")


def test_consent_alone_ends_a_session_by_the_persons_will(small: Study) -> None:
    ada, bo = Person("ada"), Person("bo")
    for person in (ada, bo):
        person.arrive("consent")
    assert ada.gate({"agree": False}).json()["step"] == "finish"
    assert ada.session().state == Session.State.DECLINED
    assert bo.gate({"agree": True, "device": dict(WINDOW)}).status_code == 200
    assert bo.session().device == WINDOW


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"width_px": "1280"}, "value.width_px"),
        ({"width_px": True}, "value.width_px"),
        ({"width_px": 100_001}, "value.width_px"),
        ({"pixel_ratio": -1}, "value.pixel_ratio"),
        ({"touch": 1}, "value.touch"),
        ({"language": "x" * 41}, "value.language"),
        ({"name": "Eve"}, "value.name"),
    ],
)
def test_it_names_what_is_wrong_with_a_device(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        described_device({**WINDOW, **change}, "value")
    assert set(caught.value.fields) == {field}


def test_it_takes_a_device_as_it_is_at_its_limits() -> None:
    for change in ({"width_px": 0}, {"width_px": 100_000}, {"pixel_ratio": 2}, {"language": "x" * 40}):
        assert described_device({**WINDOW, **change}, "value") == {**WINDOW, **change}
    with pytest.raises(InvalidRequest, match="must be an object"):
        described_device([], "value")


def test_a_small_window_does_not_pass_and_is_not_described(small: Study) -> None:
    gate, session = get_gate("device"), Session(study=small)
    stop = Stop("device", "device", "start")
    [needed] = windows_of(definition_of(small))
    exact = {**WINDOW, "width_px": needed.width_px, "height_px": needed.height_px}
    assert gate.judge(session, stop, exact).passed is True
    for side in ("width_px", "height_px"):
        judged = gate.judge(session, stop, {**exact, side: exact[side] - 1})
        assert (judged.passed, judged.value, judged.device) == (False, {"fits": False}, None)


def test_a_phone_passes_only_if_the_study_lets_phones_in(small: Study) -> None:
    gate, stop = get_gate("device"), Stop("device", "device", "start")
    phone = {**WINDOW, "width_px": PHONE[0], "height_px": PHONE[1], "touch": True}
    assert gate.judge(Session(study=small), stop, phone).passed is False
    definition = small.definition | {"device": {"phones": True}}
    digest = StudyDefinition.model_validate(definition).digest
    Study.objects.filter(pk=small.pk).update(definition=definition, digest=digest)
    open_to_phones = Session(study=Study.objects.get(pk=small.pk))
    assert gate.judge(open_to_phones, stop, phone).passed is True
    assert gate.judge(open_to_phones, stop, {**phone, "width_px": 320}).passed is False


QUESTIONS = [
    question_row("pick", "choice", "Which?", choices=[("a", "A"), ("b", "B")]),
    question_row("age", "number", "Age?", min=18, max=99),
    question_row("free", "text", "Why?", required=False, max_length=5),
    question_row("shown", "example", "So.", label="A", required=False),
]
FINE: dict[str, Any] = {"pick": "a", "age": 18, "free": "12345"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"pick": "c"}, "value.pick"),
        ({"pick": ""}, "value.pick"),
        ({"age": 17}, "value.age"),
        ({"age": 100}, "value.age"),
        ({"age": True}, "value.age"),
        ({"age": 18.0}, "value.age"),
        ({"free": "123456"}, "value.free"),
        ({"free": 7}, "value.free"),
        ({"shown": "A"}, "value.shown"),
        ({"more": 1}, "value.more"),
    ],
)
def test_it_names_each_answer_that_does_not_fit(change: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        answers_to(QUESTIONS, {**FINE, **change})
    assert set(caught.value.fields) == {field}


def test_it_keeps_answers_at_their_limits_and_leaves_out_what_was_left_out() -> None:
    assert answers_to(QUESTIONS, FINE) == FINE
    assert answers_to(QUESTIONS, {"pick": "b", "age": 99, "free": None}) == {"pick": "b", "age": 99}
    with pytest.raises(InvalidRequest) as caught:
        answers_to(QUESTIONS, {})
    assert set(caught.value.fields) == {"value.pick", "value.age"}


def test_it_prints_keys_for_two_answers_and_for_more() -> None:
    assert [c["key"] for c in QUESTIONS[0]["choices"]] == ["f", "j"]
    many = question_row("q", "choice", "?", choices=[(str(n), str(n)) for n in range(11)])
    assert [c["key"] for c in many["choices"]] == [*"123456789", "", ""]


def test_it_reads_the_limit_of_a_rule_or_its_default(small: Study) -> None:
    definition = definition_of(small)
    assert limit_of(definition, "quiz_attempts_max", 9) == 2
    assert limit_of(definition, "no_such_rule", 9) == 9
    assert limit_of(definition, "total_minutes", 9) == 9, "a pair is no limit of tries"


def test_a_try_that_is_sent_again_is_known_by_what_was_stored() -> None:
    quiz, device = get_gate("quiz"), get_gate("device")
    assert quiz.is_same({"task": "a", "more": 1}, {"task": "a"})
    assert not quiz.is_same({"task": "b"}, {"task": "a"})
    assert device.is_same({"width_px": 1}, {"fits": True}), "a device is described, only its fit is stored"


def test_it_warns_before_the_consent_if_texts_may_hurt(small: Study) -> None:
    gate, session = get_gate("consent"), Session(study=small)
    stop = Stop("consent", "consent", "start")
    assert gate.text(session, stop) == definition_of(small).texts["consent"]
    warned = dict(small.definition, ethics={**small.definition["ethics"], "content_warning": "Rude words."})
    Study.objects.filter(pk=small.pk).update(definition=warned, digest="warned")
    small.refresh_from_db()
    assert gate.text(Session(study=small), stop).startswith("> **Rude words.**\n\n# consent")


def test_practice_passes_from_the_number_that_the_study_says(small: Study) -> None:
    gate, session = get_gate("practice"), Session(study=small)
    (stop,) = gate.stops(small, None)
    right = {row["id"]: row["answer"] for row in small.practice if not row["example"]}
    needed = definition_of(small).practice.correct_min
    for wrong in range(len(right) + 1):
        given = {
            name: answer if place >= wrong else "AB"["BA".index(answer)]
            for place, (name, answer) in enumerate(right.items())
        }
        assert gate.judge(session, stop, given).passed == (len(right) - wrong >= needed), wrong


def test_the_quiz_passes_only_if_all_is_right(small: Study) -> None:
    gate, session = get_gate("quiz"), Session(study=small)
    (stop,) = gate.stops(small, None)
    assert gate.judge(session, stop, {"task": "machine"}).passed is True
    assert gate.judge(session, stop, {"task": "truth"}).passed is False
    assert gate.stops(small, None) == (replace(stop, attempts_max=2),)


def test_it_takes_any_whole_number_of_at_most_nine_digits_if_the_question_has_no_limits() -> None:
    question = question_row("n", "number", "How many?")
    for number in (10**9, -(10**9), 0):
        assert answers_to([question], {"n": number}) == {"n": number}
    for number in (10**9 + 1, -(10**9) - 1):
        with pytest.raises(InvalidRequest):
            answers_to([question], {"n": number})


def test_a_question_row_has_every_field_of_the_wire() -> None:
    assert question_row("q", "text", "Why?", max_length=5) == {
        "id": "q", "kind": "text", "prompt": "Why?", "choices": None, "required": True, "label": None,
        "image": None, "explanation": None, "text": None, "low": None, "high": None,
        "min": None, "max": None, "max_length": 5,
    }  # fmt: skip
    assert question_row("q", "choice", "?", choices=[("a", "A")])["choices"] == [
        {"value": "a", "text": "A", "key": "1"}
    ]


def test_instructions_are_read_and_nothing_else(small: Study) -> None:
    gate, session = get_gate("instructions"), Session(study=small)
    (stop,) = gate.stops(small, None)
    judged = gate.judge(session, stop, {"read": True})
    assert (judged.value, judged.passed, judged.ends) == ({"read": True}, True, False)
    for value in ({"read": False}, {"read": 1}, {}):
        with pytest.raises(InvalidRequest) as caught:
            gate.judge(session, stop, value)
        assert set(caught.value.fields) == {"value.read"}


def test_practice_shows_examples_with_their_label_and_asks_about_the_others(small: Study) -> None:
    gate = get_gate("practice")
    asked = gate.questions(small, gate.stops(small, None)[0])
    assert [row["id"] for row in asked] == [row["id"] for row in small.practice]
    for question, row in zip(asked, small.practice, strict=True):
        assert question["image"] == {key: row[key] for key in ("file", "width_px", "height_px")}
        if row["example"]:
            expected: tuple[Any, ...] = ("example", False, row["answer"], None)
        else:
            choices = [{"value": "A", "text": "A", "key": "f"}, {"value": "B", "text": "B", "key": "j"}]
            expected = ("sort", True, None, choices)
        assert tuple(question[key] for key in ("kind", "required", "label", "choices")) == expected
    assert {row["example"] for row in small.practice} == {True, False}
    assert gate.files(small) == {row["id"]: row["file"] for row in small.practice}


class Reader:
    """Answers each question in its own way, so that a form shows whom it asked."""

    def recall(self, question: dict[str, Any], attempt: int) -> str:
        return f"recalled {question['id']} {attempt}"

    def tell(self, question: dict[str, Any]) -> str:
        return f"told {question['id']}"

    def see(self, question: dict[str, Any]) -> str:
        return f"saw {question['id']}"

    def match_examples(self, questions: list[dict[str, Any]], attempt: int) -> dict[str, Any]:
        return {"matched": [question["id"] for question in questions], "attempt": attempt}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("instructions", {"read": True}),
        ("quiz", {"a": "recalled a 1", "b": "recalled b 1"}),
        ("practice", {"matched": ["a", "b"], "attempt": 1}),
        ("training", {"a": "recalled a 1", "b": "recalled b 1"}),
        ("questions", {"a": "told a", "b": "told b"}),
        ("plates", {"a": "off", "b": "saw b"}),
    ],
)
def test_an_observer_fills_in_the_form_of_a_page(name: str, expected: dict[str, Any]) -> None:
    page = {"questions": [{"id": "a", "image": None}, {"id": "b", "image": {"url": "/m/b"}}]}
    assert FORMS.load(name)(Reader(), page, 1) == expected  # type: ignore[arg-type]


def test_an_observer_describes_its_window_and_agrees() -> None:
    described = FORMS.load("device")(Reader(), {}, 0)  # type: ignore[arg-type]
    assert described_device(described, "value") == described
    asked: dict[str, Any] = {"questions": []}
    assert FORMS.load("consent")(Reader(), asked, 0) == {"agree": True}  # type: ignore[arg-type]
    asked = {"questions": [{"id": "plates"}]}
    agreed = FORMS.load("consent")(Reader(), asked, 0)  # type: ignore[arg-type]
    assert agreed == {"agree": True, "plates": True}


def test_every_gate_has_a_form_for_observers() -> None:
    assert set(FORMS.names) == set(GATES.names)
    assert all(get_gate(name).name == name for name in GATES.names)
    with pytest.raises(UnknownName, match="did you mean 'plates'"):
        get_gate("plate")
