"""Plates for colour vision: a question about filters of the screen, then one plate after the other.

Nothing is judged and nothing is told; the paradigm uses the answers to choose a lane. The check has a consent
of its own and may be left out, also in its middle. The answers are health data: no export, page of the
dashboard or message holds them (`ANSWERS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.definition.colour_vision_verdict import FILTER, GATE, NOTHING, OFF, ON, UNKNOWN
from experiments.gates import base, told
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.wording.sentence_tables import words_for

NOTHING_KEY = "n"
"""Digits have their own keys."""
ANSWERS = frozenset({GATE, told.kept_kind(GATE)})
"""Kinds of the rows that hold answers to plates."""


class Plates(base.BaseGate):
    """Met if the study has plates: rows {"id", "file", "width_px", "height_px", "choices", "answer",
    "control"}, of which the last two never leave the server."""

    name: ClassVar[str] = GATE
    keeps: ClassVar[bool] = True

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        return (base.Stop(self.name, self.name, "start", routes=True),) if study.plates else ()

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        words = words_for(definition_of(study))
        filters = [(value, words[f"plates_filter_{value}"]) for value in (OFF, ON, UNKNOWN)]
        asked = base.question_row(FILTER, "choice", words["plates_filter"], choices=filters)
        return [asked, *(_question(row, words) for row in study.plates)]

    def files(self, study: Study) -> Mapping[str, str]:
        return {str(row["id"]): str(row["file"]) for row in study.plates}

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        """All answers, or none: the check was left out."""
        answers = base.answers_to(self.questions(session.study, stop), value) if value else {}
        return base.JudgedTry(answers, None)

    def is_same(self, sent: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        # Left out holds nothing, which any other try would hold too.
        return dict(sent) == dict(stored)


def _question(row: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    picture = {key: row[key] for key in ("file", "width_px", "height_px")}
    nothing = {"value": NOTHING, "text": words["plates_nothing"], "key": NOTHING_KEY}
    choices = [
        nothing if value == NOTHING else {"value": value, "text": text, "key": value}
        for value, text in row["choices"]
    ]
    return base.question_row(row["id"], "choice", words["plates_question"], image=picture) | {
        "choices": choices
    }
