"""The kind `sort`: a text and a pair of pictures, three piles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from experiments.kinds import base

PAIR = ("first", "second")


class SortContent(base.Content):
    text: base.Text | None
    pair: tuple[base.Media, ...]
    choices: tuple[base.Button, ...]


class Sort(base.Kind):
    name: ClassVar[str] = "sort"
    content_model: ClassVar[type[base.Content]] = SortContent
    seconds: ClassVar[float] = 5.0
    has_pairs: ClassVar[bool] = True
    columns: ClassVar[tuple[base.Column, ...]] = (
        base.Column("is_unsure", "flag", "Sorting: whether the third pile was chosen."),
    )

    def content(self, trial: base.TrialView, scene: base.Scene) -> SortContent:
        pair = tuple(picture for role in PAIR if (picture := scene.image(role)) is not None)
        return SortContent(text=scene.text(), pair=pair, choices=scene.buttons)

    def accepted(self, trial: base.TrialView) -> tuple[base.Value, ...]:
        return tuple({"choice": choice} for choice in trial.choices)

    def check(self, trial: base.TrialView, value: base.Value) -> None:
        base.check_choice(trial.choices, value)

    def cells(self, trial: base.TrialView, value: base.Value) -> Mapping[str, Any]:
        return {"is_unsure": value["choice"] == "unsure"}

    def preview(self, trial: base.TrialView) -> base.Value:
        return {"choice": trial.choices[0]}

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        """The observer of this protocol: the pile of the most letters, unsure about short texts."""
        pieces = trial["content"]["text"]["tokens"]
        letters = len("".join(piece["text"] for piece in pieces))
        values = [choice["value"] for choice in trial["content"]["choices"]]
        chosen = "unsure" if letters < 12 else observer.pick(trial, "pile", values)
        took_ms = observer.linger_ms(trial)
        return base.Reply({"choice": chosen}, took_ms, took_ms)
