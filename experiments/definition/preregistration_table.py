"""What a study's author declares of the analysis before people come: `[preregistration]` of study.toml."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from experiments.definition.gate_page_tables import Part

ALPHA = 0.05
"""The level of every test whose study declares none."""
Contrasts = Literal["dunnett", "tukey"]
Boundary = Literal["obrien_fleming", "pocock"]
LOOK_PEOPLE_MIN = 5
"""With fewer people per condition the report gives no p either."""
LOOK_GAP_MIN = 0.01
"""Looks that lie closer together than this share of the places are one."""
Sentence = Annotated[str, Field(min_length=10, max_length=2000)]
FileName = Annotated[str, Field(pattern=r"^([A-Za-z0-9_\-][A-Za-z0-9_.\-]*)?$", max_length=200)]
UNCOVERED = ("registry", "timestamp", "timestamp_certificates")
"""What is known later than the plan, so that no digest covers it."""
REGISTRY = re.compile(r"https://[^\s/]+\.[^\s/]+/\S+")


class SmallestEffect(Part):
    """The smallest difference between two conditions that matters: percentage points of accuracy, or standard
    deviations of people's own scores."""

    points: Annotated[float, Field(gt=0, le=100)] | None = None
    d: Annotated[float, Field(gt=0, le=5)] | None = None

    @model_validator(mode="after")
    def _in_one_unit(self) -> SmallestEffect:
        if (self.points is None) == (self.d is None):
            raise ValueError(
                "its unit is not clear: give either { points = 5 }, percentage points, or { d = 0.5 }"
            )
        return self


class PreregistrationTable(Part):
    """What is empty is not stated. `contrasts` says which comparisons are planned; `looks`, at how many
    people kept per condition they are looked at before the end, by the limits of `boundary`. `registry` is
    the address at which the plan was registered, `timestamp` a file with the response of an authority.
    """

    hypotheses: tuple[Sentence, ...] = ()
    primary_outcome: Sentence | Literal[""] = ""
    smallest_effect: SmallestEffect | None = None
    alpha: Annotated[float, Field(ge=0.0001, le=0.2)] | None = None
    contrasts: Contrasts | None = None
    looks: Annotated[
        tuple[Annotated[int, Field(ge=LOOK_PEOPLE_MIN, le=5000)], ...], Field(max_length=10)
    ] = ()
    boundary: Boundary | None = None
    missing: Sentence | Literal[""] = ""
    registry: str = ""
    timestamp: FileName = ""
    timestamp_certificates: FileName = ""

    @field_validator("registry")
    @classmethod
    def _is_address(cls, value: str) -> str:
        if value and not REGISTRY.fullmatch(value):
            raise ValueError(
                'must be the address of the registration, such as "https://osf.io/abc12": https and no spaces'
            )
        return value

    @model_validator(mode="after")
    def _vouched_for(self) -> PreregistrationTable:
        if bool(self.timestamp) != bool(self.timestamp_certificates):
            raise ValueError(
                'timestamp = "plan.tsr" and timestamp_certificates = "authority.pem" go together: without '
                "certificates nothing says who stamped"
            )
        return self

    @model_validator(mode="after")
    def _names_looks(self) -> PreregistrationTable:
        if bool(self.looks) != bool(self.boundary):
            raise ValueError(
                'looks = [10, 20] and boundary = "obrien_fleming" go together: give both, or neither'
            )
        if list(self.looks) != sorted(set(self.looks)):
            raise ValueError(f"looks = {list(self.looks)} must rise: each look has more people than the last")
        if self.looks and self.contrasts == "tukey":
            raise ValueError(
                'looks are at the contrasts with the baseline: remove contrasts = "tukey", or looks'
            )
        return self

    def unfit_looks(self, slots: Sequence[int]) -> str:
        """Why a study with so many places per condition cannot have these looks; empty if it can."""
        if not self.looks:
            return ""
        if len(set(slots)) != 1:
            return "need the same number of slots in every condition, so that all are looked at together"
        steps = [b - a for a, b in pairwise((0, *self.looks, slots[0]))]
        if steps[-1] <= 0:
            return f"must lie below the {slots[0]} slots of each condition, whose end is no look"
        if min(steps) < LOOK_GAP_MIN * slots[0]:
            return f"must lie {LOOK_GAP_MIN * slots[0]:g} people or more apart, with {slots[0]} slots"
        return ""

    def as_met(self) -> dict[str, Any]:
        """What a digest covers: without what is known later, and without newer keys at their default."""
        whole = self.model_dump(mode="json", exclude=set(UNCOVERED))
        return whole if self.looks else {k: v for k, v in whole.items() if k not in ("looks", "boundary")}

    @property
    def is_silent(self) -> bool:
        """Whether it says nothing of the plan."""
        return self.model_copy(update=dict.fromkeys(UNCOVERED, "")) == PreregistrationTable()
