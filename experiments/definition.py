"""study.toml -> StudyDefinition: validated whole, frozen, with a digest over everything that a person would
meet."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from experiments.errors import InvalidStudy, Problem, StudyError
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.screening import BadRules, read_rules
from stimuli.errors import StimulusError
from stimuli.spec import Component, RenderSpec, content_key

STUDIES_DIR = Path(__file__).parent / "studies"
MATERIAL = {"meta_predictor"}
"""Paradigms whose pages and material exist; the others have their planners only."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_\-]{0,62}$")]
Count = Annotated[int, Field(ge=0, le=1000)]
Cents = Annotated[int, Field(ge=0, le=1_000_000)]


class Part(BaseModel):
    """A table of study.toml: frozen, and a key that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ComponentTable(BaseModel):
    """A table with a `name`; everything else is a parameter of the thing it names."""

    model_config = ConfigDict(frozen=True, extra="allow")
    name: str

    def component(self) -> Component:
        return Component(self.name, dict(self.model_extra or {}))


class Stimuli(Part):
    dataset: ComponentTable
    predictor: ComponentTable
    classes: tuple[str, str] | None = None
    target: str | None = None
    outside: Literal["drop", "restrict"] = "drop"
    label_names: Literal["own", "neutral"] = "own"
    balance: Literal["prediction_x_correct", "prediction", "none"] = "prediction_x_correct"
    items: Annotated[int, Field(ge=4, le=5000)] = 120
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"

    @model_validator(mode="after")
    def _one_question(self) -> Stimuli:
        if (self.classes is None) == (self.target is None):
            raise ValueError('give either classes = ["a", "b"] or target = "a"')
        if self.classes is not None and self.classes[0] == self.classes[1]:
            raise ValueError("the two classes must differ")
        return self


class Render(Part):
    colormap: Literal["viridis", "cividis", "inferno", "magma", "plasma"] = "viridis"
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.55
    clip_low: Annotated[float, Field(ge=0, lt=50)] = 1.0
    clip_high: Annotated[float, Field(gt=50, le=100)] = 99.0
    absolute: bool = True
    tile_px: Annotated[int, Field(ge=44, le=400)] = 112
    concept_form: Literal["bars", "names", "reasons"] = "bars"
    concept_top: Annotated[int, Field(ge=1, le=15)] = 6
    concept_signed: bool = True

    def spec(self) -> RenderSpec:
        return RenderSpec(**self.model_dump())


class ConditionTable(Part):
    name: Name
    role: Literal["baseline", "control", "method"]
    slots: Annotated[int, Field(ge=1, le=5000)]
    explainer: ComponentTable | None = None
    label: str = ""

    @model_validator(mode="after")
    def _explained(self) -> ConditionTable:
        if (self.role == "baseline") != (self.explainer is None):
            raise ValueError("a baseline has no explainer, every other role has one")
        return self


class TextFiles(Part):
    consent: str
    instructions: str
    debrief: str
    quiz: str | None = None
    instructions_explained: str | None = None
    instructions_baseline: str | None = None


class Checks(Part):
    instructed: Count = 2
    repeat: Count = 3


class Rule(Part):
    """One screening rule: its limit and whether it acts before or after assignment."""

    limit: float | tuple[float, float]
    timing: Literal["before", "after"] | None = None


class Policy(Part):
    """Who is paid what, as a share of the reward."""

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
    content_warning: str = ""
    retention_days: Annotated[int, Field(ge=1, le=36500)] | None = None


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
            raise ValueError("bonus_per_match_cents and bonus_max_cents go together")
        if self.person_cap_cents is not None and self.person_cap_cents < self.amount_cents:
            raise ValueError("person_cap_cents is less than amount_cents, which everybody who finishes gets")
        return self

    @property
    def most_cents(self) -> int:
        """The most that one person may get."""
        most = self.amount_cents + self.bonus_max_cents
        return most if self.person_cap_cents is None else self.person_cap_cents


class Recruitment(Part):
    """Where people come from. No part of what a participant meets, so no part of the digest."""

    description: Annotated[str, Field(max_length=2000)] = ""
    keywords: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    maximum_minutes: Annotated[float, Field(gt=0, le=1380)] | None = None


class Device(Part):
    min_width_px: Annotated[int, Field(ge=320, le=4000)] = 700
    min_height_px: Annotated[int, Field(ge=320, le=4000)] = 500


class Practice(Part):
    correct_min: Annotated[int, Field(ge=0, le=4)] = 3


class Question(Part):
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    when: Literal["before", "after"] = "after"
    kind: Literal["choice", "number", "text"]
    prompt: Annotated[str, Field(min_length=1, max_length=500)]
    choices: tuple[str, ...] = ()
    required: bool = True
    min: int | None = None
    max: int | None = None
    max_length: Annotated[int, Field(ge=1, le=5000)] = 1000

    @model_validator(mode="after")
    def _answerable(self) -> Question:
        if (self.kind == "choice") != (len(self.choices) >= 2):
            raise ValueError("a choice question has at least two choices; the other kinds have none")
        return self


class QuizQuestion(Part):
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    prompt: Annotated[str, Field(min_length=1, max_length=500)]
    choices: Annotated[tuple[str, ...], Field(min_length=2)]
    answer: str

    @model_validator(mode="after")
    def _has_answer(self) -> QuizQuestion:
        if self.answer not in self.choices:
            raise ValueError(f"the answer {self.answer!r} is not among the choices")
        return self


class StudyDefinition(Part):
    """A study as data. `texts` holds the contents of the text files, so that the digest covers them."""

    slug: Name
    title: Annotated[str, Field(min_length=1, max_length=200)]
    paradigm: str
    seed: Annotated[int, Field(ge=0, lt=2**53)]
    language: Literal["en", "de"] = "en"
    sittings_max: Annotated[int, Field(ge=1, le=50)] = 1
    design: dict[str, Any] = Field(default_factory=dict)
    stimuli: Stimuli
    render: Render = Render()
    conditions: Annotated[tuple[ConditionTable, ...], Field(min_length=1)]
    metrics: tuple[ComponentTable, ...] = ()
    texts: dict[str, str]
    quiz: tuple[QuizQuestion, ...] = ()
    questions: tuple[Question, ...] = ()
    checks: Checks = Checks()
    screening: dict[str, Rule] = Field(default_factory=dict)
    policy: Policy = Policy()
    ethics: Ethics
    reward: Reward
    device: Device = Device()
    practice: Practice = Practice()
    recruitment: Recruitment = Recruitment()
    platforms: dict[Name, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("screening", mode="before")
    @classmethod
    def _rules(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {k: v if isinstance(v, Mapping) else {"limit": v} for k, v in value.items()}

    def as_met(self) -> dict[str, Any]:
        """All that a participant meets, texts included, as JSON; recruiting and metrics may change. Keys that
        joined later are left out at their default, so that older digests stay."""
        whole = self.model_dump(mode="json", exclude={"recruitment", "platforms", "metrics"})
        for table, model, names in _LATER:
            for name in names:
                if whole[table][name] == model.model_fields[name].default:
                    del whole[table][name]
        return whole

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all that a participant meets."""
        return content_key(self.as_met())

    @property
    def rules(self) -> dict[str, dict[str, Any]]:
        """The screening rules as plain values, for the paradigm's `screen`."""
        return {k: rule.model_dump(exclude_none=True) for k, rule in self.screening.items()}

    @property
    def choices(self) -> tuple[tuple[str, str], ...]:
        """What a participant chooses from: (value, text), in canonical order."""
        if self.stimuli.target is not None:
            return (("target", "Target"), ("other", "Other"))
        assert self.stimuli.classes is not None
        if self.stimuli.label_names == "neutral":
            # The values are neutral too, for a browser can read them.
            return tuple((f"class_{i + 1}", f"Class {i + 1}") for i in range(len(self.stimuli.classes)))
        return tuple((name, name.replace("_", " ").capitalize()) for name in self.stimuli.classes)

    @property
    def lease_minutes(self) -> float:
        """How long a claimed slot is held: the policy's, else twice the upper bound of total minutes."""
        if self.policy.lease_minutes is not None:
            return float(self.policy.lease_minutes)
        rule = self.screening.get("total_minutes")
        upper = rule.limit[1] if rule and isinstance(rule.limit, tuple) else 4 * self.reward.expected_minutes
        return 2.0 * upper

    def paradigm_design(self) -> Any:
        return get_paradigm(self.paradigm).Design.model_validate(self.design)


