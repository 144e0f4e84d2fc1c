"""An example of what the model says: shown with its label, or guessed first and revealed by the reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kinds import base


class LearnContent(base.Content):
    """`label` None: the person guesses first, and the reply reveals."""

    image: base.Media | None
    explanation: base.Media | None
    text: base.Text | None
    label: str | None
    choices: tuple[base.Button, ...]


class Learn(base.Kind):
    name: ClassVar[str] = "learn"
    content_model: ClassVar[type[base.Content]] = LearnContent
    is_example: ClassVar[bool] = True

    def content(self, trial: base.TrialView, scene: base.Scene) -> LearnContent:
        return LearnContent(
            image=scene.image(),
            explanation=scene.explanation(),
            text=scene.text(),
            label=scene.label,
            choices=scene.buttons,
        )

    def accepted(self, trial: base.TrialView) -> tuple[base.Value, ...]:
        # A guess is answered with feedback, so it is judged in Python.
        return ({"seen": True},) if trial.label is not None else ()

    def check(self, trial: base.TrialView, value: base.Value) -> None:
        """{"seen": true} if the label is shown, {"choice"} if it is guessed first."""
        if trial.label is None:
            base.check_choice(trial.choices, value)
        elif len(value) != 1 or value.get("seen") is not True:
            raise base.InvalidResponse(
                f'expected {{"seen": true}}, got the keys {base.keys_of(value)} or another value'
            )

    def preview(self, trial: base.TrialView) -> base.Value:
        return {"seen": True} if trial.label is not None else {"choice": trial.choices[0]}

    def waits(self, content: Mapping[str, Any]) -> bool:
        return content.get("label") is None

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        return observer.study(trial)
