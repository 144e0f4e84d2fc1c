"""A model in one session: the walk of every participant, with the model's answers on its pages and trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from experiments.asking.chat import Part
from experiments.asking.choice_dialogue import Asks
from experiments.asking.model_observer import ModelObserver
from experiments.asking.prompts import choices_of, plain, scale_of, system_text
from experiments.gates.forms import FORMS
from experiments.kinds.base import Reply
from experiments.simulation.browser.api_messages import (
    ContextWire,
    PageWire,
    QuestionWire,
    StateWire,
    TrialWire,
)
from experiments.simulation.browser.connection import Line
from experiments.simulation.browser.walk import Walk

SAID = "A model answers this session."
"""In place of every free text, which a model is not asked for."""
YEARS = (18, 100)


class ModelWalk(Walk):
    """`name` is the session's. Trials go one by one: what was answered stays if the walk is cut off."""

    def __init__(self, name: str, prompt: str, asker: Asks, line: Line) -> None:
        super().__init__(name, "model", line, batch_max=1)
        self.prompt, self.asker = prompt, asker
        self.observer: ModelObserver = ModelObserver(asker, line.fetch)
        self.instructions = ""
        self.at: tuple[str, PageWire] | None = None
        self._told: dict[str, str] = {}
        self._tries: dict[str, int] = {}

    def filled(self, step: str, page: PageWire) -> Mapping[str, Any]:
        attempt = self._tries.get(step, 0)
        self._tries[step], self.at = attempt + 1, (step, page)
        self.asker.system = system_text(self.prompt, self.instructions, page["html"])
        return dict(FORMS.load(step)(self, page, attempt))

    def context(self, trial: TrialWire, reply: Reply) -> ContextWire:
        """A program has neither screen nor keys."""
        return cast("ContextWire", dict(reply.context))

    def _do_page(self, state: StateWire) -> StateWire:
        self.instructions = state["study"]["instructions"]
        return super()._do_page(state)

    def _do_block(self, state: StateWire) -> bool:
        self.asker.system = system_text(self.prompt, state["study"]["instructions"])
        return super()._do_block(state)

    # What a reader of pages can do (experiments.gates.forms.PageReader).

    def recall(self, question: QuestionWire, attempt: int) -> str:
        name = question["id"]
        before = [f"At the last try you were told: {self._told[name]}"] if name in self._told else []
        chosen = self._ask_question([*before, *self._question_parts(question), question["prompt"]], question)
        if question["low"] is not None:
            chosen, self._told[name] = self._tell(name, chosen)
        return chosen

    def match_examples(self, questions: Sequence[QuestionWire], attempt: int) -> Mapping[str, Any]:
        known = [part for q in questions if q["label"] for part in ("Example.", *self._question_parts(q))]
        return {
            q["id"]: self._ask_question([*known, "Now:", *self._question_parts(q), q["prompt"]], q)
            for q in questions
            if not q["label"]
        }

    def tell(self, question: QuestionWire) -> str | int:
        if question["kind"] == "number":
            low, high = (bound if bound is not None else YEARS[place] for place, bound in
                         enumerate((question["min"], question["max"])))  # fmt: skip
            return low if low > high else int(self.asker.ask([question["prompt"]], _numbers(low, high)))
        if question["choices"] is None:
            return SAID[: question["max_length"] or len(SAID)]
        return self._ask_question([question["prompt"]], question)

    def see(self, question: QuestionWire) -> str:
        return self._ask_question([*self._question_parts(question), question["prompt"]], question)

    def _ask_question(self, parts: Sequence[Part], question: QuestionWire) -> str:
        choices = choices_of(cast("Any", question["choices"] or ()))
        if question["low"] is not None:
            choices = scale_of([value for value, _ in choices], question["low"], question["high"] or "")
        return self.asker.ask(parts, choices)

    def _question_parts(self, question: QuestionWire) -> list[Part]:
        parts = self.observer.shown(cast("Mapping[str, Any]", question))
        return [*([f"The model says: {plain(question['label'])}"] if question["label"] else []), *parts]

    def _tell(self, question: str, choice: str) -> tuple[str, str]:
        """The answer that stands, and what the page says at once of it: the first of a walk that was cut off
        stands."""
        assert self.at is not None
        step, page = self.at
        body = {"digest": page["digest"], "question": question, "choice": choice}
        told = self.line.post(f"/api/session/{step}/told/", body)
        return str(told["choice"]), str(told["label"])


def _numbers(low: int, high: int) -> list[tuple[str, str]]:
    return [(str(number), "") for number in range(low, high + 1)]
