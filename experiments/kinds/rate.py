"""Questions about an explanation, each answered on a scale from 1 to 5; no rating is right or wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from experiments.design.rng import Streams
from experiments.kinds import base

SCALE = ("1", "2", "3", "4", "5")
"""The points of a rating, as choice values; answers carry them as integers."""


class Side(base.Wire):
    """One side of a pair that a question compares."""

    image: base.Media | None
    mark: base.Media | None
    text: base.Text | None
    sentence: str | None


class RateQuestion(base.Wire):
    """A question with worded ends of its scale; `pair` holds two sides if it compares two."""

    id: str
    text: str
    low: str
    high: str
    pair: tuple[Side, ...] | None


class RateContent(base.Content):
    label: str | None
    image: base.Media | None
    mark: base.Media | None
    text: base.Text | None
    sentence: str | None
    questions: tuple[RateQuestion, ...]


class Rate(base.Kind):
    """The trial's `extra` holds `questions`, the ids asked, and `pairs`, for some of them the two stimuli to
    compare. With `order` "person" each person meets them in an order of their own, the same on every
    page; without, in the order of the list.
    """

    name: ClassVar[str] = "rate"
    asks_models: ClassVar[bool] = True
    content_model: ClassVar[type[base.Content]] = RateContent
    seconds: ClassVar[float] = 18.0
    has_pairs: ClassVar[bool] = True
    is_form: ClassVar[bool] = True
    columns: ClassVar[tuple[base.Column, ...]] = (
        base.Column("questions_asked", "json", "Ratings: ids of the questions, in the order asked."),
        base.Column(
            "question_ms", "json", "Ratings: by question, from onset until its answer was last given.", "ms"
        ),
        base.Column("question_changes", "json", "Ratings: by question, how often its answer was changed."),
        base.Column("anchor", "flag", "Ratings: an explanation that stands in every list."),
    )

    def seen_by(self, trial: base.TrialView, person: str, streams: Streams) -> base.TrialView:
        """The questions in the order of this person: drawn for each question alone, so that those that are
        left out move no other."""
        if trial.extra.get("order") != "person":
            return trial
        places = {name: streams("questions", person, name).random() for name in _question_names(trial)}
        return replace(trial, extra={**trial.extra, "questions": sorted(places, key=places.__getitem__)})

    def content(self, trial: base.TrialView, scene: base.Scene) -> RateContent:
        return RateContent(
            label=scene.label,
            image=scene.image(),
            mark=scene.explanation(),
            text=scene.text(),
            sentence=None,
            questions=tuple(_question(name, trial, scene) for name in _question_names(trial)),
        )

    def check(self, trial: base.TrialView, value: base.Value) -> None:
        """{"q1": 1..5, …}: exactly the questions that the trial asks; each fault is named by its question."""
        asked = _question_names(trial)
        faults = {name: "is not asked here" for name in value if name not in asked}
        for name in asked:
            if name not in value:
                faults[name] = "is still to be answered"
            elif type(value[name]) is not int or not 1 <= value[name] <= len(SCALE):
                faults[name] = f"must be a whole number from 1 to {len(SCALE)}"
        if faults:
            listed = "; ".join(f"{str(name)[:20]} {text}" for name, text in list(faults.items())[:8])
            raise base.InvalidResponse(f"expected an answer to each of {', '.join(asked)}: {listed}", faults)

    def choice(self, value: base.Value) -> str | None:
        return None

    def answers(self, value: base.Value) -> tuple[str, ...]:
        return tuple(str(value[name]) for name in sorted(value))

    def cells(self, trial: base.TrialView, value: base.Value) -> Mapping[str, Any]:
        return {"questions_asked": list(_question_names(trial)), "anchor": bool(trial.extra.get("anchor"))}

    def noted(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        rows = context.get("questions")
        if rows is None:
            return {}
        times, changes = ({row["id"]: row[name] for row in rows} for name in ("ms", "changes"))
        return {"question_ms": times, "question_changes": changes}

    def preview(self, trial: base.TrialView) -> base.Value:
        return dict.fromkeys(_question_names(trial), 3)

    def answer(self, observer: base.Observer, trial: Mapping[str, Any]) -> base.Reply:
        value, noted, at_ms = {}, [], 0
        for question in trial["content"]["questions"]:
            name = question["id"]
            at_ms += observer.linger_ms(trial, name)
            value[name] = observer.rate(trial, question)
            noted.append({"id": name, "ms": at_ms, "changes": 0})
        return base.Reply(value, at_ms, at_ms, {"questions": noted})


def _question_names(trial: base.TrialView) -> tuple[str, ...]:
    return tuple(trial.extra["questions"])


def _question(name: str, trial: base.TrialView, scene: base.Scene) -> RateQuestion:
    sides = tuple(trial.extra.get("pairs", {}).get(name, ()))
    return RateQuestion(
        id=name,
        text=scene.words(f"rate_{name}"),
        low=scene.words(f"rate_{name}_low"),
        high=scene.words(f"rate_{name}_high"),
        pair=tuple(
            Side(image=scene.image(role), mark=scene.explanation(role), text=scene.text(role), sentence=None)
            for role in sides
        )
        or None,
    )
