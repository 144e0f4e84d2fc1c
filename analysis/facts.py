"""Facts about a study besides its answers, for tables and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from analysis.planning.significance_levels import planned_levels
from experiments.definition.preregistration_table import Contrasts


class ReportError(ValueError):
    """A report cannot be made; the message names the missing part and the remedy."""


@dataclass(frozen=True, slots=True)
class ConditionFacts:
    """A level of the factor: how many slots show it, and how many of these are kept by a person who
    passed. `method`, `predictor` and `dataset` by the names that the study gives them; `shows`: what the
    method explains with, such as "image" or "concept". They are empty if nothing is explained, or not told.
    """

    name: str
    label: str
    role: str
    wanted: int
    kept: int
    method: str = ""
    predictor: str = ""
    dataset: str = ""
    shows: str = ""


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """Slots that are counted together: those of one condition, or, if slots mix conditions, of one lane.

    Every slot is in exactly one group. `wanted` counts the slots to be kept, `kept` those kept by people who
    passed.
    """

    name: str
    label: str
    wanted: int
    kept: int
    by: Literal["condition", "lane"] = "condition"

    @property
    def key(self) -> str:
        """Its name in report.json; the prefix is needed because a lane may have the name of a condition."""
        return self.name if self.by == "condition" else f"lane {self.name}"


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    """`choices` in the order that people read them; none if the question is no choice."""

    id: str
    when: str
    kind: str
    prompt: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """An answer that people choose from: its stored value, its text, and the classes of the material that it
    stands for if the value does not say so.
    """

    value: str
    text: str
    means: str = ""


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """Facts about its study that a report needs besides the answers. A study may have no conditions."""

    slug: str
    title: str
    paradigm: str
    digest: str
    seed: int
    state: str
    conditions: tuple[ConditionFacts, ...]
    slots: tuple[SlotFacts, ...]
    questions: tuple[QuestionFacts, ...] = ()
    answers: tuple[AnswerFacts, ...] = ()
    unsealed_at: str = ""
    unsealed_by: str = ""
    unsealed_reason: str = ""
    code_version: str = ""
    note: str = ""
    stimuli: tuple[str, ...] = ()
    """Sentences on the quality of the stimuli; none if the study explains nothing."""
    dropped: tuple[tuple[str, str, str, str], ...] = ()
    """Counts of empty explanations, for which items were left out: condition, answer, empty, looked at."""
    design: Mapping[str, Any] = field(default_factory=dict)
    """The study's `[design]`, and `language` the language of its pages."""
    language: str = "en"
    wording: Mapping[str, str] = field(default_factory=dict)
    """Sentences of its pages by name, if the study has them in a language of its own."""
    frozen: Mapping[str, Any] = field(default_factory=dict)
    """What was stored when the solutions that the study starts from were frozen: `settings`, numbers of each
    of the `sources`, and for each of them but people how well the form of a region tells it (`told`). Empty
    if it starts from none."""

    screening: Mapping[str, Any] = field(default_factory=dict)
    """The study's `[screening]`: limits by rule."""
    preregistration: Mapping[str, Any] = field(default_factory=dict)
    """The stored plan with its digest and the departures from it (`departures.plan_facts`); empty if it is
    not told, as of people made in memory."""

    @property
    def alpha(self) -> float:
        """The level of the planned tests, as the plan declares it; of a plan with looks, that of the look
        that said stop, or else of the end."""
        levels = self.levels
        stopped = [row["number"] for row in self.looks_taken if row["answer"] == "stop"]
        return levels[stopped[0] - 1] if stopped else levels[-1]

    @property
    def level(self) -> float:
        """The level (0-1) of the intervals of the planned contrasts, and of those that hold together."""
        return 1 - self.alpha

    @property
    def levels(self) -> tuple[float, ...]:
        """The level of the planned tests at each look that the plan names, and last at the end."""
        return planned_levels(self._plan_document, [condition.wanted for condition in self.conditions])

    @property
    def looks(self) -> tuple[int, ...]:
        """At how many people kept per condition the plan names a look; none if it names none."""
        return tuple(self._plan_document.get("looks") or ())

    @property
    def looks_taken(self) -> Sequence[Mapping[str, Any]]:
        """`number`, `people`, `answer`, `at` and `by` of each, in their order."""
        taken: Sequence[Mapping[str, Any]] = self.preregistration.get("looks", ())
        return taken

    @property
    def contrasts(self) -> Contrasts:
        """The contrasts that the plan declares; with the baseline, if it declares none."""
        return "tukey" if self._plan_document.get("contrasts") == "tukey" else "dunnett"

    @property
    def smallest_effect(self) -> Mapping[str, float]:
        """What the plan declares: `points` or `d`; empty if it declares none."""
        return self._plan_document.get("smallest_effect") or {}

    @property
    def _plan_document(self) -> Mapping[str, Any]:
        document: Mapping[str, Any] = self.preregistration.get("document") or {}
        return document

    @property
    def wanted(self) -> int:
        """How many slots of the study are to be kept."""
        return sum(group.wanted for group in self.slots)

    @property
    def kept(self) -> int:
        """How many slots of the study are kept."""
        return sum(min(group.kept, group.wanted) for group in self.slots)

    @property
    def labels(self) -> dict[str, str]:
        """The label of each condition by its name."""
        return {condition.name: condition.label for condition in self.conditions}

    @property
    def baseline(self) -> str:
        """Name of the baseline condition. Raises ReportError if the study has none."""
        for condition in self.conditions:
            if condition.role == "baseline":
                return condition.name
        raise ReportError(f"Study '{self.slug}' has no baseline condition to compare with.")
