"""Agreement to take part, and with it the description of the device, which is not stored before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.gates import base
from experiments.gates.device import described_device
from experiments.models import Session
from experiments.selectors import definition_of

NAME = "consent"
"""Kind of the rows that say what a person agreed to; they stay when answers are removed."""


class Consent(base.BaseGate):
    name: ClassVar[str] = NAME

    def text(self, session: Session, stop: base.Stop) -> str:
        definition = definition_of(session.study)
        warning = definition.ethics.content_warning
        return (f"> **{warning}**\n\n" if warning else "") + definition.texts["consent"]

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.Judged:
        agreed = base.flag_of({k: v for k, v in value.items() if k != "device"}, "agree")
        described = agreed and "device" in value
        device = described_device(value["device"], "value.device") if described else None
        return base.Judged({"agree": agreed}, agreed, device, ends=not agreed)
