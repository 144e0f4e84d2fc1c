"""What comes over the participant API, as far as a participant reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict

from experiments.kinds.base import Choice


class MediaWire(TypedDict):
    url: str
    width_px: int
    height_px: int
    alt: str


class ChoiceWire(TypedDict):
    value: str
    text: str
    key: str


class QuestionWire(TypedDict):
    id: str
    kind: Literal["choice", "number", "text", "tick", "example", "sort", "rate"]
    prompt: str
    required: bool
    choices: list[ChoiceWire] | None
    image: MediaWire | None
    explanation: NotRequired[MediaWire]
    text: dict[str, Any] | None
    label: str | None
    low: str | None
    high: str | None
    min: int | None
    max: int | None
    max_length: int | None


class PageWire(TypedDict):
    kind: str
    digest: str
    html: str
    questions: list[QuestionWire]


class TrialWire(TypedDict):
    id: str
    position: int
    kind: str
    phase: Literal["train", "test"]
    content: dict[str, Any]


class BlockWire(TypedDict):
    index: int
    count: int
    trials: list[TrialWire]


class StudyWire(TypedDict):
    min_view_ms: int
    reservoir: Literal["always", "on_request", "off"]
    picture_px: int
    instructions: str


class ExitWire(TypedDict):
    method: Literal["GET", "POST", "none"]
    url: str
    fields: dict[str, str]


class StateWire(TypedDict):
    """S: the state of the session."""

    step: str
    page: PageWire | None
    attempts_left: int | None
    block: BlockWire | None
    next: int
    total: int | None
    study: StudyWire
    exit: ExitWire | None


class FeedbackWire(TypedDict):
    trial: str
    label: str
    correct: bool


class StoredWire(TypedDict):
    """The reply to a batch of responses."""

    next: int
    step: str
    feedback: dict[str, FeedbackWire]


class FinishedWire(TypedDict):
    debrief: str | None
    exit: ExitWire | None


class ContextWire(TypedDict):
    """How a response came about; all of it is optional on the wire."""

    onset_ms: int
    input: Literal["keyboard", "mouse", "touch"]
    key: str
    side: NotRequired[Literal["left", "right"]]
    questions: NotRequired[list[dict[str, Any]]]
    image_px: int
    pixel_ratio: float
    dropped_frames: int
    reservoir_ms: int
    focus_losses: int
    reloads: int


class ResponseWire(TypedDict):
    trial: str
    value: dict[str, Any]
    rt_ms: int
    shown_ms: int
    context: ContextWire


class EventWire(TypedDict):
    id: str
    kind: str
    trial: str | None
    at_ms: int
    data: dict[str, int]


def choices_of(wire: Sequence[ChoiceWire] | None) -> tuple[Choice, ...]:
    """The buttons of a page or a trial; empty if it has none."""
    return tuple(Choice(choice["value"], choice["text"], choice["key"]) for choice in wire or ())