_LATER: tuple[tuple[str, type[Part], tuple[str, ...]], ...] = (
    ("stimuli", Stimuli, ("precision",)),
    ("render", Render, ("concept_form", "concept_top", "concept_signed")),
)


def find_study(name: str, extra_dirs: tuple[Path, ...] = ()) -> Path:
    """The study.toml of a slug or a path. Shipped examples are found by slug."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_dir():
        path = path / "study.toml" if path.is_dir() else path
        if not path.is_file():
            raise StudyError(f"{path}: there is no such file. Give the path of a study.toml, or a slug.")
        return path
    known: dict[str, Path] = {}
    for folder in (*extra_dirs, STUDIES_DIR):
        for found in sorted(folder.glob("*/study.toml")):
            known.setdefault(found.parent.name, found)
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise StudyError(f"{name!r} is neither a file nor a known study ({', '.join(sorted(known))}).{hint}")


def load_study(path: Path, *, changes: Mapping[str, Any] | None = None) -> StudyDefinition:
    """Reads and validates a study.toml whole; raises InvalidStudy with every mistake at once.

    `changes` replaces top-level keys of the file before validation (the demo adapts the number of slots).
    """
    source = str(path)
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidStudy(
            source, [Problem("file", "", f"cannot be read: {error}", "Save it as UTF-8 text.")]
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidStudy(
            source, [Problem("file", "", f"is not TOML: {error}", "Mend that line.")]
        ) from error
    raw.update(changes or {})
    problems: list[Problem] = []
    raw = _with_texts(raw, path.parent, problems)
    definition = None
    try:
        definition = StudyDefinition.model_validate(raw)
    except ValidationError as error:
        # A tuple whose parts are wrong counts as too short as well; the parts' own mistakes say more.
        problems.extend(_problem_of(detail) for detail in error.errors() if not _is_echo(detail, raw))
    problems.extend(_cross_checks(raw, definition))
    if problems or definition is None:
        raise InvalidStudy(source, problems)
    return definition


def _with_texts(raw: dict[str, Any], folder: Path, problems: list[Problem]) -> dict[str, Any]:
    """Replaces the names of text files by their contents."""
    try:
        files = TextFiles.model_validate(raw.get("texts", {}))
    except ValidationError as error:
        problems.extend(_problem_of(detail, "texts") for detail in error.errors())
        return {**raw, "texts": {}}
    contents = {}
    for key, name in files.model_dump(exclude_none=True).items():
        path = (folder / name).resolve()
        if folder.resolve() not in path.parents:
            problems.append(
                Problem(f"texts.{key}", repr(name), "must lie beside study.toml", "Move the file there.")
            )
            continue
        try:
            contents[key] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(
                Problem(f"texts.{key}", repr(name), f"cannot be read: {error}", "Write the file, as UTF-8.")
            )
    quiz_text = contents.pop("quiz", None)
    result = {**raw, "texts": contents}
    if quiz_text is not None:
        try:
            result["quiz"] = tomllib.loads(quiz_text).get("questions", [])
        except tomllib.TOMLDecodeError as error:
            problems.append(
                Problem("texts.quiz", repr(files.quiz), f"is not TOML: {error}", "Mend that line.")
            )
    return result


def _is_echo(detail: Any, raw: Mapping[str, Any]) -> bool:
    return detail["type"] == "too_short" and detail["loc"] == ("conditions",) and bool(raw.get("conditions"))


def _problem_of(detail: Any, prefix: str = "") -> Problem:
    """pydantic's error in our words."""
    key = ".".join([*([prefix] if prefix else []), *(str(part) for part in detail["loc"])]) or "study"
    kind, message = detail["type"], str(detail["msg"]).removeprefix("Value error, ")
    if kind == "missing":
        return Problem(key, "", "is missing", "Add it.")
    if kind == "extra_forbidden":
        return Problem(
            key, repr(detail["input"])[:60], "is not a key of this table", "Remove it, or mend its spelling."
        )
    return Problem(key, repr(detail["input"])[:60], message[:1].lower() + message[1:], "Change the value.")


