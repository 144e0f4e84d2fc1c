"""The contract of a trial kind: what a person meets on one trial page, and what may be answered.

A kind is a stateless value. It says what its page receives, which answers may be stored, how an answer is
compared with what the plan calls right, which columns it adds to the export, and what a computational
observer may do with it. No other shared module asks which kind a trial is.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from experiments.design.rng import Streams

Phase = Literal["practice", "train", "test"]
Check = Literal["", "instructed", "repeat"]
INSTRUCTED: Check = "instructed"
"""A check whose page states which key to press; the only check that may bear on pay."""
REPEAT: Check = "repeat"
"""A training item that is asked again; data quality only."""
Dtype = Literal["text", "integer", "number", "flag", "time", "json"]
Value = Mapping[str, Any]
"""An answer as it is stored: a small JSON object."""


class InvalidResponse(ValueError):
    """A response value does not fit its trial; the message names the value and the allowed values.

    `fields` maps paths within the value (such as "q3") to what is wrong there.
    """

    def __init__(self, message: str, fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.fields = dict(fields or {})


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer button: the value that is stored, the text on it, the key that presses it."""

    value: str
    text: str
    key: str

    def as_json(self) -> dict[str, str]:
        return {"value": self.value, "text": self.text, "key": self.key}


@dataclass(frozen=True, slots=True)
class TrialView:
    """A trial as a kind and a paradigm judge it: the plan, and what model and world say about its item.

    `choices` are the values of the buttons. `expected` is the answer that a check asks for, empty for other
    trials. `right` is the value that counts as right for the score; None: nothing does. `label` is what the
    page reveals beside the stimulus; None: nothing is shown. `extra` is the plan's own JSON for this kind.
    """

    position: int
    block: int
    phase: Phase
    kind: str
    check: Check
    condition: str
    choices: tuple[str, ...]
    expected: str
    truth: str | None
    predicted: str | None
    extra: Mapping[str, Any] = field(default_factory=dict)
    right: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an exported table. `flag` is 1 or 0, `time` UTC in ISO 8601, `json` one JSON value;
    an empty cell means: not applicable.
    """

    name: str
    dtype: Dtype
    meaning: str
    unit: str = ""
    levels: tuple[str, ...] = ()


class Wire(BaseModel):
    """A part of what a browser receives: declared fields and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Media(Wire):
    """A picture by its address for this session, with its size in pixels. `is_said`: it is no map and says
    in bars or words what it means, so that it has no legend of maps."""

    url: str
    width_px: int
    height_px: int
    alt: str
    is_said: bool = False


class Token(Wire):
    """A piece of a text; `shade` is its weight as darkness, 0-1, None: not marked."""

    text: str
    shade: float | None


class Text(Wire):
    """A text as its pieces in order; together they are the whole text."""

    tokens: tuple[Token, ...]


class Button(Wire):
    """An answer button as the page shows it."""

    value: str
    text: str
    key: str


class Content(Wire):
    """Base of what a kind's page receives."""


class Scene(Protocol):
    """What a kind may put on its page. Roles name the stimuli of a trial: "" is the main one.

    Nothing here tells condition, method, source or the right answer.
    """

    buttons: tuple[Button, ...]
    label: str | None
    """The text of what the plan reveals, in the study's words."""
    reservoir: tuple[str, ...]
    """Ids of the trials that may be looked up."""

    def image(self, role: str = "") -> Media | None:
        """The picture of the stimulus without its explanation."""
        ...

    def explanation(self, role: str = "") -> Media | None:
        """The explanation as a picture; None if the trial shows none."""
        ...

    def text(self, role: str = "") -> Text | None:
        """The text of the stimulus, with shades if the trial shows its explanation."""
        ...

    def words(self, name: str, /, **values: str) -> str:
        """A sentence of the study's language and paradigm."""
        ...

    def answered(self, position: int) -> Value | None:
        """What this person answered at an earlier position; None: nothing yet."""
        ...


@dataclass(frozen=True, slots=True)
class Reply:
    """What an observer does on one page: the stored `value`, times in milliseconds, and what else the page of
    its kind notes in the context of the answer."""

    value: Mapping[str, Any]
    rt_ms: int
    shown_ms: int
    context: Mapping[str, Any] = field(default_factory=dict)


