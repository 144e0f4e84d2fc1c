"""Agreement to take part, and with it the description of the device, which is not stored before.

What needs a consent of its own is a tick on the same page, unticked at first: leaving it so is no refusal of
the study.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.definition.colour_vision_verdict import GATE as PLATES
from experiments.gates import base
from experiments.gates.device import described_device
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.wording.sentence_tables import words_for

NAME = "consent"
"""Kind of the rows that say what a person agreed to; they stay when answers are removed."""


class Consent(base.BaseGate):
    name: ClassVar[str] = NAME

    def text(self, session: Session, stop: base.Stop) -> str:
        definition = definition_of(session.study)
        warning = definition.ethics.content_warning
        return (f"> **{warning}**\n\n" if warning else "") + definition.texts["consent"]

    def questions(self, study: Study, stop: base.Stop) -> list[dict[str, Any]]:
        """The ticks."""
        if not study.plates:
            return []
        text = words_for(definition_of(study))["plates_consent"]
        return [base.question_row(PLATES, "tick", text, required=False)]

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        ticks = [question["id"] for question in self.questions(session.study, stop)]
        plain = {k: v for k, v in value.items() if k not in ("device", *ticks)}
        agreed = base.flag_of(plain, "agree")
        ticked = {name: base.flag_of({name: value.get(name, False)}, name) for name in ticks}
        described = agreed and "device" in value
        device = described_device(value["device"], "value.device") if described else None
        skips = tuple(name for name in ticks if agreed and not ticked[name])
        return base.JudgedTry({"agree": agreed, **ticked}, agreed, device, ends=not agreed, skips=skips)

    def is_same(self, sent: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        # A tick that is not sent is one that was not made.
        return all(sent.get(name, False) == value for name, value in stored.items())
