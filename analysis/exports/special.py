"""Tables without the answers to questions on health, which no cleaned data and no release hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.columns import Asked, Column
from analysis.exports.public import without_answers
from analysis.frames import Frames, Tables
from experiments.gates.quiz import NAME as QUIZ
from experiments.models import Study
from experiments.selectors import definition_of


def special_questions(study: Study) -> frozenset[str]:
    """The ids of the questions whose answers are data on health."""
    return frozenset(question.id for question in definition_of(study).questions if question.is_special)


@dataclass(frozen=True, slots=True)
class WithoutSpecial:
    """The same tables without a trace of who answered what to the questions of these `ids`."""

    tables: Tables
    ids: frozenset[str]

    @property
    def extra(self) -> tuple[Column, ...]:
        return self.tables.extra

    @property
    def listed(self) -> tuple[str, ...]:
        return self.tables.listed

    @property
    def is_public(self) -> bool:
        return self.tables.is_public

    @property
    def asked(self) -> Sequence[Asked]:
        return [each for each in self.tables.asked if each.when == QUIZ or each.id not in self.ids]

    def parts(self, table: str) -> Iterator[pd.DataFrame]:
        for part in self.tables.parts(table):
            yield self._kept(table, part)

    def frames(self) -> Frames:
        whole = self.tables.frames()
        return Frames(
            **{name: self._kept(name, whole.tables[name]) for name in whole.listed}, extra=self.extra
        )

    def _kept(self, table: str, part: pd.DataFrame) -> pd.DataFrame:
        if table == "questions":
            is_special = part["question"].isin(self.ids) & (part["when"] != QUIZ)
            return part[~is_special].reset_index(drop=True)
        if table == "participants":
            answers = part["answers"].map(lambda cell: without_answers(cell, self.ids)).astype("string")
            return part.assign(answers=answers)
        return part
