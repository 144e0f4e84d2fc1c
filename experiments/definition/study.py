"""A study as a value: every table of study.toml, frozen, with a digest over everything that a participant
meets. Rules of a single paradigm are checked by that paradigm, which `study_file` calls when it reads the
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from experiments.definition.export_package_table import PackageTable
from experiments.definition.gate_page_tables import (
    Part,
    PlatesTable,
    PracticeTable,
    QuestionTable,
    QuizQuestion,
    TrainingTable,
)
from experiments.definition.preregistration_table import PreregistrationTable
from experiments.definition.text_tables import InterfaceTable
from experiments.design.rng import Streams
from stimuli.errors import BadSpec
from stimuli.explainers.targets import Of, Target
from stimuli.planner.values import Operator
from stimuli.render.attribution_field import check_recipe
from stimuli.render.recipe import (
    ALPHA_BEFORE,
    OF_PRESETS,
    Base,
    Colormap,
    Interpolation,
    RenderSpec,
    Sign,
    Style,
    Unsigned,
    View,
    before_signs,
    written_out,
)
from stimuli.spec import Component, content_key
from stimuli.types import Units

ANSWERS_MAX = 20
"""As many answers as there are keys for them: ten digits and the upper letter row."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]{0,62}$")]
Count = Annotated[int, Field(ge=0, le=1000)]
Cents = Annotated[int, Field(ge=0, le=1_000_000)]


class ComponentTable(BaseModel):
    """A table with a `name`; everything else is a parameter of the thing it names."""

    model_config = ConfigDict(frozen=True, extra="allow")
    name: str

    def component(self) -> Component:
        return Component(self.name, dict(self.model_extra or {}))


class Stimuli(Part):
    """`dataset` and `predictor` name the only ones of a study; `datasets` and `predictors` hold several by
    name, and each condition then says which of them it uses. `classes` or `target` say what is asked.
    """

    dataset: ComponentTable | None = None
    predictor: ComponentTable | None = None
    datasets: dict[Name, ComponentTable] = Field(default_factory=dict)
    predictors: dict[Name, ComponentTable] = Field(default_factory=dict)
    classes: Annotated[tuple[str, ...], Field(min_length=2, max_length=ANSWERS_MAX)] | None = None
    target: str | None = None
    outside: Literal["drop", "restrict"] = "drop"
    label_names: Literal["own", "neutral", "drawn"] = "own"
    balance: Literal["prediction_x_correct", "prediction", "none"] = "prediction_x_correct"
    items: Annotated[int, Field(ge=4, le=5000)] = 120
    drop_flagged: tuple[Literal["flat", "look_alike"], ...] = ()
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"
    units: Units | None = None

    @model_validator(mode="after")
    def _one_question(self) -> Stimuli:
        if self.classes is not None and self.target is not None:
            raise ValueError("classes and target ask two questions: keep one of them")
        if self.classes is not None and len(set(self.classes)) < len(self.classes):
            raise ValueError("classes names one class twice: name each once")
        for single, several in (("dataset", self.datasets), ("predictor", self.predictors)):
            if (getattr(self, single) is None) == (not several):
                both = f"{single} = {{…}} or [stimuli.{single}s.NAME] tables"
                raise ValueError(f"one {single} or several: give either {both}")
        return self

    @property
    def sources(self) -> dict[tuple[str, str], tuple[ComponentTable, ComponentTable]]:
        """Every pair of a dataset and a predictor by their names, "" for the only one."""
        datasets = dict(self.datasets) if self.dataset is None else {"": self.dataset}
        predictors = dict(self.predictors) if self.predictor is None else {"": self.predictor}
        return {
            (d, p): (dataset, predictor)
            for d, dataset in datasets.items()
            for p, predictor in predictors.items()
        }


