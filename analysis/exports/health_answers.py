"""Tables without the answers to questions on health, which no cleaned data and no release hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.columns import CodebookQuestion
from analysis.exports.public import TablesView, without_answers
from experiments.gates.quiz import NAME as QUIZ
from experiments.models import Study
from experiments.selectors import definition_of


def special_questions(study: Study) -> frozenset[str]:
    """The ids of the questions whose answers are data on health."""
    return frozenset(question.id for question in definition_of(study).questions if question.is_special)


@dataclass(frozen=True, slots=True)
class WithoutSpecial(TablesView):
    """The same tables without a trace of who answered what to the questions of these `ids`."""

    ids: frozenset[str]

    @property
    def asked(self) -> Sequence[CodebookQuestion]:
        return [each for each in self.tables.asked if each.when == QUIZ or each.id not in self.ids]

    def change(self, table: str, part: pd.DataFrame) -> pd.DataFrame:
        if table == "questions":
            is_special = part["question"].isin(self.ids) & (part["when"] != QUIZ)
            return part[~is_special].reset_index(drop=True)
        if table == "participants":
            answers = part["answers"].map(lambda cell: without_answers(cell, self.ids)).astype("string")
            return part.assign(answers=answers)
        return part
