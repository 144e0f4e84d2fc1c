"""How many people a study with a colour check has to screen for its places, and what that costs; before
anybody comes, so by the prevalence that its file states.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

from crowd.ground.amounts import amount_of, share_of
from experiments.definition.colour_vision_verdict import Vision
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Route

if TYPE_CHECKING:
    from experiments.definition.study import StudyDefinition
    from experiments.paradigms.base import Plan

COLUMNS = (
    "lane",
    "places",
    "open to",
    "people per place",
    "people in all",
    "cost per place",
    "cost in all",
)


@dataclass(frozen=True, slots=True)
class LaneCost:
    """One lane: its places, and the share (0-1) of the people who come to whom it is open. All others are
    paid `screened_cents`, those who fill a place `reward_cents`."""

    lane: str
    places: int
    share: Fraction
    reward_cents: int
    screened_cents: int

    @property
    def people_per_place(self) -> Fraction:
        """How many come until one is found, in the mean."""
        return 1 / self.share

    @property
    def cents_per_place(self) -> Fraction:
        return self.reward_cents + (self.people_per_place - 1) * self.screened_cents


def screened_in(definition: StudyDefinition, plans: Sequence[Plan]) -> tuple[LaneCost, ...]:
    """Every lane of the plans that people may take; none for a study without a colour check."""
    if definition.plates is None:
        return ()
    reduced = Fraction(str(definition.plates.prevalence))
    shares: Mapping[Vision, Fraction] = {"ordinary": 1 - reduced, "reduced": reduced}
    paradigm, reward_cents = get_paradigm(definition.paradigm), definition.reward.amount_cents
    screened_cents = share_of(reward_cents, definition.policy.screened_share)
    rows = []
    for lane, places in sorted(Counter(plan.lane for plan in plans).items()):
        open_to = [v for v in shares if paradigm.lane(Route((), "", {lane: 1}, v)) == lane]
        if share := sum((shares[vision] for vision in open_to), Fraction(0)):
            rows.append(LaneCost(lane, places, share, reward_cents, screened_cents))
    return tuple(rows)


def screened_title(definition: StudyDefinition) -> str:
    assert definition.plates is not None
    return (
        f"People to be screened, if {definition.plates.prevalence:.1%} of those who come have a reduced "
        "colour vision ([plates] prevalence), all of them take the check, and it errs with none"
    )


def screened_rows(screened: Sequence[LaneCost], currency: str) -> list[tuple[Any, ...]]:
    """One row per lane, under COLUMNS."""
    return [
        (
            row.lane,
            row.places,
            f"{float(row.share):.1%}",
            f"{float(row.people_per_place):.1f}",
            ceil(row.places * row.people_per_place),
            amount_of(ceil(row.cents_per_place), currency),
            amount_of(ceil(row.places * row.cents_per_place), currency),
        )
        for row in screened
    ]