class Render(Part):
    """The recipe of all conditions. `preset` names one of a published study, which the other keys complete or
    change; it is written out when the file is read. `absolute` gives a study the recipe of before recipes had
    a `sign`: with it stand only the keys that there were then, and people see the network's view itself.
    """

    preset: Literal["", "colin-2022-figures", "xplique", "pasta", "reverse-turing"] = ""
    colormap: Colormap = "viridis"
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.75
    clip_low: Annotated[float, Field(ge=0, lt=50)] = 1.0
    clip_high: Annotated[float, Field(gt=50, le=100)] = 99.0
    absolute: bool | None = None
    sign: Sign = "positive"
    smooth_px: Annotated[float, Field(ge=0, le=64)] = 0.0
    style: Style = "heat"
    top_share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    base: Base = "colour"
    unsigned: Unsigned = "refuse"
    view: View = "original"
    interpolation: Interpolation = "smooth"
    tile_px: Annotated[int, Field(ge=44, le=400)] = 112
    concept_form: Literal["bars", "names", "reasons"] = "bars"
    concept_top: Annotated[int, Field(ge=1, le=15)] = 6
    concept_signed: bool = True
    concept_letters: Annotated[float, Field(ge=0.02, le=0.1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _written_out(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        table = dict(value)
        if table.get("absolute") is not None:
            table.setdefault("alpha", ALPHA_BEFORE)
        try:
            return written_out(table)
        except BadSpec as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Render:
        if self.absolute is not None:
            apart = [key for key, default in _SIGNED.items() if getattr(self, key) != default]
            if apart:
                raise ValueError(
                    f"absolute is the recipe of before the signs and knows no {', '.join(apart)}: write "
                    'sign = "magnitude" in place of absolute = true, or "signed_range" in place of false'
                )
        if not self.preset and self.colormap in OF_PRESETS:
            raise ValueError(
                f"colormap {self.colormap!r} is a palette of published figures, whose lightness does not "
                "grow with importance: name their preset, or choose another palette"
            )
        try:
            check_recipe(self.spec())
        except BadSpec as error:
            raise ValueError(str(error)) from None
        return self

    def spec(self) -> RenderSpec:
        keys = self.model_dump(exclude={"preset", "absolute", "view", "interpolation"})
        if self.absolute is not None:
            keys |= before_signs(absolute=self.absolute)
        return RenderSpec(**keys)


class ExplainedClass(Part):
    """Which class is explained: the predicted one, the true one, the runner-up, or the one called `label`."""

    of: Of = "predicted"
    label: str = ""

    @model_validator(mode="after")
    def _check_label(self) -> ExplainedClass:
        if (self.of == "label") != bool(self.label):
            raise ValueError('of = "label" and label = "…" go together: give both, or neither')
        return self


class ExplainedTable(ExplainedClass):
    """Which number of the model is explained, equal for all conditions."""

    operator: Operator = "logit"


class ConditionTable(Part):
    """A level of the manipulated factor. `explained`: of controls that explain another class than others."""

    name: Name
    role: Name
    slots: Annotated[int, Field(ge=1, le=5000)] = 1
    explainer: ComponentTable | None = None
    label: str = ""
    dataset: Name | Literal[""] = ""
    predictor: Name | Literal[""] = ""
    explained: ExplainedClass | None = None

    @property
    def source(self) -> tuple[str, str]:
        return self.dataset, self.predictor


class AnswerTable(Part):
    """An answer apart from the material's classes: `classes` lists the classes that it stands for."""

    value: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]{0,39}$")]
    text: Annotated[str, Field(min_length=1, max_length=80)]
    classes: tuple[str, ...] = ()


class Checks(Part):
    instructed: Count = 2
    repeat: Count = 3


class RuleTable(Part):
    """One screening rule: its limit and whether it acts before or after assignment."""

    limit: float | tuple[float, float]
    timing: Literal["before", "after"] | None = None


class Policy(Part):
    """The payment for each verdict, as a share of the reward."""

    complete: Literal["full"] = "full"
    screened_share: Annotated[float, Field(ge=0, le=1)] = 1.0
    turned_away_share: Annotated[float, Field(ge=0, le=1)] = 0.25
    withdrawn: Literal["pro_rata", "full", "none"] = "pro_rata"
    lease_minutes: Annotated[int, Field(ge=1, le=600)] | None = None


class Ethics(Part):
    contact: Annotated[str, Field(min_length=3)]
    approval: str = ""
    minimum_age: Annotated[int, Field(ge=16, le=99)] = 18
    deception: str = ""
    special_category: str = ""
    content_warning: str = ""
    retention_days: Annotated[int, Field(ge=1, le=36500)] | None = None
    models_may_see: bool = False


class Reward(Part):
    amount_cents: Cents = 0
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    expected_minutes: Annotated[float, Field(gt=0, le=240)]
    bonus_per_match_cents: Annotated[int, Field(ge=0, le=10_000)] = 0
    bonus_max_cents: Cents = 0
    person_cap_cents: Cents | None = None

    @model_validator(mode="after")
    def _bonus(self) -> Reward:
        if (self.bonus_per_match_cents > 0) != (self.bonus_max_cents > 0):
            raise ValueError("bonus_per_match_cents and bonus_max_cents go together: give both, or neither")
        if self.person_cap_cents is not None and self.person_cap_cents < self.amount_cents:
            raise ValueError(
                "person_cap_cents is less than amount_cents, which everybody who finishes gets: raise it"
            )
        return self

    @property
    def most_cents(self) -> int:
        """The highest amount that one person can get."""
        most = self.amount_cents + self.bonus_max_cents
        return most if self.person_cap_cents is None else self.person_cap_cents


class Recruitment(Part):
    """How participants are recruited. Participants do not meet it, so the digest leaves it out."""

    description: Annotated[str, Field(max_length=2000)] = ""
    keywords: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    maximum_minutes: Annotated[float, Field(gt=0, le=1380)] | None = None


class DeviceTable(Part):
    """The smallest window that is let in: None is computed from the study (`window`)."""

    min_width_px: Annotated[int, Field(ge=320, le=4000)] | None = None
    min_height_px: Annotated[int, Field(ge=320, le=4000)] | None = None
    phones: bool = False


class PresentationTable(Part):
    """How a trial is put on the screen: equal for all conditions. Times become whole frames of the display;
    `exposure_ms` None: until the answer. `phases` says whether fixation mark, exposure and mask hold for
    tests only."""

    fullscreen: bool = False
    fixation_ms: Annotated[int, Field(ge=0, le=5000)] = 0
    exposure_ms: Annotated[int, Field(ge=10, le=60_000)] | None = None
    mask_ms: Annotated[int, Field(ge=0, le=5000)] = 0
    phases: Literal["test", "all"] = "test"
    calibration: Literal["off", "card"] = "off"
    distance: Literal["off", "blind_spot"] = "off"

    @model_validator(mode="after")
    def _makes_sense(self) -> PresentationTable:
        if self.mask_ms and self.exposure_ms is None:
            raise ValueError(
                f"mask_ms = {self.mask_ms} covers a stimulus that stays until the answer: give exposure_ms "
                "as well, or leave mask_ms out"
            )
        if self.phases == "all" and not self.fixation_ms and self.exposure_ms is None:
            raise ValueError(
                'phases = "all" says which trials have a fixation mark or a limited exposure, but there is '
                "neither: give fixation_ms or exposure_ms, or leave phases out"
            )
        if self.distance != "off" and self.calibration == "off":
            raise ValueError(
                f'distance = "{self.distance}" is measured in millimetres on the screen, whose size is not '
                'known: set calibration = "card" as well'
            )
        return self


class ExtensionTable(Part):
    """How an extension is compared with its parent, declared before its people come. `drift_points`: by how
    much the two baselines may differ in accuracy, in points, to count as one. `pool`: whether they are then
    pooled, as a second result."""

    drift_points: Annotated[float, Field(gt=0, le=50)] | None = None
    pool: bool = False

    @model_validator(mode="after")
    def _has_margin(self) -> ExtensionTable:
        if self.pool and self.drift_points is None:
            raise ValueError(
                "pool = true needs drift_points: without a margin nothing says what is one baseline"
            )
        return self


class StudyDefinition(Part):
    """A study as data. `texts` holds the contents of the text files, so that the digest covers them."""

    slug: Name
    title: Annotated[str, Field(min_length=1, max_length=200)]
    paradigm: str
    seed: Annotated[int, Field(ge=0, lt=2**53)]
    extends: Name | Literal[""] = ""
    extension: ExtensionTable = ExtensionTable()
    language: Literal["en", "de"] = "en"
    sittings_max: Annotated[int, Field(ge=1, le=1000)] = 1
    design: dict[str, Any] = Field(default_factory=dict)
    stimuli: Stimuli
    explained: ExplainedTable = ExplainedTable()
    render: Render = Render()
    conditions: Annotated[tuple[ConditionTable, ...], Field(min_length=1)]
    answers: Annotated[tuple[AnswerTable, ...], Field(max_length=ANSWERS_MAX)] = ()
    metrics: tuple[ComponentTable, ...] = ()
    texts: dict[str, str]
    interface: InterfaceTable | None = None
    quiz: tuple[QuizQuestion, ...] = ()
    questions: tuple[QuestionTable, ...] = ()
    checks: Checks = Checks()
    screening: dict[str, RuleTable] = Field(default_factory=dict)
    policy: Policy = Policy()
    ethics: Ethics
    reward: Reward
    device: DeviceTable = DeviceTable()
    presentation: PresentationTable = PresentationTable()
    practice: PracticeTable = PracticeTable()
    training: TrainingTable = TrainingTable()
    plates: PlatesTable | None = None
    preregistration: PreregistrationTable | None = None
    recruitment: Recruitment = Recruitment()
    package: PackageTable = PackageTable()
    platforms: dict[Name, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("screening", mode="before")
    @classmethod
    def _rules(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {k: v if isinstance(v, Mapping) else {"limit": v} for k, v in value.items()}

    def as_met(self) -> dict[str, Any]:
        """All that people meet and what is declared of the analysis, as JSON; old digests stay valid."""
        whole = self.model_dump(mode="json", exclude={"recruitment", "package", "platforms", "metrics"})
        del whole["ethics"]["models_may_see"]
        for table, names in _LATER.items():
            rows = whole[table] if isinstance(whole[table], list) else [whole[table]]
            for row in rows:
                for name, default in names.items():
                    if row[name] == default:
                        del row[name]
        # Until windows were computed these stood in every definition, and what is computed follows from it.
        whole["device"] |= {side: whole["device"][side] or px for side, px in _WINDOW_BEFORE.items()}
        if self.training == TrainingTable():
            del whole["training"]
        # Without the table there is no check; what share of the people it finds, they do not meet.
        if self.plates is None:
            del whole["plates"]
        else:
            del whole["plates"]["prevalence"]
        if self.preregistration is None or self.preregistration.is_silent:
            del whole["preregistration"]
        else:
            whole["preregistration"] = self.preregistration.as_met()
        if not self.extends:
            del whole["extends"], whole["extension"]
        for table in ("answers", "explained", "presentation", "interface"):
            if not whole[table]:
                del whole[table]
        return whole

    @property
    def tag(self) -> str:
        """The language of the pages."""
        return self.language if self.interface is None else self.interface.language

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all that a participant meets."""
        return content_key(self.as_met())

    def target_of(self, condition: ConditionTable) -> Target:
        """What a condition explains; other classes are those that people are asked about."""
        of = condition.explained or self.explained
        return Target(of.of, of.label, self.explained.operator, self.stimuli.classes or ())

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        """The screening rules as plain values, for the paradigm's `screen`."""
        return {k: rule.model_dump(exclude_none=True) for k, rule in self.screening.items()}

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """What a participant chooses from: (value, text), in canonical order; empty if nothing is asked."""
        if self.answers:
            return tuple((answer.value, answer.text) for answer in self.answers)
        if self.stimuli.target is not None:
            return (("target", "Target"), ("other", "Other"))
        classes = self.stimuli.classes or ()
        if self.stimuli.label_names != "own":
            # The values are neutral too, because a browser can read them.
            return tuple((f"class_{i + 1}", f"Class {i + 1}") for i in range(len(classes)))
        return tuple((name, name.replace("_", " ").capitalize()) for name in classes)

    def value_of(self, label: str) -> str:
        """The answer that stands for a class of the material; the class itself if no answer does."""
        for answer in self.answers:
            if label in answer.classes:
                return answer.value
        if self.answers or self.stimuli.classes is None or label not in self.stimuli.classes:
            return label
        place = self.stimuli.classes.index(label)
        if self.stimuli.label_names == "drawn":
            # Classes that have an order of their own, such as lengths, would tell it by their numbers.
            place = int(Streams(self.seed)("label names").permutation(len(self.stimuli.classes))[place])
        return self.choices[place][0]

    @property
    def lease_minutes(self) -> float:
        """How long a claimed slot is held: the policy's, else twice the upper bound of total minutes."""
        if self.policy.lease_minutes is not None:
            return float(self.policy.lease_minutes)
        rule = self.screening.get("total_minutes")
        upper = rule.limit[1] if rule and isinstance(rule.limit, tuple) else 4 * self.reward.expected_minutes
        return 2.0 * upper


_SIGNED: Mapping[str, Any] = {
    "sign": "positive",
    "smooth_px": 0.0,
    "style": "heat",
    "top_share": 0.1,
    "base": "colour",
    "unsigned": "refuse",
    "view": "original",
    "interpolation": "smooth",
}
"""The keys of a recipe that joined with its sign or later, with their defaults."""
_LATER: Mapping[str, Mapping[str, Any]] = {
    "stimuli": {"precision": "float32", "datasets": {}, "predictors": {}, "drop_flagged": [], "units": None},
    "render": {
        **{"concept_form": "bars", "concept_top": 6, "concept_signed": True, "concept_letters": None},
        **{"preset": "", "absolute": None, **_SIGNED},
    },
    **{"conditions": {"dataset": "", "predictor": "", "explained": None}, "device": {"phones": False}},
    "explained": {"of": "predicted", "label": "", "operator": "logit"},
    "presentation": {
        **{"fullscreen": False, "fixation_ms": 0, "exposure_ms": None, "mask_ms": 0},
        **{"phases": "test", "calibration": "off", "distance": "off"},
    },
    **{"ethics": {"special_category": ""}, "questions": {"special": None}},
}
"""Keys that were added after the first studies had opened, with their defaults."""
_WINDOW_BEFORE = {"min_width_px": 700, "min_height_px": 500}
"""The smallest window of a study that stated none, before it was computed."""
