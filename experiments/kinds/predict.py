"""What will the model say? One of the answers, with the examples at hand if the study allows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kinds import base
from experiments.kinds.instructed import instruction


class PredictContent(base.Content):
    """`prompt` replaces the question; only studies that opened before `instructed` was a kind have one."""

    image: base.Media | None
    explanation: base.Media | None
    text: base.Text | None
    prompt: str | None
    choices: tuple[base.Button, ...]
    reservoir: tuple[str, ...]


class Predict(base.ChoiceKind):
    name: ClassVar[str] = "predict"
    content_model: ClassVar[type[base.Content]] = PredictContent
    asks_for_model: ClassVar[bool] = True

    def content(self, trial: base.TrialView, scene: base.Scene) -> PredictContent:
        return PredictContent(
            image=scene.image(),
            explanation=scene.explanation(),
            text=scene.text(),
            prompt=instruction(trial, scene) if trial.check == base.INSTRUCTED else None,
            choices=scene.buttons,
            reservoir=scene.reservoir,
        )

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        return observer.obey(trial) if trial["content"].get("prompt") else observer.decide(trial)