def _cross_checks(raw: Mapping[str, Any], definition: StudyDefinition | None) -> Iterator[Problem]:
    """What no single table can know. Works on the raw text too, so that one mistake does not hide another."""
    name = raw.get("paradigm")
    if name not in PARADIGMS:
        yield Problem("paradigm", repr(name), f"must be one of {', '.join(PARADIGMS)}", "Choose one.")
    else:
        if name not in MATERIAL:
            yield Problem(
                "paradigm", repr(name), "has a planner but no pages yet", f"Use {', '.join(MATERIAL)}."
            )
        try:
            get_paradigm(name).Design.model_validate(raw.get("design", {}))
        except ValidationError as error:
            for detail in error.errors():
                yield _problem_of(detail, "design")
    conditions = raw.get("conditions", [])
    if isinstance(conditions, list):
        yield from _condition_checks([c for c in conditions if isinstance(c, dict)])
    yield from _screening_checks(raw)
    if definition is not None:
        yield from _definition_checks(definition)


def _condition_checks(conditions: list[dict[str, Any]]) -> Iterator[Problem]:
    from stimuli.explainers import check_explainer

    names = [str(c.get("name")) for c in conditions]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield Problem("conditions.name", repr(name), "names two conditions", "Give each its own name.")
    if sum(c.get("role") == "baseline" for c in conditions) != 1:
        found = sum(c.get("role") == "baseline" for c in conditions)
        yield Problem(
            "conditions.role", f"{found} baselines", "exactly one is needed", 'Give one role = "baseline".'
        )
    for index, condition in enumerate(conditions):
        explainer = condition.get("explainer")
        if isinstance(explainer, dict) and "name" in explainer:
            try:
                check_explainer(Component.from_json(explainer))
            except StimulusError as error:
                yield Problem(
                    f"conditions.{index}.explainer", repr(explainer.get("name")), str(error), "Mend it."
                )


