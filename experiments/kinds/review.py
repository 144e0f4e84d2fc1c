"""A solver's answer to a task, accepted or rejected. Neither is right or wrong; accepting is never paid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kinds import base
from experiments.kinds.solve import CANNOT_SAY

ACCEPT, REJECT = "accept", "reject"


class ReviewContent(base.Content):
    """`answer` is the solution's answer in words; `mark` shows its region on the same picture."""

    image: base.Media | None
    mark: base.Media | None
    text: base.Text | None
    answer: str
    choices: tuple[base.Button, ...]


class Review(base.Kind):
    """The trial's `extra` holds the `solution`'s key, its `answer` as it is shown (empty: "cannot say" in the
    study's language) and as a `value`, the item's `truth` (empty: it shows none of the answers) and the `use`
    of the trial. Nothing of it but the answer leaves the server."""

    name: ClassVar[str] = "review"
    content_model: ClassVar[type[base.Content]] = ReviewContent
    # The time to decide is measured, so the browser must not receive the next task in advance.
    is_alone: ClassVar[bool] = True
    has_maps: ClassVar[bool] = False
    columns: ClassVar[tuple[base.Column, ...]] = (
        base.Column("solution", "text", "Reviews: key of the solution; `condition` is its source."),
        base.Column("answer", "text", "Reviews: the answer that was judged."),
        base.USE,
        base.Column(
            "answer_right",
            "flag",
            "Reviews: whether the answer is the truth of the item; empty if the item shows no answer.",
        ),
        base.Column("accepted", "flag", "Reviews: whether the solution was accepted."),
    )

    def content(self, trial: base.TrialView, scene: base.Scene) -> ReviewContent:
        return ReviewContent(
            image=scene.image(),
            mark=scene.explanation(),
            text=scene.text(),
            answer=str(trial.extra["answer"]) or scene.words(CANNOT_SAY),
            choices=base.label_buttons(scene.buttons, scene),
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
        return (ACCEPT if value["accept"] else REJECT,)

    def audited(self, trial: base.TrialView, value: base.Value) -> bool | None:
        """A right answer to a known task is accepted, a wrong one rejected."""
        if trial.extra.get("use") != base.KNOWN:
            return None
        return bool(value["accept"]) == _is_right(trial)

    def cells(self, trial: base.TrialView, value: base.Value) -> Mapping[str, Any]:
        """Trials of studies that were opened before have the answer in words alone."""
        return {
            "solution": trial.extra.get("solution", ""),
            "answer": trial.extra.get("value", trial.extra.get("answer", "")),
            "use": trial.extra.get("use", "task"),
            "answer_right": _is_right(trial),
            "accepted": value["accept"],
        }

    def preview(self, trial: base.TrialView) -> base.Value:
        return {"accept": True}

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        accepts, took_ms = observer.judge(trial)
        return base.Reply({"accept": accepts}, took_ms, took_ms)


def _is_right(trial: base.TrialView) -> bool | None:
    truth, value = trial.extra.get("truth", trial.truth), trial.extra.get("value")
    return None if not truth or value is None else bool(value == truth)
