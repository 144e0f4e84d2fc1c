"""The study's own questions, before the instructions or after the trials; nothing is judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.definition.gate_page_tables import QuestionTable
from experiments.gates import base
from experiments.models import Session, Study
from experiments.selectors import definition_of

BEFORE, AFTER = "questions_before", "questions_after"
WHEN = {BEFORE: "before", AFTER: "after"}
KINDS = frozenset(WHEN)
"""Kinds of the rows that hold answers to a study's own questions."""


class Questions(base.BaseGate):
    name: ClassVar[str] = "questions"

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        asked = {question.when for question in definition_of(study).questions}
        before = (base.Stop(BEFORE, self.name, "start"),) if "before" in asked else ()
        after = (base.Stop(AFTER, self.name, "end"),) if "after" in asked else ()
        return (*before, *after)

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        questions = definition_of(study).questions
        return [_question(question) for question in questions if question.when == WHEN[stop.kind]]

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        return base.JudgedTry(base.answers_to(self.questions(session.study, stop), value), None)


def _question(question: QuestionTable) -> dict[str, Any]:
    choices = [(c, c) for c in question.choices] if question.kind == "choice" else None
    return base.question_row(
        question.id,
        question.kind,
        question.prompt,
        choices=choices,
        required=question.required,
        min=question.min,
        max=question.max,
        max_length=question.max_length if question.kind == "text" else None,
    )