def _screening_checks(raw: Mapping[str, Any]) -> Iterator[Problem]:
    screening = raw.get("screening", {})
    if not isinstance(screening, dict):
        return
    try:
        read_rules(screening)
    except BadRules as error:
        for name, sentence in error.problems.items():
            yield Problem(f"screening.{name}", repr(screening.get(name)), sentence, "Mend the rule.")


def _metric_checks(definition: StudyDefinition) -> Iterator[Problem]:
    from stimuli.metrics import check_metric

    for index, metric in enumerate(definition.metrics):
        try:
            check_metric(metric.component())
        except StimulusError as error:
            yield Problem(f"metrics.{index}", repr(metric.name), str(error), "Mend it.")


def _definition_checks(definition: StudyDefinition) -> Iterator[Problem]:
    yield from _metric_checks(definition)
    ids = [q.id for q in definition.questions]
    for name in sorted({n for n in ids if ids.count(n) > 1}):
        yield Problem("questions.id", repr(name), "names two questions", "Give each its own id.")
    if definition.ethics.deception and "debrief" not in definition.texts:
        yield Problem("ethics.deception", "", "demands a debrief that discloses it", "Write texts.debrief.")
    if definition.screening.get("instructed_share_min") and definition.checks.instructed < 2:
        yield Problem(
            "checks.instructed",
            str(definition.checks.instructed),
            "at least 2 where a rule reads them",
            "Add.",
        )
    if not definition.quiz and "quiz_attempts_max" in definition.screening:
        yield Problem(
            "screening.quiz_attempts_max", "", "needs a quiz", "Write texts.quiz, or remove the rule."
        )
