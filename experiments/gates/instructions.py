"""The instructions: the same for every person before the slot is claimed, the arm's own texts afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.definition.study import StudyDefinition
from experiments.errors import InvalidRequest
from experiments.gates import base
from experiments.models import Session, Slot, Study
from experiments.paradigms import get_paradigm
from experiments.selectors import arm_of, definition_of

ARM = "instructions_arm"
BLOCK = "instructions_block_"


class Instructions(base.BaseGate):
    """Control and methods have the same words. If the blocks of a slot differ, each has its page."""

    name: ClassVar[str] = "instructions"

    def stops(self, study: Study, arm: base.Arm | None) -> tuple[base.Stop, ...]:
        before = base.Stop(self.name, self.name, "start")
        if not arm:
            return (before,)
        definition = definition_of(study)
        is_told = bool(get_paradigm(definition.paradigm).arm_texts(definition))
        if len(set(arm)) == 1:
            page = base.Stop(ARM, self.name, "arm")
            return (before, page) if is_told or _arm_text(definition, arm[0]) else (before,)
        pages = [base.Stop(f"{BLOCK}{b}", self.name, "block", block=b) for b in range(len(arm))]
        met = [page for b, page in enumerate(pages) if (is_told and not b) or _arm_text(definition, arm[b])]
        return (before, *met)

    def text(self, session: Session, stop: base.Stop) -> str:
        definition = definition_of(session.study)
        if stop.place == "start":
            return definition.texts["instructions"]
        assert session.slot is not None
        block = stop.block or 0
        told = "" if block else _told_text(definition, session.slot)
        shown = _arm_text(definition, arm_of(session.slot, session.study)[block])
        return "\n\n".join(filter(None, [told, shown]))

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.JudgedTry:
        if base.flag_of(value, "read") is not True:
            raise InvalidRequest('value must be {"read": true}.', fields={"value.read": "must be true"})
        return base.JudgedTry({"read": True}, True)


def help_text(session: Session, definition: StudyDefinition) -> str:
    """All that this person was told of the task: the instructions, and those of their own condition once they
    hold a slot."""
    if session.slot is None:
        return definition.texts["instructions"]
    arm = arm_of(session.slot, session.study)
    # In the order of the blocks, each text once.
    of_arm = dict.fromkeys(_arm_text(definition, is_explained) for is_explained in arm)
    told = _told_text(definition, session.slot)
    return "\n\n".join([definition.texts["instructions"], *filter(None, [told, *of_arm])])


def _told_text(definition: StudyDefinition, slot: Slot) -> str:
    """What only people of this slot's arm are told; their condition makes no difference."""
    name = get_paradigm(definition.paradigm).arm_texts(definition).get(slot.arm.partition("/")[0])
    return definition.texts[name] if name else ""


def _arm_text(definition: StudyDefinition, is_explained: bool) -> str:
    key = "instructions_explained" if is_explained else "instructions_baseline"
    return definition.texts.get(key, "")
