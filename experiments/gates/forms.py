"""What a computational observer sends for each gate's page; it knows only what the page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from experiments.definition.colour_vision_verdict import OFF
from stimuli.registry import Table

Page = Mapping[str, Any]
"""The wire's page, as a browser gets it."""

WINDOW: Mapping[str, Any] = {
    "width_px": 1440,
    "height_px": 900,
    "pixel_ratio": 1.0,
    "touch": False,
    "webdriver": False,
    "language": "en",
}


class PageReader(Protocol):
    """An observer who reads a page. `attempt` counts the tries at it, from 0."""

    def recall(self, question: Any, attempt: int) -> str:
        """The answer to a question about the instructions, as far as they were read."""
        ...

    def match_examples(self, questions: Sequence[Any], attempt: int) -> Mapping[str, Any]:
        """Answers to questions about pictures, by the examples on the same page."""
        ...

    def tell(self, question: Any) -> str | int:
        """Something about themselves."""
        ...

    def see(self, question: Any) -> str:
        """The answer to a question about one picture, by looking at it."""
        ...


Form = Callable[[PageReader, Page, int], Mapping[str, Any]]


def device(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    return WINDOW


def consent(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    """Agrees to all that is asked."""
    return {"agree": True, **{q["id"]: True for q in page["questions"]}}


def plates(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    """Looks at each plate. Nothing changes the colours of a program's screen."""
    return {q["id"]: reader.see(q) if q["image"] else OFF for q in page["questions"]}


def instructions(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    return {"read": True}


def quiz(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    return {q["id"]: reader.recall(q, attempt) for q in page["questions"]}


def practice(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    return reader.match_examples(page["questions"], attempt)


def training(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    return {q["id"]: reader.recall(q, attempt) for q in page["questions"]}


def screen(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    """A program has no card to hold to the screen."""
    return {"px_per_mm": None, "distance_mm": None, "tries": []}


def questions(reader: PageReader, page: Page, attempt: int) -> Mapping[str, Any]:
    return {q["id"]: reader.tell(q) for q in page["questions"]}


FORMS: Table[Form] = Table(
    "form of a gate",
    {
        "device": "experiments.gates.forms:device",
        "consent": "experiments.gates.forms:consent",
        "plates": "experiments.gates.forms:plates",
        "questions": "experiments.gates.forms:questions",
        "instructions": "experiments.gates.forms:instructions",
        "quiz": "experiments.gates.forms:quiz",
        "practice": "experiments.gates.forms:practice",
        "training": "experiments.gates.forms:training",
        "screen": "experiments.gates.forms:screen",
    },
)
