"""Questions with a fixed set of answers: asked, read, and asked again if the reply cannot be read."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from experiments.asking.chat import Message, Part, RequestTotals
from experiments.asking.prompts import AGAIN, Order, answers_text

AGAIN_MAX = 2
"""How often a question is asked once more after a reply that cannot be read."""
OBJECT = re.compile(r"\{[^{}]*\}", re.DOTALL)
Answers = Sequence[tuple[str, str]]
"""(value, what it means)."""


class UnansweredQuestion(Exception):
    """A question got no reply that can be read, though it was asked again."""


class Misread(ValueError):
    """A reply that cannot be used; `fault` is its kind: empty, no_json, no_answer, out_of_scale."""

    def __init__(self, fault: str, why: str) -> None:
        super().__init__(why)
        self.fault = fault


class Asks(Protocol):
    """Puts a question. `parts` is what is shown and asked; the answer is one of the values."""

    system: str
    """The first message of every request."""
    took_ms: int
    """How long the last question took."""

    def ask(self, parts: Sequence[Part], answers: Answers) -> str: ...


class Asker:
    """Asks one model. `system` is the first message of every request; `told(fault, reply)` hears of each
    reply that could not be read."""

    def __init__(
        self,
        say: Callable[[Sequence[Message]], str],
        order: Order,
        told: Callable[[str, str], None] = lambda fault, reply: None,
    ) -> None:
        self.say, self.order, self.told = say, order, told
        self.system = ""
        self.faults = Counter[str]()
        self.took_ms = 0

    def ask(self, parts: Sequence[Part], answers: Answers) -> str:
        """Raises Unanswered after AGAIN_MAX further tries."""
        began = time.monotonic()
        messages = question_messages(self.system, parts, answers, self.order)
        for left in reversed(range(AGAIN_MAX + 1)):
            reply = self.say(messages)
            self.took_ms = round(1000 * (time.monotonic() - began))
            try:
                return read(reply, [value for value, _ in answers])
            except Misread as error:
                self.faults[error.fault] += 1
                self.told(error.fault, reply)
                if not left:
                    raise UnansweredQuestion(
                        f"{AGAIN_MAX + 1} replies could not be read; the last: {error}"
                    ) from None
                again = f"{AGAIN} ({error})"
                messages = [*messages, Message("assistant", (reply,)), Message("user", (again,))]
        raise AssertionError("the last try returns or raises")


class CountingAsker:
    """Counts what would be asked, without asking: every first answer is taken."""

    def __init__(self, order: Order, sent: RequestTotals) -> None:
        self.order, self.sent, self.system, self.took_ms = order, sent, "", 0

    def ask(self, parts: Sequence[Part], answers: Answers) -> str:
        self.sent.count(question_messages(self.system, parts, answers, self.order))
        return answers[0][0]


def question_messages(system: str, parts: Sequence[Part], answers: Answers, order: Order) -> list[Message]:
    return [Message("system", (system,)), Message("user", (*parts, answers_text(answers, order)))]


def read(reply: str, values: Sequence[str]) -> str:
    """The answer in a reply: one of the values, from the last JSON object in it. Raises Misread."""
    if not reply.strip():
        raise Misread("empty", "it is empty")
    found_objects = OBJECT.findall(reply)
    try:
        answer = json.loads(found_objects[-1])["answer"]
    except (IndexError, ValueError):
        raise Misread("no_json", "it holds no JSON object") from None
    except KeyError:
        raise Misread("no_answer", 'its JSON object has no "answer"') from None
    given = str(answer).strip() if isinstance(answer, str | int) and not isinstance(answer, bool) else None
    if given not in values:
        raise Misread("out_of_scale", f"{json.dumps(answer)[:40]} is none of the answers") from None
    return str(given)
