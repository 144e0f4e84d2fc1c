"""The training of raters: planted clear cases, rated by the study's own questions and scale.

Each answer is told with the range that fits and the reason. What is asked is whether people understood the
questions, never whether they agree with other raters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.errors import InvalidRequest
from experiments.gates import base
from experiments.kinds.rate import SCALE
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.wording.sentence_tables import words_for

NAME = "training"
ATTEMPTS = 2


class Training(base.BaseGate):
    """Met if the study has planted cases (`experiments.drafting.rater_training`)."""

    name: ClassVar[str] = NAME

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        if not study.practice:
            return ()
        attempts = base.limit_of(definition_of(study), "training_attempts_max", ATTEMPTS)
        return (base.Stop(self.name, self.name, "start", attempts),)

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        words = words_for(definition_of(study))
        return [_question(row, words) for row in study.practice]

    def files(self, study: Study) -> Mapping[str, str]:
        shown = {str(row["id"]): str(row["file"]) for row in study.practice}
        marked = {f"{row['id']}/explanation": str(row["explanation"]["file"]) for row in study.practice}
        return {**shown, **marked}

    def tell(self, study: Study, question: str, choice: object) -> base.AnswerFeedback:
        rows = {str(row["id"]): row for row in study.practice}
        if question not in rows:
            raise InvalidRequest(
                "This question is not asked.", fields={"question": f"must be among {', '.join(rows)}"}
            )
        if not isinstance(choice, str) or choice not in SCALE:
            raise InvalidRequest("This is no answer.", fields={"choice": f"must be among {', '.join(SCALE)}"})
        row = rows[question]
        return base.AnswerFeedback(
            choice, _reason(row, words_for(definition_of(study))), choice in row["accepted"]
        )

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        study = session.study
        answers = base.answers_to(self.questions(study, stop), value)
        fitting = sum(answers[row["id"]] in row["accepted"] for row in study.practice)
        needed = definition_of(study).training.share_min * len(study.practice)
        # The share is a decimal number: 0.7 of 10 answers are 7, although 0.7 * 10 may not be.
        return base.JudgedTry(answers, fitting >= needed - 1e-9)


def _question(row: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    name = row["question"]
    return base.question_row(
        row["id"],
        "rate",
        words[f"rate_{name}"],
        choices=[(point, point) for point in SCALE],
        image={key: row[key] for key in ("file", "width_px", "height_px")},
        explanation=dict(row["explanation"]),
        label=words[f"rate_training_{row['shown']}"],
        low=words[f"rate_{name}_low"],
        high=words[f"rate_{name}_high"],
    )


def _reason(row: Mapping[str, Any], words: Mapping[str, str]) -> str:
    """Which answers fit, and why."""
    other = next(shape for shape in ("circle", "triangle") if shape != row["shown"])
    why = words[f"rate_training_{row['form']}_{row['case']}"].format(
        shown=words[f"rate_training_the_{row['shown']}"], other=words[f"rate_training_the_{other}"]
    )
    low, high = row["accepted"]
    return words["rate_training_fits"].format(low=low, high=high, why=why)
