"""Comprehension questions about the instructions; all must be right in one try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.gates import base
from experiments.models import Session, Study
from experiments.selectors import definition_of

NAME = "quiz"
ATTEMPTS = 2


class Quiz(base.BaseGate):
    name: ClassVar[str] = NAME

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        definition = definition_of(study)
        if not definition.quiz:
            return ()
        attempts = base.limit_of(definition, "quiz_attempts_max", ATTEMPTS)
        return (base.Stop(self.name, self.name, "start", attempts),)

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        quiz = definition_of(study).quiz
        return [
            base.question_row(q.id, "choice", q.prompt, choices=[(c, c) for c in q.choices]) for q in quiz
        ]

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        answers = base.answers_to(self.questions(session.study, stop), value)
        quiz = definition_of(session.study).quiz
        return base.JudgedTry(answers, all(answers[q.id] == q.answer for q in quiz))