class Finding(Protocol):
    """What an observer found in a task; `cells` are ascending cells of its grid, None beside no answer."""

    @property
    def choice(self) -> str: ...
    @property
    def cells(self) -> tuple[int, ...] | None: ...
    @property
    def took_ms(self) -> int: ...


class Observer(Protocol):
    """What a computational observer can do on a page. `trial` is the wire's trial, as a browser gets it."""

    def study(self, trial: Mapping[str, Any]) -> Reply:
        """Looks at an example and remembers it; guesses if its label is still hidden."""
        ...

    def decide(self, trial: Mapping[str, Any]) -> Reply:
        """Answers by the examples seen so far."""
        ...

    def obey(self, trial: Mapping[str, Any]) -> Reply:
        """Reads the page's own sentence and presses the key that it names."""
        ...

    def rate(self, trial: Mapping[str, Any], question: Mapping[str, Any]) -> int:
        """Looks at an explanation and answers one of the page's questions about it, by a point from 1."""
        ...

    def pick(self, trial: Mapping[str, Any], name: str, options: Sequence[Hashable]) -> Any:
        """One of the options, drawn for this trial and name from the observer's own stream."""
        ...

    def locate(self, trial: Mapping[str, Any], nothing: str) -> Finding:
        """Solves the page's task and marks where the answer lies; `nothing` is the value of no answer."""
        ...

    def judge(self, trial: Mapping[str, Any]) -> tuple[bool, int]:
        """Whether the answer on the page is accepted, and after how many milliseconds."""
        ...

    def linger_ms(self, trial: Mapping[str, Any], part: str = "") -> int:
        """How long the observer looks at a page on which nothing is known to be right, or at a part of it."""
        ...


