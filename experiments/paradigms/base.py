"""The contract of a paradigm: values in, values out; no database, clock or global randomness.

A paradigm turns a design, a pool of items and named random streams into the complete plan of every slot, and
later judges the answers. Serving, recording, paying and exporting know nothing about paradigms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from experiments.definition.colour_vision_verdict import Eyes, Vision
from experiments.definition.preregistration_table import Contrasts
from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.errors import Problem
from experiments.kinds.base import Check, Choice, Phase, TrialView
from stimuli.types import Use

if TYPE_CHECKING:  # It imports Pillow, which a fault in a study file would wait for.
    from stimuli.perturbing.search import Search

Timing = Literal["before", "after"]
Aim = Literal["light", "strong"]
PlannedTest = Literal["anova", "ranks", "pairs", "contrasts"]
Status = Literal["passed", "screened", "incomplete", "withdrawn", "declined"]
LANE = "participant"
"""The lane of a study with a single lane."""


class Design(BaseModel):
    """The parameters of a paradigm, as written in `[design]`; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True, slots=True)
class Role:
    """A part that conditions may play: how many of them a study has, and whether they show an explanation.

    `explained` None: both are allowed.
    """

    explained: bool | None = True
    at_least: int = 0
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class PoolItem:
    """An item as the planner sees it: what it is, what the model says, how surely (0-1). `planted` are the
    cells of the study's grid that are known to hold what decides, of known tasks alone."""

    key: str
    truth: str
    predicted: str
    confidence: float
    group: str
    use: Use = "task"
    planted: tuple[int, ...] = ()

    @property
    def correct(self) -> bool:
        return self.truth == self.predicted


@dataclass(frozen=True, slots=True)
class PlanCondition:
    """A level of the manipulated factor with the number of slots that are to be filled."""

    name: str
    role: str
    slots: int


SolvedUse = Literal["solution", "lure", "alone"]


class PlanSolution(NamedTuple):
    """A frozen solution, as a plan may use it. `use`: what its source gave for the item; a lure (a false
    answer, with the mark of another solution of this source that gave it); or alone (such a mark on a blank
    item)."""

    key: str
    item: str
    source: str
    choice: str
    use: SolvedUse = "solution"


@dataclass(frozen=True, slots=True)
class Pool:
    """Everything a planner may use. `choices` are the (value, text) pairs of the answers, in canonical order.

    `explanations` lists the (item, condition) pairs that have a stimulus; empty means all. `predictions`
    holds what the model of a condition says of an item if that is not `PoolItem.predicted`: studies with
    several models have them. `solutions` are the frozen ones of an earlier stage. `copies` maps (item,
    condition, "light" or "strong") to the key of the item's changed copy, `shared` maps (item, condition) to
    the earlier condition whose page of the item is the same.
    """

    items: tuple[PoolItem, ...]
    conditions: tuple[PlanCondition, ...]
    choices: tuple[tuple[str, str], ...]
    balance: Literal["prediction_x_correct", "prediction", "none"] = "none"
    check_instructed: int = 0
    check_repeat: int = 0
    explanations: tuple[tuple[str, str], ...] = ()
    solutions: tuple[PlanSolution, ...] = ()
    predictions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    copies: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    shared: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def predicted(self, item: PoolItem, condition: str) -> str:
        """What the model of this condition says of the item."""
        return self.predictions.get((item.key, condition), item.predicted)


@dataclass(frozen=True, slots=True)
class SurveyItem:
    """An item as one model sees it. `index` is the logit of the predicted label. `flagged`: it must not be
    chosen, for its explanation is empty under a condition of the study. `use` says what it is for,
    `annotated` who gave it which label."""

    key: str
    truth: str
    group: str
    predicted: str
    index: int
    confidence: float
    logits: tuple[float, ...]
    flagged: bool = False
    use: Use = "task"
    annotated: tuple[tuple[str, str], ...] = ()


Source = tuple[str, str]
"""Names of a dataset and a predictor of the study; ("", "") in a study that has one of each."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What one model says of every item of one dataset. `labels` are in the order of the logits."""

    labels: tuple[str, ...]
    items: tuple[SurveyItem, ...]


