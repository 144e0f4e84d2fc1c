"""The gate `promise`: one box that must be ticked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.gates import base
from experiments.gates.forms import Page, PageReader
from experiments.models import Session, Study


class Promise(base.BaseGate):
    name: ClassVar[str] = "promise"

    def text(self, session: Session, stop: base.Stop) -> str:
        return "## A promise\n\nPlease tick the box."

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        return [base.question_row("promise", "text", "I will sort with care.", max_length=10)]

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        promised = base.flag_of(value, "promise")
        return base.JudgedTry({"promise": promised}, promised)


def form(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    return {"promise": True}
