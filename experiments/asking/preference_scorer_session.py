"""A scorer of preferences in a session: it rates explanations by its predictions, and reads nothing.

What a page asks besides is answered beside it, by a program: the quiz from the study's file, a check by what
its words ask for, the training by what it tells. Passing them says nothing of the scorer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from experiments.asking.chat import Part
from experiments.asking.choice_dialogue import Answers, UnansweredQuestion
from experiments.asking.model_observer import Fetch, ModelObserver
from experiments.asking.prompts import UNREAD
from experiments.asking.walk import ModelWalk
from experiments.errors import StudyError
from experiments.kinds.base import Choice, Reply
from experiments.simulation.browser.api_messages import QuestionWire
from experiments.simulation.browser.connection import Line
from experiments.simulation.reading import asked_choice, choice_for
from stimuli.preference.embedding import ShownExplanation, embed
from stimuli.preference.encoders import PreferenceEncoder
from stimuli.preference.prediction_agreement import HIGHEST, LOWEST
from stimuli.preference.scorer_file import SavedScorer
from stimuli.store.png_padding import unpad_png

NUMBER = re.compile(r"\d+")


class ScorerRater:
    """Points for explanations. `questions` are the study's ids; a head answers that of its name, capitals or
    not. `labels` gives the scorer's name of a label by the words on a page, `sentences` what it reads in
    place of a picture of concepts, by the picture's SHA-256: both say what the page shows, in its terms."""

    def __init__(
        self,
        saved: SavedScorer,
        encoder: PreferenceEncoder,
        questions: Sequence[str],
        labels: Mapping[str, str] = MappingProxyType({}),
        sentences: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Raises StudyError for a scorer that cannot take this study by what its pages show."""
        card = saved.card
        if card.inputs != "single" or card.label == "truth":
            raise StudyError(
                "This scorer needs more than a page shows with an explanation (the copy of a picture, or "
                "what the picture is): fit one without --pair and with --label none or predicted."
            )
        names = [head.question.lower() for head in card.heads]
        if missing := [name for name in questions if name.lower() not in names]:
            raise StudyError(
                f"The scorer does not answer {missing[0]!r}; it knows {', '.join(dict.fromkeys(names))}. "
                "Take a scorer that was fitted on these questions."
            )
        self.saved, self.encoder, self.labels, self.sentences = saved, encoder, labels, sentences
        self.heads = {q: [place for place, name in enumerate(names) if name == q.lower()] for q in questions}

    def point(self, picture: bytes, label: str, question: str) -> int:
        """The predicted rating of a PNG, rounded to a point of the scale. Raises BadRatings for a label that
        the scorer does not know."""
        card = self.saved.card
        told = self.labels.get(label, label) if card.labels else ""
        said = self.sentences.get(hashlib.sha256(picture).hexdigest())
        shown = ShownExplanation(text=said, label=told) if said else ShownExplanation(picture, label=told)
        answers = self.saved.predict(embed([shown], self.encoder, card.labels), self.encoder).reshape(-1)
        return int(np.clip(np.rint(answers[self.heads[question]].mean()), LOWEST, HIGHEST))


class _FirstAnswer:
    """In place of a model on pages that it cannot read."""

    system, took_ms = "", 0

    def ask(self, parts: Sequence[Part], answers: Answers) -> str:
        return answers[0][0]


class ScorerObserver(ModelObserver):
    def __init__(self, rater: ScorerRater, fetch: Fetch) -> None:
        super().__init__(_FirstAnswer(), fetch)
        self.rater = rater

    def obey(self, trial: Mapping[str, Any]) -> Reply:
        content = trial["content"]
        choices = [Choice(row["value"], row["text"], row["key"] or "") for row in content["choices"]]
        wanted = asked_choice(content["prompt"], choices) or choices[0]
        return Reply({"choice": wanted.value}, 0, 0)

    def linger_ms(self, trial: Mapping[str, Any], part: str = "") -> int:
        """A network needs no time that would be a person's."""
        return 0

    def rate(self, trial: Mapping[str, Any], question: Mapping[str, Any]) -> int:
        content = trial["content"]
        drawn = content["mark"] or content["image"]
        if not drawn:
            raise UnansweredQuestion("the page shows no picture, and a scorer rates pictures alone")
        return self.rater.point(
            unpad_png(self.fetch(drawn["url"])), str(content.get("label") or ""), question["id"]
        )


class ScorerWalk(ModelWalk):
    """`quiz` holds the answers of those who have read the instructions, by the question's id."""

    def __init__(self, name: str, rater: ScorerRater, quiz: Mapping[str, str], line: Line) -> None:
        super().__init__(name, UNREAD, _FirstAnswer(), line)
        self.observer = ScorerObserver(rater, line.fetch)
        self.quiz = quiz

    def recall(self, question: QuestionWire, attempt: int) -> str:
        name = question["id"]
        choices = [Choice(row["value"], row["text"], row["key"] or "") for row in question["choices"] or ()]
        if question["low"] is None:
            wanted = choice_for(self.quiz[name], choices) if name in self.quiz else None
            return (wanted or choices[0]).value
        told = [number for number in NUMBER.findall(self._told.get(name, "")) if choice_for(number, choices)]
        chosen, self._told[name] = self._tell(name, told[0] if told else choices[len(choices) // 2].value)
        return chosen
