"""The instructions: the same for every person before the slot is claimed, the arm's own text afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.definition import StudyDefinition
from experiments.errors import InvalidRequest
from experiments.gates import base
from experiments.models import Session, Study
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
        if len(set(arm)) == 1:
            return (before, *self._page(definition, arm[0], base.Stop(ARM, self.name, "arm")))
        pages = [base.Stop(f"{BLOCK}{b}", self.name, "block", block=b) for b in range(len(arm))]
        return (
            before,
            *(stop for b, page in enumerate(pages) for stop in self._page(definition, arm[b], page)),
        )

    def text(self, session: Session, stop: base.Stop) -> str:
        definition = definition_of(session.study)
        if stop.place == "start":
            return definition.texts["instructions"]
        assert session.slot is not None
        return _arm_text(definition, arm_of(session.slot, session.study)[stop.block or 0])

    def judge(self, session: Session, stop: base.Stop, value: Mapping[str, Any]) -> base.Judged:
        if base.flag_of(value, "read") is not True:
            raise InvalidRequest('value must be {"read": true}.', fields={"value.read": "must be true"})
        return base.Judged({"read": True}, True)

    def _page(
        self, definition: StudyDefinition, is_explained: bool, stop: base.Stop
    ) -> tuple[base.Stop, ...]:
        return (stop,) if _arm_text(definition, is_explained) else ()


def help_text(session: Session, definition: StudyDefinition) -> str:
    """All that this person was told of the task: the instructions, and those of their own condition once they
    hold a slot."""
    arm = arm_of(session.slot, session.study) if session.slot is not None else ()
    # In the order of the blocks, each text once.
    of_arm = dict.fromkeys(_arm_text(definition, is_explained) for is_explained in arm)
    return "\n\n".join([definition.texts["instructions"], *filter(None, of_arm)])


def _arm_text(definition: StudyDefinition, is_explained: bool) -> str:
    key = "instructions_explained" if is_explained else "instructions_baseline"
    return definition.texts.get(key, "")
