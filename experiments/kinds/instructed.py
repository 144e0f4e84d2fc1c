"""A check that tells which key to press; the same four keys in every paradigm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kinds import base


class InstructedContent(base.Content):
    """The examples stay at hand as on any test page, so that nothing moves."""

    prompt: str
    choices: tuple[base.Button, ...]
    reservoir: tuple[str, ...]


def instruction(trial: base.TrialView, scene: base.Scene) -> str:
    """The sentence that names the key to press."""
    key = next(button.key for button in scene.buttons if button.value == trial.expected)
    return scene.words("instructed", key=key.upper())


class InstructedCheck(base.ChoiceKind):
    name: ClassVar[str] = "instructed"
    content_model: ClassVar[type[base.Content]] = InstructedContent
    asks_models: ClassVar[bool] = True

    def content(self, trial: base.TrialView, scene: base.Scene) -> InstructedContent:
        return InstructedContent(
            prompt=instruction(trial, scene), choices=scene.buttons, reservoir=scene.reservoir
        )

    def choice(self, value: base.Value) -> str | None:
        # A key is no label of an item; `answers` gives it to the check.
        return None

    def answers(self, value: base.Value) -> tuple[str, ...]:
        return (str(value["choice"]),)

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        return observer.obey(trial)
