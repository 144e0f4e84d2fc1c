"""What each kind of trial puts on its page, takes as an answer, and says of it, written out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from experiments.kinds import KINDS, base, get_kind
from experiments.kinds.scoring import agreement, follows, is_as_asked, score
from experiments.kinds.solve import CANNOT_SAY
from stimuli.errors import UnknownName

pytestmark = pytest.mark.pure

CHOICES = ("husky", "wolf", "fox")
TRIAL = base.TrialView(
    position=3, block=0, phase="test", kind="predict", check="", condition="saliency", choices=CHOICES,
    expected="", truth="wolf", predicted="husky",
)  # fmt: skip
JUDGED = {"solution": "k1", "answer": "Wolf", "value": "wolf", "use": "task", "truth": "wolf"}
TRIALS: dict[str, base.TrialView] = {
    "learn": replace(TRIAL, kind="learn", phase="train", label="husky"),
    "learn, hidden": replace(TRIAL, kind="learn", phase="train"),
    "predict": TRIAL,
    "review": replace(TRIAL, kind="review", extra={"answer": "four legs"}),
    "review, right": replace(TRIAL, kind="review", extra=JUDGED),
    "review, blank": replace(TRIAL, kind="review", extra={**JUDGED, "use": "alone", "truth": ""}, truth=""),
    "review, known": replace(TRIAL, kind="review", extra={**JUDGED, "use": "known"}),
    "review, known wrong": replace(TRIAL, kind="review", extra={**JUDGED, "use": "known", "value": "fox"}),
    "solve": replace(TRIAL, kind="solve", extra={"grid": 3}),
    "solve, or not": replace(TRIAL, kind="solve", choices=(*CHOICES, CANNOT_SAY), extra={"grid": 3}),
    "solve, known": replace(
        TRIAL, kind="solve", extra={"grid": 3, "use": "known", "truth": "wolf", "planted": [0, 1, 2]}
    ),
    "solve, known, unplanted": replace(
        TRIAL, kind="solve", extra={"grid": 3, "use": "known", "truth": "wolf", "planted": []}
    ),
    "solve, no region": replace(TRIAL, kind="solve", extra={"grid": 3, "region": False}),
    "rate": replace(TRIAL, kind="rate", extra={"questions": ["q2", "q1"], "pairs": {"q1": ["", "noisy"]}}),
    "decide": replace(TRIAL, kind="decide", extra={"step": "first"}),
    "decide, again": replace(TRIAL, kind="decide", extra={"step": "second"}, label="husky"),
    "instructed": replace(TRIAL, kind="instructed", check="instructed", expected="wolf"),
}
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("learn", {"seen": True}),
    ("learn, hidden", {"choice": "fox"}),
    ("predict", {"choice": "husky"}),
    ("review", {"accept": True}),
    ("review", {"accept": False}),
    ("solve", {"choice": "fox", "region": [0]}),
    ("solve", {"choice": "fox", "region": [0, 4, 8]}),
    ("solve", {"choice": "fox", "region": list(range(9))}),
    ("solve, or not", {"choice": CANNOT_SAY, "region": None}),
    ("solve, or not", {"choice": CANNOT_SAY}),
    ("solve, or not", {"choice": "fox", "region": [1]}),
    ("solve, no region", {"choice": "fox"}),
    ("solve, no region", {"choice": "fox", "region": None}),
    ("solve, no region", {"choice": "fox", "region": [2]}),
    ("rate", {"q1": 1, "q2": 5}),
    ("decide", {"choice": "fox"}),
    ("decide, again", {"choice": "husky"}),
    ("instructed", {"choice": "wolf"}),
    ("instructed", {"choice": "fox"}),
]
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("learn", {}, "got the keys none"),
    ("learn", {"seen": False}, "or another value"),
    ("learn", {"seen": 1}, "or another value"),
    ("learn", {"seen": True, "choice": "fox"}, "'seen', 'choice'"),
    ("learn", {"choice": "fox"}, "'choice'"),
    ("learn, hidden", {"seen": True}, "'seen'"),
    ("predict", {}, "got the keys none"),
    ("predict", {"choice": "cat"}, "one of husky, wolf, fox"),
    ("predict", {"choice": None}, "one of husky, wolf, fox"),
    ("predict", {"choice": "fox", "more": 1}, "'choice', 'more'"),
    ("predict", {"value": "fox"}, "'value'"),
    ("instructed", {"choice": "cat"}, "one of husky, wolf, fox"),
    ("decide", {"choice": "cat"}, "one of husky, wolf, fox"),
    ("decide, again", {"choice": "fox", "more": 1}, "'choice', 'more'"),
    ("decide, again", {}, "got the keys none"),
    ("review", {"accept": 1}, "or another value"),
    ("review", {"accept": True, "more": 1}, "'accept', 'more'"),
    ("review", {}, "got the keys none"),
    ("solve", {"region": [0]}, "got the keys 'region'"),
    ("solve", {"choice": "fox", "region": [0], "more": 1}, "got the keys"),
    ("solve", {"choice": "cat", "region": [0]}, "one of husky, wolf, fox"),
    ("solve", {"choice": "fox"}, "region is missing"),
    ("solve", {"choice": "fox", "region": None}, "region is missing"),
    ("solve", {"choice": "fox", "region": []}, "a list of 1 to 9 cells of the 3 x 3"),
    ("solve", {"choice": "fox", "region": list(range(10))}, "a list of 1 to 9 cells"),
    ("solve", {"choice": "fox", "region": (0,)}, "a list of 1 to 9 cells"),
    ("solve", {"choice": "fox", "region": [9]}, "from 0 to 8 in ascending order"),
    ("solve", {"choice": "fox", "region": [-1]}, "got '-1' after -1"),
    ("solve", {"choice": "fox", "region": [2, 2]}, "got '2' after 2"),
    ("solve", {"choice": "fox", "region": [2, 1]}, "got '1' after 2"),
    ("solve", {"choice": "fox", "region": [True]}, "whole numbers"),
    ("solve", {"choice": "fox", "region": [1.0]}, "whole numbers"),
    ("solve, or not", {"choice": CANNOT_SAY, "region": [0]}, "must be null"),
    ("solve, or not", {"choice": CANNOT_SAY, "region": []}, "must be null"),
    ("rate", {"q1": 3}, "q2 is still to be answered"),
    ("rate", {"q1": 3, "q2": 0}, "q2 must be a whole number from 1 to 5"),
    ("rate", {"q1": 6, "q2": 1}, "q1 must be a whole number from 1 to 5"),
    ("rate", {"q1": True, "q2": 1}, "q1 must be"),
    ("rate", {"q1": 3.0, "q2": 1}, "q1 must be"),
    ("rate", {"q1": 3, "q2": 1, "q3": 1}, "q3 is not asked here"),
]


def kind_of(trial: base.TrialView) -> base.TrialKind:
    return get_kind(trial.kind)


def test_it_has_a_trial_of_every_kind_here() -> None:
    assert {trial.kind for trial in TRIALS.values()} == set(KINDS)
    for name in KINDS:
        assert get_kind(name).name == name
    with pytest.raises(UnknownName, match="predict"):
        get_kind("predicts")


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_it_takes_what_fits(name: str, value: dict[str, Any]) -> None:
    trial = TRIALS[name]
    kind_of(trial).check(trial, value)
    accepted = kind_of(trial).accepted(trial)
    assert not accepted or value in accepted


@pytest.mark.parametrize(("name", "value", "words"), BAD)
def test_it_names_what_does_not_fit(name: str, value: dict[str, Any], words: str) -> None:
    trial = TRIALS[name]
    with pytest.raises(base.InvalidResponse, match=words):
        kind_of(trial).check(trial, value)
    # As JSON, in which 1 is not true.
    assert json.dumps(value) not in map(json.dumps, kind_of(trial).accepted(trial))


def test_it_names_the_fields_of_a_rating_and_of_a_region() -> None:
    refusals: list[tuple[str, dict[str, Any], set[str]]] = [
        ("rate", {"q1": 9, "q4": 1}, {"q1", "q2", "q4"}),
        ("solve", {"choice": "fox"}, {"region"}),
    ]
    for name, value, fields in refusals:
        with pytest.raises(base.InvalidResponse) as refused:
            kind_of(TRIALS[name]).check(TRIALS[name], value)
        assert set(refused.value.fields) == fields


def test_it_lists_at_most_eight_keys_each_cut() -> None:
    assert base.keys_of({}) == "none"
    keys = {f"{number:030d}": 0 for number in range(9)}
    assert base.keys_of(keys) == ", ".join(repr("0" * 20) for _ in range(8))


@pytest.mark.parametrize("name", TRIALS)
def test_its_preview_is_an_answer(name: str) -> None:
    trial = TRIALS[name]
    kind_of(trial).check(trial, kind_of(trial).preview(trial))


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("learn", [{"seen": True}]),
        ("learn, hidden", []),
        ("predict", [{"choice": choice} for choice in CHOICES]),
        ("instructed", [{"choice": choice} for choice in CHOICES]),
        ("decide", [{"choice": choice} for choice in CHOICES]),
        ("review", [{"accept": True}, {"accept": False}]),
        ("solve", []),
        ("rate", []),
    ],
)
def test_it_lists_every_answer_if_they_are_few(name: str, accepted: list[dict[str, Any]]) -> None:
    assert list(kind_of(TRIALS[name]).accepted(TRIALS[name])) == accepted


REVIEW = {"solution": "k1", "answer": "wolf", "use": "task", "answer_right": True}
OLD_REVIEW = {"solution": "", "answer": "four legs", "use": "task", "answer_right": None}
"""Of a study that was opened before solutions had a use."""


@pytest.mark.parametrize(
    ("name", "value", "answers", "choice", "cells"),
    [
        ("learn", {"seen": True}, (), None, {}),
        ("learn, hidden", {"choice": "fox"}, ("fox",), "fox", {}),
        ("predict", {"choice": "fox"}, ("fox",), "fox", {}),
        ("instructed", {"choice": "fox"}, ("fox",), None, {}),
        ("review", {"accept": True}, ("accept",), None, {**OLD_REVIEW, "accepted": True}),
        ("review, right", {"accept": True}, ("accept",), None, {**REVIEW, "accepted": True}),
        ("review, right", {"accept": False}, ("reject",), None, {**REVIEW, "accepted": False}),
        (
            "review, blank",
            {"accept": False},
            ("reject",),
            None,
            {**REVIEW, "use": "alone", "answer_right": None, "accepted": False},
        ),
        (
            "review, known wrong",
            {"accept": False},
            ("reject",),
            None,
            {**REVIEW, "use": "known", "answer": "fox", "answer_right": False, "accepted": False},
        ),
        (
            "solve",
            {"choice": "fox", "region": [1, 2]},
            ("fox",),
            "fox",
            {"region_cells": 2, "region": [1, 2], "use": "task"},
        ),
        ("solve", {"choice": "fox"}, ("fox",), "fox", {"region_cells": None, "region": None, "use": "task"}),
        ("decide", {"choice": "fox"}, ("fox",), "fox", {"step": "first", "advice": ""}),
        ("decide, again", {"choice": "fox"}, ("fox",), "fox", {"step": "second", "advice": "husky"}),
        ("rate", {"q2": 5, "q1": 1}, ("1", "5"), None, {"questions_asked": ["q2", "q1"], "anchor": False}),
    ],
)
def test_it_says_what_an_answer_gives(
    name: str, value: dict[str, Any], answers: tuple[str, ...], choice: str | None, cells: dict[str, Any]
) -> None:
    trial = TRIALS[name]
    kind = kind_of(trial)
    assert (kind.answers(value), kind.choice(value)) == (answers, choice)
    assert kind.cells(trial, value) == cells
    assert sorted(column.name for column in kind.columns) == sorted([*cells, *kind.noted(NOTED)])


NOTED = {
    "questions": [{"id": "q2", "ms": 900, "changes": 0}, {"id": "q1", "ms": 2100, "changes": 3}],
    "revealed_ms": 1700,
    **{"strokes": 4, "undos": 1, "first_stroke_ms": 800, "marked_with": "pen"},
}


def test_a_rating_keeps_when_each_question_was_answered_and_how_often_it_changed() -> None:
    told = {"question_ms": {"q2": 900, "q1": 2100}, "question_changes": {"q2": 0, "q1": 3}}
    assert get_kind("rate").noted(NOTED) == told
    assert get_kind("rate").noted({"input": "mouse"}) == get_kind("predict").noted(NOTED) == {}


def test_a_solution_keeps_how_it_was_marked() -> None:
    told = {"strokes": 4, "undos": 1, "first_stroke_ms": 800, "marked_with": "pen"}
    assert get_kind("solve").noted(NOTED) == told
    # "Cannot say" has no first stroke and nothing that marked.
    assert get_kind("solve").noted({"strokes": 0, "undos": 0}) == {"strokes": 0, "undos": 0}


def test_it_declares_its_columns_and_its_handing_out() -> None:
    told = {
        name: [(column.name, column.dtype, column.unit) for column in get_kind(name).columns]
        for name in KINDS
        if get_kind(name).columns
    }
    assert told == {
        "review": [
            ("solution", "text", ""),
            ("answer", "text", ""),
            ("use", "text", ""),
            ("answer_right", "flag", ""),
            ("accepted", "flag", ""),
        ],
        "solve": [
            ("region_cells", "integer", "cells"),
            ("region", "json", ""),
            ("strokes", "integer", ""),
            ("undos", "integer", ""),
            ("first_stroke_ms", "integer", "ms"),
            ("marked_with", "text", ""),
            ("use", "text", ""),
        ],
        "rate": [
            ("questions_asked", "json", ""),
            ("question_ms", "json", "ms"),
            ("question_changes", "json", ""),
            ("anchor", "flag", ""),
        ],
        "decide": [("step", "text", ""), ("advice", "text", "")],
    }
    assert [name for name in KINDS if get_kind(name).is_alone] == ["review", "decide"]
    assert [name for name in KINDS if get_kind(name).is_example] == ["learn"]
    assert [name for name in KINDS if get_kind(name).asks_for_model] == ["predict"]
    assert {name: get_kind(name).seconds for name in KINDS} == {
        "learn": 3, "predict": 3, "review": 3, "solve": 12, "rate": 18, "decide": 5, "instructed": 3
    }  # fmt: skip


@dataclass
class Stage:
    """A scene whose parts say which part they are."""

    label: str | None = "Husky"
    buttons: tuple[base.Button, ...] = tuple(
        base.Button(value=value, text=value.title(), key=key)
        for value, key in zip(CHOICES, "fjk", strict=True)
    )
    reservoir: tuple[str, ...] = ("7", "8")

    def image(self, role: str = "") -> base.Media:
        return base.Media(url=f"image:{role}", width_px=1, height_px=2, alt="")

    def explanation(self, role: str = "") -> base.Media:
        return base.Media(url=f"mark:{role}", width_px=1, height_px=2, alt="")

    def text(self, role: str = "") -> base.Text:
        return base.Text(tokens=(base.Token(text=f"text:{role}", shade=None),))

    def words(self, name: str, /, **values: str) -> str:
        return f"{name} {values}" if values else name

    def answered(self, position: int) -> Mapping[str, Any] | None:
        return {"choice": "wolf"} if position == 2 else None


STAGE = Stage()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("learn", {"image", "explanation", "text", "label", "choices"}),
        ("predict", {"image", "explanation", "text", "prompt", "choices", "reservoir"}),
        ("instructed", {"prompt", "choices", "reservoir"}),
        ("review", {"image", "mark", "text", "answer", "choices"}),
        ("solve", {"image", "grid", "choices"}),
        ("rate", {"label", "image", "mark", "text", "sentence", "questions"}),
        ("decide", {"step", "image", "explanation", "earlier", "advice", "choices"}),
        ("decide, again", {"step", "image", "explanation", "earlier", "advice", "choices"}),
    ],
)
def test_its_page_receives_these_parts_of_the_scene(name: str, shown: set[str]) -> None:
    trial = TRIALS[name]
    content = kind_of(trial).content(trial, STAGE)
    assert type(content) is kind_of(trial).content_model
    told = content.model_dump()
    assert set(told) == shown
    scene = {
        "image": STAGE.image(), "explanation": STAGE.explanation(), "mark": STAGE.explanation(),
        "text": STAGE.text(), "label": "Husky", "choices": STAGE.buttons, "reservoir": ("7", "8"),
    }  # fmt: skip
    for part in shown & scene.keys():
        assert getattr(content, part) == scene[part]
    rest = {part: told[part] for part in shown - scene.keys() - {"questions"}}
    assert (
        rest
        == {
            "learn": {},
            "predict": {"prompt": None},
            "instructed": {"prompt": "instructed {'key': 'J'}"},
            "review": {"answer": "four legs"},
            "solve": {"grid": 3},
            "rate": {"sentence": None},
            "decide": {"step": "first", "earlier": None, "advice": "Husky"},
            "decide, again": {"step": "second", "earlier": "Wolf", "advice": "Husky"},
        }[name]
    )


def test_an_old_check_of_kind_predict_tells_the_key_too() -> None:
    old = replace(TRIAL, check="instructed", expected="fox")
    assert kind_of(old).content(old, STAGE).model_dump()["prompt"] == "instructed {'key': 'K'}"


def test_a_rating_asks_in_the_order_of_the_plan_and_shows_pairs() -> None:
    trial = TRIALS["rate"]
    asked = kind_of(trial).content(trial, STAGE).model_dump()["questions"]
    assert [(row["id"], row["text"], row["low"], row["high"]) for row in asked] == [
        ("q2", "rate_q2", "rate_q2_low", "rate_q2_high"),
        ("q1", "rate_q1", "rate_q1_low", "rate_q1_high"),
    ]
    assert asked[0]["pair"] is None
    assert [(side["image"]["url"], side["mark"]["url"], side["sentence"]) for side in asked[1]["pair"]] == [
        ("image:", "mark:", None),
        ("image:noisy", "mark:noisy", None),
    ]


def test_only_a_guess_before_the_label_waits_for_the_reply() -> None:
    assert get_kind("learn").waits({"label": None}) and not get_kind("learn").waits({"label": "Husky"})
    assert not any(get_kind(name).waits({"label": None}) for name in KINDS if name != "learn")


# Right, agreeing, obeying


@pytest.mark.parametrize(
    ("change", "value", "expected"),
    [
        ({"right": "wolf"}, {"choice": "wolf"}, 1.0),
        ({"right": "wolf"}, {"choice": "fox"}, 0.0),
        ({}, {"choice": "wolf"}, None),
        ({"right": "wolf", "check": "repeat", "expected": "wolf"}, {"choice": "wolf"}, None),
        ({"kind": "rate", "right": "wolf"}, {"q1": 1}, 0.0),
    ],
)
def test_an_answer_is_right_if_the_plan_says_so(
    change: dict[str, Any], value: dict[str, Any], expected: float | None
) -> None:
    assert score(replace(TRIAL, **change), value) == expected


@pytest.mark.parametrize(
    ("change", "label", "expected"),
    [
        ({}, "fox", 1.0),
        ({}, "wolf", 0.0),
        ({}, None, None),
        ({"phase": "train"}, "fox", None),
        ({"phase": "practice"}, "fox", 1.0),
        ({"check": "repeat"}, "fox", None),
        ({"kind": "instructed"}, "fox", None),
    ],
)
def test_an_answer_agrees_with_a_label_or_is_not_asked_for_one(
    change: dict[str, Any], label: str | None, expected: float | None
) -> None:
    assert agreement(replace(TRIAL, **change), {"choice": "fox"}, label) == expected


def test_a_check_is_met_by_the_answer_that_it_asks_for() -> None:
    check = TRIALS["instructed"]
    assert is_as_asked(check, {"choice": "wolf"}) is True and is_as_asked(check, {"choice": "fox"}) is False
    assert is_as_asked(TRIAL, {"choice": "wolf"}) is None
    assert follows("rate", "3", {"q1": 3, "q2": 3}) and not follows("rate", "3", {"q1": 3, "q2": 4})
    assert not follows("learn", "fox", {"seen": True})
