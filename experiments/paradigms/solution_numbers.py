"""What is told of frozen solutions: how many, how large, how far the form of a region tells its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np

from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms.solutions import FrozenSolution, SolvedItem, SourceAnswer, region_mask
from stimuli.errors import ShapeMismatch
from stimuli.quality.look_decodability import Decodability, decode
from stimuli.regions.overlap_and_form import form_numbers, overlap


@dataclass(frozen=True, slots=True)
class SourceNumbers:
    """Of one source: its solutions, those that say "cannot say", those whose map was flat; the quartiles of
    the area of its regions, in cells, and the median of its marks before they were shaped. None without
    regions."""

    source: str
    solutions: int
    abstained: int
    flat: int
    areas: tuple[float, float, float] | None
    marked: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def numbers_of(
    solutions: Sequence[FrozenSolution], given: Sequence[SourceAnswer]
) -> tuple[SourceNumbers, ...]:
    """Per source in alphabetical order; lures and transplants do not count."""
    flat = {(g.item, g.source) for g in given if g.mark is not None and not g.is_painted and is_flat(g)}
    rows = []
    for source in sorted({solution.source for solution in solutions}):
        its = [s for s in solutions if s.source == source and s.use == "solution"]
        areas = [len(s.region) for s in its if s.region]
        marked = [int(s.made["marked"]) for s in its if s.region]
        low, middle, high = np.percentile(areas, [25, 50, 75]) if areas else (0.0, 0.0, 0.0)
        rows.append(
            SourceNumbers(
                source,
                len(its),
                sum(s.choice == CANNOT_SAY for s in its),
                sum((s.item, s.source) in flat and bool(s.region) for s in its),
                (float(low), float(middle), float(high)) if areas else None,
                float(np.median(marked)) if marked else None,
            )
        )
    return tuple(rows)


def left_out(solutions: Sequence[FrozenSolution], items: Sequence[SolvedItem]) -> dict[str, dict[str, int]]:
    """Source -> reason -> how many of its solutions no lead may meet. `tuning`: settings are chosen on these
    items. `unmatched`: another source has not solved the task, so that nothing is to be compared."""
    use = {item.key: item.use for item in items}
    given = [s for s in solutions if s.use == "solution"]
    sources = {s.source for s in given}
    solvers: dict[str, set[str]] = {}
    for solution in given:
        solvers.setdefault(solution.item, set()).add(solution.source)
    counts = {source: {"tuning": 0, "unmatched": 0} for source in sorted(sources)}
    for solution in given:
        if use[solution.item] == "tuning":
            counts[solution.source]["tuning"] += 1
        elif use[solution.item] == "task" and solvers[solution.item] != sources:
            counts[solution.source]["unmatched"] += 1
    return counts


def is_flat(given: SourceAnswer) -> bool:
    """Whether a map marks no cell more than another, so that its cut says nothing."""
    assert given.mark is not None
    seen = np.asarray(given.mark)[np.isfinite(given.mark)]
    return not seen.size or float(np.ptp(seen)) == 0.0


def told_by_form(
    solutions: Sequence[FrozenSolution], people: str, side: int, seed: int
) -> dict[str, Decodability | None]:
    """How well the form of a region tells each other source from `people`, on items that both have marked;
    None if these are too few. `groups` are the items: what is shown is held constant."""
    marked = [s for s in solutions if s.use == "solution" and s.region]
    told: dict[str, Decodability | None] = {}
    for source in sorted({s.source for s in solutions} - {people}):
        pair = [s for s in marked if s.source in (people, source)]
        forms = [form_numbers(region_mask(s, side)) for s in pair]
        try:
            told[source] = decode(forms, [s.source == source for s in pair], [s.item for s in pair], seed)
        except ShapeMismatch:
            told[source] = None
    return told


def overlaps(solutions: Sequence[FrozenSolution], people: str, side: int) -> Mapping[str, float | None]:
    """The mean overlap (0-1) of each source's regions with those that other people marked for the same answer
    on the same item; None without any such pair."""
    marked = [s for s in solutions if s.use == "solution" and s.region]
    means: dict[str, float | None] = {}
    for source in sorted({s.source for s in solutions}):
        shares = [
            overlap(region_mask(a, side), region_mask(b, side))
            for a in marked
            for b in marked
            if a.source == source and b.source == people and a.key != b.key
            if (a.item, a.choice) == (b.item, b.choice)
        ]
        means[source] = fmean(shares) if shares else None
    return means