class TrialKind(Protocol):
    """The interface of a kind. Instances are stateless."""

    name: ClassVar[str]
    content_model: ClassVar[type[Content]]
    seconds: ClassVar[float]
    """Over the minimum viewing time, for estimates of a session's length."""
    is_alone: ClassVar[bool]
    """Handed out one at a time, with the time of handing out stored."""
    is_example: ClassVar[bool]
    """May be looked up in the reservoir later."""
    asks_for_model: ClassVar[bool]
    """What counts as right is what the model says."""
    has_pairs: ClassVar[bool]
    """Its page may show two halves beside each other: pictures below a text, or above what explains them."""
    is_form: ClassVar[bool]
    """Its page has several questions, which scroll beside what they ask about, and no answer buttons."""
    has_maps: ClassVar[bool]
    """What marks its pictures are maps, so that a legend says what their colours mean."""
    is_marked: ClassVar[bool]
    """Its page has a picture to be marked, beside answers that are chosen and then sent."""
    asks_models: ClassVar[bool]
    """What its page asks can be put to a model, a question at a time."""
    says: ClassVar[int]
    """How many answers its page names above the buttons, a line for each; 0: it only asks."""
    columns: ClassVar[tuple[Column, ...]]

    def seen_by(self, trial: TrialView, person: str, streams: Streams) -> TrialView:
        """The trial as this person meets it, if that differs between people; the set of what is asked does
        not. `person` names the person within the study, `streams` are the study's."""
        ...

    def step(self, trial: TrialView) -> str:
        """Which step of its item the trial is, for a kind whose items take several; else empty."""
        ...

    def content(self, trial: TrialView, scene: Scene) -> Content:
        """What the page of this trial receives."""
        ...

    def accepted(self, trial: TrialView) -> tuple[Value, ...]:
        """Every value that may be stored, if they are few and none is answered with feedback; else ()."""
        ...

    def check(self, trial: TrialView, value: Value) -> None:
        """Raises InvalidResponse unless `value` may be stored for this trial."""
        ...

    def answers(self, value: Value) -> tuple[str, ...]:
        """The single answers that a value gives, as texts; () if it gives none."""
        ...

    def choice(self, value: Value) -> str | None:
        """The answer as one of an item's labels; None for a kind that is not asked for a label."""
        ...

    def audited(self, trial: TrialView, value: Value) -> bool | None:
        """Whether an answer to a known task is the one that everybody can see; None for all other trials."""
        ...

    def cells(self, trial: TrialView, value: Value) -> Mapping[str, Any]:
        """The cells of `columns` for one answer."""
        ...

    def noted(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """Further cells of `columns`, from what the page noted beside the answer."""
        ...

    def preview(self, trial: TrialView) -> Value:
        """A value that `check` lets pass, to fill in what lies before a previewed trial."""
        ...

    def waits(self, content: Mapping[str, Any]) -> bool:
        """Whether the page must have the server's reply to this answer before it goes on."""
        ...

    def answer(self, observer: Observer, trial: Mapping[str, Any]) -> Reply:
        """What an observer does with the wire's trial."""
        ...


class Kind:
    """Defaults that most kinds share; a kind may also define everything itself."""

    seconds: ClassVar[float] = 3.0
    is_alone: ClassVar[bool] = False
    is_example: ClassVar[bool] = False
    asks_for_model: ClassVar[bool] = False
    has_pairs: ClassVar[bool] = False
    is_form: ClassVar[bool] = False
    has_maps: ClassVar[bool] = True
    is_marked: ClassVar[bool] = False
    asks_models: ClassVar[bool] = False
    says: ClassVar[int] = 0
    columns: ClassVar[tuple[Column, ...]] = ()

    def seen_by(self, trial: TrialView, person: str, streams: Streams) -> TrialView:
        return trial

    def step(self, trial: TrialView) -> str:
        return ""

    def accepted(self, trial: TrialView) -> tuple[Value, ...]:
        return ()

    def answers(self, value: Value) -> tuple[str, ...]:
        choice = self.choice(value)
        return () if choice is None else (choice,)

    def choice(self, value: Value) -> str | None:
        return str(value["choice"]) if "choice" in value else None

    def audited(self, trial: TrialView, value: Value) -> bool | None:
        return None

    def cells(self, trial: TrialView, value: Value) -> Mapping[str, Any]:
        return {}

    def noted(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def waits(self, content: Mapping[str, Any]) -> bool:
        return False


class ChoiceKind(Kind):
    """Of trials that are answered by one of their choices, {"choice": …}."""

    def accepted(self, trial: TrialView) -> tuple[Value, ...]:
        return tuple({"choice": choice} for choice in trial.choices)

    def check(self, trial: TrialView, value: Value) -> None:
        check_choice(trial.choices, value)

    def preview(self, trial: TrialView) -> Value:
        return {"choice": trial.choices[0]}


KNOWN = "known"
"""The `use` of a trial about a task whose answer everybody can see: it tells who follows the rules."""
USE = Column(
    "use",
    "text",
    "Solutions and reviews: what the trial is for. task: a task, or what a source really gave for it; known: "
    "a task whose answer everybody can see; tuning: a task on which settings are chosen; lure: a false "
    "answer with a region fit to it; alone: answer and region on an item that shows none.",
    levels=("task", "known", "tuning", "lure", "alone"),
)


def label_buttons(buttons: Sequence[Button], scene: Scene) -> tuple[Button, ...]:
    """The buttons, with the study's own words on those that have no text, by their value."""
    return tuple(b if b.text else b.model_copy(update={"text": scene.words(b.value)}) for b in buttons)


def check_choice(choices: Sequence[str], value: Value) -> None:
    """Accepts exactly {"choice": one of the choices}."""
    if len(value) != 1 or "choice" not in value:
        raise InvalidResponse(f'expected {{"choice": …}}, got the keys {keys_of(value)}')
    check_member(choices, value["choice"])


def check_member(choices: Sequence[str], choice: object) -> None:
    if not isinstance(choice, str) or choice not in choices:
        raise InvalidResponse(f"choice must be one of {', '.join(choices)}")


def keys_of(value: Value) -> str:
    """The keys of a value for a message, at most eight, each cut to 20 characters."""
    return ", ".join(repr(str(key)[:20]) for key in list(value)[:8]) or "none"
