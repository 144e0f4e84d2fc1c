"""The contract of a gate: a page outside the trials, what it shows and asks, and what it lets pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from experiments.definition.study import StudyDefinition
from experiments.errors import InvalidRequest
from experiments.models import Session, Study
from experiments.selectors import definition_of
from experiments.wording.sentence_tables import words_for

Place = Literal["start", "arm", "block", "end"]
PLACES: tuple[Place, ...] = ("start", "arm", "block", "end")
"""Before the slot is claimed; after the claim; before a block of trials; after the trials."""

Arm = tuple[bool, ...]
"""What the claimed slot fixes, as far as pages tell it: for each block, whether explanations are shown."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One page of a gate: the kind of its rows, the gate, its place, the number of tries allowed. `block` is
    the block of trials that follows the page; None for other places.
    """

    kind: str
    gate: str
    place: Place
    attempts_max: int | None = None
    block: int | None = None
    routes: bool = False
    """It decides from which lane the person gets a slot: if there is none for them, the session ends after
    it."""


@dataclass(frozen=True, slots=True)
class JudgedTry:
    """A try as it is stored; `passed` is None if nothing is judged. `device` comes with consent. `ends` says
    that a failed try ends the session by the person's own will. `skips` are the kinds of pages that the
    person does not meet by it."""

    value: dict[str, Any]
    passed: bool | None
    device: dict[str, Any] | None = None
    ends: bool = False
    skips: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerFeedback:
    """What a person is told of an answer that has been stored: the rule's own answer in words."""

    choice: str
    label: str
    correct: bool


class GateKind(Protocol):
    """The interface of a gate. Instances are stateless; `name` is also the wire's step. `keeps`: single
    answers are stored as they are given, so that a page that is loaded again goes on after them."""

    name: ClassVar[str]
    keeps: ClassVar[bool]

    def stops(self, study: Study, arm: Arm | None) -> tuple[Stop, ...]:
        """The pages of this gate that a session meets; `arm` is None until a slot is claimed."""
        ...

    def text(self, session: Session, stop: Stop) -> str:
        """The Markdown of the page."""
        ...

    def questions(self, study: Study, stop: Stop) -> list[dict[str, Any]]:
        """The questions of the page, without any answer; a picture is named by its file."""
        ...

    def files(self, study: Study) -> Mapping[str, str]:
        """Stored files of pictures that the page shows, by the ids of their questions; that of an explanation
        by `id/explanation`."""
        ...

    def judge(self, session: Session, stop: Stop, value: Mapping[str, Any]) -> JudgedTry:
        """Checks the form of a try (InvalidRequest names each field) and decides whether it passes."""
        ...

    def tell(self, study: Study, question: str, choice: object) -> AnswerFeedback:
        """What is told of one answer before the try is judged. Raises InvalidRequest if nothing is."""
        ...

    def is_same(self, sent: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        """Whether a try that is sent again is the stored one."""
        ...


class BaseGate:
    """Defaults that most gates share; a gate may also define everything itself."""

    name: ClassVar[str]
    keeps: ClassVar[bool] = False

    def stops(self, study: Study, arm: Arm | None) -> tuple[Stop, ...]:
        return (Stop(self.name, self.name, "start"),)

    def text(self, session: Session, stop: Stop) -> str:
        return words_for(definition_of(session.study))[stop.kind]

    def questions(self, study: Study, stop: Stop) -> list[dict[str, Any]]:
        return []

    def files(self, study: Study) -> Mapping[str, str]:
        return {}

    def tell(self, study: Study, question: str, choice: object) -> AnswerFeedback:
        raise InvalidRequest(
            f"{self.name!r} is judged as a whole.", fields={"question": "nothing is told of single answers"}
        )

    def is_same(self, sent: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        return all(sent.get(name) == value for name, value in stored.items())


def limit_of(definition: StudyDefinition, rule: str, default: int) -> int:
    """The limit of a screening rule about tries, or the default."""
    written = definition.screening.get(rule)
    return int(written.limit) if written is not None and not isinstance(written.limit, tuple) else default


def flag_of(value: Mapping[str, Any], name: str) -> bool:
    """The one member of a value, true or false; InvalidRequest for anything else."""
    if set(value) != {name} or not isinstance(value[name], bool):
        raise InvalidRequest(
            f'value must be {{"{name}": true or false}}.', fields={f"value.{name}": "true or false"}
        )
    return bool(value[name])


def question_row(
    id: str, kind: str, prompt: str, *, choices: list[tuple[str, str]] | None = None, **more: Any
) -> dict[str, Any]:
    """A question as the wire has it; every field that a page does not need is null."""
    keys = ("f", "j") if choices is not None and len(choices) == 2 else tuple("123456789")
    listed = None
    if choices is not None:
        listed = [
            {"value": value, "text": text, "key": keys[i] if i < len(keys) else ""}
            for i, (value, text) in enumerate(choices)
        ]
    empty = ("label", "image", "explanation", "text", "low", "high", "min", "max", "max_length")
    rest = {"required": True, **dict.fromkeys(empty)}
    return {"id": id, "kind": kind, "prompt": prompt, "choices": listed, **rest, **more}


def answers_to(questions: list[dict[str, Any]], value: Mapping[str, Any]) -> dict[str, Any]:
    """The answers to a page's questions; every mistake is named at once."""
    asked = {q["id"]: q for q in questions if q["kind"] != "example"}
    problems = {f"value.{name}"[:80]: "is not asked" for name in value if name not in asked}
    for name, question in asked.items():
        mistake = _mistake(question, value.get(name))
        if mistake:
            problems[f"value.{name}"] = mistake
    if problems:
        raise InvalidRequest("Some answers are missing or do not fit.", fields=problems)
    return {name: value[name] for name in asked if value.get(name) is not None}


def _mistake(question: Mapping[str, Any], answer: Any) -> str:
    if answer is None or answer == "":
        return "is still to be answered" if question["required"] else ""
    if question["choices"] is not None:
        allowed = [choice["value"] for choice in question["choices"]]
        return "" if answer in allowed else f"must be one of {', '.join(allowed)}"
    if question["kind"] == "number":
        if not isinstance(answer, int) or isinstance(answer, bool):
            return "must be a whole number"
        low = question["min"] if question["min"] is not None else -(10**9)
        high = question["max"] if question["max"] is not None else 10**9
        return "" if low <= answer <= high else f"must lie between {low} and {high}"
    if not isinstance(answer, str) or len(answer) > question["max_length"]:
        return f"must be text of at most {question['max_length']} characters"
    return ""
