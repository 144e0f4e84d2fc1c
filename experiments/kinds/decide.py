"""A decision about an item in two steps: alone, then once more, with what the model says if the plan shows
it.

Each step is a trial of its own and is handed out alone, so that nothing of the second is in the browser
before the first decision is stored. What is right is what the item really is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from experiments.kinds import base

FIRST, SECOND = "first", "second"
STEPS = (FIRST, SECOND)


class DecideContent(base.Content):
    """`earlier` is this person's first decision, `advice` the model's answer, both as the buttons say them;
    null in the first step, `advice` also if the plan shows none. `explanation` is of that answer."""

    step: str
    image: base.Media | None
    explanation: base.Media | None
    earlier: str | None
    advice: str | None
    choices: tuple[base.Button, ...]


class Decide(base.ChoiceKind):
    """The trial's `extra` holds its `step`; a second step stands right after the first of its item. `label`
    is the advice."""

    name: ClassVar[str] = "decide"
    content_model: ClassVar[type[base.Content]] = DecideContent
    seconds: ClassVar[float] = 5.0
    is_alone: ClassVar[bool] = True
    says: ClassVar[int] = 2
    columns: ClassVar[tuple[base.Column, ...]] = (
        base.Column("step", "text", "Decisions: the first, alone, or the second.", levels=STEPS),
        base.Column(
            "advice", "text", "Decisions: the model's answer if it stood on the page; empty if it did not."
        ),
    )

    def step(self, trial: base.TrialView) -> str:
        return str(trial.extra["step"])

    def content(self, trial: base.TrialView, scene: base.Scene) -> DecideContent:
        is_second = self.step(trial) == SECOND
        given = scene.answered(trial.position - 1) if is_second else None
        earlier = None if given is None else self.choice(given)
        return DecideContent(
            step=self.step(trial),
            image=scene.image(),
            explanation=scene.explanation(),
            earlier=next((button.text for button in scene.buttons if button.value == earlier), None),
            advice=scene.label,
            choices=scene.buttons,
        )

    def cells(self, trial: base.TrialView, value: base.Value) -> Mapping[str, Any]:
        return {"step": self.step(trial), "advice": trial.label or ""}

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        """Decides by what is seen. In the second step that is one opinion beside the earlier decision and the
        advice; all count alike, and what two of them say is decided (Dawes 1979, equal weights; Hastie and
        Kameda 2005, the majority rule), else what is seen now. An explanation changes nothing."""
        content, reply = trial["content"], observer.decide(trial)
        if content["step"] == FIRST:
            return reply
        values = {button["text"]: button["value"] for button in content["choices"]}
        told = [values[text] for text in (content["earlier"], content["advice"]) if text in values]
        opinions = [*told, reply.value["choice"]]
        agreed = [value for value in values.values() if opinions.count(value) > 1]
        return replace(reply, value={"choice": agreed[0]}) if agreed else reply
