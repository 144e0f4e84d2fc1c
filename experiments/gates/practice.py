"""Neutral pictures or sentences without explanations: examples of a rule, then questions about others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.errors import InvalidRequest
from experiments.gates import base
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.wording.sentence_tables import words_for

NAME = "practice"
ATTEMPTS = 5
CHOICES = ("A", "B")


class Practice(base.BaseGate):
    """Pictures, or sentences in a study of texts."""

    name: ClassVar[str] = NAME

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        attempts = base.limit_of(definition_of(study), "practice_attempts_max", ATTEMPTS)
        return (base.Stop(self.name, self.name, "start", attempts),)

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        words = words_for(definition_of(study))
        return [_question(row, words) for row in study.practice]

    def files(self, study: Study) -> Mapping[str, str]:
        return {str(row["id"]): str(row["file"]) for row in study.practice if "file" in row}

    def tell(self, study: Study, question: str, choice: object) -> base.AnswerFeedback:
        right = {row["id"]: str(row["answer"]) for row in study.practice if not row["example"]}
        if question not in right:
            raise InvalidRequest(
                "This question is not asked.", fields={"question": f"must be among {', '.join(right)}"}
            )
        if not isinstance(choice, str) or choice not in CHOICES:
            raise InvalidRequest("This is no answer.", fields={"choice": f"must be {' or '.join(CHOICES)}"})
        return base.AnswerFeedback(choice, right[question], choice == right[question])

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        answers = base.answers_to(self.questions(session.study, stop), value)
        asked = [row for row in session.study.practice if not row["example"]]
        correct = sum(answers[row["id"]] == row["answer"] for row in asked)
        needed = min(definition_of(session.study).practice.correct_min, len(asked))
        return base.JudgedTry(answers, correct >= needed)


def _question(row: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    shown: dict[str, Any]
    if "text" in row:
        shown = {"text": {"tokens": [{"text": row["text"], "shade": None}]}}
    else:
        shown = {"image": {key: row[key] for key in ("file", "width_px", "height_px")}}
    if row["example"]:
        return base.question_row(
            row["id"],
            "example",
            words["practice_example"],
            label=row["answer"],
            required=False,
            **shown,
        )
    return base.question_row(
        row["id"],
        "sort",
        words["practice_question"],
        choices=[(choice, choice) for choice in CHOICES],
        **shown,
    )
