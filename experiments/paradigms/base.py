"""The contract of a paradigm: values in, values out; no database, clock or global randomness.

A paradigm turns a design, a pool of items and named random streams into the complete plans of everybody, and
later judges what came back. Serving, recording, paying and exporting know nothing about paradigms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from experiments.design.rng import Streams

TrialKind = Literal["learn", "predict", "review", "solve", "rate"]
Phase = Literal["practice", "train", "test"]
Check = Literal["", "instructed", "repeat"]
Timing = Literal["before", "after"]
Status = Literal["passed", "screened", "incomplete", "withdrawn", "declined"]


class Design(BaseModel):
    """The parameters of a paradigm, as written in `[design]`; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class PoolItem:
    """An item as the planner sees it: what it is, what the model says, how surely (0-1)."""

    key: str
    truth: str
    predicted: str
    confidence: float
    group: str

    @property
    def correct(self) -> bool:
        return self.truth == self.predicted


@dataclass(frozen=True, slots=True)
class PlanCondition:
    """A level of the manipulated factor with the number of slots that are to be filled."""

    name: str
    role: str
    slots: int


@dataclass(frozen=True, slots=True)
class Pool:
    """Everything a planner may use. `choices` are the (value, text) pairs of the answers, in canonical order.

    `explanations` (rating only) lists the (item, condition) pairs that are to be rated; empty means all.
    `solutions` (review only) lists the frozen solutions as (solution id, item, source, choice).
    """

    items: tuple[PoolItem, ...]
    conditions: tuple[PlanCondition, ...]
    choices: tuple[tuple[str, str], ...]
    balance: Literal["prediction_x_correct", "prediction", "none"] = "none"
    check_instructed: int = 0
    check_repeat: int = 0
    explanations: tuple[tuple[str, str], ...] = ()
    solutions: tuple[tuple[str, str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer button: the value that is stored, the text on it, the key that presses it."""

    value: str
    text: str
    key: str

    def as_json(self) -> dict[str, str]:
        return {"value": self.value, "text": self.text, "key": self.key}


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One trial of a plan. Positions run from 0 without gaps within a plan.

    `item` is None only for instructed checks without a picture. `condition` is the level this trial belongs
    to; `explained` says whether its explanation is shown. `label` is what a learn trial reveals (None: guess
    first or nothing to reveal). `expected` is the answer that a check asks for; for other trials the empty
    string: what is right is derived from the item. `reservoir` lists the positions of the training trials
    that may be consulted. `extra` holds what only this paradigm needs (JSON values), never sent to a browser
    as it is.
    """

    position: int
    block: int
    phase: Phase
    kind: TrialKind
    item: str | None
    condition: str
    explained: bool
    choices: tuple[Choice, ...]
    check: Check = ""
    label: str | None = None
    expected: str = ""
    reservoir: tuple[int, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """One slot: who may claim it (`lane`), what it fixes (`arm`), its whole sequence of trials.

    `condition` is the one condition of all trials where the paradigm is between subjects, else None.
    """

    ordinal: int
    lane: str
    arm: str
    condition: str | None
    trials: tuple[PlannedTrial, ...]


@dataclass(frozen=True, slots=True)
class TrialView:
    """A stored trial as a paradigm judges it: the plan, and what model and world say about its item."""

    position: int
    block: int
    phase: Phase
    kind: TrialKind
    check: Check
    condition: str
    choices: tuple[str, ...]
    expected: str
    truth: str | None
    predicted: str | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as screening sees it. Times in milliseconds."""

    position: int
    value: Mapping[str, Any]
    rt_ms: int
    shown_ms: int


@dataclass(frozen=True, slots=True)
class GateTry:
    """One try at a gate. `passed` is None where nothing is judged (questions)."""

    kind: str
    attempt: int
    passed: bool | None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a session was not kept: the rule, when it acts, what was found and the limit it broke."""

    rule: str
    timing: Timing
    found: float
    limit: float
    evidence: str

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "timing": self.timing,
            "found": self.found,
            "limit": self.limit,
            "evidence": self.evidence,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What screening says of one session."""

    status: Status
    reasons: tuple[Reason, ...] = ()


class InvalidResponse(ValueError):
    """A response value does not fit its trial; the message names the value and what is allowed."""


class PlanError(ValueError):
    """Plans cannot be drawn from this design and pool."""


class NotEnoughItems(PlanError):
    """The pool cannot carry the design; the message says what is needed, what there is, and the remedy."""


class BadDesign(PlanError):
    """Design, conditions and checks do not go together; the message says what, the limit, and the remedy."""


class Paradigm(Protocol):
    """What a study's protocol must say. Instances are stateless; `Design` is its `[design]` table."""

    name: ClassVar[str]
    Design: ClassVar[type[Design]]
    kinds: ClassVar[tuple[TrialKind, ...]]
    gates: ClassVar[tuple[str, ...]]
    """Gate kinds in the order they are passed, before the slot is claimed."""

    def plans(self, design: Any, pool: Pool, streams: Streams) -> Iterator[Plan]:
        """Every slot of the stage, by ordinal from 0. Raises PlanError (NotEnoughItems, BadDesign)."""
        ...

    def check(
        self,
        kind: TrialKind,
        choices: Sequence[str],
        value: Mapping[str, Any],
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Raises InvalidResponse unless `value` may be stored for a trial of this kind.

        With the trial's `extra`, a rating must also answer exactly the questions that the trial asks.
        """
        ...

    def score(self, trial: TrialView, value: Mapping[str, Any]) -> float | None:
        """Agreement with the model (or the paradigm's own score); None for training and check trials."""
        ...

    def feedback(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What may be revealed after the answer: {"label": str, "correct": bool}, or None."""
        ...

    def screen(
        self,
        trials: Sequence[TrialView],
        gates: Sequence[GateTry],
        answers: Sequence[Answer],
        total_minutes: float,
        rules: Mapping[str, Any],
    ) -> Verdict:
        """Applies the rules to one session that reached its end. Rules that the mapping lacks do not act."""
        ...
