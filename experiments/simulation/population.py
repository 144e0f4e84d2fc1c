"""The simulated participants: the exact mix of kinds, and the traits that were drawn for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from pydantic import BaseModel

from experiments.design.rng import Streams
from experiments.paradigms.base import Paradigm
from experiments.simulation import PEOPLE, person_class
from experiments.simulation.people import Person
from stimuli.errors import UnknownName

DEFAULT_MIX = "exemplar=0.27,prototype=0.27,one_reason=0.26,guesser=0.08,careless=0.07,leaver=0.05"
TEXT_MIX = "word_exemplar=0.27,word_prototype=0.27,word_reason=0.26,guesser=0.08,careless=0.07,leaver=0.05"
RATER_MIX = "rater=0.8,guesser=0.08,careless=0.07,leaver=0.05"


PLATES_MIX = "plate_reader=0.75,weak_reader=0.15,guesser=0.05,careless=0.05"
INVITED_MIX = "weak_reader=0.75,plate_reader=0.15,guesser=0.05,careless=0.05"
"""Of people in general, and of people who were invited for their eyes. Shares are declared, as the 4.2 % of a
population would be too few to see that a colour check leads some on and lets others leave."""
BY_EYES = {"ordinary": PLATES_MIX, "reduced": INVITED_MIX}


def usual_mix(paradigm: Paradigm, design: BaseModel) -> str:
    """Who comes to such a study if nothing else is asked: readers of plates if it is for certain eyes, raters
    if no answer is right or wrong, else the observers of what its pages show."""
    eyes = paradigm.eyes(design)
    if eyes is not None:
        return BY_EYES[eyes]
    if not paradigm.scores(design):
        return RATER_MIX
    return DEFAULT_MIX if "image" in paradigm.modalities else TEXT_MIX


@dataclass(frozen=True, slots=True)
class Mix:
    """Kinds of people with their shares (0-1, together 1), in the order they were written."""

    shares: Mapping[str, float]

    def counts(self, total: int) -> dict[str, int]:
        """Whole people per kind, together exactly `total`: largest remainders, ties by order."""
        exact = {kind: share * total for kind, share in self.shares.items()}
        counts = {kind: int(value) for kind, value in exact.items()}
        by_remainder = sorted(exact, key=lambda kind: counts[kind] - exact[kind])
        for kind in by_remainder[: total - sum(counts.values())]:
            counts[kind] += 1
        return counts

    def __str__(self) -> str:
        return ",".join(f"{kind}={share:g}" for kind, share in self.shares.items())


def parse_mix(text: str) -> Mix:
    """A mix like "learner=0.8,guesser=0.2". Raises UnknownName for a kind, else ValueError that names the
    value, the limit and the remedy."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        kind, equals, number = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ValueError(
                f'the mix has {part.strip()!r}; write each kind as name=share, like "{DEFAULT_MIX}".'
            )
        try:
            person_class(kind)
        except UnknownName as error:
            raise ValueError(str(error)) from error
        if kind in shares:
            raise ValueError(f"the mix names {kind} twice; give each kind one share.")
        try:
            shares[kind] = float(number)
        except ValueError:
            raise ValueError(f"the share of {kind} is {number!r}; write a number from 0 to 1.") from None
        if not 0 <= shares[kind] <= 1:
            raise ValueError(f"the share of {kind} is {number}; it must lie between 0 and 1.")
    if abs(sum(shares.values()) - 1) > 1e-6:
        raise ValueError(
            f"the shares of the mix add up to {sum(shares.values()):g}; change them so that they give 1."
        )
    return Mix(shares)


def populate(mix: Mix, total: int, seed: int, first: int = 0) -> tuple[Person, ...]:
    """`total` people in the order they arrive: the mix exactly, the order drawn from the seed.

    Person j of a kind does not depend on the mix or the total; numbers start at `first`, so that a later
    wave brings new people. Raises ValueError for fewer than one person.
    """
    if total < 1:
        raise ValueError(f"a population of {total} people; ask for at least 1.")
    people: list[Person] = [
        person_class(kind).drawn(seed, number)
        for kind, count in mix.counts(total).items()
        for number in range(first, first + count)
    ]
    return tuple(people[i] for i in Streams(seed)("arrival", first).permutation(total))


@dataclass(frozen=True, slots=True)
class TraitsRow:
    """What was drawn for one kind: the number of people, and mean, least and greatest value of each trait."""

    kind: str
    count: int
    traits: Mapping[str, tuple[float, float, float]]

    def as_json(self) -> dict[str, object]:
        drawn = {n: dict(zip(("mean", "min", "max"), v, strict=True)) for n, v in self.traits.items()}
        return {"kind": self.kind, "count": self.count, "traits": drawn}


def drawn_traits(people: Sequence[Person]) -> tuple[TraitsRow, ...]:
    """One row per kind that occurs, in the order of the registry."""
    rows = []
    for kind in PEOPLE:
        drawn = [asdict(person.traits) for person in people if person.kind == kind]
        if not drawn:
            continue
        columns = {name: np.array([traits[name] for traits in drawn], dtype=np.float64) for name in drawn[0]}
        spans = {n: (float(c.mean()), float(c.min()), float(c.max())) for n, c in columns.items()}
        rows.append(TraitsRow(kind, len(drawn), spans))
    return tuple(rows)
