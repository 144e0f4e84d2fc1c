"""Plates for colour vision, one question each. Answers are not judged and get no feedback: the paradigm uses
them to choose a lane. The page may be skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.gates import base
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.words import words_for


class Plates(base.BaseGate):
    """Met if the study has plates: rows {"id", "file", "width_px", "height_px", "choices"}."""

    name: ClassVar[str] = "plates"

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        return (base.Stop(self.name, self.name, "start"),) if study.plates else ()

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        prompt = words_for(definition_of(study))["plates_question"]
        return [
            base.question_row(
                row["id"],
                "choice",
                prompt,
                choices=[(value, text) for value, text in row["choices"]],
                image={key: row[key] for key in ("file", "width_px", "height_px")},
                required=False,
            )
            for row in study.plates
        ]

    def files(self, study: Study) -> Mapping[str, str]:
        return {str(row["id"]): str(row["file"]) for row in study.plates}

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.Judged:
        return base.Judged(base.answers_to(self.questions(session.study, stop), value), None)
