"""Solving and reviewing: known tasks, and words that the study's language adds on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from experiments.kinds import base
from experiments.kinds.solve import CANNOT_SAY
from tests.experiments.kinds.test_kind_values import JUDGED, STAGE, TRIAL, TRIALS, kind_of

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("name", "value", "audit"),
    [
        ("predict", {"choice": "wolf"}, None),
        ("solve", {"choice": "wolf", "region": [0]}, None),
        ("solve, known", {"choice": "wolf", "region": [0, 1, 2]}, True),
        ("solve, known", {"choice": "wolf", "region": [0, 1]}, True),  # 2 of 3
        ("solve, known", {"choice": "wolf", "region": [0, 1, 2, 3, 4, 5]}, True),  # 3 of 6
        ("solve, known", {"choice": "wolf", "region": [0, 1, 3]}, True),  # 2 of 4
        ("solve, known", {"choice": "wolf", "region": [0, 3]}, False),  # 1 of 4
        ("solve, known", {"choice": "wolf", "region": None}, False),
        ("solve, known", {"choice": "fox", "region": [0, 1, 2]}, False),
        ("solve, known", {"choice": CANNOT_SAY, "region": None}, False),
        ("solve, known, unplanted", {"choice": "wolf", "region": [8]}, True),
        ("solve, known, unplanted", {"choice": "fox", "region": [8]}, False),
        ("review, right", {"accept": False}, None),
        ("review, blank", {"accept": True}, None),
        ("review, known", {"accept": True}, True),
        ("review, known", {"accept": False}, False),
        ("review, known wrong", {"accept": True}, False),
        ("review, known wrong", {"accept": False}, True),
    ],
)
def test_a_known_task_tells_who_follows_the_rules(
    name: str, value: dict[str, Any], audit: bool | None
) -> None:
    assert kind_of(TRIALS[name]).audited(TRIALS[name], value) is audit


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("solve", ("fox", CANNOT_SAY), ("Fox", "cannot_say")),
        ("review, right", ("accept", "reject"), ("accept", "reject")),
    ],
)
def test_buttons_without_a_text_are_worded_by_the_study(
    name: str, values: tuple[str, ...], words: tuple[str, ...]
) -> None:
    buttons = tuple(
        base.Button(value=value, text="Fox" if value == "fox" else "", key=str(at))
        for at, value in enumerate(values)
    )
    content = kind_of(TRIALS[name]).content(TRIALS[name], replace(STAGE, buttons=buttons))
    assert [(b["value"], b["text"]) for b in content.model_dump()["choices"]] == list(
        zip(values, words, strict=True)
    )


def test_a_solution_without_answer_is_worded_by_the_study() -> None:
    trial = replace(TRIAL, kind="review", extra={**JUDGED, "answer": "", "value": CANNOT_SAY})
    assert kind_of(trial).content(trial, STAGE).model_dump()["answer"] == "cannot_say"
    assert kind_of(trial).cells(trial, {"accept": True})["answer"] == CANNOT_SAY
