"""What a simulated person puts on the pages around the trials."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from experiments.design.rng import Streams
from experiments.gates.forms import FORMS
from experiments.kinds.base import Choice
from experiments.simulation import SPEECH_MARK
from experiments.simulation.browser.api_messages import MediaWire, PageWire, QuestionWire, choices_of
from experiments.simulation.drawn import Drawn
from experiments.simulation.people import Person, RateView
from experiments.simulation.reading import choice_for
from experiments.simulation.sight import Percept

Value = dict[str, Any]

AGES = (18, 80)
NUMBER = re.compile(r"\d+")
FITTING_NAMED = 2
"""A sentence about an answer begins with the range that fits."""
REMARKS = (
    "I went by what the examples had in common.",
    "I was not always sure, so I looked back at the examples.",
    "The buttons worked well.",
    "Some of the examples looked alike to me.",
)


class Reader:
    """Fills in pages for one person. `quiz` maps question ids to the answers of a person who has read the
    instructions; `look` fetches a picture, `draw` one with an explanation that is to be rated, `fetch` the
    file of one. `ask` tells whether an answer fits, as the page does at once: step, page, question and choice
    -> what is told. Counts the tries at each page, since a page that was failed is read again.
    """

    def __init__(
        self,
        person: Person,
        quiz: Mapping[str, str],
        look: Callable[[MediaWire], Percept],
        draw: Callable[[MediaWire | None, MediaWire | None], Drawn | None] = lambda image, mark: None,
        ask: Callable[[str, PageWire, str, str], Mapping[str, Any]] | None = None,
        fetch: Callable[[str], bytes] = lambda url: b"",
    ) -> None:
        self.person, self.quiz, self.look, self.draw, self.ask = person, quiz, look, draw, ask
        self.fetch = fetch
        self._tries: dict[str, int] = {}
        self._told: dict[str, str] = {}
        self._at: tuple[str, PageWire] | None = None

    def value(self, step: str, page: PageWire) -> Value:
        """What is sent for a page of this step. UnknownName for a step that these people do not
        know."""
        attempt = self._tries.get(step, 0)
        self._tries[step] = attempt + 1
        self._at = step, page
        return dict(FORMS.load(step)(self, page, attempt))

    def comment(self) -> str:
        """A remark that says who makes it."""
        return f"{SPEECH_MARK} {REMARKS[int(self._rng('comment').integers(len(REMARKS)))]}"

    def recall(self, question: QuestionWire, attempt: int) -> str:
        choices = choices_of(question["choices"])
        if question["low"] is not None:
            return self._rate_question(question, attempt, choices)
        known = choice_for(self.quiz[question["id"]], choices) if question["id"] in self.quiz else None
        return self.person.pick(question["id"], attempt, choices, known).value

    def _rate_question(self, question: QuestionWire, attempt: int, choices: Sequence[Choice]) -> str:
        """A point of a scale by looking; at a later try, as far as it was read, by what was told before."""
        name = question["id"]
        drawn = self.draw(question["image"], question.get("explanation"))
        point = self.person.rate(RateView(f"{name}/{attempt}", name, question["prompt"], len(choices), drawn))
        chosen = choices[point - 1]
        if name in self._told:
            chosen = self.person.pick(name, attempt, choices, self._fitting(name, chosen, choices))
        if self.ask is not None and self._at is not None:
            self._told[name] = str(self.ask(*self._at, name, chosen.value)["label"])
        return chosen.value

    def _fitting(self, name: str, chosen: Choice, choices: Sequence[Choice]) -> Choice:
        """The point nearest to the chosen among those that the sentence names first."""
        named = [
            choice for word in NUMBER.findall(self._told[name]) for choice in choices if choice.value == word
        ]
        places = [choices.index(choice) for choice in named[:FITTING_NAMED]] or [choices.index(chosen)]
        return choices[min(places, key=lambda place: abs(place - choices.index(chosen)))]

    def match_examples(self, questions: Sequence[QuestionWire], attempt: int) -> Value:
        """Each question gets the label of the example whose colour is nearest; of texts, of that which is
        told to be like it (what a word means, no observer knows)."""
        seen = [(q["label"], _colour(self.look(q["image"]))) for q in questions if q["label"] and q["image"]]
        value: Value = {}
        for question in questions:
            if question["label"]:
                continue
            choices = choices_of(question["choices"])
            known = None
            if seen and question["image"]:
                known = _nearest(_colour(self.look(question["image"])), seen, choices)
            elif question["text"]:
                value[question["id"]] = self._pick_answer(question, attempt, choices)
                continue
            value[question["id"]] = self.person.pick(question["id"], attempt, choices, known).value
        return value

    def _pick_answer(self, question: QuestionWire, attempt: int, choices: Sequence[Choice]) -> str:
        """Any answer at first; at a later try, as far as it was read, the one that was told."""
        name = question["id"]
        known = choice_for(self._told[name], choices) if name in self._told else None
        chosen = self.person.pick(name, attempt, choices, known)
        if self.ask is not None and self._at is not None:
            self._told[name] = str(self.ask(*self._at, name, chosen.value)["label"])
        return chosen.value

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

    def see(self, question: QuestionWire) -> str:
        assert question["image"] is not None
        picture = self.fetch(question["image"]["url"])
        return self.person.read_plate(question["id"], picture, choices_of(question["choices"])).value

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
