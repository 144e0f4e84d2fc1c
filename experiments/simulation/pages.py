"""What a simulated person puts on the pages around the trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.design.rng import Streams
from experiments.gates.forms import FORMS
from experiments.kinds.base import Choice
from experiments.simulation import SPEECH_MARK
from experiments.simulation.people import Person
from experiments.simulation.reading import choice_for
from experiments.simulation.sight import Percept
from experiments.simulation.wire import MediaWire, PageWire, QuestionWire, choices_of

Value = dict[str, Any]

AGES = (18, 80)
REMARKS = (
    "I went by what the pictures had in common.",
    "I was not always sure, so I looked back at the examples.",
    "The buttons worked well.",
    "Some of the pictures looked alike to me.",
)


class Reader:
    """Fills in pages for one person. `quiz` maps question ids to the answers of a person who has read the
    instructions; `look` fetches a picture. Counts the tries at each page, since a page that was failed is
    read again.
    """

    def __init__(self, person: Person, quiz: Mapping[str, str], look: Callable[[MediaWire], Percept]) -> None:
        self.person, self.quiz, self.look = person, quiz, look
        self._tries: dict[str, int] = {}

    def value(self, step: str, page: PageWire) -> Value:
        """What is sent for a page of this step. UnknownName for a step that these people do not
        know."""
        attempt = self._tries.get(step, 0)
        self._tries[step] = attempt + 1
        return dict(FORMS.load(step)(self, page, attempt))

    def comment(self) -> str:
        """A remark that says who makes it."""
        return f"{SPEECH_MARK} {REMARKS[int(self._rng('comment').integers(len(REMARKS)))]}"

    def recall(self, question: QuestionWire, attempt: int) -> str:
        choices = choices_of(question["choices"])
        known = choice_for(self.quiz[question["id"]], choices) if question["id"] in self.quiz else None
        return self.person.pick(question["id"], attempt, choices, known).value

    def match_examples(self, questions: Sequence[QuestionWire], attempt: int) -> Value:
        """Each question gets the label of the example whose colour is nearest."""
        seen = [(q["label"], _colour(self.look(q["image"]))) for q in questions if q["label"] and q["image"]]
        value: Value = {}
        for question in questions:
            if question["label"]:
                continue
            choices = choices_of(question["choices"])
            known = None
            if seen and question["image"]:
                known = _nearest(_colour(self.look(question["image"])), seen, choices)
            value[question["id"]] = self.person.pick(question["id"], attempt, choices, known).value
        return value

    def tell(self, question: QuestionWire) -> str | int:
        rng = self._rng("question", question["id"])
        if question["kind"] == "choice":
            choices = choices_of(question["choices"])
            return choices[int(rng.integers(len(choices)))].value
        if question["kind"] == "number":
            low = question["min"] if question["min"] is not None else AGES[0]
            high = question["max"] if question["max"] is not None else max(low, AGES[1])
            return int(rng.integers(low, high + 1))
        longest = question["max_length"] or 1000
        return f"{SPEECH_MARK} {REMARKS[int(rng.integers(len(REMARKS)))]}"[:longest]

    def _rng(self, *names: str) -> np.random.Generator:
        return Streams(0)("pages", self.person.name, *names)


Colour = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _colour(percept: Percept) -> Colour:
    """The colour of what stands out: patches weighted by their distance from the usual patch; opponent space
    (3,)."""
    colours = percept.features[:, :3].astype(np.float64)
    weights = ((colours - np.median(colours, axis=0)) ** 2).sum(axis=1)
    total = float(weights.sum())
    return colours.mean(axis=0) if total == 0 else np.asarray(weights @ colours / total)


def _nearest(colour: Colour, seen: Sequence[tuple[str, Colour]], choices: Sequence[Choice]) -> Choice | None:
    label, _ = min(seen, key=lambda example: float(((example[1] - colour) ** 2).sum()))
    return choice_for(label, choices)
