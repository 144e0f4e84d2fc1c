"""A solver's answer to a task, accepted or rejected. Neither is right or wrong; accepting is never paid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kinds import base


class ReviewContent(base.Content):
    """`answer` is the solution's answer in words; `mark` shows its region on the same picture."""

    image: base.Media | None
    mark: base.Media | None
    text: base.Text | None
    answer: str
    choices: tuple[base.Button, ...]


class Review(base.Kind):
    name: ClassVar[str] = "review"
    content_model: ClassVar[type[base.Content]] = ReviewContent
    # The time to decide is measured, so the browser must not receive the next task in advance.
    is_alone: ClassVar[bool] = True
    columns: ClassVar[tuple[base.Column, ...]] = (
        base.Column("accepted", "flag", "Reviews: whether the solution was accepted."),
    )

    def content(self, trial: base.TrialView, scene: base.Scene) -> ReviewContent:
        return ReviewContent(
            image=scene.image(),
            mark=scene.explanation(),
            text=scene.text(),
            answer=str(trial.extra["answer"]),
            choices=scene.buttons,
        )

    def accepted(self, trial: base.TrialView) -> tuple[base.Value, ...]:
        return ({"accept": True}, {"accept": False})

    def check(self, trial: base.TrialView, value: base.Value) -> None:
        """Exactly {"accept": true} or {"accept": false}."""
        if len(value) != 1 or not isinstance(value.get("accept"), bool):
            raise base.InvalidResponse(
                f'expected {{"accept": true or false}}, got the keys {base.keys_of(value)} or another value'
            )

    def choice(self, value: base.Value) -> str | None:
        return None

    def answers(self, value: base.Value) -> tuple[str, ...]:
        return ("accept" if value["accept"] else "reject",)

    def cells(self, trial: base.TrialView, value: base.Value) -> Mapping[str, Any]:
        return {"accepted": value["accept"]}

    def preview(self, trial: base.TrialView) -> base.Value:
        return {"accept": True}

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        took_ms = observer.linger_ms(trial)
        return base.Reply({"accept": observer.pick(trial, "accept", (True, False))}, took_ms, took_ms)
