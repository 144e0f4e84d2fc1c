"""What a study's author declares of the analysis before people come: `[preregistration]` of study.toml."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from experiments.page_tables import Part

ALPHA = 0.05
"""The level of every test whose study declares none."""
Contrasts = Literal["dunnett", "tukey"]
Sentence = Annotated[str, Field(min_length=10, max_length=2000)]
REGISTRY = re.compile(r"https://[^\s/]+\.[^\s/]+/\S+")


class SmallestEffect(Part):
    """The smallest difference between two conditions that matters: percentage points of accuracy, or standard
    deviations of people's own scores."""

    points: Annotated[float, Field(gt=0, le=100)] | None = None
    d: Annotated[float, Field(gt=0, le=5)] | None = None

    @model_validator(mode="after")
    def _in_one_unit(self) -> SmallestEffect:
        if (self.points is None) == (self.d is None):
            raise ValueError("give either { points = 5 }, percentage points, or { d = 0.5 }, and not both")
        return self


class PreregistrationTable(Part):
    """What is empty is not stated. `contrasts` says which comparisons are planned, `registry` is the address
    at which the plan was registered; it is known later than the plan, so that no digest covers it."""

    hypotheses: tuple[Sentence, ...] = ()
    primary_outcome: Sentence | Literal[""] = ""
    smallest_effect: SmallestEffect | None = None
    alpha: Annotated[float, Field(ge=0.0001, le=0.2)] | None = None
    contrasts: Contrasts | None = None
    missing: Sentence | Literal[""] = ""
    registry: str = ""

    @field_validator("registry")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value and not REGISTRY.fullmatch(value):
            raise ValueError(
                'must be the address of the registration, such as "https://osf.io/abc12": https and no spaces'
            )
        return value

    @property
    def is_silent(self) -> bool:
        """Whether it says nothing of the plan."""
        return self.model_copy(update={"registry": ""}) == PreregistrationTable()