@dataclass(frozen=True, slots=True)
class Material:
    """What a paradigm makes of the surveys: the planner's pool, and per source the items to be rendered."""

    pool: Pool
    chosen: Mapping[Source, tuple[SurveyItem, ...]]


@dataclass(frozen=True, slots=True)
class CopiesWanted:
    """Which changed copies of its pictures a study shows, and how they are looked for. `light_correct`: light
    ones only of pictures that the model is right about."""

    aims: tuple[Aim, ...]
    search: Search
    light_correct: bool


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """One trial of a plan. Positions run from 0 without gaps within a plan.

    `item` is None only for instructed checks without a picture. `condition` is the level this trial belongs
    to; `explained` says whether its explanation is shown. `label` is what the page reveals (None: guess
    first, or nothing to reveal). `expected` is the answer that a check asks for, empty for other trials.
    `right` is the value that counts as right; None: nothing does. `reservoir` lists the positions of the
    training trials that may be consulted. `others` names further stimuli of the page by role, as (item,
    condition). `variant` tells several stimuli of one item under one condition apart: the key of a solution.
    `extra` holds what only this kind needs (JSON values), never sent to a browser as it is.
    """

    position: int
    block: int
    phase: Phase
    kind: str
    item: str | None
    condition: str
    explained: bool
    choices: tuple[Choice, ...]
    check: Check = ""
    label: str | None = None
    expected: str = ""
    right: str | None = None
    reservoir: tuple[int, ...] = ()
    others: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    variant: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def view(self) -> TrialView:
        """The trial as a kind judges it; item facts stay out, since no kind needs them."""
        return TrialView(
            position=self.position,
            block=self.block,
            phase=self.phase,
            kind=self.kind,
            check=self.check,
            condition=self.condition,
            choices=tuple(choice.value for choice in self.choices),
            expected=self.expected,
            truth=None,
            predicted=None,
            extra=self.extra,
            right=self.right,
            label=self.label,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """One slot: who may claim it (`lane`), what it fixes (`arm`), its whole sequence of trials.

    `condition` is the one condition of all trials if the paradigm is between subjects, else None. Plans of
    one number `matched` have the same items, order, sides and checks; None: this plan has no twin.
    """

    ordinal: int
    lane: str
    arm: str
    condition: str | None
    trials: tuple[PlannedTrial, ...]
    matched: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A response as screening sees it. Times in milliseconds."""

    position: int
    value: Mapping[str, Any]
    rt_ms: int
    shown_ms: int


@dataclass(frozen=True, slots=True)
class GateTry:
    """One try at a gate. `passed` is None if nothing is judged (questions)."""

    kind: str
    attempt: int
    passed: bool | None
    value: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """What is known of a person who is about to get a slot.

    `gates` are the tries of this session. `lane` is the lane of an earlier session of the person, empty if
    there was none. `free` maps each lane of the study to its free slots that this person may still take.
    `vision` is what the colour check says of the person; None: the study has none.
    """

    gates: tuple[GateTry, ...]
    lane: str
    free: Mapping[str, int]
    vision: Vision | None = None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a session was not kept: the rule, when it acts, the observed value and the limit that it broke."""

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


class PlanError(ValueError):
    """Plans cannot be drawn from this design and pool."""


class NotEnoughItems(PlanError):
    """The pool has too few items for the design; the message says how many are needed, how many exist, and
    the remedy. `need` is the message without its remedy, for callers that know the cause."""

    def __init__(self, message: str, need: str = "") -> None:
        super().__init__(message)
        self.need = need or message


class GroupsTooLarge(NotEnoughItems):
    """The items would do, but items of one group stay together, and the groups are too few or too large."""


class BadDesign(PlanError):
    """Design, conditions and checks contradict each other; the message names the value, the limit, and the
    remedy."""


class Paradigm(Protocol):
    """The interface of a study's protocol. Instances are stateless; `Design` is its `[design]` table."""

    name: ClassVar[str]
    Design: ClassVar[type[Design]]
    kinds: ClassVar[tuple[str, ...]]
    gates: ClassVar[tuple[str, ...]]
    """Gates in the order in which they are met; `experiments/gates` says where each stands."""
    roles: ClassVar[Mapping[str, Role]]
    answers_count: ClassVar[tuple[int, int]]
    """Fewest and most answers that a person chooses from; (0, 0) for a paradigm without such answers."""
    modalities: ClassVar[tuple[str, ...]]
    """What its pages can show: "image", "text"."""
    checks: ClassVar[Mapping[str, int]]
    """How many checks of each sort a study has if its file has no `[checks]`."""
    render: ClassVar[Mapping[str, str]]
    """The recipe of a study whose file has no `[render]`."""
    texts: ClassVar[tuple[str, ...]]
    """Keys of `[texts]` besides the common ones, for the people of some arms (`arm_texts`)."""

    merges_coinciding: ClassVar[bool]
    """Whether pages of one item that are the same under several conditions are met once and stand for all."""
    is_extensible: ClassVar[bool]
    """Whether a later study can add conditions: each person meets one, plans do not depend on the others."""
    planned_test: ClassVar[PlannedTest]
    """Whose power is computed before people come; none if its plans have no condition of a person."""
    planned_analysis: ClassVar[str]
    """What its reporter will test, as a preregistration says it; empty: the researcher writes it."""
    planned_contrasts: ClassVar[Mapping[Contrasts, str]]
    """The same by the contrasts that a study may declare; empty: there is nothing to choose."""

    def eyes(self, design: Any) -> Eyes | None:
        """Whose colour vision a study of this design is for, if it is about colours: only for those who are
        simulated. None: it is about something else."""
        ...

    def scores(self, design: Any) -> bool:
        """Whether any answer of such a study is right or wrong, so that a bonus can be earned."""
        ...

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        """The mistakes in this study that only the paradigm can recognise."""
        ...

    def kinds_of(self, definition: StudyDefinition) -> tuple[str, ...]:
        """Those of its kinds that this study has."""
        ...

    def buttons(self, definition: StudyDefinition) -> tuple[tuple[str, str], ...]:
        """(value, text) of what its trials are answered with; an empty text stands for the word that the
        study's language has for this value."""
        ...

    def wording(self, definition: StudyDefinition) -> Mapping[str, str]:
        """Sentences that this study words itself, by the names that its pages use."""
        ...

    def voices(self, definition: StudyDefinition) -> tuple[str, ...]:
        """The tables of the server's words that this study speaks by, the later over the earlier."""
        ...

    def arm_texts(self, definition: StudyDefinition) -> Mapping[str, str]:
        """Texts of the study that only some slots' people read, right after the claim: the first part of the
        slot's arm -> the text's name. Empty: there is none."""
        ...

    def seconds(self, design: Any) -> Mapping[str, float]:
        """How long a trial takes by its kind, if not as long as the kind says."""
        ...

    def material(self, definition: StudyDefinition, surveys: Mapping[Source, Survey]) -> Material:
        """Chooses what is rendered and planned. Raises PlanError."""
        ...

    def withholds(self, definition: StudyDefinition) -> tuple[str, ...]:
        """What people are not told before the end, as clauses; a study that withholds something declares it
        before it is offered to people."""
        ...

    def copies(self, definition: StudyDefinition) -> CopiesWanted | None:
        """Which changed copies of pictures its pages show beside the pictures; None: none."""
        ...

    def plans(self, design: Any, pool: Pool, streams: Streams) -> Iterator[Plan]:
        """Every slot of the stage, by ordinal from 0. Raises PlanError (NotEnoughItems, BadDesign)."""
        ...

    def pilot_slots(self, design: Any, pool: Pool, count: int) -> int:
        """Slots per condition so that `plans` yields at least `count` plans."""
        ...

    def more_places(self, design: Any) -> Mapping[str, Any]:
        """Keys of `[design]` that make more places than the file has, if they do not follow from slots, so
        that visitors of a demo find one. Empty: nothing does."""
        ...

    def lane(self, route: Route) -> str | None:
        """The lane from which this person gets a slot; None: none of the study's slots is for this person."""
        ...

    def feedback(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What may be revealed after the answer: {"label": value, "correct": bool}, or None."""
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
