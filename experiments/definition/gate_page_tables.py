"""Tables of study.toml about the pages around the trials: what they ask, and what lets a person pass."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from experiments.definition.colour_vision_verdict import ORDINARY_SHARE_MIN, REDUCED_SHARE_MAX, Limits

COLOURED_MIN = 4
"""Fewer plates of colours do not tell people apart."""


class Part(BaseModel):
    """A table of study.toml: frozen; an unknown key is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class PracticeTable(Part):
    correct_min: Annotated[int, Field(ge=0, le=4)] = 3


class TrainingTable(Part):
    share_min: Annotated[float, Field(ge=0, le=1)] = 0.7


Share = Annotated[float, Field(ge=0, le=1)]


class PlatesTable(Part):
    """The colour check: which plates are drawn, and the shares of those of colours (controls left out) that
    people of ordinary and of reduced colour vision read. `prevalence` is the share of the people who come
    whose colour vision is reduced, for the costs that `study_check` prints: they never meet it.
    """

    count: Annotated[int, Field(ge=6, le=40)] = 12
    controls: Annotated[int, Field(ge=1, le=10)] = 2
    axis: Literal["protan", "deutan", "tritan", "red_green"] = "red_green"
    severity: Annotated[float, Field(ge=0.1, le=1)] = 0.6
    ordinary_share_min: Share = ORDINARY_SHARE_MIN
    reduced_share_max: Share = REDUCED_SHARE_MAX
    prevalence: Annotated[float, Field(gt=0, lt=1)] = 0.042

    @model_validator(mode="after")
    def _can_tell(self) -> PlatesTable:
        coloured = self.count - self.controls
        if coloured < COLOURED_MIN:
            raise ValueError(
                f"count = {self.count} with controls = {self.controls} leaves {max(0, coloured)} plates of "
                f"colours, and fewer than {COLOURED_MIN} tell nothing: ask for more plates or fewer controls"
            )
        ordinary, reduced = self.limits.counts(coloured)
        if reduced >= ordinary:
            raise ValueError(
                f"of {coloured} plates of colours {ordinary} or more would be ordinary and {reduced} or "
                "fewer reduced colour vision: set reduced_share_max below ordinary_share_min"
            )
        return self

    @property
    def limits(self) -> Limits:
        return Limits(self.ordinary_share_min, self.reduced_share_max)


HEALTH = re.compile(
    "|".join(
        (
            r"colou?r.{0,20}\b(?:vision|blind|deficien|apart)",
            *(r"\bsee\w* colou?rs?\b", r"\b(?:your|poor) vision", r"\bhealth", r"\bill\b"),
            *("eyesight", "illness", "disease", "disab", "diagnos", "disorder", "medica", "epilep"),
            *("depress", "migraine", "pregnan", "dyslexi", "autis"),
            *(r"farb.{0,20}\b(?:unter|seh)", "farb(?:en)?(?:blind|schw|seh|fehl)", "rotgr"),
            *("sehschw", "sehverm", "gesundheit", "krank", "behinder", "medikament", "schwanger"),
        )
    ),
    re.IGNORECASE,
)
"""Words of questions on colour vision and health, English and German: rather one too many, since a study may
say `special = false`."""


class QuestionTable(Part):
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    when: Literal["before", "after"] = "after"
    kind: Literal["choice", "number", "text"]
    prompt: Annotated[str, Field(min_length=1, max_length=500)]
    choices: tuple[str, ...] = ()
    required: bool = True
    min: int | None = None
    max: int | None = None
    max_length: Annotated[int, Field(ge=1, le=5000)] = 1000
    special: bool | None = None
    """Whether the answers are data on health; None: if the words speak of it."""

    @property
    def speaks_of_health(self) -> bool:
        return HEALTH.search(f"{self.id.replace('_', ' ')} {self.prompt}") is not None

    @property
    def is_special(self) -> bool:
        """Whether the answers are in no cleaned data and no release."""
        return self.speaks_of_health if self.special is None else self.special

    @model_validator(mode="after")
    def _answerable(self) -> QuestionTable:
        if (self.kind == "choice") != (len(self.choices) >= 2):
            raise ValueError(
                "a choice question has two choices or more, and others have none: change kind or choices"
            )
        return self


class QuizQuestion(Part):
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    prompt: Annotated[str, Field(min_length=1, max_length=500)]
    choices: Annotated[tuple[str, ...], Field(min_length=2)]
    answer: str

    @model_validator(mode="after")
    def _has_answer(self) -> QuizQuestion:
        if self.answer not in self.choices:
            raise ValueError(f"the answer {self.answer!r} is not among the choices: name one of them")
        return self
